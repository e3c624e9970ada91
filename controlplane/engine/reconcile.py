# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One pass over one key, as a coroutine that awaits nothing but the reconciler's own writes.

It knows neither asyncio nor time, so that a simulation can drive it write by write and stop it anywhere.
"""

from __future__ import annotations

import logging
from enum import Enum, auto

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import (
    ApiError,
    Conflict,
    NoProgress,
    NotFound,
    NotLeader,
    Throttled,
    Unavailable,
    retry_after_seconds,
)
from controlplane.engine.plan import (
    ActionT,
    IndependentActions,
    Outcome,
    Plan,
    Reconciler,
    RefusedStep,
    StatusT,
    WorldT,
    WriteStatus,
)

log = logging.getLogger(__name__)

DROPPED = (Conflict, NotFound, NotLeader, Unavailable)
"""What a pass was based on is not, or not known to be, true; or it is not ours to act on."""

ROUNDS = 4
"""How often one pass may look again at the result of its own writes before others get their turn."""

REFUSALS = 10
"""So many actions of one step are refused before the rest is not tried in this pass: what refuses those, e.g. a quota,
would refuse most of the others."""


class _Came(Enum):
    """What a plan led to."""

    NOTHING = auto()
    TOLD = auto()
    ACTED = auto()


class _Refused(Exception):
    """A write was refused for a reason that is the object's: its owner was told, the key backs off."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


async def reconcile(reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key) -> Outcome:
    """Observe, decide, apply; again while own writes open the next step; then say how things are.

    A conflict, a vanished object or an unusable answer drops the rest of the pass. Any other refusal still gets its
    status, so that users see why nothing moves; a refused status is told by other means. A plan that asks for itself
    again backs off: what it waits for comes by an event, or not at all.
    """
    before: Plan[ActionT] | None = None
    for _unused in range(ROUNDS):
        try:
            world = reconciler.observe(key)
            if world is None:
                return Outcome()
            plan = reconciler.decide(world)
            if plan == before:
                return _without_progress(plan)
            came = await _carry_out(reconciler, key, world, plan)
        except DROPPED as error:
            return Outcome(error=error)
        except _Refused as refused:
            return Outcome(retry_after_seconds(refused.error) or None, refused.error)
        if came is _Came.NOTHING:
            return Outcome(plan.requeue_after)
        before = plan if came is _Came.ACTED else None
    return Outcome(requeue_after=0.0)


def _without_progress(plan: Plan[ActionT]) -> Outcome:
    """Stop taking a step of which nothing comes: until the plan itself wants to look again, else with a back-off."""
    first = plan.steps[0]
    taken = first.actions[0] if isinstance(first, IndependentActions) else first
    error = None if plan.requeue_after is not None else NoProgress(f"nothing came of {taken}")
    return Outcome(plan.requeue_after, error)


async def _carry_out(
    reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, world: WorldT, plan: Plan[ActionT]
) -> _Came:
    """Take the steps; say what came of them. What was written is worth looking at.

    Until something was done nobody was waited for: the world is still the one that the plan was made for.
    """
    acted = False
    for step in plan.steps:
        if isinstance(step, WriteStatus):
            if await _tell(reconciler, reconciler.observe(key) if acted else world, None):
                return _Came.TOLD
            continue
        problem = await _apply(
            reconciler, key, world, step.actions if isinstance(step, IndependentActions) else (step,)
        )
        if problem is not None:
            await _tell(reconciler, reconciler.observe(key), problem)
            raise _Refused(problem.error) from problem.error
        acted = True
    # What is true now is worth telling only when nothing is left to do.
    if acted:
        return _Came.ACTED
    return _Came.TOLD if await _tell(reconciler, world, None) else _Came.NOTHING


async def _apply(
    reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, world: WorldT, actions: tuple[ActionT, ...]
) -> RefusedStep[ActionT] | None:
    """Take actions that do not depend on each other. Each refusal is told; the first one is returned."""
    refused: list[RefusedStep[ActionT]] = []
    missed: ApiError | None = None
    for action in actions:
        log.info("act", extra={"key": str(key), "action": type(action).__name__, "because": action.because})
        try:
            await reconciler.apply(world, action)
        except (Conflict, NotFound) as error:
            missed = missed or error
        except DROPPED:
            raise
        except ApiError as error:
            refused.append(RefusedStep(action, error))
            reconciler.report_refusal(world, refused[-1])
            if len(refused) == REFUSALS or isinstance(error, Throttled):
                break
    if missed is not None and not refused:
        raise missed
    return refused[0] if refused else None


async def _tell(
    reconciler: Reconciler[WorldT, ActionT, StatusT], world: WorldT | None, problem: RefusedStep[ActionT] | None
) -> bool:
    """Write the status if it differs; say whether it did. It waits for nothing else."""
    status = None if world is None else reconciler.derive_status(world, problem)
    if world is None or status is None:
        return False
    try:
        await reconciler.write_status(world, status)
    except DROPPED:
        raise
    except ApiError as error:
        refused: RefusedStep[ActionT] = RefusedStep(WriteStatus(because="the status differs"), error)
        reconciler.report_refusal(world, refused)
        raise _Refused(error) from error
    return True
