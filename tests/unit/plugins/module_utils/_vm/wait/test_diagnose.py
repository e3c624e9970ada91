# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The most specific reason is reported."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import diagnose

VM = {"spec": {"runStrategy": "Always"}, "status": {"printableStatus": "Starting"}}
UNSCHEDULABLE = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes"}


def a_vmi(**status: Any) -> dict[str, Any]:
    return {"metadata": {"uid": "u"}, "status": status}


def a_pod(**status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "virt-launcher-web-1"}, "status": status}


def container(**state: Any) -> list[dict[str, Any]]:
    return [{"name": "compute", "state": state}]


ENDED = a_pod(phase="Failed", containerStatuses=container(terminated={"exitCode": 1, "message": "no boot disk"}))
PULL = a_pod(containerStatuses=container(waiting={"reason": "ErrImagePull", "message": "not found"}))
NO_NODE = a_pod(conditions=[UNSCHEDULABLE])


@pytest.mark.parametrize(
    ("vmi", "pods", "events", "words"),
    [
        pytest.param(a_vmi(), [ENDED], [], "virt-launcher-web-1 ended: no boot disk", id="the launcher's last words"),
        pytest.param(a_vmi(), [PULL], [], "cannot start: ErrImagePull: not found", id="the registry's"),
        pytest.param(a_vmi(), [NO_NODE], [], "finds no node: 0/1 nodes", id="the scheduler's"),
        pytest.param(a_vmi(conditions=[UNSCHEDULABLE]), [], [], "Unschedulable: 0/1 nodes", id="the instance's"),
        pytest.param(None, [], ["FailedCreate: quota"], "FailedCreate: quota", id="the newest event"),
        pytest.param(None, [], [], "no instance (status Starting); is virt-controller running?", id="nobody acts"),
        pytest.param(a_vmi(phase="Scheduled", nodeName="n1"), [], [], "is Scheduled on node n1", id="how far it got"),
    ],
)
def test_reason(vmi: dict[str, Any] | None, pods: list[Any], events: list[str], words: str) -> None:
    assert words in diagnose.reason(VM, vmi, pods, events)


FITS_NOWHERE = "0/1 nodes are available: 1 Insufficient memory."
NEWER = "0/2 nodes are available: 1 node(s) had untolerated taint {node.io/x: }, 1 Insufficient cpu."


@pytest.mark.parametrize(
    ("message", "cause"),
    [
        (f"{FITS_NOWHERE} preemption: 0/1 nodes are available: 1 No preemption victims found.", FITS_NOWHERE),
        (f"{NEWER} no new claims to deallocate, preemption: 0/2 nodes: 1 Preemption is not helpful.", NEWER),
        (NEWER, NEWER),
        ("not found", "not found"),
    ],
)
def test_what_the_scheduler_says_about_preemption_is_cut(message: str, cause: str) -> None:
    condition = {**UNSCHEDULABLE, "message": message}
    assert diagnose.reason(VM, a_vmi(conditions=[condition]), [], []) == f"Unschedulable: {cause}"
    assert diagnose.reason(VM, a_vmi(), [a_pod(conditions=[condition])], []).endswith(f"finds no node: {cause}")
    assert diagnose.distinct([{"reason": "FailedScheduling", "message": message}]) == [f"FailedScheduling: {cause}"]


def test_the_amount_that_no_node_has_is_named() -> None:
    requests = {"resources": {"requests": {"memory": "900Gi"}}}
    pod = {**a_pod(conditions=[UNSCHEDULABLE]), "spec": {"containers": [requests], "nodeSelector": {"disk": "ssd"}}}
    expected = "finds no node: 0/1 nodes (it asks for 900Gi of memory on a node with disk=ssd)"
    assert diagnose.reason(VM, a_vmi(), [pod], []).endswith(expected)


def an_event(message: str, time: str = "", **fields: Any) -> dict[str, Any]:
    return {"reason": "Failed", "message": message, "lastTimestamp": time or None, **fields}


@pytest.mark.parametrize(
    ("events", "texts"),
    [
        pytest.param([an_event("a", "1"), an_event("b", "2")], ["Failed: a", "Failed: b"], id="two"),
        pytest.param([an_event("a"), an_event("a"), an_event("a")], ["Failed: a (3 times)"], id="of several objects"),
        pytest.param([an_event("a", count=4), an_event("a")], ["Failed: a (5 times)"], id="counted by Kubernetes"),
        pytest.param([an_event("a", series={"count": 7})], ["Failed: a (7 times)"], id="a series"),
        pytest.param(
            [an_event("a", "1"), an_event("b", "2"), an_event("a", "3")],
            ["Failed: b", "Failed: a (2 times)"],
            id="the newest is last",
        ),
        pytest.param(
            [an_event(str(number), str(number)) for number in range(9)],
            [f"Failed: {number}" for number in range(4, 9)],
            id="not too many",
        ),
    ],
)
def test_each_event_is_reported_once(events: list[Any], texts: list[str]) -> None:
    assert diagnose.distinct(events) == texts


class Unreadable:
    """An API that cannot read instances, and has neither Pods nor Events."""

    def get(self, _resource: object, _name: str) -> None:
        raise Unavailable("no time is left")

    def list(self, _resource: object, **_selectors: object) -> list[Any]:
        return []


def test_an_unreadable_instance_is_not_reported_as_missing() -> None:
    message = diagnose.explain(Unreadable(), VM, "default", "web")
    assert message["reason"] == "its status is Starting, and its instance could not be read: no time is left"


def test_a_halted_vm_may_have_an_instance_that_could_not_be_read() -> None:
    vm = {"spec": {"runStrategy": "Halted"}, "status": {"printableStatus": "Stopping"}}
    message = diagnose.explain(Unreadable(), vm, "default", "web")
    assert message["reason"] == "its status is Stopping, and its instance could not be read: no time is left"


@pytest.mark.parametrize("kind", ["VirtualMachine", "VirtualMachineInstance"])
def test_an_object_that_was_never_seen_is_reported_as_such(kind: str) -> None:
    reason = diagnose.explain(Unreadable(), None, "default", "web", kind)["reason"]
    expected = "does not exist" if kind == "VirtualMachine" else "it could not be read: no time is left"
    assert expected in reason


@pytest.mark.parametrize("strategy", ["Halted", "Manual"])
def test_a_strategy_that_starts_nothing_is_the_reason_whatever_happened_before(strategy: str) -> None:
    vm = {"spec": {"runStrategy": strategy}, "status": {"printableStatus": "Stopped"}}
    assert f"its run strategy is {strategy}, so nothing starts it" in diagnose.reason(vm, None, [], ["Old: event"])
    assert "run strategy" not in diagnose.reason(vm, a_vmi(phase="Scheduled"), [], [])
    requests = {**vm, "status": {"stateChangeRequests": [{"action": "Start"}]}}
    assert diagnose.reason(requests, None, [], ["FailedCreate: quota"]) == "FailedCreate: quota"


def a_leaving(**metadata: Any) -> dict[str, Any]:
    return {**VM, "metadata": {"deletionTimestamp": "2026-11-24T08:00:00Z", **metadata}, "spec": {}}


HELD = a_leaving(finalizers=["example.com/backup", "example.com/dns"])


@pytest.mark.parametrize(
    ("vm", "vmi", "words"),
    [
        pytest.param(HELD, None, "finalizers: example.com/backup, example.com/dns", id="foreign finalizers"),
        pytest.param(HELD, None, "being deleted since 2026-11-24T08:00:00Z", id="since when"),
        pytest.param(HELD, a_vmi(phase="Running", nodeName="n1"), "; its instance is Running on node n1", id="its own"),
        pytest.param(a_leaving(), None, "it has no finalizers", id="nothing of its own"),
    ],
)
def test_the_reason_of_a_blocked_deletion_wins_over_the_strategy(vm: Any, vmi: Any, words: str) -> None:
    assert words in diagnose.reason(vm, vmi, [ENDED], ["Old: event"])
    assert "run strategy" not in diagnose.reason(vm, vmi, [], [])


def test_the_reason_of_a_blocked_deletion_of_an_instance_is_reported() -> None:
    assert "finalizers: example.com/backup" in diagnose.reason(None, HELD, [], [], "VirtualMachineInstance")
