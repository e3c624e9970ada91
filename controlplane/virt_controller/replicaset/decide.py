# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a replica set. Pure.

First adopt and release, then create missing members or delete surplus ones. Members that are final or lose their Pod
are deleted and replaced; the replacement of those that ended before they ran waits for a growing back-off.
"""

from __future__ import annotations

from controlplane.api.objects.replica_set import BURST
from controlplane.engine.plan import Plan
from controlplane.virt_controller.members.decide import (
    LOOK_AGAIN_SECONDS,
    before_scaling,
    compare_counts,
    create_missing,
    run_now,
)
from controlplane.virt_controller.members.world import DeleteMember, MemberAction
from controlplane.virt_controller.replicaset.world import World


def decide(world: World) -> Plan[MemberAction]:
    """Choose the next step."""
    if (plan := before_scaling(world, world.adoptable)) is not None:
        return plan
    if world.missing and not world.has_read_earlier_batches:
        return run_now(world, _deletes(world, 0), requeue_after=LOOK_AGAIN_SECONDS)
    return _scale_out(world) if world.missing > 0 else run_now(world, _deletes(world, -world.missing))


def _scale_out(world: World) -> Plan[MemberAction]:
    """Create missing members, except those that wait for the back-off."""
    due, deletes = world.missing - world.held_back, _deletes(world, 0)
    if due <= 0:
        return run_now(world, deletes, requeue_after=world.held_for)
    return create_missing(world, due, min(due, BURST), deletes=deletes, requeue_after=world.held_for or None)


def _deletes(world: World, surplus: int) -> tuple[MemberAction, ...]:
    """Delete surplus members, and members to replace: at once, because they may count against a quota."""
    because = compare_counts(world)
    surplus_members = (DeleteMember(member, because) for member in world.counted[:surplus])
    replaced = (DeleteMember(member, "it is replaced: its run is over or is ending") for member in world.spent)
    return (*surplus_members, *replaced)
