# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of an upgrade, read from the cluster: components, and machines in older launchers."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.upgrade_status import (
    components,
    in_other_launchers,
)

NEW, OLD = "registry/virt-launcher:0.2.0", "registry/virt-launcher:0.1.0"
MOVES = {"type": "LiveMigratable", "status": "True"}
STAYS = {
    "type": "LiveMigratable",
    "status": "False",
    "reason": "DisksNotLiveMigratable",
    "message": "a disk is the node's",
}


STARTING = ("", "Pending", "Scheduling", "Scheduled")


def instance(launcher: str | None, *conditions: dict[str, str], phase: str = "Running", name: str = "web") -> Any:
    status: dict[str, Any] = {"phase": phase, "nodeName": "node-1", "conditions": list(conditions)}
    if launcher is not None:
        status["launcherContainerImageVersion"] = launcher
    return {"kind": "VirtualMachineInstance", "metadata": {"namespace": "shop", "name": name}, "status": status}


def component(kind: str, name: str, status: dict[str, int], **labels: str) -> Any:
    metadata = {"name": name, "namespace": "kubevirt", "generation": 1, "labels": labels}
    return {"kind": kind, "metadata": metadata, "spec": {"replicas": 2}, "status": {"observedGeneration": 1, **status}}


def test_each_component_has_its_version_and_what_is_missing() -> None:
    label = {"app.kubernetes.io/version": "0.2.0"}
    done = component("Deployment", "virt-api", {"updatedReplicas": 2, "availableReplicas": 2, "replicas": 2}, **label)
    stuck = component("DaemonSet", "virt-handler", {"desiredNumberScheduled": 3, "updatedNumberScheduled": 1})

    assert components([stuck, {"kind": "Secret", "metadata": {"name": "x"}}, done]) == [
        {"kind": "Deployment", "name": "virt-api", "version": "0.2.0", "missing": ""},
        {"kind": "DaemonSet", "name": "virt-handler", "version": "", "missing": "1 of 3 updated, 0 ready"},
    ]


@pytest.mark.parametrize(
    "obj",
    [
        pytest.param(instance(NEW, MOVES), id="in this one"),
        pytest.param(instance(None, phase="Scheduling"), id="in none yet"),
        pytest.param(instance(OLD, phase="Succeeded"), id="its run is over"),
        pytest.param(instance(OLD, phase="Failed"), id="it failed"),
        pytest.param({**instance(OLD), "kind": "VirtualMachine"}, id="no instance"),
        pytest.param({**instance(OLD), "status": None}, id="nobody has seen it"),
    ],
)
def test_machines_that_are_in_no_other_launcher(obj: Any) -> None:
    assert in_other_launchers([obj], NEW) == []


@pytest.mark.parametrize(
    ("obj", "reason"),
    [
        pytest.param(instance(OLD, MOVES), "", id="it can move"),
        pytest.param(instance(OLD, STAYS), "a disk is the node's", id="it cannot, and says why"),
        pytest.param(instance(OLD, {**STAYS, "message": ""}), "DisksNotLiveMigratable", id="in a word"),
        pytest.param(instance(OLD), "its condition LiveMigratable is not reported", id="before there were migrations"),
        pytest.param(instance(OLD, MOVES, phase="Scheduled"), "it is Scheduled", id="not yet"),
        pytest.param(instance(OLD, MOVES, phase=""), "it is not yet seen by virt-controller", id="seen by nobody"),
    ],
)
def test_machines_in_another_launcher_and_why_they_do_not_move(obj: Any, reason: str) -> None:
    (item,) = in_other_launchers([obj], NEW)

    assert (item["namespace"], item["name"], item["node"], item["launcher"]) == ("shop", "web", "node-1", OLD)
    assert (item["can_move"], item["reason"]) == (not reason, reason)


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(instance(OLD, MOVES), False, id="it can move"),
        pytest.param(instance(OLD, STAYS), False, id="it cannot"),
        pytest.param(instance(OLD), True, id="its node has not looked"),
        *(pytest.param(instance(OLD, MOVES, phase=item), True, id=f"starting: {item}") for item in STARTING),
        pytest.param(instance(OLD, MOVES, phase="Unknown"), False, id="its node is lost"),
    ],
)
def test_machines_without_a_verdict_yet(obj: Any, expected: bool) -> None:
    assert [item["undecided"] for item in in_other_launchers([obj], NEW)] == [expected]


def test_machines_are_sorted_by_name() -> None:
    instances = [instance(OLD, name="b"), instance(OLD, name="a")]
    assert [item["name"] for item in in_other_launchers(instances, NEW)] == ["a", "b"]
