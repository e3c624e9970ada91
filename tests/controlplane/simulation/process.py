# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process: real reconcilers and queues, driven one call at a time.

Every await of a reconciler is a Call. The schedule decides when it is carried out, whether the request or the response
is lost or refused, and whether the process dies there. Only the outside world survives its death.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from contextvars import Context, copy_context
from dataclasses import replace
from typing import Any

import msgspec

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine import reconcile as engine
from controlplane.engine.backoff import BackOff
from controlplane.engine.errors import AlreadyExists, NoProgress, NotFound
from controlplane.engine.plan import Outcome
from controlplane.engine.work_queue import WorkQueue
from tests.controlplane.simulation.answers import Answers, Request, View
from tests.controlplane.simulation.loop import HandTurnedLoop
from tests.controlplane.simulation.turn import TURN, Came, Pass, Turn
from tests.controlplane.simulation.undone import Moment, undone
from tests.controlplane.simulation.watching import WatchingCache
from tests.support.breach import Breach
from tests.support.calls import LOOK, READ, Call, Fate, perform
from tests.support.clock import WrongClock
from tests.support.lagging_cache import Selects
from tests.support.store import RESOURCES, Json, Store

PASSES_AT_ONCE = 300
"""Reconciles of one key while no time passes."""
ROUNDS = (2, engine.ROUNDS)
"""The most rounds of a reconcile: with few, the rest must be requeued."""
BY_KIND = {resource.kind: resource for resource in RESOURCES}
EXPECTED = (READ, LOOK, "create", "delete")
"""Calls that may get NotFound or AlreadyExists."""


class Queue(WorkQueue):
    """A work queue that a test can look into."""

    def __init__(self, rng: random.Random) -> None:
        super().__init__(BackOff(rng.random))

    def due_at(self, key: Key) -> float | None:
        """Return when the key becomes, or became, due; None while it is not queued."""
        waiting = self._due.get(key)
        return self._ready.get(key.namespace, {}).get(key) if waiting is None else waiting[0]

    def is_pending(self, key: Key, now: float) -> bool:
        """Whether the key is in progress, backs off, or is due."""
        due = self.due_at(key)
        return key in self._taken or key in self._not_before or (due is not None and due <= now)


class Process:
    """Queues by name, each with its reconciler; `caches` that the schedule feeds."""

    role = ""
    is_looked_at_each_time = True
    """Whether remaining work is checked after each reconcile; otherwise only at rest."""

    def __init__(self, name: str, store: Store, clock: WrongClock) -> None:
        self.name = name
        self.clock = clock
        self.store = store
        self.caches: tuple[WatchingCache, ...] = ()
        self.work: dict[str, tuple[Queue, Any]] = {}
        self.passes: list[Pass] = []
        self.answers = Answers()
        self.bugs: list[str] = []
        self.unmet_preconditions: list[str] = []
        self.is_dead = False
        self._born = clock.monotonic()
        self._rounds = ROUNDS[store.version % len(ROUNDS)]
        self._carried = 0
        """How many calls have a result."""
        self._passes_begun: dict[tuple[str, Key], tuple[float, int]] = {}
        """When the last reconcile of a key began, and how many began then."""
        self._finished: dict[tuple[str, Key], Moment] = {}
        """When the last reconcile of a key ended."""
        self.loop = HandTurnedLoop(clock, self._ask)
        self._beside: dict[asyncio.Task[Any], Turn] = {}
        """Tasks that are no reconciles."""

    def view(self, key: Key, since: int) -> View:
        """Return what the process currently sees of a key."""
        return View(since=since)

    def raw(self, resource: Resource, key: Key) -> bytes | None:
        """Return the object as the process sees it; None too for a kind that is not watched."""
        del resource, key
        return None

    def seen(self, resource: Resource, key: Key) -> Json | None:
        """Return the same, decoded."""
        raw = self.raw(resource, key)
        return None if raw is None else msgspec.json.decode(raw)

    def begins(self, key: Key) -> None:
        """Record the start of a reconcile."""
        del key

    def unmet_precondition(self, request: Request) -> str | None:
        """Return the missing precondition of a call."""
        del request
        return None

    def keys(self, work: str) -> Iterable[Key]:
        """Return the keys for which a queue may have work."""
        del work
        return ()

    def due(self) -> list[str]:
        """List the queues with a due key."""
        self.loop.settle()
        now = self.clock.monotonic()
        starts = ((name, queue.next_due()) for name, (queue, _reconciler) in self.work.items())
        return [name for name, start in starts if start is not None and start <= now]

    def begin(self, name: str) -> bool:
        """Start a reconcile of the next due key of a queue; return whether there was one."""
        self.loop.settle()
        queue, reconciler = self.work[name]
        key = queue.take(self.clock.monotonic())
        if key is None:
            return False
        self._note_pass(name, key)
        self.begins(key)
        since, now = self.store.version, self.clock.now()
        view, stood = self.view(key, since), self._standing(None)
        turn = Turn(name, key, since, Answers(), view, now, stood=stood)
        context = copy_context()
        context.run(TURN.set, turn)
        usual, engine.ROUNDS = engine.ROUNDS, self._rounds
        try:
            task = turn.task = self.loop.create_task(engine.reconcile(reconciler, key), context=context)
            task.add_done_callback(lambda ended: self._ended(turn, ended))
            self.loop.settle()
        finally:
            engine.ROUNDS = usual
        return True

    def _note_pass(self, name: str, key: Key) -> None:
        now = self.clock.monotonic()
        since, count = self._passes_begun.get((name, key), (now, 0))
        count = count + 1 if since == now else 1
        self._passes_begun[name, key] = now, count
        if count > PASSES_AT_ONCE:
            raise Breach(f"spins: {self.name} takes {name} {key} up for the {count}th time at the same moment")

    def watch(self, resource: Resource, selects: Selects) -> WatchingCache:
        """Create a cache for the lifetime of the process."""
        cache = WatchingCache(self.store, resource, selects, self.clock, self.loop)
        self.run(cache.run())
        return cache

    def run(self, job: Coroutine[Any, Any, Any], *, work: str = "") -> None:
        """Run a task for the lifetime of the process. It must not end.

        work: its name, when its later steps rely on earlier responses.
        """
        context = Context()
        if work:
            key, since = Key("", work), self.store.version
            context.run(TURN.set, Turn("", key, since, Answers(), self.view(key, since), self.clock.now()))
        task = self.loop.create_task(job, context=context)
        task.add_done_callback(self._job_ended)
        self.loop.settle()

    def wake(self) -> bool:
        """Run tasks whose sleep is over; return whether there were any."""
        due = self.loop.next_due()
        self.loop.settle()
        return due is not None and due <= 0

    def carry_out(
        self, index: int, fate: Fate, meanwhile: Callable[[], None] = lambda: None, *, is_late: bool = False
    ) -> None:
        """Carry out one waiting call, and run its task until the next call or its end.

        meanwhile: runs between the call and its response. is_late: the response is delivered in a second call of this
        method, after others.
        """
        item = self.passes.pop(index)
        if item.answer.done():
            self.loop.settle()  # the caller has stopped waiting
            return
        came = item.came or self._do(item.call, fate)
        if is_late and item.came is None:
            self.passes.append(replace(item, came=came))
            return
        if item.came is not None and fate != "done":
            came = replace(came, result=None, error=item.call.lost(f"{item.call}: connection reset"))
        meanwhile()
        if not item.answer.done():  # otherwise the caller has stopped waiting
            self._answer(item, came)

    def _do(self, call: Call, fate: Fate) -> Came:
        self.store.actor = self.role
        return Came(*perform(call, fate), self.store.version)

    def _answer(self, pending: Pass, came: Came) -> None:
        result, error = came.result, came.error
        self._carried += 1
        pending.turn.calls.append(pending.call)
        if error is not None and not (isinstance(error, NotFound | AlreadyExists) and pending.call.verb in EXPECTED):
            pending.turn.troubles.append(f"{pending.call}: {type(error).__name__}")
        for answers in (pending.turn.answers, self.answers):
            answers.take(pending.call, result, error, came.version)
        if error is None:
            pending.answer.set_result(result)
        else:
            pending.answer.set_exception(error)
        self.loop.settle()

    def abandon(self, pending: Pass) -> None:
        """Cancel a call and its task."""
        pending.answer.cancel()
        self.loop.settle()

    def die(self, index: int | None, *, is_request_out: bool) -> None:
        """End the process; a request that was sent still takes effect."""
        if index is not None and is_request_out and self.passes[index].came is None:
            self._do(self.passes[index].call, "answer lost")
        self.is_dead = True
        self.passes.clear()
        for task in asyncio.all_tasks(self.loop):
            task.cancel()
        self.loop.settle()

    def next_due(self) -> float | None:
        """Return the seconds until the next timer."""
        due = [item for queue in self.queues() if (item := queue.next_due()) is not None]
        turns = [max(0.0, min(due) - self.clock.monotonic())] if due else []
        sleep = self.loop.next_due()
        return min(turns if sleep is None else [*turns, sleep], default=None)

    def _standing(self, turn: Turn | None) -> tuple[int, ...]:
        """Return the number of events and responses so far, without the responses of one reconcile."""
        own = 0 if turn is None else len(turn.calls)
        return (self._carried - own, *(cache.resource_version for cache in self.caches))

    def queues(self) -> Iterable[Queue]:
        return [queue for queue, _unused in self.work.values()]

    def _ask(self, call: Call) -> asyncio.Future[Any]:
        answer: asyncio.Future[Any] = self.loop.create_future()
        if self.is_dead:
            answer.cancel()
            return answer
        turn = self._turn_of(call)
        view = self.view(turn.key, turn.since)
        resource = BY_KIND.get(call.kind)
        item = Pass(
            turn, call, answer, view, is_known=resource is not None and self.raw(resource, call.key) is not None
        )
        self.passes.append(item)
        answer.add_done_callback(lambda _unused: self._forget(item))
        now, clock = max(turn.began, self.clock.now()), self.clock.now()
        age = self.clock.monotonic() - self._born
        request = Request(call, view, turn.view, turn.answers, self.answers, self.store, now, clock, age, self.seen)
        if broken := self.unmet_precondition(request):
            self.unmet_preconditions.append(f"{call}: {broken}")
        return answer

    def _forget(self, pending: Pass) -> None:
        """Record that a call has no caller any more."""
        self.passes = [each for each in self.passes if each.answer is not pending.answer]

    def _turn_of(self, call: Call) -> Turn:
        """Return the reconcile of a call; for other tasks the responses that it relies on."""
        task, by = asyncio.current_task(), TURN.get()
        if by is not None and by.task is task:
            return by
        assert task is not None
        if by is None:
            since = self.store.version
            return Turn("", call.key, since, Answers(), self.view(call.key, since), self.clock.now())
        if task not in self._beside:
            view = self.view(by.key, by.since)
            self._beside[task] = replace(by, work="", view=view, troubles=[], calls=[], task=task)
            task.add_done_callback(lambda ended: self._beside.pop(ended, None))
        return self._beside[task]

    def _ended(self, turn: Turn, task: asyncio.Task[Outcome]) -> None:
        if self.is_dead or task.cancelled():
            return
        bug = task.exception()
        if bug is not None:
            self.bugs.append(f"{turn.key}: {bug!r}")
        self._finish(turn, Outcome(error=bug) if isinstance(bug, Exception) else task.result())

    def _job_ended(self, task: asyncio.Task[Any]) -> None:
        if not self.is_dead:
            self.bugs.append(f"{task.get_name()} has ended: {None if task.cancelled() else task.exception()!r}")

    def _finish(self, turn: Turn, outcome: Outcome) -> None:
        now, key, failed = self.clock.monotonic(), turn.key, outcome.error is not None
        queue = self.work[turn.work][0]
        queue.finish(key, now, failed=failed, requeue_after=outcome.requeue_after)
        self._finished[turn.work, key] = Moment(self.clock.now(), now, self.clock.offset)
        if turn.troubles and not failed:
            self.unmet_preconditions.append(f"{turn.work} {key}: {turn.troubles[0]}, and the pass counts as done")
        if isinstance(outcome.error, NoProgress) and turn.stood == self._standing(turn):
            self.unmet_preconditions.append(f"{turn.work} {key}: {outcome.error}")
        wanted = outcome.requeue_after
        if not failed and not turn.calls and wanted is not None and wanted <= 0:
            self.unmet_preconditions.append(
                f"spins: {turn.work} {key}: a reconcile without a request is requeued at once"
            )
        if self.is_looked_at_each_time and not failed:
            self._look_for_undone(turn.work, key)

    def look_for_undone(self) -> None:
        """Check that all work is in progress or scheduled; undelivered events may still trigger it."""
        self.wake()
        for name in () if any(item.is_behind for item in self.caches) else self.work:
            for key in self.keys(name):
                self._look_for_undone(name, key)

    def _look_for_undone(self, name: str, key: Key) -> None:
        queue, reconciler = self.work[name]
        now, due = self.clock.monotonic(), queue.due_at(key)
        if queue.is_pending(key, now):
            return
        last = self._finished.get((name, key))
        is_stepped = last is not None and last.offset != self.clock.offset  # a stepped clock does not reset timers
        if is_stepped:
            return
        remaining = undone(reconciler, key, None if due is None else due - now, last)
        if remaining is not None:
            self.unmet_preconditions.append(f"{name} {key}: {remaining}")
