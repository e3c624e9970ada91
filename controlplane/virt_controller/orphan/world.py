# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A VMI's migrations that were deleted before their end. Values only."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE

from controlplane.api.objects.migration import SUCCEEDED, VirtualMachineInstanceMigration
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.world import DeleteTarget, FailMigration, RemoveTargetLabel, RequestAbort


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    vmi: VirtualMachineInstance
    spare: tuple[Pod, ...] = ()
    """Launcher Pods that the VMI controls and that do not own its run."""
    migrations: tuple[VirtualMachineInstanceMigration, ...] = ()
    """Known migrations of this VMI."""
    gone: frozenset[str] = frozenset()
    """UIDs of migrations that the VMI or a Pod refers to and that do not exist any more."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of Pods whose deletion was accepted and is not in the cache yet."""

    @property
    def state(self) -> MigrationState | None:
        """The VMI's migrationState if its migration is deleted, else None."""
        migration = self.vmi.status.migration_state
        return migration if migration is not None and migration.migration_uid in self.gone else None

    @property
    def is_target_down(self) -> bool:
        """Tell whether the kubelet reports that nothing can run in the target Pod any more."""
        state = self.state
        pod = next((pod for pod in self.spare if state is not None and pod.uid == state.target_pod_uid), None)
        return pod is not None and (pod.is_over or pod.compute.terminated is not None)

    @property
    def left(self) -> list[Pod]:
        """List the Pods that have no guest and get none, and that no migration cleans up."""
        return [
            pod
            for pod in self.spare
            if not may_have_guest(self.vmi, pod.uid)
            and not self._is_cleaned_up_by_migration(pod)
            and not pod.is_deleting
            and pod.uid not in self.deletes_sent
        ]

    @property
    def is_labelled(self) -> bool:
        """Tell whether the VMI has the target node's label."""
        return MIGRATION_TARGET_NODE in self.vmi.metadata.labels

    def _is_cleaned_up_by_migration(self, pod: Pod) -> bool:
        """Tell whether an existing migration has the Pod as its target or source."""
        job, state = pod.metadata.labels.get(MIGRATION_JOB, ""), self.vmi.status.migration_state
        succeeded = [migration for migration in self.migrations if migration.status.phase == SUCCEEDED]
        is_target = (
            bool(job) and job not in self.gone and job not in {migration.metadata.uid for migration in succeeded}
        )
        is_source = state is not None and state.source_pod_uid == pod.uid and state.migration_uid not in self.gone
        last_states = (migration.status.migration_state for migration in succeeded)
        is_old_source = any(last is not None and last.source_pod_uid == pod.uid for last in last_states)
        return is_target or is_source or is_old_source


def may_have_guest(vmi: VirtualMachineInstance, pod: str) -> bool:
    """Tell whether a guest is in the Pod of that UID, or may arrive there."""
    migration = vmi.status.migration_state
    is_target = migration is not None and migration.target_pod_uid == pod and not migration.failed
    return pod in vmi.status.active_pods or is_target


def referenced_migrations(vmi: VirtualMachineInstance, spare: Iterable[Pod]) -> Iterator[tuple[str, int]]:
    """Yield UIDs of migrations that may have remains, each with the resourceVersion of the object that refers to it."""
    migration, pods = vmi.status.migration_state, list(spare)
    if migration is not None:
        is_source = any(pod.uid == migration.source_pod_uid for pod in pods)
        if migration.is_under_way or is_source or MIGRATION_TARGET_NODE in vmi.metadata.labels:
            yield migration.migration_uid, int(vmi.metadata.resource_version)
    for pod in pods:
        if job := pod.metadata.labels.get(MIGRATION_JOB):
            yield job, int(pod.metadata.resource_version)


Action = FailMigration | RequestAbort | DeleteTarget | RemoveTargetLabel
