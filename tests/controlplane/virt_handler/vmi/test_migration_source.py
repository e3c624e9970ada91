# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source's part in a migration, as tables: its actions and its status."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.engine.plan import Plan
from controlplane.virt_handler.vmi.decide import decide
from controlplane.virt_handler.vmi.migration_source import (
    CANCELLED,
    GUEST_ENDED,
    RESTARTED,
    has_arrived_paused,
    refuse_transfer,
)
from controlplane.virt_handler.vmi.status import derive_status
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user
from controlplane.virt_handler.vmi.world import (
    AbortTransfer,
    Action,
    BeginTransfer,
    FailedOperation,
    LauncherStatus,
    Resume,
    ShutDown,
    Transfer,
    World,
)
from tests.controlplane.virt_handler.builders import (
    ETH0,
    NOW,
    OTHER,
    POD_UID,
    RUNNING,
    a_launcher,
    a_look,
    a_pod,
    a_vmi,
    a_world,
    observed,
    seen,
)
from tests.controlplane.virt_handler.migrating import (
    BEGUN,
    BY_MIGRATION,
    MIGRATED,
    MIGRATION,
    TARGET_POD,
    WHOLE,
    begun,
    come,
    migrating,
    ready,
    stopping,
)

SENDING, MOVED = Transfer(MIGRATION), Transfer(MIGRATION, is_over=True, has_moved=True)
BROKEN = Transfer(MIGRATION, is_over=True, reason="the tunnel broke")
BEGIN = BeginTransfer(POD_UID, MIGRATION, "its target is ready")
ABORT = AbortTransfer(POD_UID, "its migration is no longer wanted")
HERE = Resume(POD_UID, "its migration has ended and left it paused")
NOW_STAMP = "2023-11-14T22:13:20Z"
CRASHED, LOST = State(Life.SHUT_OFF, "crashed"), State(Life.SHUT_OFF, "daemon")


def world(vmi: VirtualMachineInstance, state: State = RUNNING, **fields: Any) -> World:
    """A source whose guest is in this state. transfer: the transfer in this process."""
    status = seen(state, transfer=fields.pop("transfer", None), has_gone_on=fields.pop("has_gone_on", False))
    return a_world(vmi, a_launcher(status, failed_operation=fields.pop("failed_operation", None)), **fields)


def in_phase(phase: str, vmi: VirtualMachineInstance) -> VirtualMachineInstance:
    return msgspec.structs.replace(vmi, status=msgspec.structs.replace(vmi.status, phase=phase))


OVER = stopping(completed=True, failed=True)
BY_MONITOR = msgspec.structs.replace(
    ready().status, conditions=(Condition(type="Paused", status="True", reason="PausedByMigrationMonitor"),)
)

ROWS: dict[str, tuple[World, Plan[Action]]] = {
    "not ready": (world(migrating()), Plan()),
    "ready": (world(ready()), Plan((BEGIN,))),
    "ready, paused by a user": (world(ready(paused=True), WHOLE), Plan((BEGIN,))),
    "ready, a user's pause is not reported yet": (world(ready(), WHOLE), Plan()),
    "ready, a former pause is still reported": (world(ready(paused=True)), Plan()),
    "ready, phase Unknown": (world(in_phase("Unknown", ready())), Plan()),
    "begun by this process": (world(begun(), transfer=SENDING), Plan()),
    "ready, and the start is not seen yet": (world(ready(), transfer=SENDING), Plan()),
    "this process has failed": (world(ready(), transfer=BROKEN), Plan()),
    "begun by another process": (world(begun()), Plan()),
    "cancelled before it began": (world(ready(abortRequested=True)), Plan()),
    "cancelled": (world(begun(abortRequested=True), transfer=SENDING), Plan((ABORT,), 5.0)),
    "cancelled, a former pause is still reported": (
        world(begun(abortRequested=True, paused=True), transfer=SENDING),
        Plan((ABORT,), 5.0),
    ),
    "cancelled, abort requested": (
        world(begun(abortRequested=True), transfer=Transfer(MIGRATION, abort_asked_at=998.0)),
        Plan(requeue_after=3.0),
    ),
    "another migration by now": (world(begun(), transfer=Transfer("other")), Plan((ABORT,), 5.0)),
    "failed by virt-controller": (
        world(begun(failed=True, completed=True), transfer=SENDING),
        Plan((ABORT,), 5.0),
    ),
    "deleted": (world(begun(deleting=True), transfer=SENDING, deleting_since=990.0), Plan((ABORT,), 5.0)),
    "deleted before it began": (
        world(ready(deleting=True), deleting_since=990.0),
        Plan((ShutDown(POD_UID, "its VMI is deleted"),), 5.0),
    ),
    "left paused": (world(begun(), BY_MIGRATION, transfer=BROKEN), Plan((HERE,))),
    "left paused by another process": (world(begun(), BY_MIGRATION), Plan((HERE,))),
    "left paused, resume failed": (
        world(begun(), BY_MIGRATION, failed_operation=FailedOperation("no", is_refusal=False, at=1000.0, count=3)),
        Plan(requeue_after=0.2),
    ),
    "paused in the last step": (world(begun(), BY_MIGRATION, transfer=SENDING), Plan()),
    "stopped so that it can be sent": (world(stopping(), BY_MIGRATION, transfer=SENDING), Plan()),
    "stopped, by a late pause": (world(stopping(), WHOLE, transfer=SENDING), Plan()),
    "stopped, transfer failed": (world(stopping(), BY_MIGRATION, transfer=BROKEN), Plan((HERE,))),
    "stopped by a late pause, transfer failed": (world(stopping(), WHOLE, transfer=BROKEN), Plan((HERE,))),
    "stopped by a former process": (world(stopping(), WHOLE), Plan((HERE,))),
    "stop announced by a former process": (world(stopping(), RUNNING), Plan()),
    "stopped once, then paused by a user": (
        world(stopping(completed=True, failed=True, paused=True), WHOLE),
        Plan(),
    ),
    "stopped, failed by virt-controller": (world(OVER, WHOLE), Plan((HERE,))),
    "stopped, failed, resumed, then paused by a user": (world(OVER, WHOLE, has_gone_on=True), Plan()),
    "stopped at its former node": (
        world(stopping(completed=True, failed=True, sourcePodUID="another"), WHOLE),
        Plan(),
    ),
    "stopped, and another migration was handed over": (
        world(msgspec.structs.replace(ready(), status=BY_MONITOR), WHOLE),
        Plan((HERE,)),
    ),
    "stopped, moved, then paused by a user": (world(stopping(completed=True), WHOLE), Plan()),
    "paused by a user before, sender gone": (world(begun(paused=True), WHOLE), Plan()),
    "moved": (world(begun(), MIGRATED, transfer=MOVED), Plan()),
    "moved, libvirt lags": (world(begun(), BY_MIGRATION, transfer=MOVED), Plan()),
    "over": (world(begun(completed=True, failed=True)), Plan()),
}


@pytest.mark.parametrize(("before", "plan"), ROWS.values(), ids=ROWS)
def test_the_source_takes_the_next_step(before: World, plan: Plan[Action]) -> None:
    assert decide(before) == plan


REPORTS: dict[str, tuple[World, dict[str, Any] | None]] = {
    "not ready": (world(migrating()), None),
    "being sent": (world(begun(), transfer=SENDING), None),
    "being aborted": (world(begun(abortRequested=True), transfer=SENDING), {"abort_status": "Aborting"}),
    "cancelled before it began": (
        world(ready(abortRequested=True)),
        {"failed": True, "failure_reason": CANCELLED, "abort_status": "Succeeded"},
    ),
    "aborted": (
        world(begun(abortRequested=True), transfer=BROKEN),
        {"failed": True, "failure_reason": CANCELLED, "abort_status": "Succeeded"},
    ),
    "broken": (world(begun(), transfer=BROKEN), {"failed": True, "failure_reason": "the tunnel broke"}),
    "broken before it began": (world(ready(), transfer=BROKEN), {"failed": True, "failure_reason": "the tunnel broke"}),
    "broken, guest not resumed yet": (world(begun(), BY_MIGRATION, transfer=BROKEN), None),
    "begun by a former process": (world(begun()), {"failed": True, "failure_reason": RESTARTED}),
    "left paused by a former process": (world(begun(), BY_MIGRATION), None),
    "left stopped by a former process": (world(stopping(), WHOLE), None),
    "stopped by a former process, resumed": (
        world(stopping()),
        {"failed": True, "failure_reason": RESTARTED, "mode": "Paused"},
    ),
    "another one is being aborted": (world(begun(), transfer=Transfer("other")), None),
    "deleted before it began": (
        world(ready(deleting=True), deleting_since=1000.0),
        {"failed": True, "failure_reason": CANCELLED, "abort_status": ""},
    ),
    "moved": (
        world(begun(), MIGRATED, transfer=MOVED),
        {"completed": True, "failed": False, "abort_status": ""},
    ),
    "moved, being resumed": (world(begun(), MIGRATED, transfer=SENDING), None),
    "moved, reported by libvirt": (world(begun(), MIGRATED), {"completed": True, "failed": False}),
    "moved, no look since": (
        world(begun(), transfer=MOVED),
        {"completed": True, "failed": False},
    ),
    "moved, last seen paused": (
        world(begun(), BY_MIGRATION, transfer=MOVED),
        {"completed": True, "failed": False},
    ),
    "moved, though cancelled": (
        world(begun(abortRequested=True), MIGRATED, transfer=MOVED),
        {"completed": True, "failed": False, "abort_status": "Failed"},
    ),
    "lost by libvirt, known to this process": (
        world(begun(), LOST, transfer=MOVED, look=a_look()),
        {"completed": True, "failed": False},
    ),
    "lost by libvirt, runs at the target": (
        world(begun(targetNodeDomainReadyTimestamp=BEGUN), LOST, look=a_look()),
        {"completed": True, "failed": False},
    ),
    "gone, runs at the target": (
        world(begun(targetNodeDomainReadyTimestamp=BEGUN), CRASHED),
        {"completed": True, "failed": False},
    ),
    "crashed": (world(begun(), CRASHED, transfer=BROKEN), {"failed": True, "failure_reason": GUEST_ENDED}),
    "over": (world(begun(completed=True, failed=True)), None),
}


@pytest.mark.parametrize(("before", "expected"), REPORTS.values(), ids=REPORTS)
def test_the_source_reports_the_migration_status(before: World, expected: dict[str, Any] | None) -> None:
    status = derive_status(before, None)
    old = before.vmi.status.migration_state if before.vmi is not None else None
    new = old if status is None else status.migration_state
    assert old is not None
    assert new is not None
    if expected is None:
        assert new == old
        return
    assert {name: getattr(new, name) for name in expected} == expected
    assert new.is_over == ("failed" in expected)
    assert (new.end_timestamp == NOW_STAMP) == new.is_over


def test_a_migrated_guest_leaves_its_vmi_running() -> None:
    for before in (world(begun(), MIGRATED), world(begun(), LOST, transfer=MOVED, look=a_look())):
        status = derive_status(before, None)
        assert status is not None
        assert status.phase == "Running"


@pytest.mark.parametrize(
    "vmi",
    [
        pytest.param(begun(failed=True, completed=True), id="its target has ended"),
        pytest.param(ready(), id="and another migration is yet to begin"),
    ],
)
def test_a_guest_that_left_with_a_failed_migration_is_dead(vmi: VirtualMachineInstance) -> None:
    status = derive_status(world(vmi, MIGRATED), None)
    assert status is not None
    assert (status.phase, status.reason) == ("Failed", "GuestLost")
    assert status.migration_state is not None
    assert status.migration_state.failed


@pytest.mark.parametrize("state", [RUNNING, BY_MIGRATION, MIGRATED, CRASHED])
def test_after_completion_the_source_writes_nothing(state: State) -> None:
    """It owns the run until the hand-over, but its launcher may end earlier."""
    assert derive_status(world(begun(completed=True), state, transfer=MOVED), None) is None
    assert derive_status(world(begun(completed=True), state), None) is None


def test_a_guest_that_is_gone_is_not_reported_during_its_transfer() -> None:
    """This process knows the result in a moment."""
    assert derive_status(world(begun(), CRASHED, transfer=SENDING), None) is None
    failed = begun(failed=True, completed=True)  # virt-controller fails a migration whose target has ended
    assert derive_status(world(failed, MIGRATED, transfer=SENDING), None) is None
    assert derive_status(world(failed, MIGRATED, transfer=BROKEN), None) is not None


def arrived(state: State, **fields: Any) -> World:
    """The target as the owner of the run."""
    vmi = come(**fields.pop("vmi", {}))
    there = observed(pod_uid=TARGET_POD, epoch=fields.pop("epoch", 1))
    status = seen(state, observed=there, **fields)
    return World(node=OTHER, vmi=vmi, launchers=(a_launcher(status, a_pod(TARGET_POD)),), now=NOW, monotonic=1000.0)


GO_ON = Resume(TARGET_POD, "it arrived by its migration")


@pytest.mark.parametrize(
    ("before", "plan"),
    [
        pytest.param(arrived(WHOLE), Plan((GO_ON,)), id="paused by its migration"),
        pytest.param(arrived(RUNNING), Plan(), id="resumed by the source"),
        pytest.param(arrived(WHOLE, vmi={"paused": True}), Plan(), id="paused by a user"),
        pytest.param(arrived(WHOLE, has_gone_on=True), Plan(), id="paused here"),
    ],
)
def test_a_guest_resumes_at_its_target_unless_a_user_paused_it(before: World, plan: Plan[Action]) -> None:
    assert decide(before) == plan


ONWARDS = {"migrationUid": "another", "sourcePodUID": TARGET_POD, "targetPodUID": "a third", "completed": False}
"""Fields of a second migration, whose source is the target of the first."""


@pytest.mark.parametrize(
    ("epoch", "fields", "plan"),
    [
        pytest.param(2, {}, Plan((GO_ON,)), id="arrived"),
        pytest.param(2, {"has_gone_on": True}, Plan(), id="paused here"),
        pytest.param(2, {"transfer": Transfer("another")}, Plan(), id="being sent on"),
        pytest.param(1, {}, Plan(), id="started here"),
    ],
)
def test_a_guest_resumes_at_its_target_though_another_migration_was_created(
    epoch: int, fields: dict[str, Any], plan: Plan[Action]
) -> None:
    before = arrived(WHOLE, vmi=ONWARDS, epoch=epoch, **fields)
    assert decide(before) == plan
    assert before.launcher is not None
    assert is_paused_by_user(before.vmi, before.launcher.status) is not (GO_ON in plan.steps)


@pytest.mark.parametrize(("has_moved", "steps"), [(True, ()), (False, (GO_ON,))], ids=["moved", "failed"])
def test_a_guest_that_has_moved_on_is_not_resumed_where_it_was(has_moved: bool, steps: tuple[Resume, ...]) -> None:
    """libvirt reports it as paused for a moment after its QEMU has ended."""
    transfer = Transfer("another", is_over=True, has_moved=has_moved)

    assert decide(arrived(BY_MIGRATION, vmi=ONWARDS, epoch=2, transfer=transfer)).steps == steps


def test_a_guest_is_not_resumed_by_a_pod_that_does_not_own_the_run() -> None:
    """It may still run at the source, until the source reports that it has left."""
    elsewhere = seen(WHOLE, observed=observed(pod_uid="a third", epoch=2))
    assert not has_arrived_paused(come(**ONWARDS), elsewhere)
    assert has_arrived_paused(come(**ONWARDS), seen(WHOLE, observed=observed(pod_uid=TARGET_POD, epoch=2)))


def test_a_pause_by_a_migration_is_not_a_users_pause() -> None:
    assert not is_paused_by_user(come(), LauncherStatus(state=WHOLE))
    assert is_paused_by_user(come(paused=True), LauncherStatus(state=WHOLE))
    assert is_paused_by_user(a_vmi("Running"), LauncherStatus(state=WHOLE))
    status = derive_status(arrived(WHOLE), None)
    assert status is not None
    assert "Paused" not in {condition.type for condition in status.conditions}


def test_the_sources_pause_is_not_reported_at_the_target() -> None:
    vmi = come()
    reported = msgspec.structs.replace(vmi.status, conditions=BY_MONITOR.conditions)
    status = derive_status(replace(arrived(WHOLE), vmi=msgspec.structs.replace(vmi, status=reported)), None)
    assert status is not None
    assert "Paused" not in {condition.type for condition in status.conditions}


def test_a_migrated_guest_has_the_addresses_of_its_new_pod() -> None:
    before = arrived(RUNNING, vmi={"interfaces": [{"name": "default", "ipAddresses": ["10.244.9.9"]}]})
    status = derive_status(before, None)
    assert status is not None
    assert [interface.ip_addresses for interface in status.interfaces] == [ETH0.addresses]
    assert before.vmi is not None
    updated = msgspec.structs.replace(before.vmi, status=status)
    assert derive_status(replace(before, vmi=updated), None) is None


@pytest.mark.parametrize("state", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
@pytest.mark.parametrize("transfer", [SENDING, BROKEN, None])
def test_a_guest_paused_by_its_migration_has_that_reason_and_no_users_pause(
    state: State, transfer: Transfer | None
) -> None:
    assert not is_paused_by_user(stopping(), LauncherStatus(state=state))
    status = derive_status(world(stopping(), state, transfer=transfer), None)
    assert status is not None
    reasons = {condition.type: condition.reason for condition in status.conditions}
    assert reasons["Paused"] == "PausedByMigrationMonitor"
    updated = msgspec.structs.replace(stopping(), status=status)
    status = derive_status(world(updated, RUNNING, transfer=transfer), None)
    assert status is not None
    assert "Paused" not in {condition.type for condition in status.conditions}


READY = ready()
REFUSED: dict[str, tuple[VirtualMachineInstance, str]] = {
    "another VMI": (
        msgspec.structs.replace(READY, metadata=msgspec.structs.replace(READY.metadata, uid="0000cccc")),
        "the VMI was replaced by another one",
    ),
    "ready": (ready(), ""),
    "deleted": (ready(deleting=True), "the VMI is being deleted"),
    "of another Pod": (ready(pods=(TARGET_POD,)), "another Pod has the grant"),
    "over": (ready(completed=True, failed=True), "the migration is over or was replaced"),
    "another": (ready(migrationUid="other"), "the migration is over or was replaced"),
    "none": (a_vmi("Running"), "the migration is over or was replaced"),
    "begun": (begun(), "it has begun already"),
    "cancelled": (ready(abortRequested=True), "it is cancelled"),
    "failed": (a_vmi("Failed"), "its phase is Failed"),
}


@pytest.mark.parametrize(("now", "reason"), REFUSED.values(), ids=REFUSED)
def test_a_transfer_begins_and_pauses_its_guest_only_for_the_current_vmi(
    now: VirtualMachineInstance, reason: str
) -> None:
    assert refuse_transfer(now, ready(), BEGIN, a_launcher()) == reason
    after_start = "" if reason == "it has begun already" else reason
    assert refuse_transfer(now, ready(), BEGIN, a_launcher(), is_begun=True) == after_start
