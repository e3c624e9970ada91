# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to one launcher's libvirtd: opens it, reopens it, and observes the domain. It decides nothing.

One task runs it. When the connection is lost only `is_connected` changes in the status: that does not prove that the
guest has ended.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace

from controlplane.api.objects.pod import sanitize
from controlplane.domain.state import explain_crash
from controlplane.domain.statistics import Statistics
from controlplane.hypervisor.errors import HypervisorError, WrongState
from controlplane.hypervisor.events import ConnectionClosed, Event, cause_of_end
from controlplane.virt_handler.launchers.domain_reader import DomainReader
from controlplane.virt_handler.launchers.pace import DomainLooks, Pauses, resync_pause
from controlplane.virt_handler.launchers.ports import Connection, Guest, NodeError, Result
from controlplane.virt_handler.launchers.record import LauncherRecord
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.vmi.launcher_status import is_guest_up, status_after_look
from controlplane.virt_handler.vmi.ports import NoContact, VerbRefused

log = logging.getLogger(__name__)

OnLook = Callable[[Guest | None], None]
"""Called after each look, with the guest if it runs."""


class LauncherConnection:
    """Keeps a libvirt connection to one launcher."""

    def __init__(
        self,
        record: LauncherRecord,
        tools: Tools,
        *,
        on_look: OnLook,
        followers: Sequence[Callable[[], Awaitable[None]]],
    ) -> None:
        """followers: each runs while there is a connection, and is cancelled when it ends."""
        self._record = record
        self._tools = tools
        self._on_look = on_look
        self._followers = tuple(followers)
        self._admitted = asyncio.Event()
        self.current: Connection | None = None
        self.domain = DomainReader()
        self.look_lock = asyncio.Lock()
        """Locked while a domain is defined and started, so that no state in between is published."""
        self._looks = DomainLooks()
        self._pauses = Pauses(tools.random)
        self._connected_at: float | None = None
        self._crash_cause = ""
        """Why QEMU ended, from libvirt's events: the domain's state does not contain it."""

    def admit(self) -> None:
        """Connect from now on: a VMI grants this Pod the run."""
        self._admitted.set()
        self._record.publish(is_admitted=True)

    def require(self) -> Connection:
        """Return the connection. NoContact."""
        if self.current is None:
            raise NoContact("the launcher is not connected")
        return self.current

    async def run(self) -> None:
        """Keep a connection until the Pod is over."""
        while not self._record.is_over:
            message, self._connected_at = "", None
            try:
                await self._follow_once()
            except (HypervisorError, OSError, NodeError, NoContact) as error:
                message = sanitize(str(error))
            since, now = self._connected_at, self._tools.clock.monotonic()
            pause = self._pauses.next(0.0 if since is None else now - since)
            level = logging.WARNING if self._pauses.is_worth_a_warning else logging.DEBUG
            fields = {**self._record.log_fields, "error": message, "pause_seconds": pause}
            log.log(level, "no connection to a launcher", extra=fields)
            if message:
                self._record.publish(trouble=message)
            if not self._record.is_over:
                await asyncio.sleep(pause)

    async def refresh(self) -> None:
        """Read the domain's state from libvirt, and publish it. NoContact."""
        async with self.look_lock:
            connection, record = self.require(), self._record
            try:
                guest = await connection.guest(record.vmi_uid)
                state = None if guest is None else explain_crash(await guest.state(), self._crash_cause)
                before = record.status.observed
                observed = None if guest is None else await self.domain.read(guest, before, record.log_fields)
            except HypervisorError as error:
                raise NoContact(str(error)) from error
            if self.current is connection:
                record.replace(status_after_look(record.status, state, observed))
                state_after = record.status.state
                self._on_look(guest if state_after is not None and state_after.life.is_going_on else None)

    async def reread(self) -> None:
        """Look, and read the domain's description again. NoContact."""
        self.domain.note(())
        await self.refresh()

    async def statistics(self) -> Statistics | None:
        """Read libvirt's counters of the guest; None while it is not up. VerbRefused, NoContact."""
        if not is_guest_up(self._record.status.state):
            return None
        return await self.run_on_domain(lambda guest: guest.statistics())

    async def run_on_domain(self, call: Callable[[Guest], Awaitable[Result]]) -> Result:
        """Call the domain. VerbRefused when its state does not allow the call, NoContact."""
        connection = self.require()
        try:
            guest = await connection.guest(self._record.vmi_uid)
            if guest is None:
                raise VerbRefused("VMI is not running")
            return await call(guest)
        except WrongState as error:
            raise VerbRefused(str(error)) from error
        except HypervisorError as error:
            raise NoContact(str(error)) from error

    async def run_if_up(self, call: Callable[[Guest], Awaitable[None]]) -> None:
        """Call the domain. If it has ended meanwhile, only publish its state. NoContact."""
        try:
            await self.run_on_domain(call)
        except VerbRefused:
            await self.refresh()

    def resync_pause(self) -> float:
        """Return the seconds until a look without an event."""
        return resync_pause(self._tools.resync_seconds, self._tools.random())

    async def _follow_once(self) -> None:
        """Wait for the socket and the grant; then connect, and publish looks until the connection ends."""
        record = self._record
        launcher_socket = await self._tools.node.open_socket(record.pod.uid)
        try:
            record.publish(is_here=True)
            await self._admitted.wait()
            connection = await self._tools.connect(launcher_socket.path)
            self.current = connection
            record.status = replace(record.status, observed=None)  # each connection reads it once
            self.domain.begin()
            self._connected_at = self._tools.clock.monotonic()
            log.log(self._log_level, "launcher connected", extra=record.log_fields)
            followers = [asyncio.ensure_future(follow()) for follow in self._followers]
            followers.append(asyncio.ensure_future(_load_capabilities(connection)))
            try:
                await self._follow(connection)
            finally:
                for task in followers:
                    task.cancel()
                self.current = None
                record.publish(is_connected=False)
                with suppress(HypervisorError):
                    await connection.close()
        finally:
            record.publish(is_here=False)
            launcher_socket.close()

    async def _follow(self, connection: Connection) -> None:
        """Observe the domain after each event, and periodically."""
        while True:
            if (pause := self._looks.next(self._tools.clock.monotonic())) > 0:
                await asyncio.sleep(pause)
            if events := connection.events.drain():
                self._note(events)
            if not any(isinstance(event, ConnectionClosed) for event in events):
                await self.refresh()
                events = await self._wait(connection)
                self._note(events)
            for event in events:
                if isinstance(event, ConnectionClosed):
                    extra = {**self._record.log_fields, "because": event.reason}
                    log.log(self._log_level, "launcher disconnected", extra=extra)
                    return

    def _note(self, events: Sequence[Event]) -> None:
        self._crash_cause = cause_of_end(events) or self._crash_cause
        self.domain.note(events)

    async def _wait(self, connection: Connection) -> list[Event]:
        """Wait for an event; return none when the periodic look is due."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self.resync_pause()):
                return [await connection.events.get()]
        return []

    @property
    def _log_level(self) -> int:
        """DEBUG for a launcher that reconnects again and again: it must not fill the log."""
        return logging.INFO if self._pauses.is_ordinary else logging.DEBUG


async def _load_capabilities(connection: Connection) -> None:
    """Save time at the start, while the network is set up. Nothing waits for it, and its failure changes nothing."""
    with suppress(HypervisorError):
        await connection.load_capabilities()
