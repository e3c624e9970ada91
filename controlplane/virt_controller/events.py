# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the reconcilers: recorded while working, sent beside the real work. Nothing waits for one or depends on it.

One occurrence is told once, met as often as it may be in ten minutes; two occurrences are two Events, however alike
their words are. A state that lasts is told by its words, in at most ten ways: a server may put a count into what it
refuses. Namespaces have turns in being told of; when the API is slow, whichever has most untold loses its oldest.
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
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Clock, Json
from controlplane.kube.events import EventSpec, create_event

log = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
WAITING_LIMIT = 1000
REMEMBERED = 20_000
"""Events of the last REPEAT_SECONDS that are known to be told: as many as a set of ten thousand can have, twice."""
VARIANTS = 10
"""Events of one lasting state, by object and reason, within REPEAT_SECONDS, however their words differ."""

Kind = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an Event is about."""

    resource: Resource
    key: Key
    uid: str


class Events(Protocol):
    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        """Tell users. Never raises, never waits.

        occurrence: what makes this one differ from others of the same words, e.g. the UID of what was made. "" for a
        state that lasts: its words are all that tells it from another.
        """


TROUBLES = frozenset({condition_types.POD_SCHEDULED, condition_types.SYNCHRONIZED})
"""Conditions that say, when they are False, why a machine does not come up."""
_TOLD_ALREADY = (condition_types.FAILED_CREATE, condition_types.FAILED_UPDATE, condition_types.FURTHER_ATTEMPT)
"""By whoever was refused (tell_refusal), or by occurrence."""


def tell_troubles(
    events: Events, regarding: Regarding, before: conditions.Conditions, after: conditions.Conditions
) -> None:
    """Tell of an object what its conditions have begun to say about why it does not come up."""
    for one in conditions.newly_false(before, after, TROUBLES):
        if one.reason not in _TOLD_ALREADY:
            events.record(regarding, "Warning", one.reason or one.type, one.message)


class EventRecorder:
    """Sends what was recorded, each object's in order, while it runs."""

    def __init__(self, api: Api, clock: Clock, *, component: str, instance: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._instance = instance
        self._untold = _Untold()
        self._told: _Memory[float] = _Memory()
        self._times: _Memory[tuple[float, ...]] = _Memory()
        self._wake = asyncio.Event()

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        now = self._clock.monotonic()
        same = _digest(regarding.uid, reason, message, occurrence)
        if now - self._told.get(same, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        if not occurrence and not self._has_room(_digest(regarding.uid, reason), now):
            return
        self._told.keep(same, now, now)
        # The time, because what still lasts after REPEAT_SECONDS is told anew.
        once = f"{occurrence} {self._clock.now():.3f}"
        self._untold.put(regarding.key.namespace, (_about(regarding), EventSpec(reason, message, kind, once=once)))
        self._wake.set()

    def _has_room(self, about: bytes, now: float) -> bool:
        times = self._times.get(about, ())
        if len(times) == VARIANTS and now - times[0] < REPEAT_SECONDS:
            return False
        self._times.keep(about, (*times, now)[-VARIANTS:], now)
        return True

    @property
    def remembered(self) -> int:
        """How many Events are known to be told."""
        return len(self._told)

    async def run(self) -> None:
        """Send until cancelled. A refused Event is logged and forgotten."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while (next_one := self._untold.take()) is not None:
                await self._send(*next_one)

    async def _send(self, about: Json, story: EventSpec) -> None:
        now, component, instance = self._clock.now(), self._component, self._instance
        try:
            await create_event(self._api, about, story, component=component, instance=instance, now=now)
        except ApiError as error:
            log.warning("event not written", extra={"reason": story.reason, "error": str(error)})


_Telling = tuple[Json, EventSpec]
T = TypeVar("T")


class _Untold:
    """Events that wait to be sent. However many one namespace has, those of others are sent in between, or kept."""

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, deque[_Telling]] = OrderedDict()
        self._count = 0

    def put(self, namespace: str, one: _Telling) -> None:
        self._by_namespace.setdefault(namespace, deque()).append(one)
        self._count += 1
        if self._count > WAITING_LIMIT:
            self._take(max(self._by_namespace, key=lambda each: len(self._by_namespace[each])))

    def take(self) -> _Telling | None:
        """Take the oldest of the namespace whose turn it is; None when nothing waits."""
        namespace = next(iter(self._by_namespace), None)
        return None if namespace is None else self._take(namespace)

    def _take(self, namespace: str) -> _Telling:
        waiting = self._by_namespace[namespace]
        one = waiting.popleft()
        self._count -= 1
        if waiting:
            self._by_namespace.move_to_end(namespace)
        else:
            del self._by_namespace[namespace]
        return one


class _Memory(Generic[T]):
    """What was kept in the last REPEAT_SECONDS, of what was kept last."""

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, tuple[float, T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, key: bytes, otherwise: T) -> T:
        found = self._kept.get(key)
        return otherwise if found is None else found[1]

    def keep(self, key: bytes, value: T, now: float) -> None:
        """Put an entry in as the newest; those of which nothing follows any more go, and the oldest give way."""
        self._kept[key] = now, value
        self._kept.move_to_end(key)
        while len(self._kept) > REMEMBERED or now - next(iter(self._kept.values()))[0] >= REPEAT_SECONDS:
            self._kept.popitem(last=False)


def _digest(*words: str) -> bytes:
    """Stand for words, of which there may be thousands at length."""
    return hashlib.sha256("\0".join(words).encode(errors="replace")).digest()[:16]


def _about(regarding: Regarding) -> Json:
    return {
        "apiVersion": regarding.resource.api_version,
        "kind": regarding.resource.kind,
        "metadata": {"namespace": regarding.key.namespace, "name": regarding.key.name, "uid": regarding.uid},
    }
