# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is said about a VMI of this node."""

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
    found = derive(vmi, launcher, **facts)
    assert found is not None
    return found


def after(vmi: VirtualMachineInstance, launcher: Launcher) -> VirtualMachineInstance:
    """The VMI once the derived status was written."""
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
    assert {one.type: one.status for one in status.conditions} == {
        "SoftwareEmulation": "True",
        "LiveMigratable": "True",
    }


def test_emulation_is_said_not_to_isolate() -> None:
    found = conditions.find(derived(a_vmi(), a_launcher(seen())).conditions, "SoftwareEmulation")
    assert found is not None
    assert "not an isolation boundary" in found.message


def test_on_kvm_nothing_is_said_of_emulation() -> None:
    on_kvm = Observed(observed().identity, is_kvm=True, machine="pc-q35-10.0", has_acpi=True)
    status = derived(a_vmi(), a_launcher(seen(observed=on_kvm)))
    assert conditions.find(status.conditions, "SoftwareEmulation") is None


def test_what_is_written_is_not_written_again() -> None:
    launcher = a_launcher(seen())
    assert derive(after(a_vmi(), launcher), launcher) is None


def test_a_phase_that_comes_again_is_not_noted_again() -> None:
    """A machine whose node is cut off and found again many times outgrows no bound of its status."""
    vmi = a_vmi("Unknown")
    times = tuple(PhaseTransition(phase=one) for one in ("Scheduled", "Running", "Unknown"))
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=times))
    status = derived(vmi, a_launcher(seen()))
    assert (status.phase, status.phase_transition_timestamps) == ("Running", times)


def test_conditions_of_others_stay() -> None:
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
def test_what_is_not_known_changes_nothing(phase: str, launcher: Launcher) -> None:
    assert derive(a_vmi(phase), launcher) is None


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "Succeeded", "Failed"])
def test_phases_that_are_not_ours_stay(phase: str) -> None:
    for launcher in (a_launcher(seen()), a_launcher(seen(CRASHED))):
        assert derive(a_vmi(phase), launcher) is None


def test_another_nodes_vmi_is_not_written() -> None:
    assert derive(a_vmi(node=OTHER), a_launcher(seen())) is None


def test_a_pause_comes_and_goes_as_a_condition() -> None:
    running = after(a_vmi(), a_launcher(seen()))
    paused = a_launcher(seen(State(Life.PAUSED, "ioerror")))
    found = conditions.find(derived(running, paused).conditions, "Paused")
    assert found is not None
    assert (found.status, found.reason) == ("True", "PausedIOError")
    resumed = derived(after(running, paused), a_launcher(seen()))
    assert conditions.find(resumed.conditions, "Paused") is None


@pytest.mark.parametrize(("ago", "changes"), [(1.0, False), (9.9, False), (10.1, True)])
def test_a_guest_that_was_let_go_on_is_said_to_be_paused_until_it_has_run_for_a_while(
    ago: float, changes: bool
) -> None:
    """It mostly meets the same I/O error again: no two writes per attempt."""
    paused = after(after(a_vmi(), a_launcher(seen())), a_launcher(seen(State(Life.PAUSED, "ioerror"))))
    new = derive(paused, a_launcher(seen(resume_asked_at=1000.0 - ago, resumes=1)))
    assert (new is not None) is changes
    again = derive(paused, a_launcher(seen(State(Life.PAUSED, "ioerror"), resume_asked_at=1000.0 - ago, resumes=1)))
    assert again is None


def test_a_pause_of_a_user_is_no_trial() -> None:
    paused = after(after(a_vmi(), a_launcher(seen())), a_launcher(seen(State(Life.PAUSED, "user"))))
    resumed = derived(paused, a_launcher(seen(resume_asked_at=999.0, resumes=1)))
    assert conditions.find(resumed.conditions, "Paused") is None


@pytest.mark.parametrize("doing", ["start", "prepare the network"])
def test_a_vmi_is_not_running_before_the_verb_has_ended(doing: str) -> None:
    """What is seen meanwhile may yet fail, or lacks its addresses."""
    assert derive(a_vmi(), a_launcher(seen(), operation=doing)) is None
    assert derived(a_vmi(), a_launcher(seen())).phase == "Running"


def test_a_start_that_was_refused_in_its_own_time_says_why() -> None:
    failed_operation = FailedOperation("cannot start domain: no space left", is_refusal=True, at=1000.0)
    found = conditions.find(
        derived(a_vmi(), a_launcher(seen(None), failed_operation=failed_operation)).conditions, "Synchronized"
    )
    assert found is not None
    assert (found.status, found.reason, found.message) == ("False", "StartFailed", "cannot start domain: no space left")


def test_a_guest_that_runs_is_not_said_to_have_failed_its_start() -> None:
    """Somebody else's start was first, or the refusal came with a guest that is up."""
    failed_operation = FailedOperation("cannot start domain: it is active", is_refusal=True, at=1000.0)
    status = derived(a_vmi(), a_launcher(seen(), failed_operation=failed_operation))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Running", None)


@pytest.mark.parametrize("state", [RUNNING, State(Life.PAUSED, "user")], ids=["runs", "paused"])
def test_a_guest_whose_network_cannot_be_seen_to_says_so_until_it_can(state: State) -> None:
    lost = derived(a_vmi("Running"), a_launcher(seen(state, network_trouble="no eth0")))
    found = conditions.find(lost.conditions, "Synchronized")
    assert found is not None
    assert (lost.phase, found.status, found.reason, found.message) == ("Running", "False", "NetworkNotReady", "no eth0")
    mended = derived(msgspec.structs.replace(a_vmi("Running"), status=lost), a_launcher(seen(state)))
    assert conditions.find(mended.conditions, "Synchronized") is None


def test_whose_run_is_over_is_not_said_to_lack_a_network() -> None:
    status = derived(a_vmi("Running"), a_launcher(seen(State(Life.SHUT_OFF, "shutdown"), network_trouble="no eth0")))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Succeeded", None)


def test_a_contact_that_broke_is_no_trouble_of_the_vmi() -> None:
    failed_operation = FailedOperation("no answer within 60 s", is_refusal=False, at=1000.0)
    assert derive(a_vmi(), a_launcher(seen(None), failed_operation=failed_operation)) is None


def test_a_start_that_does_not_get_on_says_why_and_stays_scheduled() -> None:
    problem = RefusedStep(StartDomain(POD_UID, "x"), Invalid("cannot start domain: no space left"))
    status = derive_status(a_world(a_vmi(), a_launcher(seen(None))), problem)
    assert status is not None
    found = conditions.find(status.conditions, "Synchronized")
    assert found is not None
    assert (status.phase, found.status, found.reason) == ("Scheduled", "False", "StartFailed")
    assert "no space left" in found.message


def test_a_start_that_gets_on_after_all_takes_the_trouble_back() -> None:
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


def test_a_guest_that_begins_paused_is_not_ready_and_says_why_in_the_same_write() -> None:
    status = derived(a_vmi(), in_a_ready_pod(a_launcher(seen(State(Life.PAUSED, "user")))))
    found = conditions.find(status.conditions, "Ready")
    assert found is not None
    assert (status.phase, found.status, found.reason) == ("Running", "False", "Paused")


def test_of_a_pause_while_it_runs_its_readiness_is_left_to_virt_controller() -> None:
    running = after(a_vmi(), in_a_ready_pod(a_launcher(seen())))
    paused = derived(running, in_a_ready_pod(a_launcher(seen(State(Life.PAUSED, "user")))))
    assert conditions.is_true(paused.conditions, "Paused")
    assert conditions.is_true(paused.conditions, "Ready")


def test_a_guest_whose_pod_is_going_does_not_become_ready() -> None:
    launcher = a_launcher(seen())
    going = msgspec.structs.replace(
        launcher.pod,
        metadata=msgspec.structs.replace(launcher.pod.metadata, deletion_timestamp="2026-01-01T00:00:00Z"),
        status=msgspec.structs.replace(launcher.pod.status, conditions=(READY,)),
    )
    status = derived(a_vmi(), replace(launcher, pod=going))
    assert status.phase == "Running"
    assert not conditions.is_true(status.conditions, "Ready")


def test_the_end_of_a_run_takes_its_readiness_back_in_the_same_write() -> None:
    vmi = a_vmi("Running")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(READY,)))
    found = conditions.find(derived(vmi, a_launcher(seen(state=OFF))).conditions, "Ready")
    assert found is not None
    assert (found.status, found.reason) == ("False", "GuestNotRunning")


def scheduled(stamp: str) -> VirtualMachineInstance:
    vmi = a_vmi()
    transition = PhaseTransition(phase="Scheduled", phase_transition_timestamp=stamp)
    return msgspec.structs.replace(
        vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=(transition,))
    )


def test_a_launcher_that_stays_silent_is_named_as_what_is_waited_for() -> None:
    silent = a_launcher(LauncherStatus(trouble="nobody listens"))
    assert derive(scheduled("2023-11-14T22:13:00Z"), silent) is None
    found = conditions.find(derived(scheduled("2023-11-14T22:12:50Z"), silent).conditions, "Synchronized")
    assert found is not None
    assert (found.reason, found.message) == (
        "LauncherNotReady",
        "waiting for libvirt in the launcher Pod: nobody listens",
    )


def test_a_start_that_waits_for_its_node_to_be_clear_says_so_where_all_else_is_ready() -> None:
    late, held = scheduled("2023-11-14T22:12:50Z"), "2 guests are being ended"
    assert derive(scheduled("2023-11-14T22:13:00Z"), a_launcher(seen(None)), held=held) is None
    for launcher, reason in (
        (a_launcher(seen(None)), "NodeNotClear"),
        (a_launcher(LauncherStatus(trouble="nobody listens")), "LauncherNotReady"),
    ):
        found = conditions.find(derived(late, launcher, held=held).conditions, "Synchronized")
        assert found is not None
        assert found.reason == reason
        assert (reason == "NodeNotClear") is (found.message == "waiting for node-1: 2 guests are being ended")


AWAY = "virt-node is not there"


def missing(seconds: float) -> NodeTrouble:
    """virt-node, for so long."""
    return NodeTrouble(AWAY, since=1000.0 - seconds)


@pytest.mark.parametrize(
    "launchers",
    [(a_launcher(LauncherStatus(trouble="nobody listens")),), (a_launcher(seen(None)),), ()],
    ids=["not reached", "its network or its report is wanted", "not listed"],
)
def test_a_start_that_waits_for_virt_node_says_so(launchers: tuple[Launcher, ...]) -> None:
    """It was told in virt-handler's log only; the VMI said that it waits for libvirt, or nothing."""
    early, late = scheduled("2023-11-14T22:13:00Z"), scheduled("2023-11-14T22:12:50Z")
    assert derive_status(a_world(early, *launchers, node_trouble=missing(20)), None) is None
    status = derive_status(a_world(late, *launchers, node_trouble=missing(1)), None)
    assert status is not None
    found = conditions.find(status.conditions, "Synchronized")
    assert found is not None
    assert (found.reason, found.message) == ("VirtNodeNotReady", f"waiting for virt-node on node-1: {AWAY}")


@pytest.mark.parametrize("reason", ["LauncherNotReady", "NodeNotClear", "VirtNodeNotReady", "LauncherLost"])
def test_a_run_that_is_over_waits_for_nothing(reason: str) -> None:
    """Its status is final: what is left in it then is left for ever."""
    said = Condition(type="Synchronized", status="False", reason=reason, message="waiting")
    vmi = a_vmi("Running")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(said,)))
    status = derived(vmi, a_launcher(pod=a_pod(phase="Succeeded", **ended(0))), node_trouble=missing(30))
    assert (status.phase, conditions.find(status.conditions, "Synchronized")) == ("Succeeded", None)


def test_a_lost_launcher_that_cannot_be_looked_for_says_so_until_it_can() -> None:
    """Not for the moment in which virt-node is exchanged."""
    assert derive_status(a_world(a_vmi("Running"), node_trouble=missing(29)), None) is None
    status = derive_status(a_world(a_vmi("Running"), node_trouble=missing(30)), None)
    assert status is not None
    said = conditions.find(status.conditions, "Synchronized")
    assert said is not None
    assert (status.phase, said.reason) == ("Running", "VirtNodeNotReady")
    assert said.message.endswith(f"and it cannot be looked for: {AWAY}")

    told = msgspec.structs.replace(a_vmi("Running"), status=status)
    assert derive_status(a_world(told, node_trouble=missing(60)), None) is None
    found = derive_status(a_world(told, look=a_look(processes=1, count=2)), None)
    assert found is not None
    said = conditions.find(found.conditions, "Synchronized")
    assert said is not None
    assert said.reason == "LauncherLost"


LOST_BY_LIBVIRT = a_launcher(seen(None, has_run=True))


@pytest.mark.parametrize(
    ("vmi", "launchers"),
    [(a_vmi("Running"), ()), (a_vmi("Running"), (LOST_BY_LIBVIRT,)), (scheduled("2023-11-14T22:12:50Z"), ())],
    ids=["not listed", "lost by libvirt", "its launcher is not listed yet"],
)
def test_a_virt_node_that_is_back_is_not_said_to_be_missed(
    vmi: VirtualMachineInstance, launchers: tuple[Launcher, ...]
) -> None:
    """It was, until there was something else to say, which for a guest whose QEMU libvirt lost is never."""
    status = derive_status(a_world(vmi, *launchers, node_trouble=missing(30)), None)
    assert status is not None
    told = msgspec.structs.replace(vmi, status=status)
    back = derive_status(a_world(told, *launchers, look=a_look(processes=1, emulators=1)), None)
    assert back is not None
    assert conditions.find(back.conditions, "Synchronized") is None


def test_a_guest_that_runs_needs_no_virt_node() -> None:
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
def test_what_others_say_takes_a_bounded_room_in_the_status(world: World) -> None:
    status = derive_status(world, None)
    assert status is not None
    found = conditions.find(status.conditions, "Synchronized")
    assert found is not None
    assert 0 < len(found.message) <= 512
    assert found.message.isprintable()
    assert all(0 < len(one) <= 64 and one.isalnum() for one in (found.reason, status.reason or "x"))


def test_it_is_looked_at_again_when_patience_ends() -> None:
    """And after that now and then: it may wait for something else."""
    assert decide(a_world(scheduled("2023-11-14T22:13:00Z"), a_launcher())).requeue_after == 10.0
    assert decide(a_world(scheduled("2023-11-14T22:12:00Z"), a_launcher())).requeue_after == 30.0


@pytest.mark.parametrize("state", [None, *(State(Life.SHUT_OFF, one) for one in ("unknown", "failed", "daemon"))])
def test_a_domain_that_vanished_ends_a_run_that_was_seen_running_and_no_other(state: State | None) -> None:
    """And only by the node's word that no QEMU is there: libvirt may have forgotten a guest that lives."""
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


def test_a_libvirt_that_died_in_the_middle_of_a_start_and_took_qemu_with_it_ends_the_run() -> None:
    """It was Scheduled for ever: not to be started, for there was a QEMU, and not ended, for it was never seen up."""
    launcher = a_launcher(seen(State(Life.SHUT_OFF, "daemon")))
    assert derive(a_vmi("Scheduled"), launcher, look=a_look(processes=3, emulators=1)) is None
    status = derived(a_vmi("Scheduled"), launcher, look=a_look(processes=2))
    assert (status.phase, status.reason) == ("Failed", "GuestLost")


def test_a_domain_of_another_identity_that_vanished_ends_nothing() -> None:
    launcher = a_launcher(seen(State(Life.SHUT_OFF, "unknown"), observed=observed(uid="other")))
    assert derive(a_vmi("Running"), launcher) is None


def test_a_domain_that_migrated_away_has_not_ended() -> None:
    assert derive(a_vmi("Running"), a_launcher(seen(State(Life.SHUT_OFF, "migrated")))) is None


def test_a_vmi_that_was_given_up_is_running_again_when_its_guest_is_seen() -> None:
    """virt-controller lost sight of the Pod, which is listed and connected again: the reason goes with the phase."""
    vmi = a_vmi("Unknown")
    lost = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, reason="LauncherLost"))
    status = derived(lost, a_launcher(seen()))
    assert (status.phase, status.reason) == ("Running", "")


@pytest.mark.parametrize("phase", ["Scheduled", "Running", "Unknown"])
def test_a_node_that_has_nothing_of_the_granted_pod_says_so(phase: str) -> None:
    vmi = a_vmi(phase)
    was_ready = msgspec.structs.replace(vmi.status, conditions=(READY,))
    status = derive_status(a_world(msgspec.structs.replace(vmi, status=was_ready), look=a_look()), None)
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "LauncherGone")
    said = conditions.find(status.conditions, "Synchronized")
    assert said is not None
    assert said.message == f"Pod {POD_UID} was removed, and this node has neither its directory nor a process of it"
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
def test_what_is_left_of_a_launcher_is_told_and_ends_nothing(phase: str, look: Look, left: str) -> None:
    status = derive_status(a_world(a_vmi(phase), look=look), None)
    assert status is not None
    said = conditions.find(status.conditions, "Synchronized")
    assert said is not None
    assert (status.phase, said.reason) == (phase, "LauncherLost")
    assert left in said.message


def test_a_trouble_that_virt_controller_has_told_is_not_told_in_other_words() -> None:
    told = Condition(type="Synchronized", status="False", reason="PodLost", last_transition_time="2026-01-01T00:00:00Z")
    vmi = a_vmi("Unknown")
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(told,)))
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
def test_that_nobody_was_there_is_taken_back_by_what_is_known_now(
    phase: str, launchers: tuple[Launcher, ...], facts: dict[str, Any], problem: Any, expected: str | None
) -> None:
    """virt-controller said it. It takes it back itself when the node takes machines again, and says it no more then."""
    said = Condition(type="Synchronized", status="False", reason="VirtHandlerSilent", message="waiting")
    vmi = a_vmi(phase)
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, conditions=(said,)))
    status = derive_status(a_world(vmi, *launchers, **facts), problem) or vmi.status

    found = conditions.find(status.conditions, "Synchronized")
    assert (found and found.reason) == expected


def test_a_first_look_that_finds_something_is_not_told() -> None:
    """The watch of Pods may only be behind that of VMIs."""
    assert derive_status(a_world(a_vmi("Scheduled"), look=a_look(directory=True, processes=2)), None) is None


def test_a_guest_seen_alive_is_never_gone_whatever_a_look_has_found() -> None:
    for gone in (True, False):
        status = derive_status(a_world(a_vmi("Running"), a_launcher(seen(), gone=gone), look=a_look()), None)
        assert status is None or status.phase == "Running"


def test_nothing_is_gone_while_not_all_pods_are_known() -> None:
    assert derive_status(a_world(a_vmi("Running"), look=a_look(), are_launchers_known=False), None) is None


def test_a_second_pod_of_the_vmi_changes_nothing_about_the_granted_one() -> None:
    running = after(a_vmi(), a_launcher(seen()))
    failed = a_launcher(pod=a_pod("cccc", phase="Failed", **ended(1)))
    assert derive_status(a_world(running, failed, a_launcher(seen())), None) is None


def test_what_was_said_of_a_pause_is_not_repeated_without_a_launcher() -> None:
    paused = {"type": "Paused", "status": "True", "reason": "PausedIOError"}
    vmi = a_vmi("Running")
    told = msgspec.structs.replace(vmi.status, conditions=(msgspec.convert(paused, Condition),))
    status = derive_status(a_world(msgspec.structs.replace(vmi, status=told), are_launchers_known=False), None)
    assert status is None or "Paused" not in [one.type for one in status.conditions]


def test_a_phase_that_is_entered_comes_after_those_that_were() -> None:
    before = (PhaseTransition(phase="Scheduled", phase_transition_timestamp="2023-11-14T22:13:00Z"),)
    vmi = a_vmi()
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, phase_transition_timestamps=before))
    times = derived(vmi, a_launcher(seen())).phase_transition_timestamps
    assert [one.phase for one in times] == ["Scheduled", "Running"]


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
def test_only_a_guest_that_is_paused_is_said_to_be(state: State, reason: str | None) -> None:
    status = derive(a_vmi("Running"), a_launcher(seen(state)))
    listed = () if status is None else status.conditions
    assert next((one.reason for one in listed if one.type == "Paused"), None) == reason


@pytest.mark.parametrize(
    ("step", "reasons"),
    [
        (StartDomain(POD_UID, "x"), ["StartFailed"]),
        (PrepareNetwork(POD_UID, "x"), ["StartFailed"]),
        (Dial(POD_UID, "x"), []),
    ],
)
def test_what_failed_on_the_way_to_a_start_is_told_as_that(step: Any, reasons: list[str]) -> None:
    world = a_world(a_vmi(), a_launcher(seen(None)))
    status = derive_status(world, RefusedStep(step, Unavailable("no")))
    listed = () if status is None else status.conditions
    assert [one.reason for one in listed if one.type == "Synchronized"] == reasons


def test_a_machine_without_interfaces_that_is_found_again_keeps_those_that_only_its_guest_has() -> None:
    vmi = a_vmi("Unknown", domain={"memory": {"guest": "128Mi"}}, networks=[])
    known = (InterfaceStatus(interface_name="docker0", info_source="guest-agent"),)
    vmi = msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, interfaces=known))
    assert derived(vmi, a_launcher(seen())).interfaces == known
