# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process: real reconcilers, real queues, driven one call at a time.

Every await of a reconciler is a Call. The schedule decides when it is carried out, whether the request or the answer is
lost or refused, and whether the process dies there. Nothing survives its death but what the world outside holds.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import AlreadyExists, NoProgress, NotFound
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from tests.controlplane.simulation.answers import Answers, Asked, View
from tests.controlplane.simulation.breach import Breach
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.calls import LOOK, READ, Call, Fate, perform
from tests.controlplane.simulation.clock import WrongClock
from tests.controlplane.simulation.duties import Owed
from tests.controlplane.simulation.store import RESOURCES, Json, Store
from tests.controlplane.simulation.undone import Moment, undone
from tests.controlplane.simulation.watched_queue import WatchedQueue

SHORTEST_SECONDS = 0.01
"""Of lateness that counts."""
PASSES_AT_ONCE = 300
"""Over one key, while no time passes."""
BY_KIND = {one.kind: one for one in RESOURCES}
EXPECTED = (READ, LOOK, "create", "delete")
"""Calls of which it may be an answer that there is no such object, or one already."""


@dataclass(frozen=True, slots=True)
class _Turn:
    """A reconcile under way."""

    work: str
    """"": nobody waits for its end, as of a verb of a launcher's session."""
    key: Key
    coroutine: Coroutine[Call, Any, Outcome | None]
    since: int
    """The store's version when it began."""
    answers: Answers
    view: View
    began: float
    """By its own clock."""
    troubles: list[str] = field(default_factory=list)
    """Calls that came to nothing."""
    calls: list[Call] = field(default_factory=list)
    stood: tuple[int, ...] = ()
    """What others had told the process when it began."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A reconcile under way, stopped at a call."""

    turn: _Turn
    call: Call
    view: View
    known: str
    """UID of the object that was shown under the call's key; "" for none."""


class Process:
    """Queues by name, each with its reconciler; `caches` that the schedule feeds."""

    role = ""

    def __init__(self, name: str, store: Store, clock: WrongClock) -> None:
        self.name = name
        self.clock = clock
        self.store = store
        self.caches: tuple[LaggingCache, ...] = ()
        self.work: dict[str, tuple[WatchedQueue, Any]] = {}
        self.passes: list[Pass] = []
        self.answers = Answers()
        self.bugs: list[str] = []
        self.broken_promises: list[str] = []
        self.is_dead = False
        self._carried = 0
        """How many calls were answered."""
        self._passes_begun: dict[tuple[str, Key], tuple[float, int]] = {}
        """When the last pass began, and how many did then."""
        self._finished: dict[tuple[str, Key], Moment] = {}
        """When the last pass over a key ended."""
        self._turn: _Turn | None = None
        """The one that is being resumed."""

    def view(self, key: Key, since: int) -> View:
        """Say what is believed about a key now."""
        return View(since=since)

    def seen(self, resource: Resource, key: Key) -> Json | None:
        """Return what is shown of an object; None as well where none of this kind is watched."""
        del resource, key
        return None

    def begins(self, key: Key) -> None:
        """Take note that a pass over a key begins."""
        del key

    def broken_promise(self, asked: Asked) -> str | None:
        """Say what a call lacks that it must rest on, whatever becomes of it."""
        del asked
        return None

    def keys(self) -> Iterable[Key]:
        """List what it may have work about."""
        return ()

    def owes(self, work: str, key: Key) -> Owed | None:
        """Say what a key waits for that time alone brings: whoever owes that has to come back by itself."""
        del work, key
        return None

    def begin(self, name: str) -> bool:
        """Start a pass over the next due key of a queue; tell whether there was one."""
        queue, reconciler = self.work[name]
        key = queue.take(self.clock.monotonic())
        if key is None:
            return False
        self._note_pass(name, key)
        self.begins(key)
        coroutine = reconcile(reconciler, key)
        since, now = self.store.version, self.clock.now()
        view, stood = self.view(key, since), self._standing(None)
        turn = _Turn(name, key, coroutine, since, Answers(), view, now, stood=stood)
        self._resume(turn, None, None)
        return True

    def _note_pass(self, name: str, key: Key) -> None:
        now = self.clock.monotonic()
        since, count = self._passes_begun.get((name, key), (now, 0))
        count = count + 1 if since == now else 1
        self._passes_begun[name, key] = now, count
        if count > PASSES_AT_ONCE:
            raise Breach(f"spins: {self.name} takes {name} {key} up for the {count}th time at the same moment")

    def spawn(self, key: Key, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run something beside the passes, as a task of its own. It rests on what was answered to whoever began it."""
        by = self._turn
        since, answers, began = (self.store.version, Answers(), self.clock.now())
        if by is not None:
            since, answers, began = by.since, by.answers, by.began
        self._resume(_Turn("", key, coroutine, since, answers, self.view(key, since), began), None, None)

    def carry_out(self, index: int, fate: Fate) -> None:
        """Let one waiting call happen and its pass go on to its next call or its end."""
        one = self.passes.pop(index)
        self.store.actor = self.role
        result, error = perform(one.call, fate)
        self._carried += 1
        one.turn.calls.append(one.call)
        if error is not None and not (isinstance(error, NotFound | AlreadyExists) and one.call.verb in EXPECTED):
            one.turn.troubles.append(f"{one.call}: {type(error).__name__}")
        for answers in (one.turn.answers, self.answers):
            answers.take(one.call, result, error, self.store.version, known=one.known)
        self._resume(one.turn, result, error)

    def die(self, index: int | None, *, is_request_out: bool) -> None:
        """Stop for ever; a request that is out already still takes effect."""
        if index is not None and is_request_out:
            self.store.actor = self.role
            perform(self.passes[index].call, "answer lost")
        for one in self.passes:
            one.turn.coroutine.close()
        self.passes.clear()
        self.is_dead = True

    def next_due(self) -> float | None:
        """Tell in how many seconds something becomes due by itself."""
        due = [one for queue in self.queues() if (one := queue.next_due()) is not None]
        return max(0.0, min(due) - self.clock.monotonic()) if due else None

    def _standing(self, turn: _Turn | None) -> tuple[int, ...]:
        """Count what the process has heard, but for what was answered in one turn."""
        own = 0 if turn is None else len(turn.calls)
        return (self._carried - own, *(cache.position for cache in self.caches))

    def queues(self) -> Iterable[WatchedQueue]:
        return [queue for queue, _unused in self.work.values()]

    def _resume(self, turn: _Turn, result: Any, error: Exception | None) -> None:
        outer, self._turn = self._turn, turn
        try:
            self._go_on(turn, result, error)
        finally:
            self._turn = outer

    def _go_on(self, turn: _Turn, result: Any, error: Exception | None) -> None:
        try:
            call = turn.coroutine.send(result) if error is None else turn.coroutine.throw(error)
        except StopIteration as end:
            if turn.work:
                self._finish(turn, end.value)
        except Exception as bug:
            self.bugs.append(f"{turn.key}: {bug!r}")
            if turn.work:
                self._finish(turn, Outcome(error=bug))
        else:
            view = self.view(turn.key, turn.since)
            resource = BY_KIND.get(call.kind)
            shown = None if resource is None else self.seen(resource, call.key)
            self.passes.append(Pass(turn, call, view, "" if shown is None else shown["metadata"]["uid"]))
            now, clock = max(turn.began, self.clock.now()), self.clock.now()
            asked = Asked(call, view, turn.view, turn.answers, self.answers, self.store, now, clock, self.seen)
            broken = self.answers.outdated(self.store, call.kind, call.key, shown) or self.broken_promise(asked)
            if broken:
                self.broken_promises.append(f"{call}: {broken}")

    def _finish(self, turn: _Turn, outcome: Outcome) -> None:
        now, key, failed = self.clock.monotonic(), turn.key, outcome.error is not None
        queue = self.work[turn.work][0]
        queue.finish(key, now, failed=failed, look_again_in=outcome.look_again_in)
        self._finished[turn.work, key] = Moment(self.clock.now(), now, self.clock.offset)
        if turn.troubles and not failed:
            self.broken_promises.append(f"{turn.work} {key}: {turn.troubles[0]}, and the pass counts as done")
        if isinstance(outcome.error, NoProgress) and turn.stood == self._standing(turn):
            self.broken_promises.append(f"{turn.work} {key}: {outcome.error}")
        wanted = outcome.look_again_in
        if not failed and not turn.calls and wanted is not None and wanted <= 0:
            self.broken_promises.append(f"spins: {turn.work} {key}: nothing is asked, and another look wanted at once")
        due = queue.due_at(key)
        if failed or (due is not None and due <= now):
            return
        owed = self.owes(turn.work, key)
        if owed is not None and (due is None or due - now > owed.within + SHORTEST_SECONDS):
            when = "never" if due is None else f"in {due - now:.1f} s, not in {owed.within:.1f}"
            self.broken_promises.append(f"{key}: {owed.what}, and somebody comes back {when}")
        self._look_for_undone(turn.work, key)

    def look_for_undone(self) -> None:
        """See that whatever there is to do is being done, or has its time; what is still to be heard may bring it."""
        for name in () if any(one.is_behind for one in self.caches) else self.work:
            for key in self.keys():
                self._look_for_undone(name, key)

    def _look_for_undone(self, name: str, key: Key) -> None:
        queue, reconciler = self.work[name]
        if queue.is_held(key) or queue.is_backing_off(key):
            return
        now, due = self.clock.monotonic(), queue.due_at(key)
        last = self._finished.get((name, key))
        is_stepped = last is not None and last.offset != self.clock.offset  # who steps it sets no alarms anew
        if is_stepped or (due is not None and due <= now):
            return
        left = undone(reconciler, key, None if due is None else due - now, last)
        if left is not None:
            self.broken_promises.append(f"{name} {key}: {left}")
