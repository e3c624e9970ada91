# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a replica set. Pure.

First adopt and release, then create missing members or delete surplus ones. Members that are final or lose their Pod
are deleted and replaced; the replacement of those that ended before they ran waits for a growing back-off. A paused set
only adopts and releases. A set that is being deleted does nothing: the garbage collector deletes or orphans its
members.
"""

from __future__ import annotations

from controlplane.api.objects.replica_set import BURST
from controlplane.engine.plan import Plan
from controlplane.virt_controller.members.decide import LOOK_AGAIN_SECONDS, create_missing, run_now
from controlplane.virt_controller.members.world import (
    AdoptMember,
    BeginBatch,
    DeleteMember,
    MemberAction,
    ReleaseMember,
)
from controlplane.virt_controller.replicaset.world import World


def decide(world: World) -> Plan[MemberAction]:
    """Choose the next step."""
    if world.is_deleting or world.problems:
        return Plan()
    ownership = _ownership(world)
    if ownership or world.owner.spec.paused:
        return run_now(world, ownership)
    missing = world.owner.spec.replicas - len(world.active)
    if missing and not world.has_read_earlier_batches:
        return run_now(world, _deletes(world, 0), requeue_after=LOOK_AGAIN_SECONDS)
    return _scale_out(world, missing) if missing > 0 else run_now(world, _deletes(world, -missing))


def _scale_out(world: World, missing: int) -> Plan[MemberAction]:
    """Create missing members, except those that wait for the back-off."""
    due, deletes = missing - world.held_back, _deletes(world, 0)
    if due <= 0:
        return run_now(world, deletes, requeue_after=world.held_for)
    batch = BeginBatch(min(due, BURST), _count(world))
    return create_missing(world, due, batch, deletes=deletes, requeue_after=world.held_for or None)


def _ownership(world: World) -> tuple[MemberAction, ...]:
    released = (ReleaseMember(member, "the selector does not match it any more") for member in world.unselected)
    adopted = (AdoptMember(member, "the selector matches it and it has no controller") for member in world.adoptable)
    return (*released, *adopted)


def _deletes(world: World, surplus: int) -> tuple[MemberAction, ...]:
    """Delete surplus members and those to replace. The latter are deleted at once: they may count against a quota."""
    because = _count(world)
    surplus_members = (DeleteMember(member, because) for member in world.active[: max(0, surplus)])
    replaced = (DeleteMember(member, "it is replaced: its run is over, or ends") for member in world.spent)
    return (*surplus_members, *replaced)


def _count(world: World) -> str:
    return f"{world.owner.spec.replicas} are wanted and {len(world.active)} there"
