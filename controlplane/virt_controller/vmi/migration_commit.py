# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The commit of a migration: the write that makes the target the owner of the run. Pure (docs/adr/0016).

The commit needs the source's report that its QEMU is gone, or proof that the source's guest is dead after the target
reported the guest as running. Nothing else moves a run: silence is no proof.
"""

from __future__ import annotations

import msgspec

from controlplane.api.objects.migration_stage import BEING_SENT, MigrationStage, migration_stage
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.api.timestamps import format_timestamp
from controlplane.virt_controller.vmi.evidence import Dead
from controlplane.virt_controller.vmi.resources import describe_overhead
from controlplane.virt_controller.vmi.world import World

SOURCE_REPORT_SECONDS = 30.0
"""How long an ended source may take to report that its guest has left: the API server may be slow or unreachable."""


def find_arrived_migration(world: World) -> MigrationState | None:
    """Return the migration to commit; None while the run belongs to the Pod that it was granted to."""
    status = world.vmi.status
    migration = status.migration_state
    if migration is None or not migration.migration_uid or not migration.target_node:
        return None
    if migration.source_pod_uid not in status.active_pods:
        return None
    match migration_stage(migration, status.active_pods):
        case MigrationStage.LEFT:
            return migration
        case MigrationStage.ARRIVED if isinstance(world.evidence, Dead) and not _has_target_ended(world, migration):
            return migration
    return None


def seconds_until_presumed_dead(world: World) -> float:
    """Return for how many seconds the source may still report that the guest of an ended launcher has left.

    0: the guest is dead. When QEMU is gone, the source reports that its guest has left, and the launcher ends as well.
    The kubelet may report the launcher's end first.
    """
    status = world.vmi.status
    migration = status.migration_state
    if migration is None or migration_stage(migration, status.active_pods) not in BEING_SENT:
        return 0.0
    is_source = migration.source_pod_uid in status.active_pods
    if not is_source or _has_target_ended(world, migration) or not isinstance(world.evidence, Dead):
        return 0.0
    return max(0.0, SOURCE_REPORT_SECONDS - world.dead_for)


def commit_migration(world: World, migration: MigrationState) -> VirtualMachineInstanceStatus:
    """Give the run to the target: owner, node and epoch change in one write, once per migration."""
    old = world.vmi.status
    target = next((pod for pod in world.pods if pod.uid == migration.target_pod_uid), None)
    ended = (
        migration
        if migration.completed
        else msgspec.structs.replace(migration, completed=True, end_timestamp=format_timestamp(world.now))
    )
    overhead = describe_overhead(world.vmi.spec.domain, world.configuration.developer_configuration)
    image = old.launcher_container_image_version if target is None else target.launcher_image
    return msgspec.structs.replace(
        old,
        node_name=migration.target_node,
        active_pods={migration.target_pod_uid: migration.target_node},
        epoch=old.epoch + 1,
        migration_state=ended,
        evacuation_node_name="" if old.evacuation_node_name == migration.source_node else old.evacuation_node_name,
        launcher_container_image_version=image,
        memory=None if old.memory is None else msgspec.structs.replace(old.memory, memory_overhead=overhead),
    )


def _has_target_ended(world: World, migration: MigrationState) -> bool:
    """Tell whether the kubelet reports, or last reported, that nothing can run in the target's Pod any more."""
    targets = (pod for pod in (*world.pods, *world.last_states) if pod.uid == migration.target_pod_uid)
    return any(pod.is_over or pod.compute.terminated is not None for pod in targets)
