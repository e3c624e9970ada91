# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a migration while libvirt works, and sees to its end: given up, or its guest stopped so that it can be sent.

Where that is allowed, a guest that was not sent in its time is stopped: then nothing of it changes any more, and it has
as long again. That it is to be stopped is written first (docs/adr/0016), for libvirt does not tell its pause from a
person's when the migration has ended by then. A guest that was stopped for nothing goes on here.
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
from controlplane.hypervisor.guest import Progress
from controlplane.virt_handler.vmi.ports import NoContact, Write

log = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""Between looks at a migration's progress."""
GIB = 1 << 30


class Guest(Protocol):
    """What is asked of the guest at its source. HypervisorError."""

    @property
    def name(self) -> str: ...

    async def progress(self) -> Progress: ...

    async def stop_to_send(self) -> None: ...

    async def resume(self) -> None: ...

    async def state(self) -> State: ...


class MonotonicClock(Protocol):
    """Time that nobody sets."""

    def monotonic(self) -> float: ...


@dataclass(slots=True)
class Pace:
    """How a migration gets on, by what was seen of it."""

    settings: MigrationConfiguration
    began: float
    is_stoppable: bool = False
    """Its guest may be stopped, and was not yet."""
    spare: int = 0
    """Bytes that QEMU counts and nobody sends: of the device by which the guest can come to have more memory."""
    most: float = inf
    """Bytes that it can have to send at all: whose launcher says that it is more gets no time for that."""
    total: float = 0
    mark: float = inf
    """Bytes that remained when it got on last; with a guest that may be stopped, at the last look."""
    since: float = 0.0
    """When it got on last."""
    shares: int = 1
    """Of the time that it may take, which it has got."""

    def __post_init__(self) -> None:
        self.since = self.began

    def note(self, progress: Progress, now: float) -> None:
        """Take note of a look."""
        self.total = min(max(0, progress.total - self.spare), self.most)
        if 0 < progress.remaining < self.mark:
            self.since = now
        if self.is_stoppable or 0 < progress.remaining < self.mark:
            # a busy guest's memory is sent again and again: it is stuck when nothing of it is sent
            self.mark = progress.remaining or self.mark

    @property
    def longest(self) -> int:
        """Seconds that it may take; 0 is no bound."""
        return self.settings.completion_timeout_per_gib * max(1, ceil(self.total / GIB)) * self.shares

    def is_stop_announced(self, now: float) -> bool:
        """Tell whether the guest is to be stopped so that the rest of it can be sent."""
        return self.is_stoppable and 0 < self.longest < now - self.began

    def too_long(self, now: float) -> str:
        """Say why it has taken too long; "" when it has not."""
        longest, standing = self.longest * (2 if self.is_stoppable else 1), self.settings.progress_timeout
        if longest and now - self.began > longest:
            return f"was not done after {longest} s, {self.settings.completion_timeout_per_gib} for each GiB"
        if standing and now - self.since > standing:
            return f"did not get on for {standing} s"
        return ""

    def stopped(self) -> None:
        """Take note that the guest is stopped: from now on less remains with each look, from what it is at the next."""
        self.is_stoppable, self.shares, self.mark = False, 2, inf


class Watch:
    """One migration of a guest."""

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
        """write_stop: has it written that the guest is to be stopped. is_held: a person has paused it already.

        spare: bytes of its memory that QEMU counts and nobody sends. most: bytes that there can be to send.
        """
        self._guest = guest
        self._clock = clock
        self._write_stop = write_stop
        self._progressed = progressed
        may_stop = settings.allow_workload_disruption and not is_paused_by_user
        self._pace = Pace(settings, clock.monotonic(), may_stop, spare, most)
        self._stopping: asyncio.Task[None] | None = None

    async def run(self) -> str:
        """Look at the progress; return why the migration is to be given up."""
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            progress = None
            with suppress(HypervisorError):  # the call that migrates says more; but time goes on
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
        """Stop the guest. Where that fails it is tried again at the next look."""
        try:
            await self._write_stop()
            self._stopping = asyncio.create_task(self._guest.stop_to_send())
            await asyncio.shield(self._stopping)
        except (NoContact, HypervisorError) as error:
            extra = {"domain": self._guest.name, "error": str(error)}
            log.warning("a guest that cannot be sent in its time is not stopped yet", extra=extra)
        else:
            log.info("a guest is stopped so that it can be sent", extra={"domain": self._guest.name})
            self._pace.stopped()

    async def let_go_on(self) -> None:
        """Have the guest go on that was stopped for a migration of which nothing came.

        libvirt does so itself, unless the migration had ended before the pause came to it.
        """
        if self._stopping is None:
            return
        await asyncio.wait((self._stopping,))  # one that came later would be nobody's
        with suppress(HypervisorError):
            if await self._guest.state() == State(Life.PAUSED, "user"):
                await self._guest.resume()
