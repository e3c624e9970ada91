# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source's part in a migration: the steps on the node that has the guest, and what the status reports. Pure.

While QEMU exists here, the guest has never run at the target (docs/adr/0016). So a guest that a failed migration left
paused is resumed here in every state of the target, and `completed` is set only once QEMU is gone. A guest may be
stopped to send the rest of its memory. The VMI says so first (mode Paused): after the end of the migration, libvirt
reports the stop as a user's pause, and after a restart of virt-handler only the mode in the VMI tells the two apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.migration_stage import MigrationStage, migration_stage
from controlplane.api.objects.migration_state import STOPPED, MigrationState
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.engine.plan import Plan
from controlplane.virt_handler.vmi.world import (
    AbortTransfer,
    Action,
    BeginTransfer,
    Launcher,
    LauncherStatus,
    Resume,
    Transfer,
)

ABORTING, ABORTED, NOT_ABORTED = "Aborting", "Succeeded", "Failed"
ABORT_AGAIN_SECONDS = 5.0
FIRST_EPOCH = 1
CANCELLED = "the migration was cancelled: Live migration has been aborted"
RESTARTED = "virt-handler of the source ended during the migration"
GUEST_ENDED = "the guest ended during the migration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """The observed state of a guest that may migrate."""

    vmi: VirtualMachineInstance
    launcher: Launcher
    state: State
    is_to_end: bool
    """Its VMI is being deleted."""
    monotonic: float


def migration_under_way(vmi: VirtualMachineInstance) -> MigrationState | None:
    """Return the unfinished migration; None if there is none."""
    migration = vmi.status.migration_state
    return migration if migration is not None and migration.is_under_way else None


def is_sending(status: LauncherStatus) -> bool:
    """Tell whether this process carries out a migration."""
    return status.transfer is not None and not status.transfer.is_over


def is_left_paused_by_migration(vmi: VirtualMachineInstance, launcher: Launcher, state: State) -> bool:
    """Tell whether the guest is paused by a migration that no process carries out any more."""
    transfer = launcher.status.transfer
    if transfer is not None and transfer.has_moved:
        return False  # the target runs the guest; libvirt here has not reported it yet
    by_migration = state.life is Life.PAUSED and (
        state.reason == "migration" or is_stopped_to_send(vmi, launcher.status)
    )
    return by_migration and not is_sending(launcher.status)


def is_stop_announced(vmi: VirtualMachineInstance | None) -> bool:
    """Tell whether the VMI says that an unfinished migration stops the guest to send the rest of its memory."""
    migration = None if vmi is None else migration_under_way(vmi)
    # The mode is not enough: if the source died before `completed`, users could not pause the guest at its new node.
    return vmi is not None and migration is not None and migration.mode == STOPPED and _is_here(vmi, migration)


def is_stopped_to_send(vmi: VirtualMachineInstance | None, status: LauncherStatus) -> bool:
    """Tell whether the guest is paused to send the rest of its memory. From that mode on, user pauses are refused."""
    state = status.state
    if vmi is None or state is None or state.life is not Life.PAUSED or state.reason not in ("migration", "user"):
        return False
    return is_stop_announced(vmi) or _was_stopped(vmi, status)


def _was_stopped(vmi: VirtualMachineInstance, status: LauncherStatus) -> bool:
    """Tell whether a migration that is over stopped the paused guest, and nothing resumed it.

    A guest that has run since then was paused for another reason.
    """
    migration, paused = vmi.status.migration_state, conditions.find(vmi.status.conditions, condition_types.PAUSED)
    if status.has_gone_on or vmi.is_user_pause_reported:
        return False
    is_paused_by_monitor = paused is not None and (paused.status, paused.reason) == (
        "True",
        condition_types.PAUSED_BY_MONITOR,
    )
    return is_paused_by_monitor or (
        migration is not None and migration.failed and migration.mode == STOPPED and _is_here(vmi, migration)
    )


def _is_here(vmi: VirtualMachineInstance, migration: MigrationState) -> bool:
    return migration.source_pod_uid in vmi.status.active_pods


def decide_migration_source(observed: Seen) -> Plan[Action] | None:
    """Choose the next step of the migration; None if other steps are possible."""
    migration, uid = migration_under_way(observed.vmi), observed.launcher.pod.uid
    transfer = observed.launcher.status.transfer
    if transfer is not None and not transfer.is_over:
        return _while_sending(observed, migration, transfer)
    if is_left_paused_by_migration(observed.vmi, observed.launcher, observed.state):
        return Plan((Resume(uid, because="its migration has ended and left it paused"),))
    if migration is None or migration.start_timestamp is not None or _own(migration, transfer) is not None:
        return None
    if migration.abort_requested or observed.is_to_end or not migration.target_node_address:
        return None
    return Plan((BeginTransfer(uid, migration.migration_uid, because="its target is ready"),))


def _while_sending(observed: Seen, migration: MigrationState | None, transfer: Transfer) -> Plan[Action]:
    is_wanted = (
        migration is not None and migration.migration_uid == transfer.migration_uid and not migration.abort_requested
    )
    if is_wanted and not observed.is_to_end:
        return Plan()
    asked_at = transfer.abort_asked_at
    pause = 0.0 if asked_at is None else ABORT_AGAIN_SECONDS - (observed.monotonic - asked_at)
    if pause > 0:
        return Plan(requeue_after=pause)
    return Plan(
        (AbortTransfer(observed.launcher.pod.uid, because="its migration is no longer wanted"),), ABORT_AGAIN_SECONDS
    )


def _own(migration: MigrationState, transfer: Transfer | None) -> Transfer | None:
    return transfer if transfer is not None and transfer.migration_uid == migration.migration_uid else None


def migration_while_up(observed: Seen, stamp: str) -> MigrationState | None:
    """Return the migration state to write while the guest is up here; None if the written state is right."""
    migration = migration_under_way(observed.vmi)
    if migration is None:
        return None
    transfer = _own(migration, observed.launcher.status.transfer)
    if transfer is not None and not transfer.is_over:
        is_news = migration.abort_requested and not migration.abort_status
        return msgspec.structs.replace(migration, abort_status=ABORTING) if is_news else None
    if transfer is not None and transfer.has_moved:  # this process knows more than the last look at libvirt
        return migration_when_gone(migration, observed.launcher.status, stamp)
    if is_sending(observed.launcher.status) or is_left_paused_by_migration(
        observed.vmi, observed.launcher, observed.state
    ):
        return None  # another migration is being aborted, or the guest is not resumed yet
    why = _why_over(observed, migration, transfer)
    return None if why is None else _failed(migration, why, stamp)


def _why_over(observed: Seen, migration: MigrationState, transfer: Transfer | None) -> str | None:
    """Return why a migration that no process carries out has failed; None while it may still begin."""
    if migration.abort_requested:
        return CANCELLED
    if transfer is not None:
        return transfer.reason
    if migration.start_timestamp is not None:
        return RESTARTED
    return CANCELLED if observed.is_to_end else None


def migration_when_gone(migration: MigrationState, status: LauncherStatus, stamp: str) -> MigrationState | None:
    """Return the migration state of a guest that has moved; None if its QEMU is gone because it has ended.

    Proof is libvirt's reason, the outcome of this process's transfer, or the target, where the guest runs.
    """
    transfer, state = _own(migration, status.transfer), status.state
    if transfer is not None and not transfer.is_over:
        return None  # the guest is being resumed at the target, through a tunnel that ends with the transfer
    has_moved = (transfer is not None and transfer.has_moved) or (state is not None and is_migrated(state))
    if not has_moved and migration.target_node_domain_ready_timestamp is None:
        return None
    return msgspec.structs.replace(
        migration, completed=True, end_timestamp=stamp, abort_status=NOT_ABORTED if migration.abort_requested else ""
    )


def migration_when_ended(migration: MigrationState, stamp: str) -> MigrationState:
    """Return the failed state of a migration whose guest has ended."""
    return _failed(migration, GUEST_ENDED, stamp)


def is_migrated(state: State) -> bool:
    """Tell whether libvirt reports that the guest has migrated and its QEMU has ended."""
    return state.life is Life.SHUT_OFF and state.reason == "migrated"


def was_lost_in_migration(vmi: VirtualMachineInstance, status: LauncherStatus) -> bool:
    """Tell whether a guest moved by a migration that failed afterwards: its target has ended, and the guest with it.

    The start of a migration is written before the guest leaves. If the current one has no start, an earlier one moved
    the guest.
    """
    migration = vmi.status.migration_state
    if migration is None or status.state is None or not is_migrated(status.state):
        return False
    return migration.failed or (migration.is_under_way and migration.start_timestamp is None)


def awaits_hand_over(vmi: VirtualMachineInstance) -> bool:
    """Tell whether the migration is completed but the run is not granted to its target yet."""
    return migration_stage(vmi.status.migration_state, vmi.status.active_pods) is MigrationStage.LEFT


def has_arrived_paused(vmi: VirtualMachineInstance | None, status: LauncherStatus) -> bool:
    """Tell whether a guest that arrived here is paused by its migration alone and has to be resumed.

    For libvirt, a guest that a migration leaves paused has the same reason as a user's pause. A user's pause before the
    migration is in the VMI; one after it is in LauncherStatus.
    """
    state = status.state
    if vmi is None or state is None or state.life is not Life.PAUSED or status.has_gone_on:
        return False
    return _has_arrived(vmi, status) and not is_sending(status) and not vmi.is_user_pause_reported


def is_migrating_or_stopped(vmi: VirtualMachineInstance | None, status: LauncherStatus) -> bool:
    """Tell whether a migration has paused the guest, or may pause it: a user's pause would look the same."""
    is_leaving = is_sending(status) or is_stop_announced(vmi) or is_stopped_to_send(vmi, status)
    return is_leaving or has_arrived_paused(vmi, status)


def _has_arrived(vmi: VirtualMachineInstance, status: LauncherStatus) -> bool:
    """Tell whether the guest arrived here by a migration.

    The VMI's migration state shows that. When the next migration has replaced that state, the domain's epoch shows it:
    a run begins in its first epoch, and each migration raises it.
    """
    moved, granted = vmi.status.migration_state, vmi.status.active_pods
    if moved is not None and moved.has_moved and moved.target_pod_uid in granted:
        return True
    identity = None if status.observed is None else status.observed.identity
    return identity is not None and identity.epoch > FIRST_EPOCH and identity.pod_uid in granted


def refuse_transfer(
    now: VirtualMachineInstance,
    before: VirtualMachineInstance,
    action: BeginTransfer,
    launcher: Launcher,
    *,
    is_begun: bool = False,
) -> str:
    """Return why the guest of this VMI must not be sent from this Pod; "" if it may be.

    now: just read from the API server. is_begun: the transfer has begun, and the guest is about to be stopped for it.
    """
    migration = now.status.migration_state
    reasons = {
        "the VMI was replaced by another one": now.metadata.uid != before.metadata.uid,
        "the VMI is being deleted": now.metadata.deletion_timestamp is not None,
        f"its phase is {now.status.phase or 'unset'}": now.status.phase != RUNNING,
        "another Pod has the grant": set(now.status.active_pods) != {launcher.pod.uid},
        "the migration is over or was replaced": migration is None
        or not migration.is_under_way
        or migration.migration_uid != action.migration_uid,
        "it has begun already": migration is not None and migration.start_timestamp is not None and not is_begun,
        "it is cancelled": migration is not None and migration.abort_requested,
    }
    return next((reason for reason, applies in reasons.items() if applies), "")


def _failed(migration: MigrationState, why: str, stamp: str) -> MigrationState:
    return msgspec.structs.replace(
        migration,
        failed=True,
        completed=True,
        failure_reason=why[:1024],
        end_timestamp=stamp,
        abort_status=ABORTED if migration.abort_requested else "",
    )
