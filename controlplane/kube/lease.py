# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A heartbeat: one Lease, renewed while this process lives. Leader election is in leader.py.

Readers must not compare renewTime with their own clock: clocks differ. They measure the time since *they* last saw the
Lease change, on their own monotonic clock (engine.clock, which goes on while a host is suspended).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime

from controlplane.api.objects.resources import LEASE, Key
from controlplane.engine.errors import ApiError, NotFound
from controlplane.engine.ports import Api, Clock, Json

log = logging.getLogger(__name__)

RETRY_SECONDS = 2.0


def render_time(now: float) -> str:
    """Format seconds since the epoch as MicroTime."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def lease_body(key: Key, spec: Json, labels: Mapping[str, str] | None = None) -> Json:
    """Return a new Lease."""
    metadata: Json = {"name": key.name, "namespace": key.namespace}
    if labels:
        metadata["labels"] = dict(labels)
    return {"apiVersion": LEASE.api_version, "kind": LEASE.kind, "metadata": metadata, "spec": spec}


class Heartbeat:
    """Renews one Lease that no other process writes, e.g. virt-handler-<node>."""

    def __init__(
        self,
        api: Api,
        key: Key,
        holder: str,
        clock: Clock,
        *,
        every_seconds: float = 10.0,
        duration_seconds: int = 40,
        labels: Mapping[str, str] | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._api = api
        self._key = key
        self._holder = holder
        self._clock = clock
        self._every_seconds = every_seconds
        self._duration_seconds = duration_seconds
        self._labels = labels
        self._sleep = sleep
        self._begun = clock.monotonic()
        self.last_beat: float | None = None
        """When (monotonic) the last successful renewal was sent; None before the first."""
        self.resumed = asyncio.Event()
        """Set by the first beat, and by one after a silence longer than the Lease. The reader clears it."""
        self.silences = 0
        """How many beats came after a silence longer than the Lease, the start of the process included."""
        self._callbacks: list[Callable[[], None]] = []

    @property
    def duration_seconds(self) -> int:
        return self._duration_seconds

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back after each such silence."""
        self._callbacks.append(callback)

    @property
    def is_fresh(self) -> bool:
        """Whether no reader can have seen the Lease unchanged for its whole duration, by the last renewal sent."""
        return self.last_beat is not None and self._clock.monotonic() - self.last_beat < self._duration_seconds

    async def run(self) -> None:
        """Beat until cancelled. A failed beat is retried soon, and logged once."""
        failing = False
        while True:
            try:
                await self.beat()
                failing = False
            except ApiError as error:
                if not failing:
                    log.warning("cannot renew the heartbeat", extra={"key": self._key, "because": error})
                failing = True
            await self._sleep(min(RETRY_SECONDS, self._every_seconds) if failing else self._every_seconds)

    async def beat(self) -> None:
        """Renew once; create the Lease if it does not exist."""
        sent = self._clock.monotonic()
        spec = {
            "holderIdentity": self._holder,
            "leaseDurationSeconds": self._duration_seconds,
            "renewTime": render_time(self._clock.now()),
        }
        try:
            await self._api.patch(LEASE, self._key, {"spec": spec})
        except NotFound:
            await self._api.create(LEASE, self._key.namespace, lease_body(self._key, spec, self._labels))
        # After the response, because a slow one may itself have let the Lease expire.
        was_fresh = self.is_fresh
        was_silent = self._clock.monotonic() - (self.last_beat or self._begun) >= self._duration_seconds
        self.last_beat = sent
        if was_fresh:
            return
        self.resumed.set()
        if was_silent:
            self.silences += 1
            for callback in self._callbacks:
                callback()
