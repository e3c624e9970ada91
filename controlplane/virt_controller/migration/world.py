# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the migration controller knows when it decides, and what it can do. Values only."""

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
"""How many migrations of an instance that are over are kept."""
LABEL_LENGTH = 63
"""A Node's name may be longer than a label's value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    migration: VirtualMachineInstanceMigration
    vmi: VirtualMachineInstance | None
    """Of the name that it gives."""
    target: Pod | None = None
    """The Pod that was made for it, as it is now."""
    unowned_target: Pod | None = None
    """That Pod, when nobody owns it any more: it is not gone on with, only cleared away."""
    source: Pod | None = None
    """The Pod that it left, by the hand-over's word."""
    launchers: tuple[Pod, ...] = ()
    """Pods that the instance controls, and those that it was granted."""
    may_begin: bool = False
    """Limits and those before it let it begin."""
    blocks_others: bool = False
    """Others could begin, were it not for this one, whose Pod finds no node."""
    should_yield: bool = False
    """The same of one of a namespace that has fewer places, whether there is a node for the Pod of this one or not."""
    others: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Of the same instance."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    has_created_target: bool = False
    """This process has made its Pod, or found it made."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of its Pods, or its own, where a deletion was accepted and is not seen yet."""
    is_vmi_confirmed: bool = False
    """The API server itself said, since the migration is as it is, that its instance is so, or is not there."""
    absent: frozenset[str] = frozenset()
    """Names of Pods of which it said, since the migration is as it is, that they are not there."""

    @property
    def uid(self) -> str:
        return self.migration.metadata.uid

    @property
    def is_cancelled(self) -> bool:
        return self.migration.metadata.deletion_timestamp is not None

    @property
    def state(self) -> MigrationState | None:
        """What the instance tells of this migration; None before the hand-over, and when another one has taken over."""
        moving = None if self.vmi is None else self.vmi.status.migration_state
        return moving if moving is not None and moving.migration_uid == self.uid else None

    @property
    def other_under_way(self) -> bool:
        """Tell whether the instance is in another migration."""
        moving = None if self.vmi is None else self.vmi.status.migration_state
        return moving is not None and moving.is_under_way and moving.migration_uid != self.uid

    @property
    def preceding_migration(self) -> VirtualMachineInstanceMigration | None:
        """Return another migration of the instance that is not over and goes before this one; None: this is the one."""
        mine = _rank(self.migration)
        unfinished = (migration for migration in self.others if migration.status.phase not in FINAL)
        return next((migration for migration in unfinished if _rank(migration) < mine), None)

    @property
    def can_move(self) -> bool:
        """Tell whether there is a guest that runs."""
        return can_move(self.vmi)

    @property
    def is_vmi_final(self) -> bool:
        return self.vmi is None or is_final(self.vmi.status.phase)

    @property
    def target_pod(self) -> str:
        """Name of the Pod that it goes to; "" when its instance is not there."""
        vmi = self.vmi
        return "" if vmi is None else target_name(vmi.metadata.name, vmi.metadata.uid, self.uid)

    @property
    def is_target_absent(self) -> bool:
        """Tell whether its Pod does not exist, by the API server's word."""
        return self.target is None and self.target_pod in self.absent

    @property
    def last_state(self) -> MigrationState | None:
        """What is known of where it went from and to, when it is over and the instance may tell of others."""
        return self.state or self.migration.status.migration_state

    @property
    def target_label(self) -> str:
        """What the instance's label says of a target."""
        return "" if self.vmi is None else self.vmi.metadata.labels.get(MIGRATION_TARGET_NODE, "")

    @property
    def is_unschedulable(self) -> bool:
        """Tell whether no node fits its Pod for now, by the scheduler's word."""
        return self.target is not None and self.target.is_unschedulable

    @property
    def is_target_down(self) -> bool:
        """Tell whether nothing can run in the target's Pod any more, by the kubelet's word."""
        return self.target is not None and (self.target.is_over or self.target.compute.terminated is not None)

    @property
    def is_committed(self) -> bool:
        """Tell whether the run was given to the target."""
        active_pods = {} if self.vmi is None else self.vmi.status.active_pods
        return migration_stage(self.state, active_pods) is MigrationStage.COMMITTED


def is_made_for(pod: Pod, vmi: VirtualMachineInstance, migration_uid: str) -> bool:
    """Tell whether a Pod of the name of a migration's is that: its instance controls it, or nobody does any more."""
    return is_controlled(pod, vmi) or is_unowned_target(pod, migration_uid)


def is_unowned_target(pod: Pod, migration_uid: str) -> bool:
    """Tell whether a Pod was made for a migration, and somebody took its owner off: it goes with no instance."""
    return controller_of(pod.metadata) is None and pod.metadata.labels.get(MIGRATION_JOB) == migration_uid


def can_move(vmi: VirtualMachineInstance | None) -> bool:
    """Tell whether there is a guest that runs, and is to, where the instance says that it does.

    One that has left is not there: the next hand-over would replace what tells of where it goes on.
    """
    is_to_run = vmi is not None and vmi.status.phase == RUNNING and vmi.metadata.deletion_timestamp is None
    return vmi is not None and is_to_run and not awaits_commit(vmi)


def awaits_commit(vmi: VirtualMachineInstance) -> bool:
    """Tell whether the guest has left, and the run is yet to be given to its target."""
    return migration_stage(vmi.status.migration_state, vmi.status.active_pods) is MigrationStage.LEFT


def _rank(migration: VirtualMachineInstanceMigration) -> tuple[bool, str, str]:
    """Who of an instance's unfinished migrations is the one: whoever has begun, then the oldest."""
    meta = migration.metadata
    return migration.status.phase in (UNSET, PENDING), meta.creation_timestamp or "", meta.uid


def target_name(vmi_name: str, vmi_uid: str, migration_uid: str) -> str:
    """Name the Pod that a migration goes to, in 63 characters: always the same one, so a second create collides."""
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
class HandOver:
    """Tell the two nodes of it: what the instance tells of migrations becomes this one."""

    pod: Pod
    because: str


@dataclass(frozen=True, slots=True)
class RequestAbort:
    because: str


@dataclass(frozen=True, slots=True)
class FailMigration:
    """Say on the instance that it failed: before anything was sent, or when the target's Pod is known to have ended."""

    why: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteTarget:
    """Delete the Pod of a migration that has failed."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteSource:
    """Delete the Pod that a guest has left."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class ConfirmVmi:
    """Ask the API server, not the cache, how the instance is."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmPodAbsent:
    """Ask the API server, not the cache, whether a Pod exists."""

    name: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteMigration:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LabelTarget:
    """Name the target's node in a label of the instance, for other people's clients: nothing of ours reads it."""

    node: str
    because: str


@dataclass(frozen=True, slots=True)
class RemoveTargetLabel:
    """Take the target node's name off the instance: it was for other people's clients."""

    because: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | CreateTarget
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
