# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Properties of reconcile(): actions that change nothing, are refused, conflict, or get no response.

A reconcile must not repeat an action without effect, must report each refusal, must stop after a missing response, and
must requeue while work remains.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NoProgress,
    NotFound,
    Throttled,
    Unavailable,
)
from controlplane.engine.plan import IndependentActions, Outcome, Plan, RefusedStep, WriteStatus
from controlplane.engine.reconcile import reconcile

KEY = Key("default", "toy")
ITEMS = 14
RECONCILES = 6
RETRY_AFTER_SECONDS = 7.0
REQUEUE_SECONDS = 30.0
REFUSALS: tuple[type[ApiError], ...] = (Forbidden, Invalid, Throttled)
STALE: tuple[type[ApiError], ...] = (Conflict, NotFound)
MOST_REFUSALS = 10
"""After so many, independent actions may wait for the next reconcile."""


@settings(max_examples=100)
@given(seed=st.integers(0, 2**32 - 1))
def test_each_reconcile_keeps_its_promises(seed: int) -> None:
    toy = ToyReconciler(random.Random(seed))
    for _reconcile in range(RECONCILES):
        toy.log = Log()
        before = toy.observe(KEY)
        outcome = _reconcile_once(toy)
        _check_requeue(toy, outcome)
        _check_progress(toy, outcome)
        _check_refusals(toy, outcome)
        _check_stop_without_response(toy)
        _check_independent_actions(toy, before)
        _check_status_first(toy, before)
        assert toy.log.results or outcome.error is None


@dataclass(frozen=True, slots=True)
class Create:
    item: int
    because: str = "it is declared"


@dataclass(frozen=True, slots=True)
class World:
    missing: tuple[int, ...]
    status: str


@dataclass(slots=True)
class Log:
    """What one reconcile did."""

    calls: list[tuple[str, int, str]] = field(default_factory=list)
    """(verb, item, result): verb is create or status; result is done, nothing, or the name of an error."""
    tries: Counter[tuple[int, frozenset[int]]] = field(default_factory=Counter)
    """How often an item was created while the same items were missing."""
    reported: list[int] = field(default_factory=list)
    """Items whose refusal was reported."""

    @property
    def results(self) -> list[str]:
        return [result for _verb, _item, result in self.calls]

    @property
    def created(self) -> dict[int, str]:
        return {item: result for verb, item, result in self.calls if verb == "create"}


class ToyReconciler:
    """Implements engine.plan.Reconciler. Each seed plans in another way and has other luck."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.missing = set(rng.sample(range(ITEMS), rng.choice((0, 1, 2, 5, 12))))
        self.status = rng.choice(("", "complete"))
        self.is_independent, self.is_status_first = rng.random() < 0.5, rng.random() < 0.4
        self.requeue = rng.choice((None, REQUEUE_SECONDS))
        self.failure_rate = rng.choice((0.0, 0.2, 0.6))
        self.log = Log()

    def observe(self, key: Key) -> World:
        del key
        return World(tuple(sorted(self.missing)), self.status)

    def decide(self, world: World) -> Plan[Create]:
        actions = tuple(Create(item) for item in world.missing)
        steps: tuple[Create | IndependentActions[Create] | WriteStatus, ...] = (
            (IndependentActions(actions),) if self.is_independent and actions else actions[:2]
        )
        if self.is_status_first and actions:
            steps = (WriteStatus("before anything is created"), *steps)
        return Plan(steps, self.requeue if actions else None)

    async def apply(self, world: World, action: Create) -> None:
        result = self._draw(("nothing", "nothing", *REFUSALS, *STALE, Unavailable))
        self.log.tries[action.item, frozenset(self.missing)] += 1
        self.log.calls.append(("create", action.item, _name(result)))
        if not isinstance(result, str):
            raise result("no", details={"retryAfterSeconds": RETRY_AFTER_SECONDS} if result is Throttled else None)
        if result == "done":
            self.missing.discard(action.item)

    def derive_status(self, world: World, problem: RefusedStep[Create] | None) -> str | None:
        status = f"{len(world.missing)} are missing" if world.missing else "complete"
        if problem is not None and isinstance(problem.step, Create):
            status += f", {problem.step.item} is refused"
        return None if status == self.status else status

    async def write_status(self, world: World, status: str) -> None:
        result = self._draw((Invalid, Conflict, Unavailable))
        self.log.calls.append(("status", -1, _name(result)))
        if not isinstance(result, str):
            raise result("no")
        assert status != world.status, "a status that has not changed is written"
        self.status = status

    def report_refusal(self, world: World, problem: RefusedStep[Create]) -> None:
        del world
        if isinstance(problem.step, Create):
            self.log.reported.append(problem.step.item)

    def _draw(self, failures: tuple[str | type[ApiError], ...]) -> str | type[ApiError]:
        return "done" if self._rng.random() >= self.failure_rate else self._rng.choice(failures)


def _reconcile_once(toy: ToyReconciler) -> Outcome:
    coroutine = reconcile(toy, KEY)
    try:
        coroutine.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise AssertionError("reconcile() waits, and nothing is there to wait for")


def _check_requeue(toy: ToyReconciler, outcome: Outcome) -> None:
    """Without an error and a requeue, nothing may remain to do or to write."""
    if outcome.error is not None or outcome.requeue_after == 0.0:
        return
    world = toy.observe(KEY)
    assert not toy.decide(world).steps or outcome.requeue_after is not None, "actions are left, and there is no requeue"
    assert world.missing or toy.derive_status(world, None) is None, "the status is not current, and there is no requeue"


def _check_progress(toy: ToyReconciler, outcome: Outcome) -> None:
    """An action without effect is tried once more after the others, and not in an immediate requeue."""
    assert max(toy.log.tries.values(), default=0) <= 2, "an action without effect is repeated"
    if set(toy.log.results) == {"nothing"} and outcome.error is None:
        assert outcome.requeue_after is None or outcome.requeue_after > 0, "no action has an effect; requeued at once"


def _check_refusals(toy: ToyReconciler, outcome: Outcome) -> None:
    """Each refusal is reported and ends in the status; the key backs off, as long as the server asks for."""
    log = toy.log
    refused = [item for verb, item, result in log.calls if verb == "create" and result in _names(REFUSALS)]
    assert log.reported == refused
    failed = [result for result in log.results if result in _names((*REFUSALS, *STALE, Unavailable))]
    assert bool(failed) == (outcome.error is not None) or isinstance(outcome.error, NoProgress)
    is_status_written = all(result == "done" for verb, _item, result in log.calls if verb == "status")
    if refused and is_status_written and "Unavailable" not in failed:
        assert "is refused" in toy.status
        first = next(result for verb, item, result in log.calls if (verb, item) == ("create", refused[0]))
        assert first != "Throttled" or (outcome.requeue_after or 0.0) >= RETRY_AFTER_SECONDS


def _check_stop_without_response(toy: ToyReconciler) -> None:
    """After a request without a response nothing more is sent."""
    assert "Unavailable" not in toy.log.results[:-1]


def _check_independent_actions(toy: ToyReconciler, before: World) -> None:
    """A refused action does not hold up the independent ones, unless too many are refused."""
    created = toy.log.created
    if not toy.is_independent or not created or {"Throttled", "Unavailable"} & set(created.values()):
        return
    refused = sum(result in _names(REFUSALS) for result in created.values())
    assert set(before.missing) <= set(created) or refused >= MOST_REFUSALS


def _check_status_first(toy: ToyReconciler, before: World) -> None:
    """A status that the plan puts before the first action is written before it."""
    is_current = before.status == f"{len(before.missing)} are missing"
    if toy.is_status_first and before.missing and not is_current and toy.log.calls:
        assert toy.log.calls[0][0] == "status"


def _name(result: str | type[ApiError]) -> str:
    return result if isinstance(result, str) else result.__name__


def _names(errors: tuple[type[ApiError], ...]) -> set[str]:
    return {error.__name__ for error in errors}
