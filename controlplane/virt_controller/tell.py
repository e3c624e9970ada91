# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events of the reconcilers: recorded while working, sent beside the real work. Nothing waits for one or depends on it.

One occurrence is told once, met as often as it may be in ten minutes; two occurrences are two Events, however alike
their words are. A state that lasts is told by its words, in at most ten ways: a server may put a count into what it
refuses. When the API is slow the oldest unsent are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Clock, Json
from controlplane.kube.events import Story, create_event

log = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
WAITING_LIMIT = 1000
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


class EventWriter:
    """Sends what was recorded, in order, while it runs."""

    def __init__(self, api: Api, clock: Clock, *, component: str, instance: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._instance = instance
        self._waiting: deque[tuple[Json, Story]] = deque(maxlen=WAITING_LIMIT)
        self._told: OrderedDict[tuple[str, str, str, str], float] = OrderedDict()
        self._times: OrderedDict[tuple[str, str], deque[float]] = OrderedDict()
        self._wake = asyncio.Event()

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str, *, occurrence: str = "") -> None:
        now = self._clock.monotonic()
        same = (regarding.uid, reason, message, occurrence)
        if now - self._told.get(same, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        if not occurrence and not self._has_room((regarding.uid, reason), now):
            return
        _keep(self._told, same, now)
        # The time, because what still lasts after REPEAT_SECONDS is told anew.
        once = f"{occurrence} {self._clock.now():.3f}"
        self._waiting.append((_about(regarding), Story(reason, message, kind, once=once)))
        self._wake.set()

    def _has_room(self, about: tuple[str, str], now: float) -> bool:
        times = self._times.get(about) or deque(maxlen=VARIANTS)
        if len(times) == VARIANTS and now - times[0] < REPEAT_SECONDS:
            return False
        times.append(now)
        _keep(self._times, about, times)
        return True

    async def run(self) -> None:
        """Send until cancelled. A refused Event is logged and forgotten."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                about, story = self._waiting.popleft()
                await self._send(about, story)

    async def _send(self, about: Json, story: Story) -> None:
        now, component, instance = self._clock.now(), self._component, self._instance
        try:
            await create_event(self._api, about, story, component=component, instance=instance, now=now)
        except ApiError as error:
            log.warning("event not written", extra={"reason": story.reason, "error": str(error)})


K = TypeVar("K")
V = TypeVar("V")


def _keep(kept: OrderedDict[K, V], key: K, value: V) -> None:
    """Put an entry in as the newest; the oldest give way."""
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > WAITING_LIMIT:
        kept.popitem(last=False)


def _about(regarding: Regarding) -> Json:
    return {
        "apiVersion": regarding.resource.api_version,
        "kind": regarding.resource.kind,
        "metadata": {"namespace": regarding.key.namespace, "name": regarding.key.name, "uid": regarding.uid},
    }
