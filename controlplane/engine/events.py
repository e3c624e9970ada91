# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Events: the user's story of an object, told beside the real work. Nothing waits for them, nothing depends on them.

A reconciler records; the writer sends in its own task, drops when the API is slow, and says a thing only once in ten
minutes, so that an object in trouble does not fill etcd.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict, deque
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from controlplane.api.resources import EVENT, Key, Resource
from controlplane.engine.errors import ApiError
from controlplane.engine.ports import Api, Clock, Json

log = logging.getLogger(__name__)

REPEAT_SECONDS = 600.0
WAITING_LIMIT = 1000
MESSAGE_LIMIT = 1024
"""The API server refuses longer messages."""

Kind = Literal["Normal", "Warning"]


@dataclass(frozen=True, slots=True)
class Regarding:
    """The object that an Event is about."""

    resource: Resource
    key: Key
    uid: str


class Events(Protocol):
    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str) -> None:
        """Tell users. Never raises, never waits."""
        ...


def build_event(regarding: Regarding, kind: Kind, reason: str, message: str, *, component: str, now: float) -> Json:
    """Build the v1 Event. Its name carries the time, so two controllers never collide."""
    stamp = datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{regarding.key.name[:230]}.{int(now * 1e9):x}",
            "namespace": regarding.key.namespace,
        },
        "involvedObject": {
            "apiVersion": regarding.resource.api_version,
            "kind": regarding.resource.kind,
            "namespace": regarding.key.namespace,
            "name": regarding.key.name,
            "uid": regarding.uid,
        },
        "type": kind,
        "reason": reason,
        "message": message[:MESSAGE_LIMIT],
        "firstTimestamp": stamp,
        "lastTimestamp": stamp,
        "count": 1,
        "source": {"component": component},
        "reportingComponent": component,
        "reportingInstance": component,
    }


class EventWriter:
    """Sends what was recorded, in order, until cancelled."""

    def __init__(self, api: Api, clock: Clock, *, component: str) -> None:
        self._api = api
        self._clock = clock
        self._component = component
        self._waiting: deque[tuple[str, Json]] = deque(maxlen=WAITING_LIMIT)
        self._told: OrderedDict[tuple[str, str, str], float] = OrderedDict()
        self._wake = asyncio.Event()

    def record(self, regarding: Regarding, kind: Kind, reason: str, message: str) -> None:
        now = self._clock.monotonic()
        same = (regarding.uid, reason, message)
        if now - self._told.get(same, -REPEAT_SECONDS) < REPEAT_SECONDS:
            return
        self._told[same] = now
        self._told.move_to_end(same)
        while len(self._told) > WAITING_LIMIT:
            self._told.popitem(last=False)
        event = build_event(regarding, kind, reason, message, component=self._component, now=self._clock.now())
        self._waiting.append((regarding.key.namespace, event))
        self._wake.set()

    async def run(self) -> None:
        """Send for ever. A refused Event is logged and forgotten."""
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._waiting:
                namespace, event = self._waiting.popleft()
                try:
                    await self._api.create(EVENT, namespace, event)
                except ApiError as error:
                    log.warning("event not written", extra={"reason": event["reason"], "error": str(error)})
