# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions that replica sets and pools share. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from controlplane.api.objects.replica_set import BURST
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.members.world import BeginBatch, ConfirmMember, ConfirmSet, CreateMember, SetWorld

LOOK_AGAIN_SECONDS = 1.0
"""Pause between reconciles while the cache of members is behind the set, after a change of leaders. It takes a minute
at most, and no watch event ends it.
"""


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
    batch: BeginBatch,
    *,
    deletes: Sequence[Any] = (),
    requeue_after: float | None = None,
) -> Plan[Any]:
    """Create members of the current batch; begin the next one only when all of the last exist.

    deletes: members to delete together with the creations, before them.
    """
    if not world.unmade and world.unsure:
        because = "another member may exist under the name of an old one"
        return Plan((IndependentActions(tuple(ConfirmMember(name, because) for name in world.unsure[:BURST])),))
    if not world.unmade:
        return Plan((batch,))
    return run_now(world, (*deletes, *_creates(world, missing, batch.because)), requeue_after)


def _creates(world: SetWorld[Any, Any], missing: int, because: str) -> Iterator[Any]:
    unconfirmed = [name for name in world.unmade if name not in world.absent]
    if len(world.unmade) > missing and unconfirmed:
        # A member that the cache lacks may exist: another one in its place would be one too many.
        return (ConfirmMember(name, "the batch has more names than members are missing") for name in unconfirmed)
    return (CreateMember(name, because) for name in world.unmade[:missing])
