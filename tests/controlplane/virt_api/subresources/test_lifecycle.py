# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What start, stop and restart do, by KubeVirt's table."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.objects.decode import decode_vm, decode_vmi
from controlplane.api.objects.vm import VirtualMachine
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_api.subresources.lifecycle import (
    NotImplementedStrategyError,
    PatchInstance,
    PatchSpec,
    PatchStatus,
    RefusedError,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.subresources.options import RestartOptions, StartOptions, StopOptions

TEMPLATE: dict[str, Any] = {"spec": {"domain": {"devices": {}}}}
ON = PatchSpec({"spec": {"runStrategy": "Always"}})
OFF = PatchSpec({"spec": {"runStrategy": "Halted"}})
START = {"action": "Start"}
STOP = {"action": "Stop", "uid": "u1"}
ANY_STOP = {"action": "Stop"}
PAUSED = {"action": "Start", "data": {"paused": "true"}}
PAUSED_OF_NOW = {"action": "Start", "data": {"paused": "true", "generation": "7"}}


def queue(*requests: dict[str, Any]) -> PatchStatus:
    status: dict[str, Any] = {"stateChangeRequests": list(requests)}
    if any(request["action"] == "Start" for request in requests):
        status["startFailure"] = None
    return PatchStatus({"status": status})


def cleared(*requests: dict[str, Any], **also: str) -> PatchStatus:
    return PatchStatus({"status": {"stateChangeRequests": list(requests), "startFailure": None, **also}})


def shorter(seconds: int) -> PatchInstance:
    return PatchInstance("u1", {"spec": {"terminationGracePeriodSeconds": seconds}})


def a_vm(strategy: str, **status: Any) -> VirtualMachine:
    switch = {"running": strategy == "true"} if strategy in {"true", "false"} else {"runStrategy": strategy}
    return decode_vm(
        {
            "metadata": {"name": "web", "uid": "u0", "generation": 7},
            "spec": {"template": TEMPLATE, **switch},
            "status": status,
        }
    )


def a_vmi(
    phase: str, grace: int | None = None, owner: str | None = "u0", *, deleting: bool = False, said: str = ""
) -> VirtualMachineInstance:
    spec = TEMPLATE["spec"] | ({} if grace is None else {"terminationGracePeriodSeconds": grace})
    meta: dict[str, Any] = {
        "name": "web",
        "uid": "u1",
        "ownerReferences": [{"uid": owner, "controller": True}] if owner else [],
    }
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    lost = {"type": "Synchronized", "status": "False", "reason": "LauncherLost", "message": said}
    status = {"phase": phase, "conditions": [lost] if said else []}
    return decode_vmi({"metadata": meta, "spec": spec, "status": status})


REFUSED = "refused"


@pytest.mark.parametrize(
    ("strategy", "phase", "expected"),
    [
        ("Halted", None, (ON,)),
        ("Halted", "Succeeded", (ON,)),
        ("Halted", "Running", REFUSED),
        ("false", None, (PatchSpec({"spec": {"running": True}}),)),
        ("true", None, REFUSED),
        ("Always", None, REFUSED),
        ("Once", None, REFUSED),
        ("Manual", None, (queue(START),)),
        ("Manual", "Succeeded", (queue(STOP, START),)),
        ("Manual", "Failed", (queue(STOP, START),)),
        ("Manual", "Pending", REFUSED),
        ("Manual", "Scheduled", REFUSED),
        ("RerunOnFailure", None, (queue(START),)),
        ("RerunOnFailure", "Succeeded", (queue(STOP, START),)),
        ("RerunOnFailure", "Failed", REFUSED),
    ],
)
def test_start_follows_the_table(strategy: str, phase: str | None, expected: Any) -> None:
    vmi = a_vmi(phase) if phase is not None else None

    if expected == REFUSED:
        with pytest.raises(RefusedError):
            decide_start(a_vm(strategy), vmi, StartOptions())
    else:
        assert decide_start(a_vm(strategy), vmi, StartOptions()) == expected


@pytest.mark.parametrize(
    ("strategy", "phase", "expected"),
    [
        ("Halted", None, (queue(PAUSED_OF_NOW),)),
        ("false", None, (queue(PAUSED_OF_NOW),)),
        ("Halted", "Succeeded", (queue(STOP, PAUSED_OF_NOW),)),
        ("Halted", "Running", REFUSED),
        ("Always", None, REFUSED),
        ("Once", None, REFUSED),
        ("Manual", None, (queue(PAUSED),)),
        ("Manual", "Failed", (queue(STOP, PAUSED),)),
        ("Manual", "Running", REFUSED),
        ("RerunOnFailure", None, (queue(PAUSED),)),
        ("RerunOnFailure", "Failed", REFUSED),
    ],
)
def test_a_paused_start_is_queued(strategy: str, phase: str | None, expected: Any) -> None:
    """Also if another run strategy would start the VM: the run must not begin before it is known to be paused."""
    vmi = a_vmi(phase) if phase is not None else None

    if expected == REFUSED:
        with pytest.raises(RefusedError):
            decide_start(a_vm(strategy), vmi, StartOptions(paused=True))
    else:
        assert decide_start(a_vm(strategy), vmi, StartOptions(paused=True)) == expected


def test_a_vm_with_a_liveness_probe_is_not_started_paused() -> None:
    """Admission would refuse its VMI, so the request would never be carried out."""
    probing = {**TEMPLATE["spec"], "livenessProbe": {"guestAgentPing": {}}}
    vm = decode_vm(
        {"metadata": {"name": "web"}, "spec": {"template": {"spec": probing}, "runStrategy": "Manual"}, "status": {}}
    )
    with pytest.raises(RefusedError, match="passes no livenessProbe"):
        decide_start(vm, None, StartOptions(paused=True))
    assert decide_start(vm, None, StartOptions()) == (queue(START),)


def test_a_queued_paused_start_of_a_halted_vm_blocks_other_starts_until_a_stop() -> None:
    vm = a_vm("Halted", stateChangeRequests=[PAUSED_OF_NOW])
    for paused in (True, False):
        with pytest.raises(RefusedError, match="a start of it is still being carried out; stop takes it back"):
            decide_start(vm, None, StartOptions(paused=paused))
    assert decide_stop(vm, None, StopOptions()) == (cleared(ANY_STOP),)


def test_a_paused_start_from_before_the_vm_was_halted_blocks_no_start() -> None:
    vm = a_vm("Halted", stateChangeRequests=[PAUSED])
    assert decide_start(vm, None, StartOptions()) == (ON,)
    with pytest.raises(RefusedError, match="not running"):
        decide_stop(vm, None, StopOptions())


def test_an_unimplemented_strategy_allows_only_a_stop() -> None:
    """A stop means the same under every strategy; the meaning of a start is unknown."""
    vm, vmi = a_vm("WaitAsReceiver"), a_vmi("Running")
    with pytest.raises(NotImplementedStrategyError, match="run strategy WaitAsReceiver is not implemented"):
        decide_start(vm, None, StartOptions())
    with pytest.raises(NotImplementedStrategyError, match="run strategy WaitAsReceiver is not implemented"):
        decide_restart(vm, vmi, RestartOptions())
    assert decide_stop(vm, vmi, StopOptions()) == (OFF,)


def test_a_start_is_refused_while_another_is_queued() -> None:
    with pytest.raises(RefusedError, match="still being carried out"):
        decide_start(a_vm("Manual", stateChangeRequests=[START]), None, StartOptions())


@pytest.mark.parametrize(
    ("verb", "strategy", "phase", "words"),
    [
        ("start", "Manual", "Running", "VM is already running"),
        ("start", "Always", "Scheduling", "VM is already running"),
        ("start", "Halted", "Running", "VM is already running"),
        ("start", "Always", None, "Always does not support manual start requests"),
        ("start", "Once", "Succeeded", "Once does not support manual start requests"),
        ("start", "RerunOnFailure", "Failed", "RerunOnFailure does not support starting VM from failed state"),
        ("stop", "Halted", None, "VM is not running"),
        ("stop", "Manual", None, "VM is not running"),
        ("stop", "Halted", "Running", "Halted only supports manual stop requests with a shorter graceperiod"),
        ("restart", "Halted", None, "Halted does not support manual restart requests"),
        ("restart", "Halted", "Running", "Halted does not support manual restart requests"),
        ("restart", "Once", "Running", "Once does not support manual restart requests"),
        ("restart", "Manual", None, "VM is not running"),
    ],
)
def test_a_refusal_begins_with_upstreams_words(verb: str, strategy: str, phase: str | None, words: str) -> None:
    """Scripts and consoles search for them; the remedy comes after them."""
    vm, vmi = a_vm(strategy), None if phase is None else a_vmi(phase)
    decisions: dict[str, Callable[[], object]] = {
        "start": lambda: decide_start(vm, vmi, StartOptions()),
        "stop": lambda: decide_stop(vm, vmi, StopOptions()),
        "restart": lambda: decide_restart(vm, vmi, RestartOptions()),
    }
    with pytest.raises(RefusedError) as refusal:
        decisions[verb]()
    assert str(refusal.value).startswith(words)


def test_under_once_a_start_is_always_refused() -> None:
    """The queue is never carried out under Once: waiting is no remedy."""
    with pytest.raises(RefusedError, match="Once does not support manual start requests") as refusal:
        decide_start(a_vm("Once", stateChangeRequests=[START]), None, StartOptions())
    assert "still being carried out" not in str(refusal.value)


def test_a_halted_vm_starts_with_any_queue() -> None:
    """A queued request from before a change of strategy does not block a start."""
    assert decide_start(a_vm("Halted", stateChangeRequests=[START]), None, StartOptions()) == (ON,)


def test_a_stop_cancels_a_start_that_has_not_begun() -> None:
    """If a quota or a VMI of another owner blocks the start, only a stop helps."""
    for strategy, also in (("Manual", {}), ("RerunOnFailure", {"runStrategy": "RerunOnFailure"})):
        vm = a_vm(strategy, stateChangeRequests=[START])
        assert decide_stop(vm, None, StopOptions()) == (cleared(ANY_STOP, **also),)
        assert decide_stop(vm, a_vmi("Running", owner="somebody"), StopOptions(0)) == (cleared(ANY_STOP, **also),)
        another = a_vm(strategy, stateChangeRequests=[STOP, START])
        assert decide_stop(another, a_vmi("Failed"), StopOptions()) == (cleared(STOP, **also),)


def test_a_stop_prevents_an_automatic_start() -> None:
    """Such a start has no request: it follows a failure or a new run strategy."""
    stopped = cleared(ANY_STOP, runStrategy="RerunOnFailure")
    assert decide_stop(a_vm("RerunOnFailure"), None, StopOptions()) == (stopped,)
    ending = a_vmi("Failed", deleting=True)
    before = a_vm("RerunOnFailure", runStrategy="Always")
    assert decide_stop(before, ending, StopOptions()) == (cleared(STOP, runStrategy="RerunOnFailure"),)
    stopping = a_vmi("Running", deleting=True)
    assert decide_stop(before, stopping, StopOptions()) == (cleared(STOP, runStrategy="RerunOnFailure"),)
    with pytest.raises(RefusedError, match="not running"):
        decide_stop(a_vm("RerunOnFailure", runStrategy="RerunOnFailure"), ending, StopOptions())
    assert decide_start(a_vm("RerunOnFailure"), ending, StartOptions()) == (queue(STOP, START),)


def test_completed_requests_in_the_queue_are_ignored() -> None:
    """virt-controller removes a completed request from the queue a little later."""
    done = {"action": "Stop", "uid": "older"}
    vm = a_vm("Manual", stateChangeRequests=[done, START])
    assert decide_restart(vm, a_vmi("Running"), RestartOptions()) == (queue(STOP, START),)
    with pytest.raises(RefusedError, match="already running"):
        decide_start(vm, a_vmi("Running"), StartOptions())
    assert decide_start(a_vm("Manual", stateChangeRequests=[done]), None, StartOptions()) == (queue(START),)


@pytest.mark.parametrize("over", [a_vmi("Succeeded"), a_vmi("Succeeded", deleting=True), a_vmi("Failed", owner=None)])
def test_a_queued_start_whose_run_has_ended_is_ignored(over: VirtualMachineInstance) -> None:
    """The run may end before virt-controller removes the start from the queue. A new start names that run."""
    vm = a_vm("Manual", stateChangeRequests=[START])
    assert decide_start(vm, over, StartOptions()) == (queue(STOP, START),)
    with pytest.raises(RefusedError, match="not running"):
        decide_stop(vm, over, StopOptions())


def test_a_queued_start_waits_for_the_end_of_an_orphan() -> None:
    """An orphan in deletion is not adopted: the start is still pending and can be cancelled."""
    vm, orphan = a_vm("Manual", stateChangeRequests=[START]), a_vmi("Failed", owner=None, deleting=True)
    with pytest.raises(RefusedError, match="stop takes it back"):
        decide_start(vm, orphan, StartOptions())
    assert decide_stop(vm, orphan, StopOptions()) == (cleared(STOP),)


PROOF = "Proof would be: the Node object is deleted"


@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure"])
def test_a_start_while_the_vmi_is_unknown_is_refused_with_the_missing_proof(strategy: str) -> None:
    """Upstream accepts the request and drops it silently."""
    lost = a_vmi("Unknown", said=PROOF)
    with pytest.raises(RefusedError, match=f"restart it .* Its instance is Unknown: {PROOF}"):
        decide_start(a_vm(strategy), lost, StartOptions())
    assert decide_restart(a_vm(strategy), lost, RestartOptions()) == (queue(STOP, START),)


@pytest.mark.parametrize("strategy", ["Always", "Manual", "RerunOnFailure", "Once"])
def test_a_start_with_a_new_vmi_is_refused(strategy: str) -> None:
    with pytest.raises(RefusedError, match="VM is already running or starting"):
        decide_start(a_vm(strategy), a_vmi(""), StartOptions())


def test_a_start_while_the_vmi_is_stopping_is_refused() -> None:
    """As upstream: a VM that still runs is not started."""
    for strategy in ("Halted", "Manual", "RerunOnFailure"):
        with pytest.raises(RefusedError, match="VM is already running, and stopping; start it when that is done"):
            decide_start(a_vm(strategy), a_vmi("Running", deleting=True), StartOptions())
    with pytest.raises(RefusedError, match="starts by itself"):
        decide_start(a_vm("Always"), a_vmi("Running", deleting=True), StartOptions())


def test_a_message_of_the_vmi_is_cut() -> None:
    with pytest.raises(RefusedError) as refusal:
        decide_start(a_vm("Manual"), a_vmi("Unknown", said="x" * 100_000), StartOptions())
    assert len(str(refusal.value)) < 1_000


def test_a_vmi_of_another_owner_is_ignored() -> None:
    """It is not stopped, its grace period stays, and it does not count as this VM's."""
    theirs = a_vmi("Running", owner="somebody")
    assert decide_start(a_vm("Halted"), theirs, StartOptions()) == (ON,)
    assert decide_start(a_vm("Manual"), theirs, StartOptions()) == (queue(START),)
    assert decide_stop(a_vm("Always"), theirs, StopOptions(0)) == (OFF,)
    for strategy in ("Manual", "RerunOnFailure", "Halted"):
        with pytest.raises(RefusedError, match="not running"):
            decide_stop(a_vm(strategy, runStrategy=strategy), theirs, StopOptions(0))
    for strategy in ("Always", "Manual", "RerunOnFailure"):
        with pytest.raises(RefusedError, match="not running"):
            decide_restart(a_vm(strategy), theirs, RestartOptions(0))


def test_a_vmi_without_a_controller_belongs_to_the_vm_of_its_name() -> None:
    """virt-controller adopts it; other owners that are not its controller only affect garbage collection."""
    theirs = {"uid": "somebody", "controller": False}
    vmi = decode_vmi(
        {
            "metadata": {"name": "web", "uid": "u1", "ownerReferences": [theirs]},
            **TEMPLATE,
            "status": {"phase": "Running"},
        }
    )

    assert decide_stop(a_vm("Always"), vmi, StopOptions(0)) == (shorter(0), OFF)


def test_a_vm_whose_volumes_need_manual_recovery_does_not_start() -> None:
    vm = a_vm("Halted", conditions=[{"type": "ManualRecoveryRequired", "status": "True"}])

    for over in (None, a_vmi("Failed")):
        with pytest.raises(RefusedError, match="manual recovery"):
            decide_start(vm, over, StartOptions())


@pytest.mark.parametrize(
    ("strategy", "phase", "grace", "expected"),
    [
        ("Halted", None, None, REFUSED),
        ("Halted", "Succeeded", None, REFUSED),
        ("Halted", "Running", None, REFUSED),
        ("Halted", "Running", 30, REFUSED),
        ("Halted", "Running", 5, (shorter(5),)),
        ("Always", None, None, (OFF,)),
        ("Always", "Running", None, (OFF,)),
        ("Always", "Running", 0, (shorter(0), OFF)),
        ("Always", "Running", 600, (OFF,)),
        ("Always", None, 0, (OFF,)),
        ("true", "Running", None, (PatchSpec({"spec": {"running": False}}),)),
        ("Once", None, None, (OFF,)),
        ("Manual", None, None, REFUSED),
        ("Manual", "Succeeded", None, REFUSED),
        ("Manual", "Running", 3, (shorter(3), queue(STOP))),
        ("Manual", "Unknown", None, (queue(STOP),)),
        ("RerunOnFailure", "Unknown", None, (queue(STOP),)),
        ("Halted", "Unknown", 5, (shorter(5),)),
        ("RerunOnFailure", "Failed", None, (cleared(STOP, runStrategy="RerunOnFailure"),)),
        ("RerunOnFailure", "Succeeded", None, REFUSED),
        ("RerunOnFailure", "Running", None, (queue(STOP),)),
    ],
)
def test_stop_follows_the_table(strategy: str, phase: str | None, grace: int | None, expected: Any) -> None:
    vmi = a_vmi(phase) if phase is not None else None

    if expected == REFUSED:
        with pytest.raises(RefusedError):
            decide_stop(a_vm(strategy), vmi, StopOptions(grace))
    else:
        assert decide_stop(a_vm(strategy), vmi, StopOptions(grace)) == expected


@pytest.mark.parametrize(("grace", "advised"), [(30, True), (1, True), (0, False)])
def test_a_shorter_grace_period_is_suggested_only_if_possible(grace: int, advised: bool) -> None:
    with pytest.raises(RefusedError, match="is stopping already") as refusal:
        decide_stop(a_vm("Halted"), a_vmi("Running", grace), StopOptions())
    assert ("a shorter graceperiod, which hurries it" in str(refusal.value)) is advised


def test_a_stop_replaces_the_queue() -> None:
    vm = a_vm("Manual", stateChangeRequests=[STOP, START])

    assert decide_stop(vm, a_vmi("Running"), StopOptions()) == (queue(STOP),)


@pytest.mark.parametrize(
    ("strategy", "phase", "grace", "expected"),
    [
        ("Halted", "Running", None, REFUSED),
        ("Once", "Running", None, REFUSED),
        ("Always", None, None, REFUSED),
        ("Always", "Running", None, (queue(STOP, START),)),
        ("Always", "Running", 0, (shorter(1), queue(STOP, START))),
        ("Manual", "Running", None, (queue(STOP, START),)),
        ("RerunOnFailure", "Running", None, (queue(STOP, START),)),
    ],
)
def test_restart_follows_the_table(strategy: str, phase: str | None, grace: int | None, expected: Any) -> None:
    vmi = a_vmi(phase) if phase is not None else None

    if expected == REFUSED:
        with pytest.raises(RefusedError):
            decide_restart(a_vm(strategy), vmi, RestartOptions(grace))
    else:
        assert decide_restart(a_vm(strategy), vmi, RestartOptions(grace)) == expected


def test_a_restart_is_refused_while_volumes_change() -> None:
    vm = a_vm("Always", conditions=[{"type": "VolumesChange", "status": "True"}])

    with pytest.raises(RefusedError, match="volumes are being changed"):
        decide_restart(vm, a_vmi("Running"), RestartOptions())


def test_a_vm_with_running_and_run_strategy_is_refused_with_the_remedy() -> None:
    vm = decode_vm({"spec": {"template": TEMPLATE, "running": True, "runStrategy": "Manual"}})

    with pytest.raises(RefusedError, match="remove the deprecated running"):
        decide_start(vm, None, StartOptions())
