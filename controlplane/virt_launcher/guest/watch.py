# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Observes the end of the guest's run over a libvirt connection, and forces it when the Pod is deleted.

Silence proves nothing: if libvirtd is unreachable or has no domain yet, the guest's run continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from controlplane.api.launch_plan import CRASHES, NOT_IN_TIME
from controlplane.domain.state import POWER_BUTTON_SECONDS, Life, State, derive_outcome, explain_crash
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import HypervisorError, WrongState
from controlplane.hypervisor.events import ConnectionClosed, Event, LifecycleChanged, cause_of_end
from controlplane.virt_launcher.guest.libvirtd_liveness import ANSWER_SECONDS, LibvirtdLiveness

_RETRY_SECONDS = 0.02
_LAST_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class GuestExit:
    """How the run ended: the launcher's exit code, and a line for the termination log."""

    exit_code: int
    message: str


class GuestWatch:
    """Watches one domain, through restarts of libvirtd. is_acpi_expected: see `derive_outcome`."""

    def __init__(self, name: str, socket: str, liveness: LibvirtdLiveness, *, is_acpi_expected: bool) -> None:
        """liveness: records each response of libvirtd."""
        self._name, self._uri = name, socket_uri(socket)
        self._liveness = liveness
        self._is_acpi_expected = is_acpi_expected
        self._cause = ""
        """Why QEMU ended, by libvirt's events; "" if unknown."""
        self._guest: Domain | None = None
        self._has_looked = asyncio.Event()
        """Set while connected, when the domain was looked up."""

    async def wait_for_exit(self) -> GuestExit:
        """Wait until the guest's run has ended; return how. Reconnects until then."""
        delay = _RETRY_SECONDS
        while True:
            try:
                connection = await open_connection(self._uri, keepalive_seconds=0)  # _next pings instead
            except HypervisorError as error:
                log.debug("libvirtd does not listen yet", extra={"error": str(error)})
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LAST_RETRY_SECONDS)
                continue
            delay = _RETRY_SECONDS
            try:
                if guest_exit := await self._follow(connection):
                    return guest_exit
            except HypervisorError as error:
                log.warning("lost the connection to libvirtd, connecting again", extra={"error": str(error)})
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                self._has_looked.clear()
                self._guest = None  # a domain keeps its connection open, even after the event loop has ended
                await _close(connection)

    async def _follow(self, connection: Connection) -> GuestExit | None:
        """Read the state, and again at each event; None when the connection ends first."""
        while True:
            self._guest = await connection.guest(self._name)
            state = await self._guest.state() if self._guest is not None else None
            events = connection.events.drain()  # all events before the state: the cause may be in any of them
            self._cause = cause_of_end(events) or self._cause
            state = None if state is None else explain_crash(state, self._cause)
            self._liveness.answered()
            self._has_looked.set()
            if state is not None and (guest_exit := derive_exit(state, is_acpi_expected=self._is_acpi_expected)):
                return guest_exit
            event = next(iter(_relevant(events)), None) or await self._next(connection)
            while not isinstance(event, LifecycleChanged):
                if isinstance(event, ConnectionClosed):
                    log.warning("libvirtd closed the connection", extra={"because": event.reason})
                    return None
                event = await self._next(connection)
            self._cause = cause_of_end((event,)) or self._cause

    async def _next(self, connection: Connection) -> Event:
        """Wait for an event, and ping libvirtd in between. TimedOut if it does not respond.

        A ping follows the last response, not the last event: if events delayed pings, libvirtd would count as hung.
        """
        while True:
            if self._liveness.seconds_to_ping() <= 0:
                await connection.ping(ANSWER_SECONDS)
                self._liveness.answered()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._liveness.seconds_to_ping())):
                    return await connection.events.get()

    async def bring_down(self, grace_seconds: float) -> GuestExit:
        """Press the power button repeatedly, and destroy the domain after the grace period.

        Returns only if there is nothing to shut down. Otherwise it continues until the caller cancels it, after
        `wait_for_exit` has observed the end.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while (remaining := deadline - loop.time()) > 0:
            if (guest_exit := await self._exit_if_down(within_seconds=remaining)) is not None:
                return guest_exit
            await self._run(Domain.shutdown)
            await asyncio.sleep(min(POWER_BUTTON_SECONDS, max(deadline - loop.time(), 0)))
        log.warning("destroying the domain after its grace period", extra={"grace_seconds": grace_seconds})
        while True:
            if (guest_exit := await self._exit_if_down(within_seconds=POWER_BUTTON_SECONDS)) is not None:
                return guest_exit
            await self._run(Domain.destroy)
            await asyncio.sleep(_LAST_RETRY_SECONDS)
            await self._run(Domain.kill)
            await asyncio.sleep(_LAST_RETRY_SECONDS)

    async def _exit_if_down(self, *, within_seconds: float) -> GuestExit | None:
        """Return how the run ended if the domain is down; None while it runs, or if libvirt does not respond.

        The last observed state is not enough: a domain whose start fails is up for some 20 ms, and no event reports
        that it is down again.
        """
        try:
            async with asyncio.timeout(within_seconds):
                await self._has_looked.wait()
            state = None if self._guest is None else explain_crash(await self._guest.state(), self._cause)
        except (TimeoutError, HypervisorError):
            return None
        if state is None or not state.life.is_up:
            if state is not None and state.reason == "migrated":
                return GuestExit(0, "the guest has moved to another node")
            guest_exit = None if state is None else derive_exit(state, is_acpi_expected=self._is_acpi_expected)
            return guest_exit or GuestExit(1, "the Pod was ended before its guest ran")
        return None

    async def _run(self, call: Callable[[Domain], Awaitable[None]]) -> None:
        """Call the domain. Failures are only logged, because the caller repeats the call."""
        if self._guest is None:
            return
        try:
            await call(self._guest)
        except WrongState:
            return  # it is already off, which the next check finds
        except HypervisorError as error:
            log.warning("a command to the guest failed", extra={"error": str(error)})


def derive_exit(state: State, *, is_acpi_expected: bool) -> GuestExit | None:
    """Return how the run ended, by a domain's state; None while it continues."""
    outcome = derive_outcome(state, is_acpi_expected=is_acpi_expected)
    if outcome is None:
        return None
    if outcome == "Succeeded":
        return GuestExit(0, "the guest shut down" if state.reason == "shutdown" else f"the guest ended: {state.reason}")
    if state.reason == "destroyed":
        return GuestExit(1, NOT_IN_TIME)
    if state.life is Life.CRASHED and state.reason in CRASHES:
        return GuestExit(1, CRASHES[state.reason])
    return GuestExit(1, f"QEMU ended unexpectedly: {state.life.value}, {state.reason}")


def _relevant(events: list[Event]) -> list[Event]:
    """Return the events after which the state must be read again, a closed connection first."""
    relevant = [event for event in events if isinstance(event, LifecycleChanged | ConnectionClosed)]
    return sorted(relevant, key=lambda event: isinstance(event, LifecycleChanged))


async def _close(connection: Connection) -> None:
    try:
        await connection.close()
    except HypervisorError as error:
        log.debug("the connection did not close", extra={"error": str(error)})
