# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the guest's run ends: seen through our own libvirt connection, and brought about when the Pod is to go.

Nothing is concluded from silence: while libvirtd is away or knows no domain yet, the guest's run goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from controlplane.api.launch_plan import CRASHES, NOT_IN_TIME
from controlplane.domain.state import Life, State, derive_outcome, explain_crash
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.errors import HypervisorError, WrongState
from controlplane.hypervisor.events import ConnectionClosed, Event, LifecycleChanged, cause_of_end
from controlplane.hypervisor.guest import Guest
from controlplane.virt_launcher.guest.libvirtd_liveness import ANSWER_SECONDS, LibvirtdLiveness

REPEAT_SECONDS = 5.0
"""Some guests miss the first press of the power button."""
_RETRY_SECONDS = 0.02
_LAST_RETRY_SECONDS = 1.0

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Verdict:
    """How the run ended: the exit code of the Pod, and one line for its termination log."""

    exit_code: int
    message: str


class GuestWatch:
    """Follows one domain through the lives of libvirtd. is_acpi_expected: see `derive_outcome`."""

    def __init__(self, name: str, socket: str, liveness: LibvirtdLiveness, *, is_acpi_expected: bool) -> None:
        """liveness beats whenever libvirtd answers."""
        self._name, self._uri = name, socket_uri(socket)
        self._pulse = liveness
        self._is_acpi_expected = is_acpi_expected
        self._cause = ""
        """Why QEMU ends, as events have told."""
        self._guest: Guest | None = None
        self._has_looked = asyncio.Event()
        """We are connected, and know the domain if there is one."""

    async def verdict(self) -> Verdict:
        """Wait until the guest's run has ended, and say how. Reconnects for ever."""
        delay = _RETRY_SECONDS
        while True:
            try:
                connection = await open_connection(self._uri, keepalive_seconds=0)  # _next asks instead
            except HypervisorError as error:
                log.debug("libvirtd is not there yet", extra={"error": str(error)})
                await asyncio.sleep(delay)
                delay = min(delay * 2, _LAST_RETRY_SECONDS)
                continue
            delay = _RETRY_SECONDS
            try:
                if found := await self._follow(connection):
                    return found
            except HypervisorError as error:
                log.warning("lost libvirtd, connecting again", extra={"error": str(error)})
                await asyncio.sleep(_RETRY_SECONDS)
            finally:
                self._has_looked.clear()
                self._guest = None  # a domain keeps its connection open, even beyond the end of the event loop
                await _close(connection)

    async def _follow(self, connection: Connection) -> Verdict | None:
        """Look, then look again at each event; None when the connection ends first."""
        while True:
            self._guest = await connection.guest(self._name)
            state = await self._guest.state() if self._guest is not None else None
            happened = (
                connection.events.drain()
            )  # what was told until it answered: the cause may be behind other events
            self._cause = cause_of_end(happened) or self._cause
            state = None if state is None else explain_crash(state, self._cause)
            self._pulse.beat()
            self._has_looked.set()
            if state is not None and (found := judge(state, is_acpi_expected=self._is_acpi_expected)):
                return found
            event = next(iter(_telling(happened)), None) or await self._next(connection)
            while not isinstance(event, LifecycleChanged):
                if isinstance(event, ConnectionClosed):
                    log.warning("libvirtd went away", extra={"because": event.reason})
                    return None
                event = await self._next(connection)
            self._cause = cause_of_end((event,)) or self._cause

    async def _next(self, connection: Connection) -> Event:
        """Wait for an event, and see now and then that libvirtd answers. TimedOut when it does not.

        Counted from the last answer, whatever events come: each one that put the question off would bring the moment
        nearer in which libvirtd counts as hung.
        """
        while True:
            if self._pulse.seconds_to_ping() <= 0:
                await connection.ping(ANSWER_SECONDS)
                self._pulse.beat()
            with suppress(TimeoutError):
                async with asyncio.timeout(max(0.0, self._pulse.seconds_to_ping())):
                    return await connection.events.get()

    async def bring_down(self, grace_seconds: float) -> Verdict:
        """Press the power button, again and again, and pull the plug after the grace period.

        Returns only when nothing runs that could be brought down; else goes on until it is cancelled, because
        `verdict` has seen the end.
        """
        loop = asyncio.get_running_loop()
        deadline = loop.time() + grace_seconds
        while (left := deadline - loop.time()) > 0:
            if (found := await self._ask(within_seconds=left)) is not None:
                return found
            await self._tell(Guest.shutdown)
            await asyncio.sleep(min(REPEAT_SECONDS, max(deadline - loop.time(), 0)))
        log.warning("pulling the plug", extra={"grace_seconds": grace_seconds})
        while True:
            if (found := await self._ask(within_seconds=REPEAT_SECONDS)) is not None:
                return found
            await self._tell(Guest.destroy)
            await asyncio.sleep(_LAST_RETRY_SECONDS)
            await self._tell(Guest.kill)
            await asyncio.sleep(_LAST_RETRY_SECONDS)

    async def _ask(self, *, within_seconds: float) -> Verdict | None:
        """Ask libvirt whether anything runs; None while something does, or may because it cannot be asked.

        What was seen last is not enough: a start that fails has a domain that is up for some 20 ms, and no event says
        that it is not any more.
        """
        try:
            async with asyncio.timeout(within_seconds):
                await self._has_looked.wait()
            state = None if self._guest is None else explain_crash(await self._guest.state(), self._cause)
        except (TimeoutError, HypervisorError):
            return None
        if state is None or not state.life.is_up:
            if state is not None and state.reason == "migrated":
                return Verdict(0, "the guest has moved to another node")
            found = None if state is None else judge(state, is_acpi_expected=self._is_acpi_expected)
            return found or Verdict(1, "the Pod was ended before its guest ran")
        return None

    async def _tell(self, verb: Callable[[Guest], Awaitable[None]]) -> None:
        """Do something to the guest; if it fails, the caller comes again."""
        if self._guest is None:
            return
        try:
            await verb(self._guest)
        except WrongState:
            return  # it is off already: the next question finds that out
        except HypervisorError as error:
            log.warning("the guest could not be told", extra={"error": str(error)})


def judge(state: State, *, is_acpi_expected: bool) -> Verdict | None:
    """Turn a state into a verdict; None while the run goes on."""
    outcome = derive_outcome(state, is_acpi_expected=is_acpi_expected)
    if outcome is None:
        return None
    if outcome == "Succeeded":
        return Verdict(0, "the guest shut down" if state.reason == "shutdown" else f"the guest ended: {state.reason}")
    if state.reason == "destroyed":
        return Verdict(1, NOT_IN_TIME)
    if state.life is Life.CRASHED and state.reason in CRASHES:
        return Verdict(1, CRASHES[state.reason])
    return Verdict(1, f"QEMU ended unexpectedly: {state.life.value}, {state.reason}")


def _telling(happened: list[Event]) -> list[Event]:
    """Return those after which there is to be looked again, a closed connection first."""
    told = [one for one in happened if isinstance(one, LifecycleChanged | ConnectionClosed)]
    return sorted(told, key=lambda one: isinstance(one, LifecycleChanged))


async def _close(connection: Connection) -> None:
    try:
        await connection.close()
    except HypervisorError as error:
        log.debug("the connection did not close", extra={"error": str(error)})
