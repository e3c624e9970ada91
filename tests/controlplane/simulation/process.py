# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One process: real reconcilers, real queues, driven one call at a time.

Every await of a reconciler is a Call. The schedule decides when it is carried out, whether the request or the answer is
lost or refused, and whether the process dies there. Nothing survives its death but what the world outside holds.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

from controlplane.api.objects.resources import Key
from controlplane.engine.plan import Outcome
from controlplane.engine.queue import Queue
from controlplane.engine.reconcile import reconcile
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.calls import Call, Fate, perform
from tests.controlplane.simulation.clock import WrongClock
from tests.controlplane.simulation.store import Store


@dataclass(frozen=True, slots=True)
class View:
    """What the process believed when it asked for a call: the newest VM and VMI of the key that it knew."""

    vm: bytes | None = None
    vmi: bytes | None = None
    since: int = 0
    """The store's version when its pass began."""


@dataclass(slots=True)
class Pass:
    """A reconcile under way, stopped at a call."""

    queue: Queue | None
    """None: nobody waits for its end, as of a verb of a launcher's session."""
    key: Key
    coroutine: Coroutine[Call, Any, Outcome | None]
    call: Call
    view: View


class Process:
    """Queues by name, each with its reconciler; `caches` that the schedule feeds."""

    role = ""

    def __init__(self, name: str, store: Store, clock: WrongClock) -> None:
        self.name = name
        self.clock = clock
        self.store = store
        self.caches: tuple[LaggingCache, ...] = ()
        self.work: dict[str, tuple[Queue, Any]] = {}
        self.passes: list[Pass] = []
        self.bugs: list[str] = []
        self.is_dead = False

    def view(self, key: Key, since: int) -> View:
        """Say what is believed about a key now."""
        return View(since=since)

    def begin(self, name: str) -> bool:
        """Start a pass over the next due key of a queue; tell whether there was one."""
        queue, reconciler = self.work[name]
        key = queue.take(self.clock.monotonic())
        if key is None:
            return False
        self._resume(queue, key, reconcile(reconciler, key), (None, None, self.store.version))
        return True

    def spawn(self, key: Key, coroutine: Coroutine[Any, Any, None]) -> None:
        """Run something beside the passes, as a task of its own."""
        self._resume(None, key, coroutine, (None, None, self.store.version))

    def carry_out(self, index: int, fate: Fate) -> None:
        """Let one waiting call happen and its pass go on to its next call or its end."""
        one = self.passes.pop(index)
        self.store.actor = self.role
        result, error = perform(one.call, fate)
        self._resume(one.queue, one.key, one.coroutine, (result, error, one.view.since))

    def die(self, index: int | None, *, is_request_out: bool) -> None:
        """Stop for ever; a request that is out already still takes effect."""
        if index is not None and is_request_out:
            self.store.actor = self.role
            perform(self.passes[index].call, "answer lost")
        for one in self.passes:
            one.coroutine.close()
        self.passes.clear()
        self.is_dead = True

    def next_due(self) -> float | None:
        """Tell in how many seconds something becomes due by itself."""
        due = [one for queue in self.queues() if (one := queue.next_due()) is not None]
        return max(0.0, min(due) - self.clock.monotonic()) if due else None

    def queues(self) -> Iterable[Queue]:
        return [queue for queue, _unused in self.work.values()]

    def _resume(
        self,
        queue: Queue | None,
        key: Key,
        coroutine: Coroutine[Call, Any, Outcome | None],
        with_: tuple[Any, Any, int],
    ) -> None:
        result, error, since = with_
        try:
            call = coroutine.send(result) if error is None else coroutine.throw(error)
        except StopIteration as end:
            if queue is not None:
                outcome: Outcome = end.value
                self._finish(queue, key, failed=outcome.error is not None, look_again_in=outcome.look_again_in)
        except Exception as bug:
            self.bugs.append(f"{key}: {bug!r}")
            if queue is not None:
                self._finish(queue, key, failed=True, look_again_in=None)
        else:
            self.passes.append(Pass(queue, key, coroutine, call, self.view(key, since)))

    def _finish(self, queue: Queue, key: Key, *, failed: bool, look_again_in: float | None) -> None:
        queue.finish(key, self.clock.monotonic(), failed=failed, look_again_in=look_again_in)
