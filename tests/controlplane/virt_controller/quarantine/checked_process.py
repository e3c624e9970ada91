# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A virt-controller with the quarantine controller, for marks; and the events that it has observed.

Witness shares no code with the controller: it counts the evidence against a node itself.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesApi, ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.quarantine.reconciler import ALL_NODES, QuarantineReconciler
from controlplane.virt_controller.quarantine.world import World
from tests.controlplane.simulation.controller import RecordedEvents
from tests.support.calls import Call, CallingApi, Fate, perform
from tests.support.clock import SimulatedClock, WrongClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Store

LASTS_SECONDS, WINDOW_SECONDS = 900, 600.0
ENOUGH_MACHINES, ENOUGH_TENANTS = 3, 2
RETRY_SECONDS = 1.0


@dataclass(slots=True)
class Witness:
    """The events that one process has observed."""

    charges: dict[str, list[tuple[float, str, str]]] = field(default_factory=dict)
    """By node: when a machine started elsewhere, its name and its tenant's."""

    def came_up(self, tenant: str, name: str, node: str, failed_on: str, at: float) -> None:
        """Record that a guest is up on a node after a failed start on `failed_on` ("" for none)."""
        self.charges.pop(node, None)
        if failed_on and failed_on != node:
            self.charges.setdefault(failed_on, []).append((at, name, tenant))

    def is_enough(self, node: str, now: float, tenants: int) -> bool:
        recent = [item for item in self.charges.get(node, ()) if now - item[0] < WINDOW_SECONDS]
        machines = {(tenant, name) for _unused, name, tenant in recent}
        return len(machines) >= ENOUGH_MACHINES and len({item[2] for item in recent}) >= min(ENOUGH_TENANTS, tenants)


class Observed(QuarantineReconciler):
    """Reports each observation for a decision."""

    def __init__(self, *, looked: Callable[[], None], **parts: Any) -> None:
        super().__init__(**parts)
        self._looked = looked

    def observe(self, key: Key) -> World | None:
        self._looked()
        return super().observe(key)


class Process:
    """A virt-controller that watches, and reconciles while it leads."""

    def __init__(
        self, store: Store, true: SimulatedClock, rng: random.Random, looked: Callable[[Process], None]
    ) -> None:
        self.born = true.seconds
        self.clock = WrongClock(true, rng.choice((0.0, 5.0, -3600.0)), true.seconds - rng.choice((10.0, 1e6)))
        self.caches = {item: LaggingCache(store, item) for item in (NODE, VIRTUAL_MACHINE_INSTANCE)}
        overlays = {item: ReadYourWritesCache(cache) for item, cache in self.caches.items()}
        self.due: float | None = None
        """The next timer (monotonic)."""
        self.leading_since = 0.0
        self.witness = Witness()
        self.reconciler = Observed(
            looked=lambda: looked(self),
            nodes=overlays[NODE],
            vmis=overlays[VIRTUAL_MACHINE_INSTANCE],
            api=ReadYourWritesApi(CallingApi(store), overlays),
            clock=self.clock,
            events=RecordedEvents(),
            configuration=lambda: KubeVirtConfiguration(quarantine_seconds=LASTS_SECONDS),
            enqueue=lambda _unused: self._wake(),
        )
        for cache in self.caches.values():
            cache.start()
        self.call: Call | None = None
        self._coroutine: Coroutine[Call, Any, Outcome] | None = None

    def lead(self) -> None:
        self.leading_since = self.clock.monotonic()
        self.reconciler.begin()

    def hear(self) -> None:
        """Deliver all events."""
        for cache in self.caches.values():
            while cache.is_behind:
                cache.advance()

    @property
    def is_due(self) -> bool:
        return self.due is not None and self.due <= self.clock.monotonic()

    def begin(self) -> None:
        self.due = None
        self._coroutine = reconcile(self.reconciler, ALL_NODES)
        self._go_on(None, None)

    def carry_out(self, fate: Fate) -> None:
        assert self.call is not None
        call, self.call = self.call, None
        self._go_on(*perform(call, fate))

    def end(self) -> None:
        if self._coroutine is not None:
            self._coroutine.close()

    def _go_on(self, result: Any, error: Exception | None) -> None:
        assert self._coroutine is not None
        try:
            self.call = self._coroutine.send(result) if error is None else self._coroutine.throw(error)
        except StopIteration as ended:
            self._coroutine, outcome = None, ended.value
            remaining = RETRY_SECONDS if outcome.error is not None else outcome.requeue_after
            due = None if remaining is None else self.clock.monotonic() + remaining
            self.due = min((item for item in (self.due, due) if item is not None), default=None)

    def _wake(self) -> None:
        self.due = self.clock.monotonic()
