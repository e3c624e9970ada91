# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of an instance's migrations that are gone before they were over. Values only."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.world import DeleteTarget, EndState, RequestAbort, Unlabel


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    vmi: VirtualMachineInstance
    pods: tuple[Pod, ...] = ()
    """Launchers that the instance controls and that a migration goes to, or has left."""
    gone: frozenset[str] = frozenset()
    """UIDs of migrations that the instance or a Pod tells of and that do not exist any more."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of Pods whose deletion was accepted and is not seen yet."""

    @property
    def state(self) -> MigrationState | None:
        """What the instance tells of its migration, if that is gone."""
        moving = self.vmi.status.migration_state
        return moving if moving is not None and moving.migration_uid in self.gone else None

    @property
    def is_target_down(self) -> bool:
        """Tell whether nothing can run in the Pod that it goes to any more, by the kubelet's word."""
        state = self.state
        pod = next((one for one in self.pods if state is not None and one.uid == state.target_pod_uid), None)
        return pod is not None and (pod.is_over or pod.compute.terminated is not None)

    @property
    def left(self) -> list[Pod]:
        """List the Pods of migrations that are gone where no guest is, nor comes to be."""
        return [
            one
            for one in self.pods
            if migration_of(self.vmi, one) in self.gone
            and not may_have_guest(self.vmi, one.uid)
            and not one.is_deleting
            and one.uid not in self.deletes_sent
        ]

    @property
    def is_labelled(self) -> bool:
        """Tell whether a label of the instance names a target."""
        return MIGRATION_TARGET_NODE in self.vmi.metadata.labels


def may_have_guest(vmi: VirtualMachineInstance, pod: str) -> bool:
    """Tell whether a guest is in the Pod of that UID, or may come to be."""
    moving = vmi.status.migration_state
    is_target = moving is not None and moving.target_pod_uid == pod and not moving.failed
    return pod in vmi.status.active_pods or is_target


def migration_of(vmi: VirtualMachineInstance, pod: Pod) -> str:
    """Return the UID of the migration that left a Pod, or that it was made for; "" when there is none."""
    moving = vmi.status.migration_state
    is_left = moving is not None and moving.source_pod_uid == pod.uid
    return moving.migration_uid if moving is not None and is_left else pod.metadata.labels.get(MIGRATION_JOB, "")


def told_of(vmi: VirtualMachineInstance, pods: Collection[Pod]) -> Iterator[tuple[str, str]]:
    """Yield the UIDs of migrations that may have left something, each with the version of what tells of it."""
    moving = vmi.status.migration_state
    if moving is not None and (moving.is_under_way or MIGRATION_TARGET_NODE in vmi.metadata.labels):
        yield moving.migration_uid, vmi.metadata.resource_version
    for pod in pods:
        if pod.uid not in vmi.status.active_pods:
            yield migration_of(vmi, pod), pod.metadata.resource_version


Action = EndState | RequestAbort | DeleteTarget | Unlabel
