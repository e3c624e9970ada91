# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When an instance is given to the node that it has moved to, and how: pure (docs/adr/0016, the commit).

It rests on the source's word that its QEMU is gone for good, or on proof that the source's guest is dead while the
target has said that it goes on there. Nothing else moves a run: least of all a silence.
"""

from __future__ import annotations

import msgspec

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.api.timestamps import format_timestamp
from controlplane.virt_controller.vmi.evidence import Dead
from controlplane.virt_controller.vmi.world import World

SOURCE_REPORT_SECONDS = 30.0
"""A guest that is dead all the same is dead for so long before that is said: an API server may be slow, or away."""


def find_arrived_migration(world: World) -> MigrationState | None:
    """Return the migration by which the guest has left its node; None while the run is where it was granted."""
    moving = world.vmi.status.migration_state
    if moving is None or not moving.migration_uid or moving.target_pod_uid in world.vmi.status.active_pods:
        return None
    if not world.is_granted or moving.source_pod_uid not in world.vmi.status.active_pods or not moving.target_node:
        return None
    if moving.has_moved:
        return moving
    has_all_of_it = moving.start_timestamp is not None and moving.target_node_domain_ready_timestamp is not None
    is_dead = moving.is_under_way and has_all_of_it and isinstance(world.evidence, Dead)
    return moving if is_dead and not _is_target_over(world, moving) else None


def seconds_until_presumed_dead(world: World) -> float:
    """Return for how many seconds yet it may be said that a guest, whose launcher has ended, has left; 0: it is dead.

    Whoever sends a guest says that it has left once QEMU is gone, which is when its launcher ends, too: the kubelet's
    word of that may be here before.
    """
    moving = world.vmi.status.migration_state
    if moving is None or not moving.is_under_way or moving.start_timestamp is None:
        return 0.0
    is_source = moving.source_pod_uid in world.vmi.status.active_pods
    if not is_source or _is_target_over(world, moving) or not isinstance(world.evidence, Dead):
        return 0.0
    return max(0.0, SOURCE_REPORT_SECONDS - world.dead_for)


def commit_migration(world: World, moving: MigrationState) -> VirtualMachineInstanceStatus:
    """Give the run to the target: owner, node and epoch change in one write, once per migration."""
    old = world.vmi.status
    pod = next((one for one in world.pods if one.uid == moving.target_pod_uid), None)
    over = (
        moving
        if moving.completed
        else msgspec.structs.replace(moving, completed=True, end_timestamp=format_timestamp(world.now))
    )
    return msgspec.structs.replace(
        old,
        node_name=moving.target_node,
        active_pods={moving.target_pod_uid: moving.target_node},
        epoch=old.epoch + 1,
        migration_state=over,
        evacuation_node_name="" if old.evacuation_node_name == moving.source_node else old.evacuation_node_name,
        launcher_container_image_version=old.launcher_container_image_version if pod is None else pod.launcher_image,
    )


def _is_target_over(world: World, moving: MigrationState) -> bool:
    """Tell whether nothing can run in the target's Pod any more, by what its kubelet says or said last."""
    known = (one for one in (*world.pods, *world.last_words) if one.uid == moving.target_pod_uid)
    return any(one.is_over or one.compute.terminated is not None for one in known)
