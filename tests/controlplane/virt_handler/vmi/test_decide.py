# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The next step of a VMI on its node, as a table."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from kubevirt_api.names import MIGRATION_JOB

from controlplane.api.objects.decode import decode as decode_object
from controlplane.api.objects.phase import OWNERS
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.api.objects.vmi.status import PhaseTransition
from controlplane.domain.state import Life, State
from controlplane.engine.plan import Plan
from controlplane.virt_handler.vmi.decide import BLOCKED_SECONDS, BY_PHASE, decide, refuse_start
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.status_conditions import REPORT_AFTER_SECONDS
from controlplane.virt_handler.vmi.world import (
    Action,
    Destroy,
    DestroyOrphan,
    DestroyRemoved,
    Dial,
    Expected,
    FailedOperation,
    Failure,
    Launcher,
    LauncherStatus,
    LookForLauncher,
    NodeTrouble,
    PrepareNetwork,
    ReadVmi,
    Resume,
    ShutDown,
    StartDomain,
    World,
)
from tests.controlplane.virt_handler.builders import (
    NODE,
    NOW,
    OFF,
    OTHER,
    POD_UID,
    VMI_UID,
    a_launcher,
    a_look,
    a_pod,
    a_vmi,
    a_world,
    ended,
    paused_vmi,
    pod_object,
    seen,
)

NOTHING: Plan[Action] = Plan()
AGAIN = Plan((PrepareNetwork(POD_UID, "this process has not set up its network"),))
PREPARE = Plan((PrepareNetwork(POD_UID, "its launcher is up"),))
READ = Plan((ReadVmi(POD_UID, "its launcher exists before the hand-over"),))
DIAL = Plan((Dial(POD_UID, because="its VMI grants it the run"),))
LOOK = Plan((LookForLauncher(POD_UID, "its Pod is not listed on this node any more"),), 1.0)
LOST = Plan((LookForLauncher(POD_UID, "libvirt lost its domain"),), 1.0)
START = Plan((StartDomain(POD_UID, "it was handed to this Pod and has no domain"),))
REMOVED = Plan((DestroyRemoved(POD_UID, "its Pod was removed by force"),), 10.0)
SHUT_DOWN = Plan((ShutDown(POD_UID, "its VMI is deleted"),), 5.0)
RESUME = Plan((Resume(POD_UID, "it was paused by an I/O error, which may be over"),), 10.0)
OVER = Plan((Destroy(POD_UID, "its run is over"),), 10.0)
NO_GRACE = Plan((Destroy(POD_UID, "its grace period is over"),), 10.0)
IOERROR, DEFINED = State(Life.PAUSED, "ioerror"), State(Life.SHUT_OFF, "unknown")
PREPARED, UNPREPARED = LauncherStatus(is_here=True), seen(None, is_network_ready=False)
NO_NETWORK = seen(is_network_ready=False, interface=None)
CUT = seen(is_connected=False)
ENDED_POD = a_pod(phase="Failed", **ended(1))


def wait(seconds: float) -> Plan[Action]:
    return Plan(requeue_after=pytest.approx(seconds))  # type: ignore[arg-type]


def vmi_with(phase: str, status: LauncherStatus | None = None, pod: Pod | None = None, **fields: Any) -> World:
    """Return the world of a VMI with one launcher. fields: of the launcher."""
    return a_world(a_vmi(phase), a_launcher(status, pod, **fields))


def deleted(status: LauncherStatus, since: float = 1000.0, phase: str = "Running", **spec: Any) -> World:
    return a_world(a_vmi(phase, deleting=True, **spec), a_launcher(status), deleting_since=since)


def expecting(
    vmi: VirtualMachineInstance | None, status: LauncherStatus = UNPREPARED, pod: Pod | None = None, **fields: Any
) -> World:
    """Return the world of a launcher whose VMI was read before the hand-over."""
    return a_world(None, a_launcher(status, pod, expected=Expected(vmi), **fields))


def failed(seconds_ago: float, count: int = 1) -> FailedOperation:
    return FailedOperation("no", is_refusal=True, at=1000.0 - seconds_ago, count=count)


def away(seconds: float) -> NodeTrouble:
    return NodeTrouble("virt-node is not reachable", since=1000.0 - seconds)


_TARGET = pod_object("tttt")
_TARGET["metadata"]["labels"][MIGRATION_JOB] = "migration"
TARGET = decode_object(_TARGET, Pod)
SCHEDULING = a_vmi("Scheduling")
BEFORE_HAND_OVER: dict[str, tuple[World, Plan[Action]]] = {
    "not read": (a_world(None, a_launcher()), READ),
    "no socket yet": (expecting(SCHEDULING, LauncherStatus()), NOTHING),
    "not dialled": (expecting(SCHEDULING, PREPARED), PREPARE),
    "no network": (expecting(SCHEDULING), PREPARE),
    "network setup failed": (expecting(SCHEDULING, failed_operation=failed(0)), wait(0.05)),
    "prepared": (expecting(SCHEDULING, seen(None)), NOTHING),
    "cannot start": (
        expecting(SCHEDULING, LauncherStatus(is_here=True, failure=Failure("InvalidSpec", "no"))),
        NOTHING,
    ),
    "no such VMI": (expecting(None), NOTHING),
    "VMI deleted": (expecting(a_vmi("Scheduling", deleting=True)), NOTHING),
    "handed over meanwhile": (expecting(a_vmi()), NOTHING),
    "target of a migration": (
        expecting(a_vmi("Running"), pod=TARGET),
        Plan((PrepareNetwork("tttt", "its launcher is up"),)),
    ),
    "target, VMI deleted": (expecting(a_vmi("Running", deleting=True), pod=TARGET), NOTHING),
    "target, run over": (expecting(a_vmi("Failed"), pod=TARGET), NOTHING),
    "running elsewhere, no target": (expecting(a_vmi("Running")), NOTHING),
    "two launchers": (a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc"))), NOTHING),
    "beside a finished one": (a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc", phase="Failed"))), READ),
    "beside a terminating one": (a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc", deleting=True))), READ),
    "beside a removed one": (a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc"), gone=True)), READ),
    "finished": (a_world(None, a_launcher(pod=a_pod(phase="Failed"))), NOTHING),
}
START_ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "granted, not dialled": (vmi_with("Scheduled", PREPARED), Plan((*DIAL.steps, *PREPARE.steps))),
    "not dialled, during an operation": (vmi_with("Scheduled", PREPARED, operation="prepare network"), DIAL),
    "run over, not dialled": (vmi_with("Succeeded", PREPARED), DIAL),
    "finished Pod, not dialled": (vmi_with("Scheduled", PREPARED, a_pod(phase="Failed")), NOTHING),
    "before the grant": (vmi_with("Scheduling", PREPARED), NOTHING),
    "no grant for this Pod, not dialled": (vmi_with("Scheduled", PREPARED, a_pod("cccc")), LOOK),
    "no socket yet": (vmi_with("Scheduled", LauncherStatus(is_admitted=True)), NOTHING),
    "not connected": (vmi_with("Scheduled"), PREPARE),
    "not connected, network setup failed": (vmi_with("Scheduled", failed_operation=failed(0)), wait(0.05)),
    "not connected, prepared": (
        vmi_with("Scheduled", LauncherStatus(is_here=True, is_admitted=True, is_network_ready=True)),
        NOTHING,
    ),
    "not connected, cannot start": (
        vmi_with("Scheduled", LauncherStatus(is_here=True, is_admitted=True, failure=Failure("InvalidSpec", "no"))),
        NOTHING,
    ),
    "no network": (vmi_with("Scheduled", UNPREPARED), PREPARE),
    "no network, Pod removed": (vmi_with("Scheduled", UNPREPARED, gone=True), LOOK),
    "no network, Pod finished": (vmi_with("Scheduled", UNPREPARED, ENDED_POD), NOTHING),
    "during network setup": (vmi_with("Scheduled", UNPREPARED, operation="prepare network"), NOTHING),
    "during the start": (vmi_with("Scheduled", seen(DEFINED), operation="start"), NOTHING),
    "failed a moment ago": (vmi_with("Scheduled", seen(None), failed_operation=failed(0.1, 3)), wait(0.1)),
    "failed a while ago": (vmi_with("Scheduled", seen(None), failed_operation=failed(0.3, 3)), START),
    "failed a hundred times": (vmi_with("Scheduled", seen(None), failed_operation=failed(10.0, 100)), wait(20.0)),
    "prepared": (vmi_with("Scheduled", seen(None)), START),
    "defined by a predecessor": (vmi_with("Scheduled", seen(DEFINED)), START),
    "another node's": (a_world(a_vmi(node=OTHER), a_launcher(seen(None))), NOTHING),
    "one of two Pods": (a_world(a_vmi(), a_launcher(seen(None), a_pod("cccc")), a_launcher(seen(None))), START),
    "no grant for this Pod": (vmi_with("Scheduled", seen(None), a_pod("cccc")), LOOK),
    "not listed, incomplete list": (a_world(a_vmi(), are_launchers_known=False), wait(10.0)),
    "deleted": (deleted(seen(None), phase="Scheduled"), NOTHING),
    "deleted, no network": (deleted(UNPREPARED, phase="Scheduled"), NOTHING),
    "Pod terminating": (vmi_with("Scheduled", seen(None), a_pod(deleting=True)), NOTHING),
    "Pod finished": (vmi_with("Scheduled", seen(None), a_pod(phase="Failed")), NOTHING),
    "ended": (vmi_with("Scheduled", seen(OFF)), NOTHING),
    "ran, and libvirt lost it": (vmi_with("Scheduled", seen(DEFINED, has_run=True)), LOST),
    "started by a predecessor": (
        vmi_with("Scheduled", seen(is_network_ready=False)),
        Plan((PrepareNetwork(POD_UID, "its addresses are unknown"),)),
    ),
    "started by a predecessor, addresses failed": (
        vmi_with("Scheduled", seen(is_network_ready=False), failed_operation=failed(0)),
        wait(0.05),
    ),
    "started by a predecessor, Pod removed": (vmi_with("Scheduled", seen(is_network_ready=False), gone=True), REMOVED),
    "started by a predecessor, deleted": (deleted(seen(is_network_ready=False), phase="Scheduled"), SHUT_DOWN),
}
RUN_ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "runs": (vmi_with("Running", seen()), NOTHING),
    "no network seen": (vmi_with("Running", NO_NETWORK), AGAIN),
    "no network seen, setup failed": (vmi_with("Running", NO_NETWORK, failed_operation=failed(0)), wait(0.05)),
    "no interface": (
        a_world(a_vmi("Running", domain={"devices": {}}), a_launcher(seen(is_network_ready=False))),
        NOTHING,
    ),
    "no network seen, not connected": (vmi_with("Running", seen(is_network_ready=False, is_connected=False)), NOTHING),
    "no network seen, I/O error": (vmi_with("Running", seen(IOERROR, is_network_ready=False)), RESUME),
    "no network seen, resumed": (
        vmi_with(
            "Running", seen(IOERROR, is_network_ready=False, resume_asked_at=996.0), failed_operation=failed(0, 30)
        ),
        wait(6.0),
    ),
    "no network seen, deleted": (deleted(NO_NETWORK), SHUT_DOWN),
    "no network seen, Pod removed": (
        vmi_with("Running", seen(is_network_ready=False, destroy_asked_at=999.0), gone=True),
        wait(9.0),
    ),
    "Pod terminating": (vmi_with("Running", seen(), a_pod(deleting=True)), NOTHING),
    "not connected": (vmi_with("Running", CUT), NOTHING),
    "not connected, deleted": (deleted(CUT, since=0.0), NOTHING),
    "I/O error": (vmi_with("Running", seen(IOERROR)), RESUME),
    "I/O error, resumed a moment ago": (vmi_with("Running", seen(IOERROR, resume_asked_at=996.0)), wait(6.0)),
    "I/O error, resumed twice": (vmi_with("Running", seen(IOERROR, resume_asked_at=985.0, resumes=2)), wait(5.0)),
    "I/O error, resumed often": (vmi_with("Running", seen(IOERROR, resume_asked_at=900.0, resumes=50)), wait(200.0)),
    "runs on trial": (vmi_with("Running", seen(resume_asked_at=996.0, resumes=1)), wait(6.0)),
    "paused by a user": (vmi_with("Running", seen(State(Life.PAUSED, "user"), resume_asked_at=996.0)), NOTHING),
    "I/O error, paused by a user": (vmi_with("Running", seen(IOERROR, is_paused_by_user=True)), NOTHING),
    "I/O error, paused by a user before": (a_world(paused_vmi(), a_launcher(seen(IOERROR))), NOTHING),
    "paused by its watchdog": (vmi_with("Running", seen(State(Life.PAUSED, "watchdog"))), NOTHING),
    "beside a failed Pod": (
        a_world(a_vmi("Running"), a_launcher(seen()), a_launcher(pod=a_pod("cccc", phase="Failed", **ended(1)))),
        NOTHING,
    ),
    "no domain": (vmi_with("Running", seen(None)), LOST),
    "no domain, QEMU runs": (
        a_world(a_vmi("Running"), a_launcher(seen(None)), look=a_look(processes=3, emulators=1)),
        wait(1.0),
    ),
    "no domain, QEMU gone": (a_world(a_vmi("Running"), a_launcher(seen(None)), look=a_look(processes=2)), NOTHING),
}
END_ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "deleted": (deleted(seen()), SHUT_DOWN),
    "deleted, during an operation": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(), operation="resume"), deleting_since=1000.0),
        wait(5.0),
    ),
    "deleted, incomplete list": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen()), deleting_since=1000.0, are_launchers_known=False),
        SHUT_DOWN,
    ),
    "asked a moment ago": (deleted(seen(shutdown_asked_at=998.0), 998.0), wait(3.0)),
    "asked long ago": (deleted(seen(shutdown_asked_at=995.0), 990.0), SHUT_DOWN),
    "little grace left": (deleted(seen(shutdown_asked_at=999.0), 972.0), wait(2.0)),
    "grace period over": (deleted(seen(shutdown_asked_at=999.0), 970.0), NO_GRACE),
    "no grace period": (deleted(seen(), terminationGracePeriodSeconds=0), NO_GRACE),
    "final, still runs": (vmi_with("Failed", seen()), OVER),
    "final, destroyed a moment ago": (vmi_with("Failed", seen(destroy_asked_at=999.0)), wait(9.0)),
    "final, destroyed a while ago": (vmi_with("Failed", seen(destroy_asked_at=990.0)), OVER),
    "Pod removed": (vmi_with("Running", seen(), gone=True), REMOVED),
    "ended": (vmi_with("Running", seen(OFF)), NOTHING),
    "ended with its Pod": (vmi_with("Running", pod=ENDED_POD), NOTHING),
}
LOST_ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "Scheduled": (a_world(a_vmi()), LOOK),
    "Running": (a_world(a_vmi("Running")), LOOK),
    "Unknown": (a_world(a_vmi("Unknown")), LOOK),
    "final": (a_world(a_vmi("Failed")), NOTHING),
    "virt-node away for a moment": (a_world(a_vmi("Running"), node_trouble=away(29)), LOOK),
    "virt-node away": (a_world(a_vmi("Running"), node_trouble=away(30)), wait(1.0)),
    "incomplete list": (a_world(a_vmi("Running"), are_launchers_known=False), wait(10.0)),
    "incomplete list, removed": (
        a_world(a_vmi(), a_launcher(UNPREPARED, gone=True), are_launchers_known=False),
        wait(10.0),
    ),
    "granted on another node": (a_world(a_vmi("Running", node=OTHER)), NOTHING),
    "removed, not connected": (vmi_with("Running", CUT, gone=True), LOOK),
    "traces left": (a_world(a_vmi("Running"), look=a_look(directory=True)), wait(1.0)),
    "searched a second ago": (a_world(a_vmi("Running"), look=a_look(processes=1, at=999.0)), LOOK),
    "searched often": (a_world(a_vmi("Running"), look=a_look(processes=1, at=999.0, count=9)), wait(14.0)),
    "no traces": (a_world(a_vmi("Running"), look=a_look(at=0.0)), NOTHING),
    "no traces, seen alive": (a_world(a_vmi("Running"), a_launcher(seen(), gone=True), look=a_look(at=0.0)), REMOVED),
}
ORPHAN_ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "no domain": (a_world(None, a_launcher(seen(None), expected=Expected(None)), orphaned_since=0.0), NOTHING),
    "for a moment": (a_world(None, a_launcher(seen()), orphaned_since=990.0), wait(50.0)),
    "for a minute": (
        a_world(None, a_launcher(seen()), orphaned_since=940.0),
        Plan((DestroyOrphan(POD_UID, VMI_UID, "this node has no VMI of its UID"),), 60.0),
    ),
    "since when is not known": (a_world(None, a_launcher(seen())), NOTHING),
    "not connected": (a_world(None, a_launcher(CUT, expected=Expected(None)), orphaned_since=0.0), NOTHING),
}
ROWS = {
    f"{title}: {name}": row
    for title, rows in (
        ("before the hand-over", BEFORE_HAND_OVER),
        ("start", START_ROWS),
        ("run", RUN_ROWS),
        ("end", END_ROWS),
        ("not listed", LOST_ROWS),
        ("no VMI", ORPHAN_ROWS),
    )
    for name, row in rows.items()
}


@pytest.mark.parametrize(("world", "expected"), ROWS.values(), ids=ROWS)
def test_decide_chooses_the_next_step(world: World, expected: Plan[Action]) -> None:
    assert decide(world) == expected


@pytest.mark.parametrize("phase", BY_PHASE)
@pytest.mark.parametrize("deleting", [False, True], ids=["staying", "deleting"])
def test_a_disconnected_launcher_gets_no_action_for_its_guest(phase: str, deleting: bool) -> None:
    since = 0.0 if deleting else None
    without_guest = (LookForLauncher, PrepareNetwork)
    for launcher in (a_launcher(), a_launcher(CUT), a_launcher(CUT, gone=True)):
        plan = decide(a_world(a_vmi(phase, deleting=deleting), launcher, deleting_since=since))
        assert [step for step in plan.steps if not isinstance(step, without_guest)] == []


EVERY_LAUNCHER = [
    a_launcher(),
    *map(a_launcher, (seen(None), seen(), seen(IOERROR), seen(OFF), CUT)),
    a_launcher(seen(), gone=True),
    a_launcher(pod=ENDED_POD),
]


def test_every_phase_has_its_row() -> None:
    assert set(BY_PHASE) == set(OWNERS)


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling", "WaitingForSync"])
@pytest.mark.parametrize("deleting", [False, True], ids=["staying", "deleting"])
def test_a_vmi_before_the_hand_over_or_in_an_unknown_phase_is_left_alone(phase: str, deleting: bool) -> None:
    since = 0.0 if deleting else None
    for launchers in ((), *((launcher,) for launcher in EVERY_LAUNCHER)):
        world = a_world(a_vmi(phase, deleting=deleting), *launchers, deleting_since=since)
        assert decide(world) == NOTHING
        assert derive_status(world, None) is None


def test_nothing_starts_during_the_nodes_recovery() -> None:
    """Everything else continues: networks are set up, and guests are ended, resumed and searched for."""
    reason = "guests are being ended"
    for launcher in EVERY_LAUNCHER:
        for phase in BY_PHASE:
            free, waits = (decide(a_world(a_vmi(phase), launcher, start_blocked_reason=why)) for why in ("", reason))
            starts = any(isinstance(step, StartDomain) for step in free.steps)
            assert waits == (Plan(requeue_after=BLOCKED_SECONDS) if starts else free)


def test_a_recovery_during_a_start_changes_nothing_for_it() -> None:
    """The recovery began after the pass that started the operation, so that pass has set no timer."""
    launcher = a_launcher(seen(None), operation="start")
    free, waits = (a_world(a_vmi(), launcher, start_blocked_reason=why) for why in ("", "guests are being ended"))
    assert decide(waits) == decide(free)
    assert derive_status(waits, None) == derive_status(free, None)


def with_pods(*uids: str) -> VirtualMachineInstance:
    vmi = a_vmi()
    return msgspec.structs.replace(
        vmi, status=msgspec.structs.replace(vmi.status, active_pods=dict.fromkeys(uids, NODE))
    )


def without_owner() -> Pod:
    body = pod_object()
    del body["metadata"]["ownerReferences"]
    return decode_object(body, Pod)


FREE = a_launcher(seen(None))
REFUSALS: dict[str, tuple[VirtualMachineInstance, Launcher, str | None]] = {
    "granted": (a_vmi(), FREE, None),
    "too early": (SCHEDULING, FREE, "its phase is Scheduling"),
    "started": (a_vmi("Running"), FREE, "its phase is Running"),
    "deleting": (a_vmi(deleting=True), FREE, "the VMI is being deleted"),
    "elsewhere": (a_vmi(node=OTHER), FREE, "it was handed to another node"),
    "other Pod": (with_pods("cccc"), FREE, "it was granted to another Pod"),
    "two Pods": (with_pods(POD_UID, "cccc"), FREE, "it was granted to another Pod"),
    "no Pod": (with_pods(), FREE, "it was granted to another Pod"),
    "another VMI's Pod": (a_vmi(), a_launcher(seen(None), a_pod(owner_uid="dddd")), "the Pod belongs to another VMI"),
    "Pod without an owner": (a_vmi(), a_launcher(seen(None), without_owner()), "the Pod belongs to another VMI"),
    "Pod gone": (a_vmi(), a_launcher(seen(None), gone=True), "the Pod is or will be deleted"),
    "Pod being deleted": (a_vmi(), a_launcher(seen(None), a_pod(deleting=True)), "the Pod is or will be deleted"),
    "Pod over": (a_vmi(), a_launcher(seen(None), a_pod(phase="Failed")), "the Pod is or will be deleted"),
}


@pytest.mark.parametrize(("vmi", "launcher", "reason"), REFUSALS.values(), ids=REFUSALS)
def test_a_start_needs_a_grant_in_the_newest_vmi(
    vmi: VirtualMachineInstance, launcher: Launcher, reason: str | None
) -> None:
    assert refuse_start(vmi, NODE, launcher) == reason


@pytest.mark.parametrize(
    ("waited", "again"),
    [
        (0.0, REPORT_AFTER_SECONDS),
        (7.0, 23.0),
        (REPORT_AFTER_SECONDS, REPORT_AFTER_SECONDS),
        (1000.0, REPORT_AFTER_SECONDS),
    ],
)
def test_a_waiting_start_is_checked_when_its_patience_ends_and_then_periodically(waited: float, again: float) -> None:
    stamp = datetime.fromtimestamp(NOW - waited, UTC).isoformat()
    handed_over = PhaseTransition(phase="Scheduled", phase_transition_timestamp=stamp)
    vmi = a_vmi()
    status = msgspec.structs.replace(vmi.status, phase_transition_timestamps=(handed_over,))
    world = a_world(msgspec.structs.replace(vmi, status=status), a_launcher(LauncherStatus()))
    assert decide(world).requeue_after == pytest.approx(again)
