# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VirtualMachineInstanceReplicaSet: pure.

First it is settled who belongs to it, then how many are missing or too many. What is over, or loses its Pod, is
replaced and deleted; for what ended before it ran, that takes ever longer. A paused set settles who belongs to it and
does nothing else; one that is deleted does nothing: the garbage collector deletes its instances, or sets them free.
"""

from __future__ import annotations

from controlplane.api.objects.replica_set import BURST
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.replicaset.world import (
    Action,
    AdoptVmi,
    BeginBatch,
    CreateVmi,
    DeleteVmi,
    LookAtSet,
    LookForVmi,
    ReleaseVmi,
    World,
)

LOOK_AGAIN_SECONDS = 1.0
"""While the cache has not read as far as the set was when this leader first saw it: a minute at most, after a change of
leaders. Nobody else tells."""


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    if world.is_deleting or world.problems:
        return Plan()
    claims = _claims(world)
    if claims or world.replica_set.spec.paused:
        return _at_once(world, claims)
    missing = world.replica_set.spec.replicas - len(world.active)
    if missing and not world.is_past_known:
        return _at_once(world, _deletes(world, 0), requeue_after=LOOK_AGAIN_SECONDS)
    return _make(world, missing) if missing > 0 else _at_once(world, _deletes(world, -missing))


def _make(world: World, missing: int) -> Plan[Action]:
    """Make who is missing, but for those who wait because others ended before they ran."""
    now = missing - world.held_back
    if now <= 0:
        return _at_once(world, _deletes(world, 0), requeue_after=world.held_for)
    if not world.unmade and world.unsure:
        because = "it may have been made again, unseen"
        return Plan((IndependentActions(tuple(LookForVmi(name, because) for name in world.unsure[:BURST])),))
    if not world.unmade:
        return Plan((BeginBatch(min(now, BURST), _count(world)),))
    return _at_once(world, (*_deletes(world, 0), *_creates(world, now)), requeue_after=world.held_for or None)


def _at_once(world: World, actions: tuple[Action, ...], requeue_after: float | None = None) -> Plan[Action]:
    """Take a burst of actions that do not depend on each other, once it is sure that they are still wanted."""
    if not actions:
        return Plan(requeue_after=requeue_after)
    if not world.is_current:
        return Plan((LookAtSet(because="what is made or deleted cannot be taken back"),))
    return Plan((IndependentActions(actions[:BURST]),), requeue_after)


def _claims(world: World) -> tuple[Action, ...]:
    released = (ReleaseVmi(one, "its labels are not selected any more") for one in world.strangers)
    adopted = (AdoptVmi(one, "it is selected and belongs to nobody") for one in world.recruits)
    return (*released, *adopted)


def _creates(world: World, missing: int) -> tuple[Action, ...]:
    """Make what was begun. Where fewer are missing by now, it must be known first which of them exist unseen."""
    unsure = [name for name in world.unmade if name not in world.absent]
    if len(world.unmade) > missing and unsure:
        return tuple(LookForVmi(name, "more were begun than are missing by now") for name in unsure)
    because = _count(world)
    return tuple(CreateVmi(name, because) for name in world.unmade[:missing])


def _deletes(world: World, surplus: int) -> tuple[Action, ...]:
    """Delete who is too many, and who is replaced: of those even when a quota refuses the one who replaces it."""
    because = _count(world)
    too_many = (DeleteVmi(one, because) for one in world.active[: max(0, surplus)])
    return (*too_many, *(DeleteVmi(one, "it is replaced: its run is over, or ends") for one in world.spent))


def _count(world: World) -> str:
    return f"{world.replica_set.spec.replicas} are wanted and {len(world.active)} there"
