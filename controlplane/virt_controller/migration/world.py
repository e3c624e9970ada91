# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the migration controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.phase import RUNNING, is_final
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

DEFAULTS = KubeVirtConfiguration()
KEPT = 5
"""How many migrations of an instance that are over are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    migration: VirtualMachineInstanceMigration
    vmi: VirtualMachineInstance | None
    """Of the name that it gives."""
    target: Pod | None = None
    """The Pod that was made for it, as it is now."""
    source: Pod | None = None
    """The Pod that it left, by the hand-over's word."""
    is_turn: bool = False
    """Limits and those before it let it begin."""
    others: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Of the same instance."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    has_made: bool = False
    """This process has made its Pod, or found it made."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of Pods whose deletion was accepted and is not seen yet."""

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
    def can_move(self) -> bool:
        """Tell whether there is a guest that runs."""
        vmi = self.vmi
        return vmi is not None and vmi.status.phase == RUNNING and vmi.metadata.deletion_timestamp is None

    @property
    def is_vmi_over(self) -> bool:
        return self.vmi is None or is_final(self.vmi.status.phase)

    @property
    def is_target_down(self) -> bool:
        """Tell whether nothing can run in the target's Pod any more, by the kubelet's word."""
        return self.target is not None and (self.target.is_over or self.target.compute.terminated is not None)

    @property
    def is_committed(self) -> bool:
        """Tell whether the run was given to the target."""
        moving, vmi = self.state, self.vmi
        return moving is not None and vmi is not None and moving.target_pod_uid in vmi.status.active_pods


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
class EndState:
    """Say on the instance that it failed: before anything was sent, or when the target's Pod is known to have ended."""

    why: str
    because: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class DeleteMigration:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class Unlabel:
    """Take the target node's name off the instance: it was for other people's clients."""

    because: str


Action = (
    AddFinalizer
    | RemoveFinalizer
    | CreateTarget
    | HandOver
    | RequestAbort
    | EndState
    | DeletePod
    | DeleteMigration
    | Unlabel
)
