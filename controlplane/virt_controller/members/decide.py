# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions that replica sets and pools share. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from controlplane.api.objects.replica_set import BURST
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.members.world import (
    AdoptMember,
    BeginBatch,
    ConfirmMember,
    ConfirmSet,
    CreateMember,
    ReleaseMember,
    SetWorld,
)

LOOK_AGAIN_SECONDS = 1.0
"""Pause between reconciles while the cache of members is behind the set, after a change of leaders. The cache catches
up within a minute, and no watch event reports that.
"""


def before_scaling(world: SetWorld[Any, Any], adoptable: Iterable[Any] = ()) -> Plan[Any] | None:
    """Return the step that comes before scaling; None if the set may be scaled.

    A set that is being deleted does nothing: the garbage collector deletes or orphans its members. A paused set only
    adopts and releases.
    """
    if world.is_deleting or world.problems:
        return Plan()
    released = [ReleaseMember(member, "the selector does not match it any more") for member in world.unselected]
    adopted = [AdoptMember(member, "the selector matches it and it has no controller") for member in adoptable]
    if released or adopted or world.owner.spec.paused:
        return run_now(world, (*released, *adopted))
    return None


def run_now(world: SetWorld[Any, Any], actions: Sequence[Any], requeue_after: float | None = None) -> Plan[Any]:
    """Run a burst of independent actions once the API server has confirmed the version of the set."""
    if not actions:
        return Plan(requeue_after=requeue_after)
    if not world.is_current:
        return Plan((ConfirmSet(because="creations, changes and deletions cannot be undone"),))
    return Plan((IndependentActions(tuple(actions[:BURST])),), requeue_after)


def create_missing(
    world: SetWorld[Any, Any],
    missing: int,
    batch: int | tuple[int, ...],
    *,
    deletes: Sequence[Any] = (),
    requeue_after: float | None = None,
) -> Plan[Any]:
    """Create members of the current batch; begin the next one only when all of the last exist.

    batch: the next one. deletes: members to delete together with the creations, before them.
    """
    if not world.unmade and world.unsure:
        because = "another member may exist under the name of an old one"
        return Plan((IndependentActions(tuple(ConfirmMember(name, because) for name in world.unsure[:BURST])),))
    if not world.unmade:
        return Plan((BeginBatch(batch, compare_counts(world)),))
    return run_now(world, (*deletes, *_creates(world, missing)), requeue_after)


def compare_counts(world: SetWorld[Any, Any]) -> str:
    """Return a text with the number of members that are wanted, and of those that exist."""
    return f"{world.owner.spec.replicas} are wanted and {len(world.counted)} exist"


def _creates(world: SetWorld[Any, Any], missing: int) -> Iterator[Any]:
    unconfirmed = [name for name in world.unmade if name not in world.absent]
    if len(world.unmade) > missing and unconfirmed:
        # A member that the cache lacks may exist: with another one instead, there would be too many.
        return (ConfirmMember(name, "the batch has more names than members are missing") for name in unconfirmed)
    return (CreateMember(name, compare_counts(world)) for name in world.unmade[:missing])
