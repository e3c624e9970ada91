# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status that virt-handler writes."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.vmi.instance import (
    InterfaceStatus,
    PhaseTransition,
    VirtualMachineInstance,
    VirtualMachineInstanceStatus,
)
from controlplane.domain.observed import Observed
from controlplane.domain.state import Life, State
from controlplane.engine.errors import Invalid, Unavailable
from controlplane.engine.plan import RefusedStep
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import (
    Action,
    Dial,
    FailedOperation,
    Failure,
    Launcher,
    LauncherStatus,
    Look,
    NodeTrouble,
    PrepareNetwork,
    StartDomain,
    World,
)
from tests.controlplane.virt_handler.builders import (
    OFF,
    OTHER,
    POD_UID,
    RUNNING,
    a_launcher,
    a_look,
    a_pod,
    a_vmi,
    a_world,
    ended,
    observed,
    seen,
)

CRASHED, BY_USER, IOERROR = State(Life.SHUT_OFF, "crashed"), State(Life.PAUSED, "user"), State(Life.PAUSED, "ioerror")
READY = Condition(type="Ready", status="True")
RUNS = a_launcher(seen())
SILENT = a_launcher(LauncherStatus(trouble="nobody listens"))
Problem = RefusedStep[Action] | None


def with_status(vmi: VirtualMachineInstance, **changes: Any) -> VirtualMachineInstance:
    return msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, **changes))


def derive(
    vmi: VirtualMachineInstance, *launchers: Launcher, problem: Problem = None, **facts: Any
) -> VirtualMachineInstanceStatus | None:
    return derive_status(a_world(vmi, *launchers, **facts), problem)


def derived(
    vmi: VirtualMachineInstance, *launchers: Launcher, problem: Problem = None, **facts: Any
) -> VirtualMachineInstanceStatus:
    status = derive(vmi, *launchers, problem=problem, **facts)
    assert status is not None
    return status


def after(vmi: VirtualMachineInstance, *launchers: Launcher, **facts: Any) -> VirtualMachineInstance:
    """Return the VMI after the derived status is written."""
    return msgspec.structs.replace(vmi, status=derived(vmi, *launchers, **facts))


def find(status: VirtualMachineInstanceStatus | None, kind: str = "Synchronized") -> tuple[str, str, str]:
    """Return status, reason and message of a condition; empty texts if it is missing."""
    condition = None if status is None else conditions.find(status.conditions, kind)
    return ("", "", "") if condition is None else (condition.status, condition.reason, condition.message)


def test_a_running_domain_makes_the_vmi_running_with_everything_in_one_write() -> None:
    status = derived(a_vmi(), RUNS)
    assert status.phase == "Running"
    assert status.phase_transition_timestamps[-1].phase == "Running"
    assert status.phase_transition_timestamps[-1].phase_transition_timestamp == "2023-11-14T22:13:20Z"
    interface = status.interfaces[0]
    assert (interface.name, interface.ip_address, interface.ip_addresses, interface.mac, interface.info_source) == (
        "default",
        "10.244.0.7",
        ("10.244.0.7", "fd00::7"),
        "02:00:00:00:00:99",
        "domain",
    )
    assert status.machine is not None
    assert status.machine.type == "pc-q35-10.0"
    assert status.memory is not None
    assert (status.memory.guest_at_boot, status.memory.guest_current) == ("128Mi", "128Mi")
    assert {condition.type: condition.status for condition in status.conditions} == {
        "SoftwareEmulation": "True",
        "LiveMigratable": "True",
    }
    assert find(status, "SoftwareEmulation")[1] == "NoKvmDevice"
    assert "not an isolation boundary" in find(status, "SoftwareEmulation")[2]
    assert derive(after(a_vmi(), RUNS), RUNS) is None, "nothing is written twice"


def test_a_guest_with_a_claim_of_one_node_is_not_migratable() -> None:
    vmi = a_vmi(volumes=[{"name": "root", "persistentVolumeClaim": {"claimName": "disk-of-web"}}])
    status, reason, message = find(derived(vmi, RUNS), "LiveMigratable")
    assert (status, reason) == ("False", "DisksNotLiveMigratable")
    assert "PVC disk-of-web is not shared" in message


def test_kvm_has_no_emulation_condition() -> None:
    on_kvm = Observed(observed().identity, is_kvm=True, machine="pc-q35-10.0", has_acpi=True)
    assert find(derived(a_vmi(), a_launcher(seen(observed=on_kvm))), "SoftwareEmulation") == ("", "", "")


@pytest.mark.parametrize(
    ("phase", "before", "after"),
    [
        ("Scheduled", ("Scheduled",), ("Scheduled", "Running")),
        ("Unknown", ("Scheduled", "Running", "Unknown"), ("Scheduled", "Running", "Unknown")),
    ],
    ids=["new", "repeated"],
)
def test_only_the_first_entry_into_a_phase_has_a_timestamp(
    phase: str, before: tuple[str, ...], after: tuple[str, ...]
) -> None:
    """Otherwise a VMI whose node flaps would grow its status without bound."""
    times = tuple(PhaseTransition(phase=name) for name in before)
    status = derived(with_status(a_vmi(phase), phase_transition_timestamps=times, reason="LauncherLost"), RUNS)
    assert (status.phase, status.reason) == ("Running", "")
    assert tuple(transition.phase for transition in status.phase_transition_timestamps) == after


def test_foreign_conditions_and_interfaces_stay() -> None:
    ready = Condition(type="Ready", status="False", reason="GuestNotRunning", last_transition_time="2026-01-01")
    assert derived(with_status(a_vmi(), conditions=(ready,)), RUNS).conditions[0] == ready
    interfaces = (InterfaceStatus(interface_name="docker0", info_source="guest-agent"),)
    vmi = a_vmi("Unknown", domain={"memory": {"guest": "128Mi"}}, networks=[])
    assert derived(with_status(vmi, interfaces=interfaces), RUNS).interfaces == interfaces


@pytest.mark.parametrize(
    ("launcher", "phase", "reason"),
    [
        (a_launcher(seen(OFF, network_trouble="no eth0")), "Succeeded", ""),
        (a_launcher(seen(CRASHED)), "Failed", "GuestCrashed"),
        (a_launcher(pod=a_pod(phase="Succeeded", **ended(0))), "Succeeded", ""),
        (a_launcher(pod=a_pod(phase="Failed", **ended(1, "no disk"))), "Failed", "LauncherFailed"),
    ],
    ids=["shut down", "killed", "Pod succeeded", "Pod failed"],
)
@pytest.mark.parametrize("before", ["Scheduled", "Running", "Unknown"])
def test_a_proven_end_is_final(before: str, launcher: Launcher, phase: str, reason: str) -> None:
    """The end of a run clears readiness in the same write."""
    status = derived(with_status(a_vmi(before), conditions=(READY,)), launcher)
    assert (status.phase, status.reason, find(status)[1]) == (phase, reason, reason)
    assert find(status, "Ready")[:2] == ("False", "GuestNotRunning")


@pytest.mark.parametrize(
    "launcher",
    [
        a_launcher(),
        a_launcher(seen(is_connected=False)),
        a_launcher(seen(is_connected=False), gone=True),
        a_launcher(seen(), gone=True),
        a_launcher(seen(State(Life.PAUSED, "starting_up"))),
        a_launcher(seen(State(Life.SHUT_OFF, "migrated"))),
        a_launcher(seen(State(Life.SHUT_OFF, "unknown"), observed=observed(uid="other"))),
    ],
    ids=["never reached", "contact lost", "Pod gone", "Pod gone, guest alive", "being started", "migrated", "foreign"],
)
@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_an_unknown_state_changes_nothing(phase: str, launcher: Launcher) -> None:
    assert derive(a_vmi(phase), launcher) is None


def test_phases_of_virt_controller_and_vmis_of_another_node_stay() -> None:
    for phase in ("", "Pending", "Scheduling", "Succeeded", "Failed"):
        for launcher in (RUNS, a_launcher(seen(CRASHED))):
            assert derive(a_vmi(phase), launcher) is None
    assert derive(a_vmi(node=OTHER), RUNS) is None


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (RUNNING, ""),
        (State(Life.SHUTTING_DOWN, "user"), ""),
        (BY_USER, "PausedByUser"),
        (IOERROR, "PausedIOError"),
        (State(Life.PAUSED, "starting_up"), ""),
        (State(Life.PAUSED, "watchdog"), ""),
    ],
)
def test_only_a_paused_guest_has_the_paused_condition(state: State, reason: str) -> None:
    assert find(derive(a_vmi("Running"), a_launcher(seen(state))), "Paused")[1] == reason


@pytest.mark.parametrize(
    ("state", "ago", "is_kept"),
    [(IOERROR, 1.0, True), (IOERROR, 9.9, True), (IOERROR, 10.1, False), (BY_USER, 1.0, False)],
)
def test_a_resumed_guest_keeps_the_io_error_pause_for_a_while(state: State, ago: float, is_kept: bool) -> None:
    """It usually meets the same I/O error again. This avoids two writes per attempt."""
    paused = after(after(a_vmi(), RUNS), a_launcher(seen(state)))
    resumed = derive(paused, a_launcher(seen(resume_asked_at=1000.0 - ago, resumes=1)))
    assert (resumed is None) is is_kept
    assert resumed is None or find(resumed, "Paused") == ("", "", "")
    assert derive(paused, a_launcher(seen(state, resume_asked_at=1000.0 - ago, resumes=1))) is None


def test_a_paused_condition_is_not_repeated_without_a_launcher() -> None:
    paused = Condition(type="Paused", status="True", reason="PausedIOError")
    assert derive(with_status(a_vmi("Running"), conditions=(paused,)), are_launchers_known=False) is None


@pytest.mark.parametrize("operation", ["start", "prepare network"])
def test_a_vmi_is_not_running_before_its_operation_has_ended(operation: str) -> None:
    """The start may still fail, or the addresses are missing."""
    assert derive(a_vmi(), a_launcher(seen(), operation=operation)) is None


REFUSED = FailedOperation("cannot start domain: no space left", is_refusal=True, at=1000.0)
BROKEN = FailedOperation("no answer within 60 s", is_refusal=False, at=1000.0)
NO_SPACE: RefusedStep[Action] = RefusedStep(StartDomain(POD_UID, "x"), Invalid("cannot start domain: no space left"))
TROUBLE: dict[str, tuple[Launcher, Problem, tuple[str, str, str]]] = {
    "refused operation": (
        a_launcher(seen(None), failed_operation=REFUSED),
        None,
        ("False", "StartFailed", "cannot start domain: no space left"),
    ),
    "refused step": (a_launcher(seen(None)), NO_SPACE, ("False", "StartFailed", "cannot start domain: no space left")),
    "refused network": (
        a_launcher(seen(None)),
        RefusedStep(PrepareNetwork(POD_UID, "x"), Unavailable("no")),
        ("False", "StartFailed", "no"),
    ),
    "another refused step": (a_launcher(seen(None)), RefusedStep(Dial(POD_UID, "x"), Unavailable("no")), ("", "", "")),
    "broken connection": (a_launcher(seen(None), failed_operation=BROKEN), None, ("", "", "")),
    "runs all the same": (a_launcher(seen(), failed_operation=REFUSED), None, ("", "", "")),
    "no network": (a_launcher(seen(network_trouble="no eth0")), None, ("False", "NetworkNotReady", "no eth0")),
    "paused, no network": (
        a_launcher(seen(BY_USER, network_trouble="no eth0")),
        None,
        ("False", "NetworkNotReady", "no eth0"),
    ),
}


@pytest.mark.parametrize(("launcher", "problem", "expected"), TROUBLE.values(), ids=TROUBLE)
def test_the_trouble_of_a_start_or_of_the_network_is_reported_until_it_is_over(
    launcher: Launcher, problem: Problem, expected: tuple[str, str, str]
) -> None:
    status = derive(a_vmi(), launcher, problem=problem)
    assert find(status) == expected
    if status is not None:
        assert status.phase == ("Running" if launcher.status.state is not None else "Scheduled")
        over = derived(msgspec.structs.replace(a_vmi(), status=status), a_launcher(seen(IOERROR)))
        assert find(over) == ("", "", "")


def ready_pod(state: State = RUNNING, *, deleting: bool = False) -> Launcher:
    pod = a_pod(deleting=deleting)
    status = msgspec.structs.replace(pod.status, conditions=(READY,))
    return a_launcher(seen(state), msgspec.structs.replace(pod, status=status))


@pytest.mark.parametrize(
    ("vmi", "launcher", "ready"),
    [
        (a_vmi(), ready_pod(), ("True", "")),
        (a_vmi(), ready_pod(BY_USER), ("False", "Paused")),
        (a_vmi(), ready_pod(deleting=True), ("", "")),
        (a_vmi(deleting=True), ready_pod(), ("", "")),
    ],
    ids=["ready", "starts paused", "its Pod is terminating", "it is being deleted"],
)
def test_a_new_phase_sets_readiness_in_the_same_write(
    vmi: VirtualMachineInstance, launcher: Launcher, ready: tuple[str, str]
) -> None:
    status = derived(vmi, launcher)
    assert (status.phase, find(status, "Ready")[:2]) == ("Running", ready)


def test_a_later_pause_leaves_readiness_to_virt_controller() -> None:
    paused = derived(after(a_vmi(), ready_pod()), ready_pod(BY_USER))
    assert (find(paused, "Paused")[0], find(paused, "Ready")[0]) == ("True", "True")


AWAY = "virt-node is not reachable"


def scheduled(stamp: str) -> VirtualMachineInstance:
    transition = PhaseTransition(phase="Scheduled", phase_transition_timestamp=stamp)
    return with_status(a_vmi(), phase_transition_timestamps=(transition,))


def missing(seconds: float) -> NodeTrouble:
    """virt-node has been missing for so many seconds."""
    return NodeTrouble(AWAY, since=1000.0 - seconds)


EARLY, LATE = scheduled("2023-11-14T22:13:00Z"), scheduled("2023-11-14T22:12:50Z")
NO_NODE = ("VirtNodeNotReady", f"waiting for virt-node on node-1: {AWAY}")
NO_LIBVIRT = "waiting for libvirt in the launcher Pod"
WAITS: dict[str, tuple[tuple[Launcher, ...], dict[str, Any], tuple[str, str]]] = {
    "silent launcher": ((SILENT,), {}, ("LauncherNotReady", f"{NO_LIBVIRT}: nobody listens")),
    "no report": ((a_launcher(seen(None)),), {}, ("LauncherNotReady", f"{NO_LIBVIRT}: the domain is not started")),
    "node recovery": (
        (a_launcher(seen(None)),),
        {"start_blocked_reason": "2 guests are being ended"},
        ("NodeNotClear", "waiting for node-1: 2 guests are being ended"),
    ),
    "node recovery, silent launcher": (
        (SILENT,),
        {"start_blocked_reason": "x"},
        ("LauncherNotReady", f"{NO_LIBVIRT}: nobody listens"),
    ),
    "node recovery, being started": (
        (a_launcher(seen(None), operation="start"),),
        {"start_blocked_reason": "x"},
        ("LauncherNotReady", f"{NO_LIBVIRT}: the domain is not started"),
    ),
    "it runs": ((RUNS,), {}, ("", "")),
    "no virt-node, silent launcher": ((SILENT,), {"node_trouble": missing(1)}, NO_NODE),
    "no virt-node": ((a_launcher(seen(None)),), {"node_trouble": missing(1)}, NO_NODE),
    "no virt-node, not listed": ((), {"node_trouble": missing(1)}, NO_NODE),
    "not listed": ((), {}, ("", "")),
}


@pytest.mark.parametrize(("launchers", "facts", "expected"), WAITS.values(), ids=WAITS)
def test_a_start_reports_after_a_while_what_it_waits_for(
    launchers: tuple[Launcher, ...], facts: dict[str, Any], expected: tuple[str, str]
) -> None:
    assert find(derive(EARLY, *launchers, **facts))[1:] == ("", "")
    assert find(derive(LATE, *launchers, **facts))[1:] == expected


ASSIGNED = PhaseTransition(phase="Scheduling", phase_transition_timestamp="2023-11-14T22:12:50Z")


@pytest.mark.parametrize(
    "vmi",
    [with_status(LATE, phase="Running"), with_status(a_vmi(), phase_transition_timestamps=(ASSIGNED,)), a_vmi()],
    ids=["it has run", "assigned at an unknown time", "no times"],
)
def test_only_a_start_whose_hand_over_is_long_ago_waits(vmi: VirtualMachineInstance) -> None:
    assert derive(vmi, SILENT) is None


@pytest.mark.parametrize("reason", ["LauncherNotReady", "NodeNotClear", "VirtNodeNotReady", "LauncherLost"])
def test_a_finished_run_waits_for_nothing(reason: str) -> None:
    """A final status stays as it is for ever."""
    condition = Condition(type="Synchronized", status="False", reason=reason, message="waiting")
    over = a_launcher(pod=a_pod(phase="Succeeded", **ended(0)))
    status = derived(with_status(a_vmi("Running"), conditions=(condition,)), over, node_trouble=missing(30))
    assert (status.phase, find(status)) == ("Succeeded", ("", "", ""))


def test_a_lost_launcher_that_cannot_be_searched_for_reports_it_until_it_can() -> None:
    """A restart of virt-node takes less than this."""
    assert derive(a_vmi("Running"), node_trouble=missing(29)) is None
    reported = after(a_vmi("Running"), node_trouble=missing(30))
    assert (reported.status.phase, find(reported.status)[1]) == ("Running", "VirtNodeNotReady")
    assert find(reported.status)[2].endswith(f"and virt-handler cannot search for it: {AWAY}")
    assert derive(reported, node_trouble=missing(60)) is None
    assert derive(reported, node_trouble=missing(1)) is None, "virt-node came back for a moment only"
    assert find(derive(reported, look=a_look(processes=1, count=2)))[1] == "LauncherLost"


@pytest.mark.parametrize(
    ("vmi", "launchers"),
    [(a_vmi("Running"), ()), (a_vmi("Running"), (a_launcher(seen(None, has_run=True)),)), (LATE, ())],
    ids=["not listed", "lost by libvirt", "its launcher is not listed yet"],
)
def test_a_virt_node_that_is_back_clears_its_condition(
    vmi: VirtualMachineInstance, launchers: tuple[Launcher, ...]
) -> None:
    """For a guest that libvirt lost, no other condition would replace it."""
    reported = after(vmi, *launchers, node_trouble=missing(30))
    assert find(derived(reported, *launchers, look=a_look(processes=1, emulators=1))) == ("", "", "")


def test_a_running_guest_needs_no_virt_node() -> None:
    assert derive(after(a_vmi(), RUNS), RUNS, node_trouble=missing(3600)) is None


FLOOD = "no \x1b[31m\n" * 2_000


@pytest.mark.parametrize(
    "world",
    [
        a_world(a_vmi(), a_launcher(seen(None, failure=Failure(FLOOD, FLOOD)))),
        a_world(LATE, a_launcher(LauncherStatus(trouble=FLOOD))),
        a_world(a_vmi(), a_launcher(pod=a_pod(phase="Failed", reason=FLOOD))),
        a_world(a_vmi(), a_launcher(pod=a_pod(phase="Failed", reason="Evicted", message=FLOOD))),
        a_world(a_vmi(), a_launcher(pod=a_pod(phase="Failed", **ended(1, FLOOD)))),
        a_world(a_vmi(), a_launcher(pod=a_pod(phase="Failed", **ended(1, reason=FLOOD)))),
    ],
    ids=["QEMU", "no contact", "a Pod's reason", "a Pod's message", "last words", "a container's reason"],
)
def test_foreign_texts_are_bounded_in_the_status(world: World) -> None:
    status = derive_status(world, None)
    assert status is not None
    _unused, reason, message = find(status)
    assert 0 < len(message) <= 512
    assert message.isprintable()
    assert all(0 < len(word) <= 64 and word.isalnum() for word in (reason, status.reason or "x"))


@pytest.mark.parametrize("state", [None, *(State(Life.SHUT_OFF, why) for why in ("unknown", "failed", "daemon"))])
def test_a_vanished_domain_ends_only_a_run_that_was_seen_running(state: State | None) -> None:
    """It also needs proof from the node that no QEMU is left: libvirt may have lost a running guest."""
    launcher, ran = a_launcher(seen(state)), after(a_vmi(), RUNS)
    assert derive(a_vmi(), launcher) is None
    assert derive(ran, launcher) is None
    assert derive(ran, launcher, look=a_look(processes=3, emulators=1)) is None
    for vmi in (ran, with_status(ran, phase="Unknown"), a_vmi("Running")):
        status = derived(vmi, launcher, look=a_look(processes=2))
        assert (status.phase, status.reason) == ("Failed", "GuestLost")


def test_a_libvirtd_that_died_with_qemu_during_a_start_ends_the_run() -> None:
    launcher = a_launcher(seen(State(Life.SHUT_OFF, "daemon")))
    assert derive(a_vmi(), launcher, look=a_look(processes=3, emulators=1)) is None
    status = derived(a_vmi(), launcher, look=a_look(processes=2))
    assert (status.phase, status.reason) == ("Failed", "GuestLost")


@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_a_launcher_without_traces_is_gone(phase: str) -> None:
    status = derived(with_status(a_vmi(phase), conditions=(READY,)), look=a_look())
    assert (status.phase, status.reason) == ("Failed", "LauncherGone")
    message = f"Pod {POD_UID} was removed, and this node has neither its directory nor a process of it"
    assert find(status) == ("False", "LauncherGone", message)
    assert find(status, "Ready")[:2] == ("False", "GuestNotRunning")


@pytest.mark.parametrize(
    ("look", "remains"),
    [
        (a_look(directory=True, count=2), "has its directory;"),
        (a_look(processes=2, count=2), "has 2 processes of it;"),
        (a_look(directory=True, processes=2, count=3), "has its directory and 2 processes of it;"),
        (a_look(directory=True, processes=2), ""),
    ],
    ids=["directory", "processes", "both", "first search"],
)
def test_traces_of_a_lost_launcher_are_reported_from_the_second_search_on(look: Look, remains: str) -> None:
    """The watch of Pods may only lag behind the watch of VMIs."""
    status = derive(a_vmi("Running"), look=look)
    assert find(status)[1] == ("LauncherLost" if remains else "")
    assert remains in find(status)[2]
    assert status is None or status.phase == "Running"


@pytest.mark.parametrize(
    ("reason", "is_kept"), [("PodLost", True), ("VirtHandlerSilent", False), ("VirtNodeNotReady", False)]
)
def test_only_a_trouble_that_says_less_is_replaced(reason: str, is_kept: bool) -> None:
    condition = Condition(type="Synchronized", status="False", reason=reason, last_transition_time="2026-01-01")
    vmi = with_status(a_vmi("Unknown"), conditions=(condition,))
    assert (derive(vmi, look=a_look(processes=1, count=2)) is None) is is_kept


@pytest.mark.parametrize(
    ("launchers", "facts", "expected"),
    [
        ((RUNS,), {}, ""),
        ((a_launcher(seen(None)),), {"problem": NO_SPACE}, "StartFailed"),
        ((), {"node_trouble": missing(30)}, "VirtNodeNotReady"),
        ((a_launcher(LauncherStatus()),), {}, "VirtHandlerSilent"),
        ((a_launcher(seen(OFF)),), {}, ""),
        ((a_launcher(seen(CRASHED)),), {}, "GuestCrashed"),
    ],
    ids=["runs", "start fails", "virt-node away", "nothing known", "shut down", "crashed"],
)
def test_a_silent_virt_handler_condition_is_replaced_by_what_is_known_now(
    launchers: tuple[Launcher, ...], facts: dict[str, Any], expected: str
) -> None:
    """virt-controller writes the condition, and removes it only once the node is schedulable again."""
    reported = Condition(type="Synchronized", status="False", reason="VirtHandlerSilent", message="waiting")
    vmi = with_status(a_vmi(), conditions=(reported,))
    assert find(derive(vmi, *launchers, **facts) or vmi.status)[1] == expected


def test_a_guest_seen_running_is_never_gone() -> None:
    for gone in (True, False):
        status = derive(a_vmi("Running"), a_launcher(seen(), gone=gone), look=a_look())
        assert status is None or status.phase == "Running"
    assert derive(a_vmi("Running"), look=a_look(), are_launchers_known=False) is None
    failed = a_launcher(pod=a_pod("cccc", phase="Failed", **ended(1)))
    assert derive(after(a_vmi(), RUNS), failed, RUNS) is None
