# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the migration controller's decisions, and its actions. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import FINAL, PENDING, UNSET, VirtualMachineInstanceMigration
from controlplane.api.objects.migration_stage import MigrationStage, migration_stage
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.owner import controller_of
from controlplane.api.objects.phase import RUNNING, is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.world import is_controlled

DEFAULTS = KubeVirtConfiguration()
FINISHED_KEPT = 5
"""How many finished migrations of a VMI are kept."""
LABEL_LENGTH = 63
"""Longest value of a label. A node's name may be longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    migration: VirtualMachineInstanceMigration
    vmi: VirtualMachineInstance | None
    """The VMI that spec.vmiName names."""
    target: Pod | None = None
    """The target Pod."""
    unowned_target: Pod | None = None
    """The target Pod if its owner reference was removed. It is only deleted, never used."""
    source: Pod | None = None
    """The source Pod, as the hand-over names it."""
    launchers: tuple[Pod, ...] = ()
    """Pods that the VMI controls or was granted to."""
    may_begin: bool = False
    """The limits and the queue allow it to begin."""
    blocks_others: bool = False
    """No node fits its Pod, and other migrations could begin without it."""
    should_yield: bool = False
    """A namespace with fewer running migrations has to wait because of this one."""
    others: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Other migrations of the same VMI."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    has_created_target: bool = False
    """This process created the target Pod, or its create got AlreadyExists."""
    is_unschedulable_reported: bool = False
    """This process recorded an Event that no node fits the target Pod."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of the migration and its Pods whose deletion was accepted and is not in the cache yet."""
    is_vmi_confirmed: bool = False
    """The API server confirmed this version of the VMI, or its absence, for the current version of the migration."""
    absent: frozenset[str] = frozenset()
    """Names of Pods that the API server confirmed to be absent, for the current version of the migration."""

    @property
    def uid(self) -> str:
        return self.migration.metadata.uid

    @property
    def is_cancelled(self) -> bool:
        return self.migration.metadata.deletion_timestamp is not None

    @property
    def state(self) -> MigrationState | None:
        """The VMI's migrationState if it belongs to this migration, else None."""
        state = None if self.vmi is None else self.vmi.status.migration_state
        return state if state is not None and state.migration_uid == self.uid else None

    @property
    def other_under_way(self) -> bool:
        """Tell whether another migration of the VMI is under way."""
        state = None if self.vmi is None else self.vmi.status.migration_state
        return state is not None and state.is_under_way and state.migration_uid != self.uid

    @property
    def preceding_migration(self) -> VirtualMachineInstanceMigration | None:
        """Return the unfinished migration of the VMI that takes precedence over this one, if any."""
        own_rank = _rank(self.migration)
        unfinished = (migration for migration in self.others if migration.status.phase not in FINAL)
        return next((migration for migration in unfinished if _rank(migration) < own_rank), None)

    @property
    def can_move(self) -> bool:
        """Tell whether the VMI has a running guest that can be moved."""
        return can_move(self.vmi)

    @property
    def is_vmi_final(self) -> bool:
        return self.vmi is None or is_final(self.vmi.status.phase)

    @property
    def target_pod(self) -> str:
        """Name of the target Pod; "" without a VMI."""
        vmi = self.vmi
        return "" if vmi is None else target_name(vmi.metadata.name, vmi.metadata.uid, self.uid)

    @property
    def is_target_absent(self) -> bool:
        """Tell whether the API server confirmed that the target Pod does not exist."""
        return self.target is None and self.target_pod in self.absent

    @property
    def last_state(self) -> MigrationState | None:
        """The last known migrationState of this migration, also after it has ended."""
        return self.state or self.migration.status.migration_state

    @property
    def target_label(self) -> str:
        """The target node in the VMI's label; "" without one."""
        return "" if self.vmi is None else self.vmi.metadata.labels.get(MIGRATION_TARGET_NODE, "")

    @property
    def is_unschedulable(self) -> bool:
        """Tell whether the scheduler reports that no node fits the target Pod."""
        return self.target is not None and self.target.is_unschedulable

    @property
    def is_target_down(self) -> bool:
        """Tell whether the kubelet reports that nothing can run in the target Pod any more."""
        return self.target is not None and (self.target.is_over or self.target.compute.terminated is not None)

    @property
    def is_committed(self) -> bool:
        """Tell whether the run belongs to the target."""
        active_pods = {} if self.vmi is None else self.vmi.status.active_pods
        return migration_stage(self.state, active_pods) is MigrationStage.COMMITTED


def is_made_for(pod: Pod, vmi: VirtualMachineInstance, migration_uid: str) -> bool:
    """Tell whether a Pod with a target's name was created for the migration.

    Then the VMI controls it, or its owner reference was removed.
    """
    return is_controlled(pod, vmi) or is_unowned_target(pod, migration_uid)


def is_unowned_target(pod: Pod, migration_uid: str) -> bool:
    """Tell whether a Pod was created for a migration and its owner reference was removed since."""
    return controller_of(pod.metadata) is None and pod.metadata.labels.get(MIGRATION_JOB) == migration_uid


def can_move(vmi: VirtualMachineInstance | None) -> bool:
    """Tell whether the VMI has a running guest that is to keep running, on the node that its status names.

    A guest that has left its node cannot be moved: the next hand-over would overwrite its new node.
    """
    is_to_run = vmi is not None and vmi.status.phase == RUNNING and vmi.metadata.deletion_timestamp is None
    return vmi is not None and is_to_run and not awaits_commit(vmi)


def awaits_commit(vmi: VirtualMachineInstance) -> bool:
    """Tell whether the guest has left the source and the commit is due."""
    return migration_stage(vmi.status.migration_state, vmi.status.active_pods) is MigrationStage.LEFT


def _rank(migration: VirtualMachineInstanceMigration) -> tuple[bool, str, str]:
    """Order of a VMI's unfinished migrations: one that has begun comes first, then the oldest."""
    meta = migration.metadata
    return migration.status.phase in (UNSET, PENDING), meta.creation_timestamp or "", meta.uid


def target_name(vmi_name: str, vmi_uid: str, migration_uid: str) -> str:
    """Name the target Pod, in 63 characters. The name is deterministic: a second create fails with AlreadyExists."""
    tail = f"{vmi_uid.replace('-', '')[:8]}-m{migration_uid.replace('-', '')[:8]}"
    head = f"virt-launcher-{vmi_name}".replace(".", "-")
    return f"{head[: 63 - len(tail) - 1].rstrip('-')}-{tail}"


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    because: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizer:
    because: str


@dataclass(frozen=True, slots=True)
class CreateTarget:
    because: str


@dataclass(frozen=True, slots=True)
class ReportUnschedulable:
    """Record an Event: no node fits the target Pod yet."""

    because: str


@dataclass(frozen=True, slots=True)
class HandOver:
    """Write the VMI's migrationState: both virt-handlers act on it."""

    pod: Pod
    because: str


@dataclass(frozen=True, slots=True)
class RequestAbort:
    because: str


@dataclass(frozen=True, slots=True)
class FailMigration:
    """Write to the VMI that the migration failed: before anything was sent, or after the target Pod has ended."""

    why: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """Delete the target Pod of a failed migration."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Delete the source Pod, which the guest has left."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class ConfirmVmi:
    """Read the VMI from the API server."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmPodAbsent:
    """Read a Pod from the API server."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteMigration:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LabelTarget:
    """Write the target node into a label of the VMI, for other clients. The control plane does not read it."""

    node: str
    because: str


@dataclass(frozen=True, slots=True)
class RemoveTargetLabel:
    """Remove the target node's label from the VMI."""

    because: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | CreateTarget
    | ReportUnschedulable
    | HandOver
    | RequestAbort
    | FailMigration
    | DeleteTarget
    | DeleteSource
    | ConfirmVmi
    | ConfirmPodAbsent
    | DeleteMigration
    | LabelTarget
    | RemoveTargetLabel
)
