# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Watches a migration while libvirt sends the guest: aborts it after a timeout, or stops the guest to converge.

If workload disruption is allowed, the guest is stopped after the completion timeout: its memory does not change any
more, and the migration gets the same time again. The stop is written to the status first (docs/adr/0016), because
libvirt cannot tell it from a user's pause after the migration has ended. If the migration fails, the guest is resumed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from math import ceil, inf
from typing import Protocol

from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.progress import Progress
from controlplane.virt_handler.vmi.ports import NoContact, Write

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Pause between two reads of a migration's progress."""
GIB = 1 << 30


class Guest(Protocol):
    """The guest at its source. Each call may raise HypervisorError."""

    @property
    def name(self) -> str: ...

    async def progress(self) -> Progress: ...

    async def stop_to_send(self) -> None: ...

    async def resume(self) -> None: ...

    async def state(self) -> State: ...


class MonotonicClock(Protocol):
    """A monotonic clock."""

    def monotonic(self) -> float: ...


@dataclass(slots=True)
class Pace:
    """The progress of a migration as observed so far."""

    settings: MigrationConfiguration
    began: float
    is_stoppable: bool = False
    """The guest may be stopped, and is not stopped yet."""
    spare: int = 0
    """Bytes that QEMU counts but does not send: the part of the virtio-mem device that is not plugged."""
    most: float = inf
    """Limit of the bytes to send. A launcher that reports more gets no more time."""
    total: float = 0
    mark: float = inf
    """Remaining bytes at the last progress; if the guest may be stopped, at the last look."""
    since: float = 0.0
    """Time of the last progress."""
    shares: int = 1
    """How many completion timeouts the migration may take."""

    def __post_init__(self) -> None:
        self.since = self.began

    def note(self, progress: Progress, now: float) -> None:
        """Record one read of the progress."""
        self.total = min(max(0, progress.total - self.spare), self.most)
        if 0 < progress.remaining < self.mark:
            self.since = now
        if self.is_stoppable or 0 < progress.remaining < self.mark:
            # Memory of a busy guest is sent repeatedly, so more may remain than before: compare with the last look.
            self.mark = progress.remaining or self.mark

    @property
    def longest(self) -> int:
        """Seconds that the migration may take; 0: no limit."""
        return self.settings.completion_timeout_per_gib * max(1, ceil(self.total / GIB)) * self.shares

    def is_stop_announced(self, now: float) -> bool:
        """Tell whether to stop the guest now, so that the rest can be sent."""
        return self.is_stoppable and 0 < self.longest < now - self.began

    def too_long(self, now: float) -> str:
        """Return why the migration has taken too long; "" when it has not."""
        completion_timeout, progress_timeout = (
            self.longest * (2 if self.is_stoppable else 1),
            self.settings.progress_timeout,
        )
        if completion_timeout and now - self.began > completion_timeout:
            per_gib = self.settings.completion_timeout_per_gib
            return f"did not complete within {completion_timeout} s ({per_gib} s for each GiB)"
        if progress_timeout and now - self.since > progress_timeout:
            return f"made no progress for {progress_timeout} s"
        return ""

    def stopped(self) -> None:
        """Record that the guest is stopped: from the next look on, less must remain each time."""
        self.is_stoppable, self.shares, self.mark = False, 2, inf


class Watch:
    """Watches one migration of a guest."""

    def __init__(
        self,
        guest: Guest,
        settings: MigrationConfiguration,
        clock: MonotonicClock,
        write_stop: Write,
        *,
        is_paused_by_user: bool = False,
        spare: int = 0,
        most: float = inf,
        progressed: Callable[[Progress], None] = lambda _unused: None,
    ) -> None:
        """write_stop: writes to the status that the guest will be stopped. is_paused_by_user: it is already paused.

        spare: bytes that QEMU counts but does not send. most: limit of the bytes to send.
        """
        self._guest = guest
        self._clock = clock
        self._write_stop = write_stop
        self._progressed = progressed
        may_stop = settings.allow_workload_disruption and not is_paused_by_user
        self._pace = Pace(settings, clock.monotonic(), may_stop, spare, most)
        self._stopping: asyncio.Task[None] | None = None

    async def run(self) -> str:
        """Watch the progress; return why the migration must be aborted."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            progress = None
            with suppress(HypervisorError):  # the migrate call reports the cause; the timeouts still run
                progress = await self._guest.progress()
            now = self._clock.monotonic()
            if progress is not None:
                self._progressed(progress)
                self._pace.note(progress, now)
            if why := self._pace.too_long(now):
                return why
            if self._pace.is_stop_announced(now):
                await self.stop()

    async def stop(self) -> None:
        """Stop the guest. A failure is retried at the next look."""
        try:
            await self._write_stop()
            self._stopping = asyncio.create_task(self._guest.stop_to_send())
            await asyncio.shield(self._stopping)
        except (NoContact, HypervisorError) as error:
            extra = {"domain": self._guest.name, "error": str(error)}
            log.warning("cannot stop a guest that was not sent in time", extra=extra)
        else:
            log.info("a guest is stopped to send the rest of its memory", extra={"domain": self._guest.name})
            self._pace.stopped()

    async def let_go_on(self) -> None:
        """Resume a guest that was stopped for a migration that failed.

        libvirt resumes it itself, unless the migration ended before the guest was stopped.
        """
        if self._stopping is None:
            return
        await asyncio.wait((self._stopping,))  # nothing would resume the guest after a later stop
        with suppress(HypervisorError):
            if await self._guest.state() == State(Life.PAUSED, "user"):
                await self._guest.resume()
