# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What start, stop and restart do, by KubeVirt's table."""

from __future__ import annotations

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
    Write,
    decide_restart,
    decide_start,
    decide_stop,
)
from controlplane.virt_api.subresources.options import RestartOptions, StartOptions, StopOptions

Options = StartOptions | StopOptions | RestartOptions
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
    phase: str, grace: int | None = None, owner: str | None = "u0", *, deleting: bool = False, message: str = ""
) -> VirtualMachineInstance:
    spec = TEMPLATE["spec"] | ({} if grace is None else {"terminationGracePeriodSeconds": grace})
    meta: dict[str, Any] = {
        "name": "web",
        "uid": "u1",
        "ownerReferences": [{"uid": owner, "controller": True}] if owner else [],
    }
    if deleting:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    lost = {"type": "Synchronized", "status": "False", "reason": "LauncherLost", "message": message}
    status = {"phase": phase, "conditions": [lost] if message else []}
    return decode_vmi({"metadata": meta, "spec": spec, "status": status})


START_NOW, START_PAUSED, RESTART = StartOptions(), StartOptions(paused=True), RestartOptions()
RUNNING_ALREADY, NOT_RUNNING = "VM is already running", "VM is not running"
NO_START, NO_RESTART = "does not support manual start requests", "does not support manual restart requests"
TABLE: list[tuple[str, str | None, Options, tuple[Write, ...] | str]] = [
    # run strategy, phase of the VMI, options, writes or words of the refusal
    ("Halted", None, START_NOW, (ON,)),
    ("Halted", "Succeeded", START_NOW, (ON,)),
    ("Halted", "Running", START_NOW, RUNNING_ALREADY),
    ("false", None, START_NOW, (PatchSpec({"spec": {"running": True}}),)),
    ("true", None, START_NOW, f"Always {NO_START}"),
    ("Always", None, START_NOW, f"Always {NO_START}"),
    ("Always", "Scheduling", START_NOW, RUNNING_ALREADY),
    ("Once", "Succeeded", START_NOW, f"Once {NO_START}"),
    ("Manual", None, START_NOW, (queue(START),)),
    ("Manual", "Succeeded", START_NOW, (queue(STOP, START),)),
    ("Manual", "Failed", START_NOW, (queue(STOP, START),)),
    ("Manual", "Pending", START_NOW, RUNNING_ALREADY),
    ("RerunOnFailure", None, START_NOW, (queue(START),)),
    ("RerunOnFailure", "Succeeded", START_NOW, (queue(STOP, START),)),
    ("RerunOnFailure", "Failed", START_NOW, "RerunOnFailure does not support starting VM from failed state"),
    # A paused start is queued, also if another run strategy would start the VM: the run must not begin before it is
    # known to be paused.
    ("Halted", None, START_PAUSED, (queue(PAUSED_OF_NOW),)),
    ("false", None, START_PAUSED, (queue(PAUSED_OF_NOW),)),
    ("Halted", "Succeeded", START_PAUSED, (queue(STOP, PAUSED_OF_NOW),)),
    ("Halted", "Running", START_PAUSED, RUNNING_ALREADY),
    ("Always", None, START_PAUSED, f"Always {NO_START}"),
    ("Once", None, START_PAUSED, f"Once {NO_START}"),
    ("Manual", None, START_PAUSED, (queue(PAUSED),)),
    ("Manual", "Failed", START_PAUSED, (queue(STOP, PAUSED),)),
    ("RerunOnFailure", None, START_PAUSED, (queue(PAUSED),)),
    ("RerunOnFailure", "Failed", START_PAUSED, "RerunOnFailure does not support starting VM from failed state"),
    ("Halted", None, StopOptions(), NOT_RUNNING),
    ("Halted", "Succeeded", StopOptions(), NOT_RUNNING),
    ("Halted", "Running", StopOptions(), "Halted only supports manual stop requests with a shorter graceperiod"),
    ("Halted", "Running", StopOptions(30), "Halted only supports manual stop requests with a shorter graceperiod"),
    ("Halted", "Running", StopOptions(5), (shorter(5),)),
    ("Halted", "Unknown", StopOptions(5), (shorter(5),)),
    ("Always", None, StopOptions(), (OFF,)),
    ("Always", None, StopOptions(0), (OFF,)),
    ("Always", "Running", StopOptions(), (OFF,)),
    ("Always", "Running", StopOptions(0), (shorter(0), OFF)),
    ("Always", "Running", StopOptions(600), (OFF,)),
    ("true", "Running", StopOptions(), (PatchSpec({"spec": {"running": False}}),)),
    ("Once", None, StopOptions(), (OFF,)),
    ("Manual", None, StopOptions(), NOT_RUNNING),
    ("Manual", "Succeeded", StopOptions(), NOT_RUNNING),
    ("Manual", "Running", StopOptions(3), (shorter(3), queue(STOP))),
    ("Manual", "Unknown", StopOptions(), (queue(STOP),)),
    ("RerunOnFailure", "Unknown", StopOptions(), (queue(STOP),)),
    ("RerunOnFailure", "Failed", StopOptions(), (cleared(STOP, runStrategy="RerunOnFailure"),)),
    ("RerunOnFailure", "Succeeded", StopOptions(), NOT_RUNNING),
    ("RerunOnFailure", "Running", StopOptions(), (queue(STOP),)),
    ("Halted", None, RESTART, f"Halted {NO_RESTART}"),
    ("Halted", "Running", RESTART, f"Halted {NO_RESTART}"),
    ("Once", "Running", RESTART, f"Once {NO_RESTART}"),
    ("Always", None, RESTART, NOT_RUNNING),
    ("Manual", None, RESTART, NOT_RUNNING),
    ("Always", "Running", RESTART, (queue(STOP, START),)),
    ("Always", "Running", RestartOptions(0), (shorter(1), queue(STOP, START))),
    ("Manual", "Running", RESTART, (queue(STOP, START),)),
    ("RerunOnFailure", "Running", RESTART, (queue(STOP, START),)),
]


def decide(vm: VirtualMachine, vmi: VirtualMachineInstance | None, options: Options) -> tuple[Write, ...]:
    match options:
        case StartOptions():
            return decide_start(vm, vmi, options)
        case StopOptions():
            return decide_stop(vm, vmi, options)
        case RestartOptions():
            return decide_restart(vm, vmi, options)


@pytest.mark.parametrize(("strategy", "phase", "options", "expected"), TABLE, ids=str)
def test_start_stop_and_restart_follow_the_table(
    strategy: str, phase: str | None, options: Options, expected: tuple[Write, ...] | str
) -> None:
    """A refusal begins with upstream's words, which scripts search for; the remedy comes after them."""
    vm, vmi = a_vm(strategy), None if phase is None else a_vmi(phase)
    if isinstance(expected, tuple):
        assert decide(vm, vmi, options) == expected
        return
    with pytest.raises(RefusedError) as refusal:
        decide(vm, vmi, options)
    assert str(refusal.value).startswith(expected)


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
    lost = a_vmi("Unknown", message=PROOF)
    with pytest.raises(RefusedError, match=f"restart it .* Its instance is Unknown: {PROOF}"):
        decide_start(a_vm(strategy), lost, StartOptions())
    assert decide_restart(a_vm(strategy), lost, RestartOptions()) == (queue(STOP, START),)


@pytest.mark.parametrize(("is_deleting", "remedy"), [(False, "stop it, then start it"), (True, "it starts by itself")])
def test_the_remedy_of_a_restart_under_once_depends_on_whether_its_run_ends(*, is_deleting: bool, remedy: str) -> None:
    with pytest.raises(RefusedError, match=f"Once {NO_RESTART}; {remedy}"):
        decide_restart(a_vm("Once"), a_vmi("Running", deleting=is_deleting), RESTART)


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
        decide_start(a_vm("Manual"), a_vmi("Unknown", message="x" * 100_000), StartOptions())
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


@pytest.mark.parametrize(("grace", "advised"), [(30, True), (1, True), (0, False)])
def test_a_shorter_grace_period_is_suggested_only_if_possible(grace: int, advised: bool) -> None:
    with pytest.raises(RefusedError, match="is stopping already") as refusal:
        decide_stop(a_vm("Halted"), a_vmi("Running", grace), StopOptions())
    assert ("a shorter graceperiod, which hurries it" in str(refusal.value)) is advised


def test_a_stop_replaces_the_queue() -> None:
    vm = a_vm("Manual", stateChangeRequests=[STOP, START])

    assert decide_stop(vm, a_vmi("Running"), StopOptions()) == (queue(STOP),)


def test_a_restart_is_refused_while_volumes_change() -> None:
    vm = a_vm("Always", conditions=[{"type": "VolumesChange", "status": "True"}])

    with pytest.raises(RefusedError, match="volumes are being changed"):
        decide_restart(vm, a_vmi("Running"), RestartOptions())


def test_a_vm_with_running_and_run_strategy_is_refused_with_the_remedy() -> None:
    vm = decode_vm({"spec": {"template": TEMPLATE, "running": True, "runStrategy": "Manual"}})

    with pytest.raises(RefusedError, match="remove the deprecated running"):
        decide_start(vm, None, StartOptions())
