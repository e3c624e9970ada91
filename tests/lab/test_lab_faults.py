# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whatever is killed comes back: programs by themselves, machines by `up`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from lab import Lab, LabError
from lab.cluster import faults
from lab.cluster.status import collect_status
from tests.lab.real import PODS, a_pod, eventually, node_is_ready, run_pod

pytestmark = pytest.mark.lab

BY_DAY = {"etcd": None, "kubelet": "node-1"}
AT_NIGHT = {
    "kube-apiserver": None,
    "kube-controller-manager": None,
    "kube-scheduler": None,
    "lab-storage": None,
    "containerd": "node-1",
    "kube-proxy": "node-2",
}
HEAL_SECONDS = 30
"""When to give up; how long it takes is measured by `python -m tests.bench lab-start`."""


@pytest.mark.parametrize(
    ("program", "node"),
    [
        *(pytest.param(program, node, id=program) for program, node in BY_DAY.items()),
        *(pytest.param(program, node, id=program, marks=pytest.mark.nightly) for program, node in AT_NIGHT.items()),
    ],
)
def test_a_killed_program_is_restarted(two_nodes: Lab, program: str, node: str | None) -> None:
    machine, _unused = faults.find_program(two_nodes, program, node=node)
    killed = faults.kill_program(two_nodes, program, node=node)
    eventually(lambda: machine.programs()[program].pid not in (0, killed), HEAL_SECONDS, f"{program} runs again")
    eventually(lambda: two_nodes.api().is_ready(), HEAL_SECONDS, "the API server is ready")
    eventually(
        lambda: all(node_is_ready(two_nodes, name) for name in two_nodes.node_names()), HEAL_SECONDS, "nodes are Ready"
    )


@pytest.mark.nightly
def test_pods_outlive_their_kubelet_and_containerd(two_nodes: Lab) -> None:
    run_pod(two_nodes, a_pod("steady", node="node-1"))
    for program in ("kubelet", "containerd"):
        faults.kill_program(two_nodes, program, node="node-1")
    two_nodes.up()
    run_pod(two_nodes, a_pod("after", node="node-1"))
    (status,) = (two_nodes.api().get(f"{PODS}/steady") or {})["status"]["containerStatuses"]
    assert status["restartCount"] == 0


def test_up_restores_a_node_and_its_pods_after_a_power_cut(two_nodes: Lab) -> None:
    run_pod(two_nodes, a_pod("rebooted", node="node-2"))
    faults.kill_node(two_nodes, "node-2")
    assert [node["state"] for node in collect_status(two_nodes)["nodes"]] == ["running", "down"]
    assert not list(Path("/sys/fs/cgroup").glob(f"*/lab/{two_nodes.name}/node-2"))
    two_nodes.up()

    def restarted() -> bool:
        (status,) = (two_nodes.api().get(f"{PODS}/rebooted") or {})["status"]["containerStatuses"]
        return bool(status["restartCount"] >= 1 and status["ready"])

    eventually(restarted, HEAL_SECONDS, "the node's Pod runs again")


@pytest.mark.nightly
@pytest.mark.parametrize("victim", ["cp", "node-1"])
def test_up_restores_a_machine_with_a_killed_init(two_nodes: Lab, victim: str) -> None:
    machine = two_nodes.control_plane if victim == "cp" else two_nodes.node(victim)

    os.kill(machine.running_pid(), signal.SIGKILL)
    eventually(lambda: machine.pid() is None, HEAL_SECONDS, f"{victim} is down")
    two_nodes.up()
    run_pod(two_nodes, a_pod(f"after-{victim}", node="node-1"))


@pytest.mark.nightly
def test_the_control_plane_keeps_its_data_after_a_power_cut(two_nodes: Lab) -> None:
    item = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "b"}}
    two_nodes.api().create("/api/v1/namespaces/default/configmaps", item)
    two_nodes.control_plane.kill()
    two_nodes.up()
    stored = two_nodes.api().get("/api/v1/namespaces/default/configmaps/kept") or {}
    assert stored.get("data") == {"a": "b"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("inject", "heal", "state"),
    [
        pytest.param(faults.freeze_node, faults.thaw_node, "frozen", id="freeze"),
        pytest.param(faults.cut_node, faults.heal_node, "cut", id="cut"),
    ],
)
def test_a_silent_node_is_not_ready_until_it_is_healed(two_nodes: Lab, inject, heal, state: str) -> None:  # type: ignore[no-untyped-def]
    inject(two_nodes, "node-2")
    assert [node["state"] for node in collect_status(two_nodes)["nodes"]] == ["running", state]
    eventually(lambda: not node_is_ready(two_nodes, "node-2"), 20, "the node is NotReady")
    heal(two_nodes, "node-2")
    eventually(lambda: node_is_ready(two_nodes, "node-2"), 20, "the node is Ready again")


def test_up_heals_frozen_and_cut_nodes(two_nodes: Lab) -> None:
    faults.freeze_node(two_nodes, "node-1")
    faults.cut_node(two_nodes, "node-2")
    two_nodes.up()
    assert [node["state"] for node in collect_status(two_nodes)["nodes"]] == ["running", "running"]


def test_a_program_on_several_nodes_needs_a_node(two_nodes: Lab) -> None:
    with pytest.raises(LabError, match="add --node"):
        faults.kill_program(two_nodes, "kubelet")
    with pytest.raises(LabError, match="does not run in lab"):
        faults.kill_program(two_nodes, "dockerd")


@pytest.mark.nightly
def test_a_lab_with_a_frozen_node_can_be_removed(no_lab: Lab) -> None:
    no_lab.up(1)
    faults.freeze_node(no_lab, "node-1")
    no_lab.down()
    assert not no_lab.state.root.exists()


def fail_beside_an_ended_program(name: str) -> None:
    with Lab(name).running(nodes=0) as lab:
        faults.kill_program(lab, "kube-scheduler")
        raise LabError("the test's own")


@pytest.mark.nightly
def test_an_error_in_a_lab_has_a_note_about_each_ended_program() -> None:
    with pytest.raises(LabError, match="the test's own") as error:
        fail_beside_an_ended_program(f"t-note-{os.getpid()}")
    (note,) = error.value.__notes__
    assert note.startswith("kube-scheduler on cp ended")
