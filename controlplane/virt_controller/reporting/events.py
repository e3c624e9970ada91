# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the reconcilers. A reconciler records an Event and does not wait; a task sends it in the background.

One occurrence is one Event, even if it is recorded again within REPEAT_SECONDS. Two occurrences are two Events, even
with the same message. A lasting state has no occurrence: its Events differ by the message, which may contain changing
numbers of the server, so it gets at most VARIANTS Events within REPEAT_SECONDS. Sending alternates between namespaces.
When the queue is full, the namespace with the most queued Events loses its oldest one.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Generic, Literal, Protocol, TypeVar

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Object
from controlplane.api.objects.phase import BEFORE_HAND_OVER, is_final
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Clock, Json
from controlplane.kube.events import EventSpec, create_event

log = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
QUEUE_LIMIT = 1000
CACHE_LIMIT = 20_000
"""Recent Events to compare with: twice what a set of ten thousand records within REPEAT_SECONDS."""
VARIANTS = 10

Kind = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an Event is about."""

    resource: Resource
    key: Key
    uid: str

    @classmethod
    def of(cls, obj: Object) -> Regarding:
        return cls(obj.resource, obj.metadata.key, obj.metadata.uid)


class Events(Protocol):
    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        """Record an Event. Never raises, never blocks.

        occurrence: what distinguishes this Event from others with the same message, e.g. the UID of a created object;
        "" for a lasting state.
        """


BLOCKING_CONDITIONS = frozenset({condition_types.POD_SCHEDULED, condition_types.SYNCHRONIZED})
"""Conditions that, while False, say why a machine does not start."""
_RECORDED_ELSEWHERE = (condition_types.FAILED_CREATE, condition_types.FAILED_UPDATE, condition_types.FURTHER_ATTEMPT)
"""Reasons whose Events report_refusal records, or the reconciler by occurrence."""


def record_blocking_conditions(
    events: Events, regarding: Regarding, before: conditions.Conditions, after: conditions.Conditions, *, phase: str
) -> None:
    """Record each blocking condition that has become False. phase: of the VMI whose conditions they are.

    A Warning says that something failed, and clients end their wait at it; a run that can still begin is Normal.
    """
    for condition in conditions.newly_false(before, after, BLOCKING_CONDITIONS):
        if condition.reason not in _RECORDED_ELSEWHERE:
            kind: Kind = "Normal" if _is_waiting(condition, phase) else "Warning"
            events.record(regarding, kind, condition.reason or condition.type, condition.message)


def _is_waiting(condition: Condition, phase: str) -> bool:
    """Tell whether the run begins as soon as what the condition names is there: a node, an image, a claim."""
    if condition.reason == condition_types.VIRT_HANDLER_SILENT:
        return not is_final(phase)
    return phase in BEFORE_HAND_OVER and condition.reason != condition_types.INVALID_SPEC


class EventRecorder:
    """Sends recorded Events while `run` runs, in order for each object."""

    def __init__(self, api: Api, clock: Clock, *, component: str, instance: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._instance = instance
        self._queue = _EventQueue()
        self._recorded: _RecentCache[float] = _RecentCache()
        self._times_by_reason: _RecentCache[tuple[float, ...]] = _RecentCache()
        self._queued = asyncio.Event()

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        now = self._clock.monotonic()
        digest = _digest(regarding.uid, reason, message, occurrence)
        if now - self._recorded.get(digest, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        if not occurrence and not self._is_below_variants(_digest(regarding.uid, reason), now):
            return
        self._recorded.put(digest, now, now)
        # It contains the time, because a state that lasts longer than REPEAT_SECONDS gets another Event.
        once = f"{occurrence} {self._clock.now():.3f}"
        event = QueuedEvent(_object_reference(regarding), EventSpec(reason, message, kind, once=once))
        self._queue.put(regarding.key.namespace, event)
        self._queued.set()

    def _is_below_variants(self, digest: bytes, now: float) -> bool:
        times = self._times_by_reason.get(digest, ())
        if len(times) == VARIANTS and now - times[0] < REPEAT_SECONDS:
            return False
        self._times_by_reason.put(digest, (*times, now)[-VARIANTS:], now)
        return True

    @property
    def cached(self) -> int:
        """How many recent Events are kept to compare with."""
        return len(self._recorded)

    async def run(self) -> None:
        """Send until cancelled. A refused Event is logged and dropped."""
        while True:
            await self._queued.wait()
            self._queued.clear()
            while (event := self._queue.take()) is not None:
                await self._send(event)

    async def _send(self, event: QueuedEvent) -> None:
        now, component, instance = self._clock.now(), self._component, self._instance
        try:
            await create_event(self._api, event.regarding, event.spec, component=component, instance=instance, now=now)
        except ApiError as error:
            log.warning("event not written", extra={"reason": event.spec.reason, "error": str(error)})


@dataclass(frozen=True, slots=True)
class QueuedEvent:
    """An Event that waits to be sent."""

    regarding: Json
    """The object, as create_event takes it."""
    spec: EventSpec


T = TypeVar("T")


class _EventQueue:
    """A queue per namespace. take() alternates between namespaces, so a busy one delays no other."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, deque[QueuedEvent]] = OrderedDict()
        self._count = 0

    def put(self, namespace: str, event: QueuedEvent) -> None:
        self._by_namespace.setdefault(namespace, deque()).append(event)
        self._count += 1
        if self._count > QUEUE_LIMIT:
            self._take(max(self._by_namespace, key=lambda name: len(self._by_namespace[name])))

    def take(self) -> QueuedEvent | None:
        """Remove and return the oldest Event of the next namespace."""
        namespace = next(iter(self._by_namespace), None)
        return None if namespace is None else self._take(namespace)

    def _take(self, namespace: str) -> QueuedEvent:
        events = self._by_namespace[namespace]
        event = events.popleft()
        self._count -= 1
        if events:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return event


class _RecentCache(Generic[T]):
    """Entries of the last REPEAT_SECONDS, at most CACHE_LIMIT of them, by digest."""

    def __init__(self) -> None:
        self._entries: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: bytes, default: T) -> T:
        entry = self._entries.get(key)
        return default if entry is None else entry[1]

    def put(self, key: bytes, value: T, now: float) -> None:
        """Add an entry as the newest; drop the expired ones, and the oldest above CACHE_LIMIT."""
        self._entries[key] = now, value
        self._entries.move_to_end(key)
        while len(self._entries) > CACHE_LIMIT or now - next(iter(self._entries.values()))[0] >= REPEAT_SECONDS:
            self._entries.popitem(last=False)


def _digest(*parts: str) -> bytes:
    """Return a short key: messages may be kilobytes long, and the cache has thousands of keys."""
    return hashlib.sha256("\0".join(parts).encode(errors="replace")).digest()[:16]


def _object_reference(regarding: Regarding) -> Json:
    return {
        "apiVersion": regarding.resource.api_version,
        "kind": regarding.resource.kind,
        "metadata": {"namespace": regarding.key.namespace, "name": regarding.key.name, "uid": regarding.uid},
    }
