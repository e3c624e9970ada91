# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One reconcile of one key, as a coroutine that awaits only the reconciler's own writes.

It knows neither asyncio nor time: a simulation can drive it write by write and stop it anywhere.
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
"""End a reconcile without a status: its observation is outdated, nothing is known, or another process leads."""

ROUNDS = 4
"""How often one reconcile may observe the result of its own writes before other keys get their turn."""

REFUSALS = 10
"""After so many refused actions of one step the rest is not tried: a quota, say, would refuse most of them, too."""


class _Result(Enum):
    """What a plan led to."""

    NOTHING = auto()
    STATUS_WRITTEN = auto()
    ACTED = auto()


class _Refused(Exception):
    """A write was refused because of the object itself. The refusal is reported, the key backs off."""

    def __init__(self, error: ApiError) -> None:
        super().__init__(str(error))
        self.error = error


async def reconcile(reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key) -> Outcome:
    """Observe, decide, apply; again while own writes make further steps possible; then write the status.

    A conflict, a missing object or no usable answer ends the reconcile. After any other refusal the status is still
    written, so that users see the reason; a refused status is reported by report_refusal. A plan that repeats itself
    backs off: what it waits for comes by an event.
    """
    previous: Plan[ActionT] | None = None
    for _unused in range(ROUNDS):
        try:
            world = reconciler.observe(key)
            if world is None:
                return Outcome()
            plan = reconciler.decide(world)
            if plan == previous:
                return _without_progress(plan)
            result = await _carry_out(reconciler, key, world, plan)
        except DROPPED as error:
            return Outcome(error=error)
        except _Refused as refused:
            return Outcome(retry_after_seconds(refused.error) or None, refused.error)
        if result is _Result.NOTHING:
            return Outcome(plan.requeue_after)
        previous = plan if result is _Result.ACTED else None
    return Outcome(requeue_after=0.0)


def _without_progress(plan: Plan[ActionT]) -> Outcome:
    """End a reconcile whose actions change nothing: requeue as the plan says, else with a back-off."""
    first = plan.steps[0]
    taken = first.actions[0] if isinstance(first, IndependentActions) else first
    error = None if plan.requeue_after is not None else NoProgress(f"nothing changed after {taken}")
    return Outcome(plan.requeue_after, error)


async def _carry_out(
    reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, world: WorldT, plan: Plan[ActionT]
) -> _Result:
    """Carry out the steps of a plan.

    Before the first write nothing was awaited, so the world is still the one that was observed.
    """
    acted = False
    for step in plan.steps:
        if isinstance(step, WriteStatus):
            if await _write_status(reconciler, reconciler.observe(key) if acted else world, None):
                return _Result.STATUS_WRITTEN
            continue
        problem = await _apply(
            reconciler, key, world, step.actions if isinstance(step, IndependentActions) else (step,)
        )
        if problem is not None:
            await _write_status(reconciler, reconciler.observe(key), problem)
            raise _Refused(problem.error) from problem.error
        acted = True
    # The status is written only when nothing is left to do.
    if acted:
        return _Result.ACTED
    return _Result.STATUS_WRITTEN if await _write_status(reconciler, world, None) else _Result.NOTHING


async def _apply(
    reconciler: Reconciler[WorldT, ActionT, StatusT], key: Key, world: WorldT, actions: tuple[ActionT, ...]
) -> RefusedStep[ActionT] | None:
    """Carry out independent actions. Each refusal is reported; the first one is returned."""
    refused: list[RefusedStep[ActionT]] = []
    dropped: ApiError | None = None
    for action in actions:
        log.info("act", extra={"key": str(key), "action": type(action).__name__, "because": action.because})
        try:
            await reconciler.apply(world, action)
        except (Conflict, NotFound) as error:
            dropped = dropped or error
        except DROPPED:
            raise
        except ApiError as error:
            refused.append(RefusedStep(action, error))
            reconciler.report_refusal(world, refused[-1])
            if len(refused) == REFUSALS or isinstance(error, Throttled):
                break
    if dropped is not None and not refused:
        raise dropped
    return refused[0] if refused else None


async def _write_status(
    reconciler: Reconciler[WorldT, ActionT, StatusT], world: WorldT | None, problem: RefusedStep[ActionT] | None
) -> bool:
    """Write the status if it differs. Returns whether it was written."""
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
