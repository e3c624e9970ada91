# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The actions for a VMI of this node, as a table."""

from __future__ import annotations

from datetime import UTC, datetime

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
from controlplane.virt_handler.vmi.decide import BY_PHASE, HELD_SECONDS, decide, refuse_start
from controlplane.virt_handler.vmi.status import PATIENCE_SECONDS, derive_status
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
    pod_object,
    seen,
    told_paused,
)

AGAIN = PrepareNetwork(POD_UID, "this process has not seen to its network")
PREPARE = PrepareNetwork(POD_UID, "its launcher is up")
READ = ReadVmi(POD_UID, "its launcher is here before it was handed over")
LOOK = LookForLauncher(POD_UID, "its Pod is not listed on this node any more")
EXPECTED = Expected(a_vmi("Scheduling"))
START = StartDomain(POD_UID, "it was handed to this Pod and has no domain")
REMOVED = DestroyRemoved(POD_UID, "its Pod was removed by force")
LOST = LookForLauncher(POD_UID, "libvirt lost its domain")
SHUT_DOWN = ShutDown(POD_UID, "its VMI is deleted")
IOERROR = State(Life.PAUSED, "ioerror")


def destroy(because: str) -> Destroy:
    return Destroy(POD_UID, because)


def away(seconds: float) -> NodeTrouble:
    return NodeTrouble("virt-node is not there", since=1000.0 - seconds)


_TARGET = pod_object("tttt")
_TARGET["metadata"]["labels"][MIGRATION_JOB] = "migration"
A_TARGET = decode_object(_TARGET, Pod)
UNPREPARED = seen(None, is_network_ready=False)
ROWS: dict[str, tuple[World, Plan[Action]]] = {
    # Before the start.
    "launcher not connected": (a_world(a_vmi(), a_launcher()), Plan()),
    "a launcher before the hand-over": (a_world(None, a_launcher()), Plan((READ,))),
    "granted, and never dialled": (
        a_world(a_vmi(), a_launcher(LauncherStatus(is_here=True))),
        Plan((Dial(POD_UID, because="its VMI grants it the run"),)),
    ),
    "its run is over, and nobody has dialled to see that it is": (
        a_world(a_vmi("Succeeded"), a_launcher(LauncherStatus(is_here=True))),
        Plan((Dial(POD_UID, because="its VMI grants it the run"),)),
    ),
    "it ran, which nobody could write, and libvirt has lost it": (
        a_world(a_vmi(), a_launcher(seen(State(Life.SHUT_OFF, "unknown"), has_run=True))),
        Plan((LOST,), requeue_after=1.0),
    ),
    "it ran, and libvirt knows no domain": (
        a_world(a_vmi(), a_launcher(seen(None, has_run=True))),
        Plan((LOST,), requeue_after=1.0),
    ),
    "a Pod that is over is not dialled": (
        a_world(a_vmi(), a_launcher(LauncherStatus(is_here=True), pod=a_pod(phase="Failed"))),
        Plan(),
    ),
    "before the grant nobody is dialled": (
        a_world(a_vmi("Scheduling"), a_launcher(LauncherStatus(is_here=True))),
        Plan(),
    ),
    "a Pod that is granted nothing is not dialled": (
        a_world(a_vmi(), a_launcher(LauncherStatus(is_here=True), pod=a_pod("another"))),
        Plan((LOOK,), requeue_after=1.0),
    ),
    "read before the hand-over, not prepared yet": (
        a_world(None, a_launcher(LauncherStatus(), expected=EXPECTED)),
        Plan(),
    ),
    "read before the hand-over, prepared, not dialled": (
        a_world(None, a_launcher(LauncherStatus(is_here=True), expected=EXPECTED)),
        Plan((PREPARE,)),
    ),
    "connected before the hand-over": (
        a_world(None, a_launcher(seen(None, is_network_ready=False), expected=EXPECTED)),
        Plan((PREPARE,)),
    ),
    "its launcher cannot be used, and is not prepared": (
        a_world(
            None, a_launcher(LauncherStatus(is_here=True, failure=Failure("InvalidSpec", "no")), expected=EXPECTED)
        ),
        Plan(),
    ),
    "prepared before the hand-over": (a_world(None, a_launcher(seen(None), expected=EXPECTED)), Plan()),
    "no such VMI, by name and UID": (
        a_world(None, a_launcher(seen(None, is_network_ready=False), expected=Expected(None))),
        Plan(),
    ),
    "expected, and being deleted": (
        a_world(
            None,
            a_launcher(seen(None, is_network_ready=False), expected=Expected(a_vmi("Scheduling", deleting=True))),
        ),
        Plan(),
    ),
    "expected, and handed over meanwhile": (
        a_world(None, a_launcher(seen(None, is_network_ready=False), expected=Expected(a_vmi()))),
        Plan(),
    ),
    "expected by a migration": (
        a_world(None, a_launcher(UNPREPARED, A_TARGET, expected=Expected(a_vmi("Running")))),
        Plan((PrepareNetwork("tttt", "its launcher is up"),)),
    ),
    "expected by a migration, and being deleted": (
        a_world(
            None,
            a_launcher(
                seen(None, is_network_ready=False), A_TARGET, expected=Expected(a_vmi("Running", deleting=True))
            ),
        ),
        Plan(),
    ),
    "expected by a migration, and its run is over": (
        a_world(None, a_launcher(UNPREPARED, A_TARGET, expected=Expected(a_vmi("Failed")))),
        Plan(),
    ),
    "two launchers before the hand-over": (
        a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc"))),
        Plan(),
    ),
    "a launcher beside one that is over": (
        a_world(None, a_launcher(), a_launcher(pod=a_pod("cccc", phase="Failed"))),
        Plan((READ,)),
    ),
    "a launcher that is over before the hand-over": (a_world(None, a_launcher(pod=a_pod(phase="Failed"))), Plan()),
    "a launcher that goes before the hand-over": (a_world(None, a_launcher(pod=a_pod(deleting=True))), Plan()),
    "a launcher that is gone before the hand-over": (a_world(None, a_launcher(gone=True)), Plan()),
    "handed over, nothing prepared": (
        a_world(a_vmi(), a_launcher(seen(None, is_network_ready=False))),
        Plan((PREPARE,)),
    ),
    "its network is being prepared": (
        a_world(a_vmi(), a_launcher(seen(None, is_network_ready=False), operation="prepare the network")),
        Plan(),
    ),
    "being started": (a_world(a_vmi(), a_launcher(seen(None), operation="start")), Plan()),
    "being started, and looked at meanwhile": (
        a_world(a_vmi(), a_launcher(seen(State(Life.SHUT_OFF, "unknown")), operation="start")),
        Plan(),
    ),
    "a start failed a moment ago": (
        a_world(
            a_vmi(),
            a_launcher(seen(None), failed_operation=FailedOperation("no memory", is_refusal=True, at=999.9, count=3)),
        ),
        Plan(requeue_after=pytest.approx(0.1)),
    ),
    "a start failed a while ago": (
        a_world(
            a_vmi(),
            a_launcher(seen(None), failed_operation=FailedOperation("no memory", is_refusal=True, at=999.7, count=3)),
        ),
        Plan((START,)),
    ),
    "a start failed for the hundredth time": (
        a_world(
            a_vmi(),
            a_launcher(
                seen(None), failed_operation=FailedOperation("no answer", is_refusal=False, at=990.0, count=100)
            ),
        ),
        Plan(requeue_after=20.0),
    ),
    "a network could not be set up a moment ago, before the hand-over": (
        a_world(
            None,
            a_launcher(
                seen(None, is_network_ready=False),
                expected=EXPECTED,
                failed_operation=FailedOperation("no eth0", is_refusal=True, at=1000.0),
            ),
        ),
        Plan(requeue_after=0.05),
    ),
    "addresses could not be asked for a moment ago": (
        a_world(
            a_vmi(),
            a_launcher(
                seen(is_network_ready=False), failed_operation=FailedOperation("no eth0", is_refusal=True, at=1000.0)
            ),
        ),
        Plan(requeue_after=0.05),
    ),
    "deleted, while another verb hangs": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(), operation="resume"), deleting_since=1000.0),
        Plan(requeue_after=5.0),
    ),
    "handed over, prepared": (a_world(a_vmi(), a_launcher(seen(None))), Plan((START,))),
    "a domain defined by a predecessor that died": (
        a_world(a_vmi(), a_launcher(seen(State(Life.SHUT_OFF, "unknown")))),
        Plan((START,)),
    ),
    "handed to another node": (a_world(a_vmi(node=OTHER), a_launcher(seen(None))), Plan()),
    "granted to one of two Pods": (
        a_world(a_vmi(), a_launcher(seen(None), a_pod("cccc")), a_launcher(seen(None))),
        Plan((START,)),
    ),
    "granted to another Pod": (a_world(a_vmi(), a_launcher(seen(None), a_pod("cccc"))), Plan((LOOK,), 1.0)),
    "granted, while not all Pods are known": (a_world(a_vmi(), are_launchers_known=False), Plan(requeue_after=10.0)),
    "deleted before its start": (
        a_world(a_vmi(deleting=True), a_launcher(seen(None)), deleting_since=1000.0),
        Plan(),
    ),
    "deleted before its start, network not ready": (
        a_world(a_vmi(deleting=True), a_launcher(seen(None, is_network_ready=False)), deleting_since=1000.0),
        Plan(),
    ),
    "its Pod is being deleted": (a_world(a_vmi(), a_launcher(seen(None), a_pod(deleting=True))), Plan()),
    "its Pod is over": (a_world(a_vmi(), a_launcher(seen(None), a_pod(phase="Failed"))), Plan()),
    "it ran before": (a_world(a_vmi(), a_launcher(seen(OFF))), Plan()),
    "Running, and libvirt knows no domain: ask the node": (
        a_world(a_vmi("Running"), a_launcher(seen(None))),
        Plan((LOST,), 1.0),
    ),
    "Running, libvirt knows no domain, QEMU is there": (
        a_world(a_vmi("Running"), a_launcher(seen(None)), look=a_look(processes=3, emulators=1, at=1000.0)),
        Plan(requeue_after=1.0),
    ),
    "Running, libvirt knows no domain, QEMU is not there": (
        a_world(a_vmi("Running"), a_launcher(seen(None)), look=a_look(processes=2)),
        Plan(),
    ),
    "told to end a moment ago": (
        a_world(a_vmi("Failed"), a_launcher(seen(destroy_asked_at=999.0))),
        Plan(requeue_after=9.0),
    ),
    "told to end a while ago": (
        a_world(a_vmi("Failed"), a_launcher(seen(destroy_asked_at=990.0))),
        Plan((destroy("its run is over"),), 10.0),
    ),
    # While the guest runs.
    "runs": (a_world(a_vmi("Running"), a_launcher(seen())), Plan()),
    "runs, found by a virt-handler that has not seen its network": (
        a_world(a_vmi("Running"), a_launcher(seen(is_network_ready=False, interface=None))),
        Plan((AGAIN,)),
    ),
    "runs, its network could not be seen to just now": (
        a_world(
            a_vmi("Running"),
            a_launcher(seen(is_network_ready=False), failed_operation=FailedOperation("no", True, at=1000.0)),
        ),
        Plan(requeue_after=0.05),
    ),
    "runs without an interface": (
        a_world(a_vmi("Running", domain={"devices": {}}), a_launcher(seen(is_network_ready=False))),
        Plan(),
    ),
    "runs, and contact is lost before its network was seen": (
        a_world(a_vmi("Running"), a_launcher(seen(is_network_ready=False, is_connected=False))),
        Plan(),
    ),
    "found paused by an I/O error, its network not seen": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR, is_network_ready=False))),
        Plan((Resume(POD_UID, "it was paused by an I/O error, which may be over"),), requeue_after=10.0),
    ),
    "was let go on, its network not seen to": (
        a_world(
            a_vmi("Running"),
            a_launcher(
                seen(IOERROR, is_network_ready=False, resume_asked_at=996.0),
                failed_operation=FailedOperation("no", True, at=1000.0, count=30),
            ),
        ),
        Plan(requeue_after=6.0),
    ),
    "runs, is to end, its network not seen": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(is_network_ready=False)), deleting_since=1000.0),
        Plan((SHUT_DOWN,), requeue_after=5.0),
    ),
    "runs, its Pod removed, its network not seen": (
        a_world(a_vmi("Running"), a_launcher(seen(is_network_ready=False, destroy_asked_at=999.0), gone=True)),
        Plan(requeue_after=9.0),
    ),
    "runs, its Pod is being deleted": (a_world(a_vmi("Running"), a_launcher(seen(), a_pod(deleting=True))), Plan()),
    "started by a predecessor that died before it said so": (
        a_world(a_vmi(), a_launcher(seen(is_network_ready=False))),
        Plan((PrepareNetwork(POD_UID, "its addresses are not known"),)),
    ),
    "contact lost": (a_world(a_vmi("Running"), a_launcher(seen(is_connected=False))), Plan()),
    "contact lost, VMI deleted": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(is_connected=False)), deleting_since=0.0),
        Plan(),
    ),
    "paused by an I/O error": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR))),
        Plan((Resume(POD_UID, "it was paused by an I/O error, which may be over"),), 10.0),
    ),
    "resumed a moment ago": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR, resume_asked_at=996.0))),
        Plan(requeue_after=6.0),
    ),
    "resumed twice, the last time a while ago": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR, resume_asked_at=985.0, resumes=2))),
        Plan(requeue_after=5.0),
    ),
    "resumed many times": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR, resume_asked_at=900.0, resumes=50))),
        Plan(requeue_after=200.0),
    ),
    "runs, resumed a moment ago": (
        a_world(a_vmi("Running"), a_launcher(seen(resume_asked_at=996.0, resumes=1))),
        Plan(requeue_after=6.0),
    ),
    "paused by a user after it was resumed": (
        a_world(a_vmi("Running"), a_launcher(seen(State(Life.PAUSED, "user"), resume_asked_at=100.0, resumes=3))),
        Plan(),
    ),
    "paused by an I/O error and by a user": (
        a_world(a_vmi("Running"), a_launcher(seen(IOERROR, is_paused_by_user=True))),
        Plan(),
    ),
    "paused by an I/O error, and by a user before this process began": (
        a_world(told_paused(), a_launcher(seen(IOERROR))),
        Plan(),
    ),
    "something else than an I/O error has paused it, and nobody holds it": (
        a_world(a_vmi("Running"), a_launcher(seen(State(Life.PAUSED, "watchdog")))),
        Plan(),
    ),
    "paused by a user": (a_world(a_vmi("Running"), a_launcher(seen(State(Life.PAUSED, "user")))), Plan()),
    # The end of a run.
    "deleted": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen()), deleting_since=1000.0),
        Plan((SHUT_DOWN,), 5.0),
    ),
    "deleted, asked a moment ago": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(shutdown_asked_at=998.0)), deleting_since=998.0),
        Plan(requeue_after=3.0),
    ),
    "deleted, asked long ago": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(shutdown_asked_at=995.0)), deleting_since=990.0),
        Plan((SHUT_DOWN,), 5.0),
    ),
    "deleted, little of the grace period left": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(shutdown_asked_at=999.0)), deleting_since=972.0),
        Plan(requeue_after=2.0),
    ),
    "grace period over": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen(shutdown_asked_at=999.0)), deleting_since=970.0),
        Plan((destroy("its grace period is over"),), 10.0),
    ),
    "no grace period": (
        a_world(
            a_vmi("Running", deleting=True, terminationGracePeriodSeconds=0), a_launcher(seen()), deleting_since=1000.0
        ),
        Plan((destroy("its grace period is over"),), 10.0),
    ),
    "final, still running": (
        a_world(a_vmi("Failed"), a_launcher(seen())),
        Plan((destroy("its run is over"),), 10.0),
    ),
    "Pod removed by force, still running": (
        a_world(a_vmi("Running"), a_launcher(seen(), gone=True)),
        Plan((REMOVED,), 10.0),
    ),
    "ended": (a_world(a_vmi("Running"), a_launcher(seen(OFF))), Plan()),
    "ended with its Pod": (a_world(a_vmi("Running"), a_launcher(pod=a_pod(phase="Failed", **ended(1)))), Plan()),
    "runs, beside a second Pod that failed": (
        a_world(a_vmi("Running"), a_launcher(seen()), a_launcher(pod=a_pod("cccc", phase="Failed", **ended(1)))),
        Plan(),
    ),
    # The granted Pod is not listed.
    "not listed": (a_world(a_vmi("Running")), Plan((LOOK,), 1.0)),
    "not listed, Unknown": (a_world(a_vmi("Unknown")), Plan((LOOK,), 1.0)),
    "not listed, not started": (a_world(a_vmi()), Plan((LOOK,), 1.0)),
    "not listed, virt-node away for a moment": (a_world(a_vmi("Running"), node_trouble=away(29)), Plan((LOOK,), 1.0)),
    "not listed, virt-node away": (a_world(a_vmi("Running"), node_trouble=away(30)), Plan(requeue_after=1.0)),
    "not listed, over": (a_world(a_vmi("Failed")), Plan()),
    "not listed, while not all Pods are known": (
        a_world(a_vmi("Running"), are_launchers_known=False),
        Plan(requeue_after=10.0),
    ),
    "ends, while not all Pods are known": (
        a_world(a_vmi("Running", deleting=True), a_launcher(seen()), deleting_since=1000.0, are_launchers_known=False),
        Plan((SHUT_DOWN,), 5.0),
    ),
    "granted on another node": (a_world(a_vmi("Running", node=OTHER)), Plan()),
    "not listed, and contact lost": (
        a_world(a_vmi("Running"), a_launcher(seen(is_connected=False), gone=True)),
        Plan((LOOK,), 1.0),
    ),
    "looked just now, something is left": (
        a_world(a_vmi("Running"), look=a_look(directory=True)),
        Plan(requeue_after=1.0),
    ),
    "looked a second ago": (a_world(a_vmi("Running"), look=a_look(processes=1, at=999.0)), Plan((LOOK,), 1.0)),
    "looked often, a second ago": (
        a_world(a_vmi("Running"), look=a_look(processes=1, at=999.0, count=9)),
        Plan(requeue_after=14.0),
    ),
    "looked, nothing is left": (a_world(a_vmi("Running"), look=a_look(at=0.0)), Plan()),
    "nothing left, and yet it is seen alive": (
        a_world(a_vmi("Running"), a_launcher(seen(), gone=True), look=a_look(at=0.0)),
        Plan((REMOVED,), 10.0),
    ),
    "gone before all Pods are known": (
        a_world(a_vmi(), a_launcher(seen(None, is_network_ready=False), gone=True), are_launchers_known=False),
        Plan(requeue_after=10.0),
    ),
    "started by a predecessor, Pod removed by force": (
        a_world(a_vmi(), a_launcher(seen(is_network_ready=False), gone=True)),
        Plan((REMOVED,), 10.0),
    ),
    "started by a predecessor, deleted": (
        a_world(a_vmi(deleting=True), a_launcher(seen(is_network_ready=False)), deleting_since=1000.0),
        Plan((SHUT_DOWN,), 5.0),
    ),
    # Without a VMI.
    "not among this node's VMIs, no domain": (
        a_world(None, a_launcher(seen(None), expected=Expected(None)), orphaned_since=0.0),
        Plan(),
    ),
    "not among this node's VMIs for a moment": (
        a_world(None, a_launcher(seen()), orphaned_since=990.0),
        Plan(requeue_after=50.0),
    ),
    "not among this node's VMIs for a minute": (
        a_world(None, a_launcher(seen()), orphaned_since=940.0),
        Plan((DestroyOrphan(POD_UID, VMI_UID, "no VMI of its UID is known here"),), 60.0),
    ),
    "not among this node's VMIs, contact lost": (
        a_world(None, a_launcher(seen(is_connected=False), expected=Expected(None)), orphaned_since=0.0),
        Plan(),
    ),
}


@pytest.mark.parametrize(("world", "expected"), ROWS.values(), ids=ROWS)
def test_decide_chooses_the_next_step(world: World, expected: Plan[Action]) -> None:
    assert decide(world) == expected


@pytest.mark.parametrize(
    "phase", ["", "Pending", "Scheduling", "Scheduled", "Running", "Succeeded", "Failed", "Unknown"]
)
@pytest.mark.parametrize("deleting", [False, True], ids=["staying", "deleting"])
def test_a_disconnected_launcher_gets_no_action(phase: str, deleting: bool) -> None:
    since = 0.0 if deleting else None
    for launcher in (
        a_launcher(),
        a_launcher(seen(is_connected=False)),
        a_launcher(seen(is_connected=False), gone=True),
    ):
        plan = decide(a_world(a_vmi(phase, deleting=deleting), launcher, deleting_since=since))
        assert [step for step in plan.steps if not isinstance(step, LookForLauncher)] == []


EVERY_LAUNCHER = [
    a_launcher(),
    a_launcher(seen(None)),
    a_launcher(seen()),
    a_launcher(seen(IOERROR)),
    a_launcher(seen(OFF)),
    a_launcher(seen(is_connected=False)),
    a_launcher(seen(), gone=True),
    a_launcher(pod=a_pod(phase="Failed", **ended(1))),
]


def test_every_phase_has_its_row() -> None:
    assert set(BY_PHASE) == set(OWNERS)


@pytest.mark.parametrize("phase", ["WaitingForSync", "Bogus"])
@pytest.mark.parametrize("deleting", [False, True], ids=["staying", "deleting"])
def test_a_vmi_in_an_unknown_phase_is_left_alone(phase: str, deleting: bool) -> None:
    since = 0.0 if deleting else None
    for launchers in ((), *((launcher,) for launcher in EVERY_LAUNCHER)):
        world = a_world(a_vmi(phase, deleting=deleting), *launchers, deleting_since=since)
        assert decide(world) == Plan()
        assert derive_status(world, None) is None


@pytest.mark.parametrize("phase", ["", "Pending", "Scheduling"])
def test_before_the_hand_over_a_vmi_is_left_alone(phase: str) -> None:
    for launcher in EVERY_LAUNCHER:
        world = a_world(a_vmi(phase), launcher)
        assert decide(world) == Plan()
        assert derive_status(world, None) is None


def test_a_vmi_read_before_the_hand_over_never_starts() -> None:
    for phase in ("", "Pending", "Scheduling", "Scheduled", "Running"):
        for status in (seen(None), seen(None, is_network_ready=False), LauncherStatus()):
            plan = decide(a_world(None, a_launcher(status, expected=Expected(a_vmi(phase)))))
            assert not any(isinstance(step, StartDomain) for step in plan.steps)


def test_nothing_starts_during_the_nodes_recovery() -> None:
    """Everything else continues: networks are set up, and guests are ended, resumed and searched for."""
    reason = "guests are being ended"
    for launcher in EVERY_LAUNCHER:
        for phase in BY_PHASE:
            free, waits = (decide(a_world(a_vmi(phase), launcher, held=why)) for why in ("", reason))
            if any(isinstance(step, StartDomain) for step in free.steps):
                assert waits == Plan(requeue_after=HELD_SECONDS)
            else:
                assert waits == free


def test_a_recovery_during_a_start_changes_nothing_for_it() -> None:
    """The recovery began after the pass that started the operation, so that pass has set no timer."""
    launcher = a_launcher(seen(None), operation="start")
    free, waits = (a_world(a_vmi(), launcher, held=why) for why in ("", "guests are being ended"))
    assert decide(waits) == decide(free)
    assert derive_status(waits, None) == derive_status(free, None)


def with_pods(*uids: str) -> VirtualMachineInstance:
    vmi = a_vmi()
    return msgspec.structs.replace(
        vmi, status=msgspec.structs.replace(vmi.status, active_pods=dict.fromkeys(uids, NODE))
    )


@pytest.mark.parametrize(
    ("vmi", "said"),
    [
        (a_vmi(), None),
        (a_vmi("Scheduling"), "its phase is Scheduling"),
        (a_vmi("Running"), "its phase is Running"),
        (a_vmi(deleting=True), "the VMI is being deleted"),
        (a_vmi(node=OTHER), "it was handed to another node"),
        (with_pods("cccc"), "it was granted to another Pod"),
        (with_pods(POD_UID, "cccc"), "it was granted to another Pod"),
        (with_pods(), "it was granted to another Pod"),
    ],
    ids=["granted", "too early", "started", "deleting", "elsewhere", "other Pod", "two Pods", "no Pod"],
)
def test_a_start_needs_a_grant_in_the_newest_vmi(vmi: VirtualMachineInstance, said: str | None) -> None:
    assert refuse_start(vmi, NODE, a_launcher(seen(None))) == said


def test_a_pod_of_another_vmi_is_never_started() -> None:
    launcher = a_launcher(seen(None), a_pod(owner_uid="dddd"))
    assert refuse_start(a_vmi(), NODE, launcher) == "the Pod belongs to another VMI"


@pytest.mark.parametrize(
    "launcher",
    [
        a_launcher(seen(None), gone=True),
        a_launcher(seen(None), a_pod(deleting=True)),
        a_launcher(seen(None), a_pod(phase="Failed")),
    ],
    ids=["gone", "being deleted", "over"],
)
def test_a_terminating_pod_is_never_started(launcher: Launcher) -> None:
    assert refuse_start(a_vmi(), NODE, launcher) == "the Pod is going"
    assert not [step for step in decide(a_world(a_vmi(), launcher)).steps if isinstance(step, StartDomain)]


@pytest.mark.parametrize(
    "launcher",
    [
        a_launcher(seen(None, is_network_ready=False), gone=True),
        a_launcher(seen(None, is_network_ready=False), a_pod(phase="Failed")),
    ],
    ids=["gone", "over"],
)
def test_a_finished_pod_gets_no_network(launcher: Launcher) -> None:
    assert not [step for step in decide(a_world(a_vmi(), launcher)).steps if isinstance(step, PrepareNetwork)]


def test_a_pod_without_an_owner_is_never_started() -> None:
    orphan = pod_object()
    del orphan["metadata"]["ownerReferences"]
    assert (
        refuse_start(a_vmi(), NODE, a_launcher(seen(None), decode_object(orphan, Pod)))
        == "the Pod belongs to another VMI"
    )


@pytest.mark.parametrize(("waited", "again"), [(0.0, PATIENCE_SECONDS), (7.0, PATIENCE_SECONDS - 7.0)])
def test_a_waiting_start_is_reported_when_its_patience_ends(waited: float, again: float) -> None:
    assert decide(waiting_since(waited)).requeue_after == pytest.approx(again)


@pytest.mark.parametrize("waited", [PATIENCE_SECONDS, PATIENCE_SECONDS + 0.5, 1000.0])
def test_a_long_waiting_start_is_checked_periodically(waited: float) -> None:
    assert decide(waiting_since(waited)).requeue_after == PATIENCE_SECONDS


def waiting_since(seconds: float) -> World:
    """A VMI that was handed over so many seconds ago, with a launcher that is not up."""
    stamp = datetime.fromtimestamp(NOW - seconds, UTC).isoformat()
    handed_over = PhaseTransition(phase="Scheduled", phase_transition_timestamp=stamp)
    vmi = a_vmi()
    status = msgspec.structs.replace(vmi.status, phase_transition_timestamps=(handed_over,))
    return a_world(msgspec.structs.replace(vmi, status=status), a_launcher(LauncherStatus()))


@pytest.mark.parametrize("verb", ["start", "resume", "prepare the network"])
def test_a_launcher_is_dialled_during_an_operation(verb: str) -> None:
    """Some operations do not need the launcher. No second operation starts beside them."""
    unreached = LauncherStatus(is_here=True)
    steps = decide(a_world(a_vmi(), a_launcher(unreached, operation=verb))).steps
    assert [type(step) for step in steps] == [Dial]


def test_a_guest_with_a_network_needs_no_other() -> None:
    assert decide(a_world(a_vmi(), a_launcher(seen()))).steps == ()
