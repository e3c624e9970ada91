# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VMI of this node."""

from __future__ import annotations

from dataclasses import replace
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
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.world import (
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

CRASHED = State(Life.SHUT_OFF, "crashed")
STARTING = State(Life.PAUSED, "starting_up")


def derive(vmi: VirtualMachineInstance, launcher: Launcher, **facts: Any) -> VirtualMachineInstanceStatus | None:
    return derive_status(a_world(vmi, launcher, **facts), None)


def derived(vmi: VirtualMachineInstance, launcher: Launcher, **facts: Any) -> VirtualMachineInstanceStatus:
    status = derive(vmi, launcher, **facts)
    assert status is not None
    return status


def after(vmi: VirtualMachineInstance, launcher: Launcher) -> VirtualMachineInstance:
    """The VMI after the derived status is written."""
    return msgspec.structs.replace(vmi, status=derived(vmi, launcher))


def test_a_running_domain_makes_the_vmi_running_with_everything_in_one_write() -> None:
    status = derived(a_vmi(), a_launcher(seen()))
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


def test_emulation_has_a_warning_about_isolation() -> None:
    condition = conditions.find(derived(a_vmi(), a_launcher(seen())).conditions, "SoftwareEmulation")
    assert condition is not None
    assert "not an isolation boundary" in condition.message


def test_kvm_has_no_emulation_condition() -> None:
    on_kvm = Observed(observed().identity, is_kvm=True, machine="pc-q35-10.0", has_acpi=True)
    status = derived(a_vmi(), a_launcher(seen(observed=on_kvm)))
    assert conditions.find(status.conditions, "SoftwareEmulation") is None


def test_an_unchanged_status_is_not_written() -> None:
    launcher = a_launcher(seen())
    assert derive(after(a_vmi(), launcher), launcher) is None


def test_a_repeated_phase_adds_no_timestamp() -> None:
    """Otherwise a VMI whose node flaps would grow its status without bound."""
    vmi = a_vmi("Unknown")
    times = tuple(PhaseTransition(phase=phase) for phase in ("Scheduled", "Running", "Unknown"))
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=times))
    status = derived(vmi, a_launcher(seen()))
    assert (status.phase, status.phase_transition_timestamps) == ("Running", times)


def test_foreign_conditions_stay() -> None:
    ready = Condition(
        type="Ready", status="False", reason="GuestNotRunning", last_transition_time="2026-01-01T00:00:00Z"
    )
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(ready,)))
    assert derived(vmi, a_launcher(seen())).conditions[0] == ready


@pytest.mark.parametrize(
    ("launcher", "phase", "reason"),
    [
        (a_launcher(seen(OFF)), "Succeeded", ""),
        (a_launcher(seen(CRASHED)), "Failed", "GuestCrashed"),
        (a_launcher(pod=a_pod(phase="Succeeded", **ended(0))), "Succeeded", ""),
        (a_launcher(pod=a_pod(phase="Failed", **ended(1, "no disk"))), "Failed", "LauncherFailed"),
    ],
    ids=["shut down", "killed", "Pod succeeded", "Pod failed"],
)
@pytest.mark.parametrize("before", ["Scheduled", "Running", "Unknown"])
def test_a_proven_end_is_final(before: str, launcher: Launcher, phase: str, reason: str) -> None:
    status = derived(a_vmi(before), launcher)
    assert (status.phase, status.reason) == (phase, reason)
    trouble = conditions.find(status.conditions, "Synchronized")
    assert (trouble.reason if trouble else "") == reason


@pytest.mark.parametrize(
    "launcher",
    [
        a_launcher(),
        a_launcher(seen(is_connected=False)),
        a_launcher(seen(is_connected=False), gone=True),
        a_launcher(seen(), gone=True),
        a_launcher(seen(STARTING)),
    ],
    ids=["never reached", "contact lost", "Pod gone", "Pod gone, guest alive", "being started"],
)
@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_an_unknown_state_changes_nothing(phase: str, launcher: Launcher) -> None:
    assert derive(a_vmi(phase), launcher) is None


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Succeeded", "Failed"])
def test_phases_of_virt_controller_stay(phase: str) -> None:
    for launcher in (a_launcher(seen()), a_launcher(seen(CRASHED))):
        assert derive(a_vmi(phase), launcher) is None


def test_a_vmi_of_another_node_is_not_written() -> None:
    assert derive(a_vmi(node=OTHER), a_launcher(seen())) is None


def test_a_pause_adds_and_removes_its_condition() -> None:
    running = after(a_vmi(), a_launcher(seen()))
    paused = a_launcher(seen(State(Life.PAUSED, "ioerror")))
    condition = conditions.find(derived(running, paused).conditions, "Paused")
    assert condition is not None
    assert (condition.status, condition.reason) == ("True", "PausedIOError")
    resumed = derived(after(running, paused), a_launcher(seen()))
    assert conditions.find(resumed.conditions, "Paused") is None


@pytest.mark.parametrize(("ago", "changes"), [(1.0, False), (9.9, False), (10.1, True)])
def test_a_resumed_guest_keeps_the_paused_condition_for_a_while(ago: float, changes: bool) -> None:
    """It usually meets the same I/O error again. This avoids two writes per attempt."""
    paused = after(after(a_vmi(), a_launcher(seen())), a_launcher(seen(State(Life.PAUSED, "ioerror"))))
    new = derive(paused, a_launcher(seen(resume_asked_at=1000.0 - ago, resumes=1)))
    assert (new is not None) is changes
    again = derive(paused, a_launcher(seen(State(Life.PAUSED, "ioerror"), resume_asked_at=1000.0 - ago, resumes=1)))
    assert again is None


def test_a_users_pause_has_no_trial() -> None:
    paused = after(after(a_vmi(), a_launcher(seen())), a_launcher(seen(State(Life.PAUSED, "user"))))
    resumed = derived(paused, a_launcher(seen(resume_asked_at=999.0, resumes=1)))
    assert conditions.find(resumed.conditions, "Paused") is None


@pytest.mark.parametrize("doing", ["start", "prepare the network"])
def test_a_vmi_is_not_running_before_its_operation_has_ended(doing: str) -> None:
    """The start may still fail, or the addresses are missing."""
    assert derive(a_vmi(), a_launcher(seen(), operation=doing)) is None
    assert derived(a_vmi(), a_launcher(seen())).phase == "Running"


def test_a_refused_start_is_reported() -> None:
    failed_operation = FailedOperation("cannot start domain: no space left", is_refusal=True, at=1000.0)
    condition = conditions.find(
        derived(a_vmi(), a_launcher(seen(None), failed_operation=failed_operation)).conditions, "Synchronized"
    )
    assert condition is not None
    assert (condition.status, condition.reason, condition.message) == (
        "False",
        "StartFailed",
        "cannot start domain: no space left",
    )


def test_a_running_guest_has_no_failed_start() -> None:
    """Another start was faster, or the guest is up despite the refusal."""
    failed_operation = FailedOperation("cannot start domain: it is active", is_refusal=True, at=1000.0)
    status = derived(a_vmi(), a_launcher(seen(), failed_operation=failed_operation))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Running", None)


@pytest.mark.parametrize("state", [RUNNING, State(Life.PAUSED, "user")], ids=["runs", "paused"])
def test_network_trouble_is_reported_until_it_is_over(state: State) -> None:
    lost = derived(a_vmi("Running"), a_launcher(seen(state, network_trouble="no eth0")))
    condition = conditions.find(lost.conditions, "Synchronized")
    assert condition is not None
    assert (lost.phase, condition.status, condition.reason, condition.message) == (
        "Running",
        "False",
        "NetworkNotReady",
        "no eth0",
    )
    mended = derived(msgspec.structs.replace(a_vmi("Running"), status=lost), a_launcher(seen(state)))
    assert conditions.find(mended.conditions, "Synchronized") is None


def test_a_finished_run_has_no_network_trouble() -> None:
    status = derived(a_vmi("Running"), a_launcher(seen(State(Life.SHUT_OFF, "shutdown"), network_trouble="no eth0")))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Succeeded", None)


def test_a_broken_connection_is_no_trouble_of_the_vmi() -> None:
    failed_operation = FailedOperation("no answer within 60 s", is_refusal=False, at=1000.0)
    assert derive(a_vmi(), a_launcher(seen(None), failed_operation=failed_operation)) is None


def test_a_failing_start_is_reported_and_stays_scheduled() -> None:
    problem = RefusedStep(StartDomain(POD_UID, "x"), Invalid("cannot start domain: no space left"))
    status = derive_status(a_world(a_vmi(), a_launcher(seen(None))), problem)
    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (status.phase, condition.status, condition.reason) == ("Scheduled", "False", "StartFailed")
    assert "no space left" in condition.message


def test_a_start_that_succeeds_after_all_clears_its_trouble() -> None:
    problem = RefusedStep(StartDomain(POD_UID, "x"), Invalid("no space left"))
    world = a_world(a_vmi(), a_launcher(seen(None)))
    status = derive_status(world, problem)
    assert status is not None
    troubled = msgspec.structs.replace(a_vmi(), status=status)
    assert conditions.find(derived(troubled, a_launcher(seen())).conditions, "Synchronized") is None


READY = Condition(type="Ready", status="True")


def in_a_ready_pod(launcher: Launcher) -> Launcher:
    status = msgspec.structs.replace(launcher.pod.status, conditions=(READY,))
    return replace(launcher, pod=msgspec.structs.replace(launcher.pod, status=status))


def test_a_ready_pod_makes_the_vmi_ready_in_the_same_write() -> None:
    status = derived(a_vmi(), in_a_ready_pod(a_launcher(seen())))
    assert conditions.is_true(status.conditions, "Ready")


def test_a_guest_that_starts_paused_is_not_ready_in_the_same_write() -> None:
    status = derived(a_vmi(), in_a_ready_pod(a_launcher(seen(State(Life.PAUSED, "user")))))
    condition = conditions.find(status.conditions, "Ready")
    assert condition is not None
    assert (status.phase, condition.status, condition.reason) == ("Running", "False", "Paused")


def test_a_later_pause_leaves_readiness_to_virt_controller() -> None:
    running = after(a_vmi(), in_a_ready_pod(a_launcher(seen())))
    paused = derived(running, in_a_ready_pod(a_launcher(seen(State(Life.PAUSED, "user")))))
    assert conditions.is_true(paused.conditions, "Paused")
    assert conditions.is_true(paused.conditions, "Ready")


def test_a_guest_in_a_terminating_pod_does_not_become_ready() -> None:
    launcher = a_launcher(seen())
    going = msgspec.structs.replace(
        launcher.pod,
        metadata=msgspec.structs.replace(launcher.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
        status=msgspec.structs.replace(launcher.pod.status, conditions=(READY,)),
    )
    status = derived(a_vmi(), replace(launcher, pod=going))
    assert status.phase == "Running"
    assert not conditions.is_true(status.conditions, "Ready")


def test_the_end_of_a_run_clears_readiness_in_the_same_write() -> None:
    vmi = a_vmi("Running")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(READY,)))
    condition = conditions.find(derived(vmi, a_launcher(seen(state=OFF))).conditions, "Ready")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "GuestNotRunning")


def scheduled(stamp: str) -> VirtualMachineInstance:
    vmi = a_vmi()
    transition = PhaseTransition(phase="Scheduled", phase_transition_timestamp=stamp)
    return msgspec.structs.replace(
        vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=(transition,))
    )


def test_a_silent_launcher_is_reported_after_a_while() -> None:
    silent = a_launcher(LauncherStatus(trouble="nobody listens"))
    assert derive(scheduled("2023-11-14T22:13:00Z"), silent) is None
    condition = conditions.find(derived(scheduled("2023-11-14T22:12:50Z"), silent).conditions, "Synchronized")
    assert condition is not None
    assert (condition.reason, condition.message) == (
        "LauncherNotReady",
        "waiting for libvirt in the launcher Pod: nobody listens",
    )


def test_a_start_that_waits_for_the_nodes_recovery_reports_it_if_nothing_else_is_missing() -> None:
    late, waits_for = scheduled("2023-11-14T22:12:50Z"), "2 guests are being ended"
    assert derive(scheduled("2023-11-14T22:13:00Z"), a_launcher(seen(None)), held=waits_for) is None
    for launcher, reason in (
        (a_launcher(seen(None)), "NodeNotClear"),
        (a_launcher(LauncherStatus(trouble="nobody listens")), "LauncherNotReady"),
    ):
        condition = conditions.find(derived(late, launcher, held=waits_for).conditions, "Synchronized")
        assert condition is not None
        assert condition.reason == reason
        assert (reason == "NodeNotClear") is (condition.message == "waiting for node-1: 2 guests are being ended")


AWAY = "virt-node is not there"


def missing(seconds: float) -> NodeTrouble:
    """virt-node has been missing for so many seconds."""
    return NodeTrouble(AWAY, since=1000.0 - seconds)


@pytest.mark.parametrize(
    "launchers",
    [(a_launcher(LauncherStatus(trouble="nobody listens")),), (a_launcher(seen(None)),), ()],
    ids=["not reached", "its network or its report is wanted", "not listed"],
)
def test_a_start_that_waits_for_virt_node_reports_it(launchers: tuple[Launcher, ...]) -> None:
    """Only virt-handler's log had it. The VMI named libvirt, or nothing."""
    early, late = scheduled("2023-11-14T22:13:00Z"), scheduled("2023-11-14T22:12:50Z")
    assert derive_status(a_world(early, *launchers, node_trouble=missing(20)), None) is None
    status = derive_status(a_world(late, *launchers, node_trouble=missing(1)), None)
    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (condition.reason, condition.message) == ("VirtNodeNotReady", f"waiting for virt-node on node-1: {AWAY}")


@pytest.mark.parametrize("reason", ["LauncherNotReady", "NodeNotClear", "VirtNodeNotReady", "LauncherLost"])
def test_a_finished_run_waits_for_nothing(reason: str) -> None:
    """A final status stays as it is for ever."""
    condition = Condition(type="Synchronized", status="False", reason=reason, message="waiting")
    vmi = a_vmi("Running")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(condition,)))
    status = derived(vmi, a_launcher(pod=a_pod(phase="Succeeded", **ended(0))), node_trouble=missing(30))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Succeeded", None)


def test_a_lost_launcher_that_cannot_be_searched_for_reports_it_until_it_can() -> None:
    """A restart of virt-node takes less than this."""
    assert derive_status(a_world(a_vmi("Running"), node_trouble=missing(29)), None) is None
    status = derive_status(a_world(a_vmi("Running"), node_trouble=missing(30)), None)
    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (status.phase, condition.reason) == ("Running", "VirtNodeNotReady")
    assert condition.message.endswith(f"and it cannot be looked for: {AWAY}")

    reported = msgspec.structs.replace(a_vmi("Running"), status=status)
    assert derive_status(a_world(reported, node_trouble=missing(60)), None) is None
    searched = derive_status(a_world(reported, look=a_look(processes=1, count=2)), None)
    assert searched is not None
    condition = conditions.find(searched.conditions, "Synchronized")
    assert condition is not None
    assert condition.reason == "LauncherLost"


LOST_BY_LIBVIRT = a_launcher(seen(None, has_run=True))


@pytest.mark.parametrize(
    ("vmi", "launchers"),
    [(a_vmi("Running"), ()), (a_vmi("Running"), (LOST_BY_LIBVIRT,)), (scheduled("2023-11-14T22:12:50Z"), ())],
    ids=["not listed", "lost by libvirt", "its launcher is not listed yet"],
)
def test_a_virt_node_that_is_back_clears_its_condition(
    vmi: VirtualMachineInstance, launchers: tuple[Launcher, ...]
) -> None:
    """The condition stayed until another one replaced it. For a guest that libvirt lost, none ever did."""
    status = derive_status(a_world(vmi, *launchers, node_trouble=missing(30)), None)
    assert status is not None
    reported = msgspec.structs.replace(vmi, status=status)
    back = derive_status(a_world(reported, *launchers, look=a_look(processes=1, emulators=1)), None)
    assert back is not None
    assert conditions.find(back.conditions, "Synchronized") is None


def test_a_running_guest_needs_no_virt_node() -> None:
    assert derive(after(a_vmi(), a_launcher(seen())), a_launcher(seen()), node_trouble=missing(3600)) is None


FLOOD = "no \x1b[31m\n" * 100_000


@pytest.mark.parametrize(
    "world",
    [
        a_world(a_vmi(), a_launcher(seen(None, failure=Failure(FLOOD, FLOOD)))),
        a_world(scheduled("2023-11-14T22:12:00Z"), a_launcher(LauncherStatus(trouble=FLOOD))),
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
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert 0 < len(condition.message) <= 512
    assert condition.message.isprintable()
    assert all(0 < len(word) <= 64 and word.isalnum() for word in (condition.reason, status.reason or "x"))


def test_a_waiting_start_is_checked_when_its_patience_ends() -> None:
    """And periodically afterwards: the reason may change."""
    assert decide(a_world(scheduled("2023-11-14T22:13:00Z"), a_launcher())).requeue_after == 10.0
    assert decide(a_world(scheduled("2023-11-14T22:12:00Z"), a_launcher())).requeue_after == 30.0


@pytest.mark.parametrize("state", [None, *(State(Life.SHUT_OFF, item) for item in ("unknown", "failed", "daemon"))])
def test_a_vanished_domain_ends_only_a_run_that_was_seen_running(state: State | None) -> None:
    """It also needs proof from the node that no QEMU is left: libvirt may have lost a running guest."""
    launcher = a_launcher(seen(state))
    assert derive(a_vmi("Scheduled"), launcher) is None
    assert derive(after(a_vmi(), a_launcher(seen())), launcher) is None
    alive = derive(after(a_vmi(), a_launcher(seen())), launcher, look=a_look(processes=3, emulators=1))
    assert alive is None or alive.phase == "Running"
    ran = after(a_vmi(), a_launcher(seen()))
    unknown = msgspec.structs.replace(ran, status=msgspec.structs.replace(ran.status, phase="Unknown"))
    for vmi in (ran, unknown, a_vmi("Running")):
        status = derived(vmi, launcher, look=a_look(processes=2))
        assert (status.phase, status.reason) == ("Failed", "GuestLost")


def test_a_libvirtd_that_died_with_qemu_during_a_start_ends_the_run() -> None:
    """It stayed Scheduled for ever: not startable because a QEMU existed, and not over because it was never seen up."""
    launcher = a_launcher(seen(State(Life.SHUT_OFF, "daemon")))
    assert derive(a_vmi("Scheduled"), launcher, look=a_look(processes=3, emulators=1)) is None
    status = derived(a_vmi("Scheduled"), launcher, look=a_look(processes=2))
    assert (status.phase, status.reason) == ("Failed", "GuestLost")


def test_a_vanished_domain_of_another_identity_ends_nothing() -> None:
    launcher = a_launcher(seen(State(Life.SHUT_OFF, "unknown"), observed=observed(uid="other")))
    assert derive(a_vmi("Running"), launcher) is None


def test_a_domain_that_migrated_away_has_not_ended() -> None:
    assert derive(a_vmi("Running"), a_launcher(seen(State(Life.SHUT_OFF, "migrated")))) is None


def test_an_unknown_vmi_is_running_again_when_its_guest_is_seen() -> None:
    """virt-controller lost the Pod, which is listed and connected again. The reason is cleared with the phase."""
    vmi = a_vmi("Unknown")
    lost = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, reason="LauncherLost"))
    status = derived(lost, a_launcher(seen()))
    assert (status.phase, status.reason) == ("Running", "")


@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_a_launcher_without_traces_is_gone(phase: str) -> None:
    vmi = a_vmi(phase)
    was_ready = msgspec.structs.replace(vmi.status, conditions=(READY,))
    status = derive_status(a_world(msgspec.structs.replace(vmi, status=was_ready), look=a_look()), None)
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "LauncherGone")
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (
        condition.message == f"Pod {POD_UID} was removed, and this node has neither its directory nor a process of it"
    )
    ready = conditions.find(status.conditions, "Ready")
    assert ready is not None
    assert (ready.status, ready.reason) == ("False", "GuestNotRunning")


@pytest.mark.parametrize(
    ("look", "left"),
    [
        (a_look(directory=True, count=2), "has its directory;"),
        (a_look(processes=2, count=2), "has 2 processes of it;"),
        (a_look(directory=True, processes=2, count=3), "has its directory and 2 processes of it;"),
    ],
    ids=["directory", "processes", "both"],
)
@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_traces_of_a_lost_launcher_are_reported_and_end_nothing(phase: str, look: Look, left: str) -> None:
    status = derive_status(a_world(a_vmi(phase), look=look), None)
    assert status is not None
    condition = conditions.find(status.conditions, "Synchronized")
    assert condition is not None
    assert (status.phase, condition.reason) == (phase, "LauncherLost")
    assert left in condition.message


def test_a_trouble_reported_by_virt_controller_is_not_reworded() -> None:
    condition = Condition(
        type="Synchronized", status="False", reason="PodLost", last_transition_time="2026-01-01T00:00:00Z"
    )
    vmi = a_vmi("Unknown")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(condition,)))
    assert derive_status(a_world(vmi, look=a_look(processes=1, count=2)), None) is None


FAILED_START = RefusedStep(StartDomain(POD_UID, "x"), Invalid("cannot start domain: no space left"))


@pytest.mark.parametrize(
    ("phase", "launchers", "facts", "problem", "expected"),
    [
        pytest.param("Scheduled", (a_launcher(seen()),), {}, None, None, id="its guest runs"),
        pytest.param("Scheduled", (a_launcher(seen(None)),), {}, FAILED_START, "StartFailed", id="its start fails"),
        pytest.param("Running", (), {"look": a_look(processes=1, count=2)}, None, "LauncherLost", id="it is lost"),
        pytest.param("Scheduled", (), {"node_trouble": missing(30)}, None, "VirtNodeNotReady", id="virt-node is away"),
        pytest.param(
            "Scheduled", (a_launcher(LauncherStatus()),), {}, None, "VirtHandlerSilent", id="nothing is known yet"
        ),
        pytest.param("Scheduled", (a_launcher(seen(OFF)),), {}, None, None, id="its run is over"),
        pytest.param("Scheduled", (a_launcher(seen(CRASHED)),), {}, None, "GuestCrashed", id="its guest crashed"),
    ],
)
def test_a_silent_virt_handler_condition_is_replaced_by_what_is_known_now(
    phase: str, launchers: tuple[Launcher, ...], facts: dict[str, Any], problem: Any, expected: str | None
) -> None:
    """virt-controller writes the condition, and removes it only once the node is schedulable again."""
    reported = Condition(type="Synchronized", status="False", reason="VirtHandlerSilent", message="waiting")
    vmi = a_vmi(phase)
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(reported,)))
    status = derive_status(a_world(vmi, *launchers, **facts), problem) or vmi.status

    condition = conditions.find(status.conditions, "Synchronized")
    assert (condition and condition.reason) == expected


def test_traces_found_by_the_first_search_are_not_reported() -> None:
    """The watch of Pods may only lag behind the watch of VMIs."""
    assert derive_status(a_world(a_vmi("Scheduled"), look=a_look(directory=True, processes=2)), None) is None


def test_a_guest_seen_running_is_never_gone() -> None:
    for gone in (True, False):
        status = derive_status(a_world(a_vmi("Running"), a_launcher(seen(), gone=gone), look=a_look()), None)
        assert status is None or status.phase == "Running"


def test_nothing_is_gone_while_not_all_pods_are_known() -> None:
    assert derive_status(a_world(a_vmi("Running"), look=a_look(), are_launchers_known=False), None) is None


def test_a_second_pod_changes_nothing_about_the_granted_one() -> None:
    running = after(a_vmi(), a_launcher(seen()))
    failed = a_launcher(pod=a_pod("cccc", phase="Failed", **ended(1)))
    assert derive_status(a_world(running, failed, a_launcher(seen())), None) is None


def test_a_paused_condition_is_not_repeated_without_a_launcher() -> None:
    paused = {"type": "Paused", "status": "True", "reason": "PausedIOError"}
    vmi = a_vmi("Running")
    reported = msgspec.structs.replace(vmi.status, conditions=(msgspec.convert(paused, Condition),))
    status = derive_status(a_world(msgspec.structs.replace(vmi, status=reported), are_launchers_known=False), None)
    assert status is None or "Paused" not in [condition.type for condition in status.conditions]


def test_a_new_phase_is_appended_to_the_timestamps() -> None:
    before = (PhaseTransition(phase="Scheduled", phase_transition_timestamp="2023-11-14T22:13:00Z"),)
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=before))
    times = derived(vmi, a_launcher(seen())).phase_transition_timestamps
    assert [transition.phase for transition in times] == ["Scheduled", "Running"]


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        (State(Life.RUNNING, "booted"), None),
        (State(Life.SHUTTING_DOWN, "user"), None),
        (State(Life.PAUSED, "user"), "PausedByUser"),
        (State(Life.PAUSED, "ioerror"), "PausedIOError"),
        (State(Life.PAUSED, "starting_up"), None),
    ],
)
def test_only_a_paused_guest_has_the_paused_condition(state: State, reason: str | None) -> None:
    status = derive(a_vmi("Running"), a_launcher(seen(state)))
    listed = () if status is None else status.conditions
    assert next((condition.reason for condition in listed if condition.type == "Paused"), None) == reason


@pytest.mark.parametrize(
    ("step", "reasons"),
    [
        (StartDomain(POD_UID, "x"), ["StartFailed"]),
        (PrepareNetwork(POD_UID, "x"), ["StartFailed"]),
        (Dial(POD_UID, "x"), []),
    ],
)
def test_a_failed_step_before_the_start_is_reported_as_a_failed_start(step: Any, reasons: list[str]) -> None:
    world = a_world(a_vmi(), a_launcher(seen(None)))
    status = derive_status(world, RefusedStep(step, Unavailable("no")))
    listed = () if status is None else status.conditions
    assert [condition.reason for condition in listed if condition.type == "Synchronized"] == reasons


def test_a_vmi_without_interfaces_keeps_those_of_its_guest() -> None:
    vmi = a_vmi("Unknown", domain={"memory": {"guest": "128Mi"}}, networks=[])
    interfaces = (InterfaceStatus(interface_name="docker0", info_source="guest-agent"),)
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, interfaces=interfaces))
    assert derived(vmi, a_launcher(seen())).interfaces == interfaces
