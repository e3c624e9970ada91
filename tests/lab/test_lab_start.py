# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and end of real labs, and that nothing is left."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from lab import Lab, LabError
from lab.cluster import description
from lab.progress import silent
from tests.lab.real import a_pod, host_traces, run_pod, traces_of

pytestmark = pytest.mark.lab


def test_three_nodes_run_a_pod_and_leave_nothing_behind(no_lab: Lab) -> None:
    """`python -m tests.bench lab-start` measures the time."""
    before = host_traces()
    no_lab.up(3)
    run_pod(no_lab, a_pod("first"))
    link = no_lab.describe().addresses.host_link
    no_lab.down()
    assert traces_of(no_lab, link) == []
    assert host_traces() == before


@pytest.mark.nightly
def test_running_removes_a_lab_that_a_killed_process_left(no_lab: Lab) -> None:
    no_lab.up(0, controllers=False)
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "former"}}
    no_lab.api().create("/api/v1/namespaces", namespace)
    with no_lab.running(nodes=0, controllers=False):
        assert no_lab.api().get("/api/v1/namespaces/former") is None


def test_a_control_plane_without_nodes_serves_an_api(no_lab: Lab) -> None:
    """Component tests use such a lab: no nodes, no controllers."""
    no_lab.up(0, controllers=False)
    api = no_lab.api()
    assert api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    assert not api.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    assert set(no_lab.control_plane.programs()) == {"etcd", "kube-apiserver"}


@pytest.mark.nightly
def test_two_labs_run_side_by_side(no_lab: Lab) -> None:
    no_lab.up(1)
    with Lab(f"{no_lab.name}-b").running(nodes=1) as second:
        assert second.describe().addresses.network != no_lab.describe().addresses.network
        run_pod(second, a_pod("p"))
        run_pod(no_lab, a_pod("p"))
    assert no_lab.api().is_ready()


@pytest.mark.nightly
def test_a_node_joins_and_has_the_images_of_the_others(no_lab: Lab) -> None:
    no_lab.up(1)
    before = no_lab.node("node-1").pid()
    no_lab.up(2)
    assert no_lab.node("node-1").pid() == before
    run_pod(no_lab, a_pod("p", node="node-2"))


def test_a_lab_does_not_shrink(no_lab: Lab) -> None:
    stored = description.allocate(no_lab.cache, no_lab.state, silent, nodes=2, node_grace_seconds=8)
    for nodes in (0, 1):
        with pytest.raises(LabError, match="has 2 nodes and cannot shrink"):
            no_lab.up(nodes)
    assert no_lab.describe() == stored


def test_the_command_prints_status_and_kubeconfig(no_lab: Lab) -> None:
    def lab(*words: str) -> str:
        command = [sys.executable, "-m", "lab", *words, "--name", no_lab.name]
        root = Path(__file__).resolve().parents[2]
        return subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout

    lab("up", "--nodes", "1")
    status = json.loads(lab("status", "--output", "json"))
    assert status["name"] == no_lab.name
    assert status["kubeconfig"] == lab("kubeconfig").strip()
    assert Path(status["kubeconfig"]).stat().st_mode & 0o777 == 0o600
    assert Path(status["audit_log"]).read_text().startswith('{"kind":"Event"')
    (node,) = status["nodes"]
    assert (node["name"], node["state"], node["ready"]) == ("node-1", "running", True)
    assert set(node["pids"]) == {"containerd", "kubelet", "kube-proxy"}
    for program, pid in {**node["pids"], **status["control_plane"]["pids"]}.items():
        assert program.removeprefix("lab-").encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    lab("down")
    assert not no_lab.exists()
