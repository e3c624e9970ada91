# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which failures count against which node, and what removes them."""

from __future__ import annotations

from typing import Any

import msgspec

from controlplane.virt_controller.quarantine.failure_attribution import MAX_FAILURES_PER_NODE, FailureAttribution


def failed(node: str = "bad", *, is_nodes: bool = True) -> dict[str, Any]:
    return {"attempt": 1, "nodeName": node, "reason": "UnexpectedAdmissionError", "nodeFault": is_nodes}


def an_instance(phase: str, name: str = "web", node: str = "good", *attempts: Any, owner: str = "") -> bytes:
    meta: dict[str, Any] = {"namespace": "default", "name": name, "uid": f"uid of {name}"}
    if owner:
        meta["ownerReferences"] = [{"kind": "VirtualMachine", "name": owner, "uid": owner, "controller": True}]
    status = {"phase": phase, "nodeName": node} | ({"failedAttempts": list(attempts)} if attempts else {})
    return msgspec.json.encode({"metadata": meta, "status": status})


def start_elsewhere(
    failures: FailureAttribution, *attempts: Any, name: str = "web", node: str = "good", owner: str = ""
) -> None:
    before, after = (an_instance(phase, name, node, *attempts, owner=owner) for phase in ("Scheduled", "Running"))
    failures.note(before, after, 7.0)


def test_a_failure_counts_when_the_run_starts_on_another_node() -> None:
    enqueued: list[str] = []
    failures = FailureAttribution(changed=lambda: enqueued.append("x"))
    start_elsewhere(failures, failed(), owner="machine")
    (failure,) = failures.of("bad")
    assert (str(failure.vmi), failure.machine, failure.reason, failure.at) == (
        "default/web",
        "default/machine",
        "UnexpectedAdmissionError",
        7.0,
    )
    assert enqueued == ["x"]
    assert failures.of("good") == ()


def test_no_failure_is_attributed_before_the_guest_runs() -> None:
    """A run that fails everywhere is no node's fault: a tenant's broken machines count against no node."""
    failures = FailureAttribution()
    for before, after in (("Scheduling", "Scheduled"), ("Scheduling", "Failed"), ("Scheduled", "Failed")):
        failures.note(an_instance(before), an_instance(after, "web", "good", failed()), 0.0)
    assert failures.of("bad") == ()


def test_failures_that_a_tenant_can_cause_are_not_attributed() -> None:
    failures = FailureAttribution()
    start_elsewhere(failures, failed(is_nodes=False))
    assert failures.of("bad") == ()


def test_a_node_on_which_the_guest_starts_in_the_end_has_no_failure() -> None:
    failures = FailureAttribution()
    start_elsewhere(failures, failed("good"), failed("bad"))
    assert (failures.of("good"), len(failures.of("bad"))) == ((), 1)


def test_a_guest_that_starts_on_a_node_clears_its_failures() -> None:
    failures = FailureAttribution()
    start_elsewhere(failures, failed())
    start_elsewhere(failures, name="other", node="bad")
    assert failures.of("bad") == ()


def test_a_run_that_was_running_when_first_observed_counts_against_no_node() -> None:
    failures = FailureAttribution()
    up = an_instance("Running", "web", "good", failed())
    failures.note(None, up, 0.0)
    failures.note(up, up, 0.0)
    failures.note(an_instance("Unknown", "web", "good", failed()), up, 0.0)
    failures.note(up, None, 0.0)
    assert failures.of("bad") == ()


def test_the_failures_kept_per_node_are_limited() -> None:
    failures = FailureAttribution()
    for number in range(MAX_FAILURES_PER_NODE + 5):
        start_elsewhere(failures, failed(), name=f"web-{number}")
    assert len(failures.of("bad")) == MAX_FAILURES_PER_NODE
