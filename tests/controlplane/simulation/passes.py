# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real pass over a key, on a toy world, in a play of its own: steps in vain, refused, or lost.

The real reconcilers mostly get on with each write; what a pass does when they do not, they hardly need. Here nothing
can be relied on, and the pass is judged by what it did: no step in vain twice, nothing forgotten, nothing left untold.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field

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
from tests.support.breach import Breach

KEY = Key("default", "toy")
THINGS = 14
"""That may be wanted at once."""
AWAY_SECONDS = 7.0
"""For so long a server asks to be left alone."""
ALARM_SECONDS = 30.0
REFUSALS: tuple[type[ApiError], ...] = (Forbidden, Invalid, Throttled)
MISSED: tuple[type[ApiError], ...] = (Conflict, NotFound)
MOST_REFUSALS = 10


@dataclass(frozen=True, slots=True)
class Do:
    number: int
    because: str = "it is wanted"


@dataclass(frozen=True, slots=True)
class Toy:
    """What is wanted and not there, and what is said."""

    missing: tuple[int, ...]
    said: str


@dataclass(slots=True)
class Log:
    """What one pass did: the verb, the thing, and what came of it."""

    done: list[tuple[str, int, str]] = field(default_factory=list)
    tried: Counter[tuple[int, frozenset[int]]] = field(default_factory=Counter)
    """How often each thing was tried while the very same ones were missing."""
    told: list[int] = field(default_factory=list)
    """Things of which a refusal was told beside the status; -1: the status."""


class ToyReconciler:
    """Implements engine.plan.Reconciler: how it goes about things is another way each time."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self.missing = set(rng.sample(range(THINGS), rng.choice((0, 1, 2, 5, 12))))
        self.said = rng.choice(("", "all there"))
        self.is_each, self.tells_first = rng.random() < 0.5, rng.random() < 0.4
        self.alarm = rng.choice((None, ALARM_SECONDS))
        self.luck = rng.choice((0.0, 0.2, 0.6))
        """How seldom all goes well."""
        self.log = Log()

    def observe(self, key: Key) -> Toy:
        del key
        return Toy(tuple(sorted(self.missing)), self.said)

    def decide(self, world: Toy) -> Plan[Do]:
        actions = tuple(Do(one) for one in world.missing)
        steps: tuple[Do | IndependentActions[Do] | WriteStatus, ...] = (
            (IndependentActions(actions),) if self.is_each and actions else actions[:2]
        )
        if self.tells_first and actions:
            steps = (WriteStatus("before anything is done"), *steps)
        return Plan(steps, self.alarm if actions else None)

    async def apply(self, world: Toy, action: Do) -> None:
        fate = self._fate(("nothing", "nothing", *REFUSALS, *MISSED, Unavailable))
        self.log.tried[action.number, frozenset(self.missing)] += 1
        self.log.done.append(("do", action.number, fate if isinstance(fate, str) else fate.__name__))
        if not isinstance(fate, str):
            raise fate("no", details={"retryAfterSeconds": AWAY_SECONDS} if fate is Throttled else None)
        if fate == "done":
            self.missing.discard(action.number)

    def derive_status(self, world: Toy, problem: RefusedStep[Do] | None) -> str | None:
        wanted = f"{len(world.missing)} are missing" if world.missing else "all there"
        if problem is not None and isinstance(problem.step, Do):
            wanted += f", {problem.step.number} is refused"
        return None if wanted == self.said else wanted

    async def write_status(self, world: Toy, status: str) -> None:
        fate = self._fate((Invalid, Conflict, Unavailable))
        self.log.done.append(("say", -1, fate if isinstance(fate, str) else fate.__name__))
        if not isinstance(fate, str):
            raise fate("no")
        if status == world.said:
            raise Breach("passes: it is said what is said already")
        self.said = status

    def report_refusal(self, world: Toy, problem: RefusedStep[Do]) -> None:
        del world
        self.log.told.append(problem.step.number if isinstance(problem.step, Do) else -1)

    def _fate(self, bad: tuple[str | type[ApiError], ...]) -> str | type[ApiError]:
        return "done" if self._rng.random() >= self.luck else self._rng.choice(bad)


class PassPlay:
    """One seed."""

    def __init__(self, seed: int) -> None:
        self._rng = random.Random(seed)

    def run(self, times: int) -> None:
        """Let so many keys be passed over, each until it is at rest. Raises Breach."""
        for _unused in range(times):
            toy = ToyReconciler(self._rng)
            for _pass in range(6):
                toy.log = Log()
                before = toy.observe(KEY)
                outcome = _run(toy)
                self._judge(toy, before, outcome)

    def _judge(self, toy: ToyReconciler, before: Toy, outcome: Outcome) -> None:
        came = [one for _verb, _number, one in toy.log.done]
        wrong = (
            _is_content(toy, outcome)
            or _in_vain(toy, outcome)
            or _untold(toy, outcome)
            or _goes_on_deaf(toy)
            or _held_up(toy, before)
            or _acts_first(toy, before)
        )
        if not came and outcome.error is not None:
            wrong = wrong or f"nothing was asked, and it ends with {outcome.error!r}"
        if wrong is not None:
            raise Breach(f"passes: {wrong}: {toy.log.done}, {outcome}")


def _run(toy: ToyReconciler) -> Outcome:
    passing = reconcile(toy, KEY)
    try:
        passing.send(None)
    except StopIteration as ended:
        return ended.value  # type: ignore[no-any-return]
    raise Breach("passes: a pass waits, and nothing is to be waited for")


def _is_content(toy: ToyReconciler, outcome: Outcome) -> str | None:
    """Who does not come back by itself has nothing to do, and nothing to say."""
    if outcome.error is not None or outcome.requeue_after == 0.0:
        return None
    world = toy.observe(KEY)
    if toy.decide(world).steps and outcome.requeue_after is None:
        return "something is left to do, and nobody comes back"
    is_all_done = not world.missing and toy.derive_status(world, None) is not None
    return "something is left to say, and nobody comes back" if is_all_done else None


def _in_vain(toy: ToyReconciler, outcome: Outcome) -> str | None:
    """What came to nothing is not tried again and again, nor in a pass that follows at once."""
    again = [
        number for (number, _missing), times in toy.log.tried.items() if times > 2
    ]  # once more after another's end
    if again:
        return f"{again[0]} is tried again and again, and nothing comes of it"
    came = {one for _verb, _number, one in toy.log.done}
    is_at_once = outcome.error is None and outcome.requeue_after is not None and outcome.requeue_after <= 0
    return "nothing came of anything, and it is tried again at once" if came == {"nothing"} and is_at_once else None


def _untold(toy: ToyReconciler, outcome: Outcome) -> str | None:
    """Each refusal is told, the last pass' in the status too, and the key backs off, for as long as is asked."""
    refused = [number for verb, number, came in toy.log.done if came in _names(REFUSALS) and verb == "do"]
    if [one for one in toy.log.told if one >= 0] != refused:
        return f"refused are {refused}, and told is {toy.log.told}"
    failed = [came for _verb, _number, came in toy.log.done if came in _names((*REFUSALS, *MISSED, Unavailable))]
    if bool(failed) != (outcome.error is not None) and not isinstance(outcome.error, NoProgress):
        return f"failed are {failed}, and it ends with {outcome.error!r}"
    said = [came for verb, _number, came in toy.log.done if verb == "say"]
    if refused and all(one == "done" for one in said) and "Unavailable" not in failed:
        if "is refused" not in toy.said:
            return f"{refused[0]} is refused, and it is said: {toy.said}"
        first = next(came for verb, number, came in toy.log.done if (verb, number) == ("do", refused[0]))
        if first == "Throttled" and (outcome.requeue_after or 0.0) < AWAY_SECONDS:
            return "the server asks for time, and is not given it"
    return None


def _goes_on_deaf(toy: ToyReconciler) -> str | None:
    """Who has had no answer asks for nothing more in that pass, nor who wrote on what is not true."""
    names = [came for _verb, _number, came in toy.log.done]
    last = names.index("Unavailable") if "Unavailable" in names else len(names)
    return "it goes on after there was no answer" if last < len(names) - 1 else None


def _held_up(toy: ToyReconciler, before: Toy) -> str | None:
    """Of actions that do not depend on each other none waits for one that was refused, but for so many that are."""
    came = {number: one for verb, number, one in toy.log.done if verb == "do"}
    if not toy.is_each or not came or any(one in ("Throttled", "Unavailable") for one in came.values()):
        return None
    refused = sum(one in _names(REFUSALS) for one in came.values())
    left = [one for one in before.missing if one not in came]
    return f"{left} are held up" if left and refused < MOST_REFUSALS else None


def _acts_first(toy: ToyReconciler, before: Toy) -> str | None:
    """What is to be said before something is done is said before."""
    first = toy.log.done[0][0] if toy.log.done else ""
    said = before.said
    wanted = f"{len(before.missing)} are missing"
    if toy.tells_first and before.missing and first == "do" and said != wanted:
        return f"it acts before it says {wanted}, and said was {said!r}"
    return None


def _names(kinds: tuple[type[ApiError], ...]) -> set[str]:
    return {one.__name__ for one in kinds}
