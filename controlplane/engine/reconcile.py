# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass over one key, as a coroutine that awaits nothing but the reconciler's own writes.

It knows neither asyncio nor time, so that a simulation can drive it write by write and stop it anywhere.
"""

from __future__ import annotations

import logging

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError, Conflict, NotFound, Unavailable
from controlplane.engine.plan import ActionT, Outcome, Plan, Problem, Reconciler, StatusT, WorldT

log = logging.getLogger(__name__)

DROPPED = (Conflict, NotFound, Unavailable)
"""What a pass was based on is not, or not known to be, true."""

ROUNDS = 4
"""How often one pass may look again at the result of its own writes before others get their turn."""


async def reconcile(reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key) -> Outcome:
    """Observe, decide, apply; again while own writes open the next step; then say how things are.

    A conflict, a vanished object or an unusable answer drops the rest of the pass. Any other refusal still gets its
    status, so that users see why nothing moves.
    """
    for _unused in range(ROUNDS):
        world = reconciler.observe(key)
        if world is None:
            return Outcome()
        plan = reconciler.decide(world)
        try:
            problem = await _apply(reconciler, key, world, plan)
            if plan.actions and problem is None:
                continue  # what is true now is worth telling only when nothing is left to do
            moved = await _settle(reconciler, key, problem)
        except DROPPED as error:
            return Outcome(error=error)
        if problem is not None:
            return Outcome(error=problem.error)
        if not moved:
            return Outcome(plan.look_again_in)
    return Outcome(look_again_in=0.0)


async def _apply(
    reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, world: WorldT, plan: Plan[ActionT]
) -> Problem[ActionT] | None:
    for action in plan.actions:
        log.info("act", extra={"key": str(key), "action": type(action).__name__, "because": action.because})
        try:
            await reconciler.apply(world, action)
        except DROPPED:
            raise
        except ApiError as error:
            return Problem(action, error)
    return None


async def _settle(reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, problem: Problem[ActionT] | None) -> bool:
    """Write the status if it differs; say whether it did."""
    world = reconciler.observe(key)
    status = None if world is None else reconciler.derive_status(world, problem)
    if world is None or status is None:
        return False
    await reconciler.write_status(world, status)
    return True
