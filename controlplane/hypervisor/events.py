# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Turns libvirt's callbacks into values on a queue. An event is a reason to read the state, never the state itself.

Read the state with `Guest.state`: events are lost with a connection, and a full queue drops the oldest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import libvirt

from controlplane.hypervisor.errors import FAILURES

_QUEUE_LIMIT = 256
_NAME_LIMIT = 256

_LIFECYCLE = (
    "DEFINED",
    "UNDEFINED",
    "STARTED",
    "SUSPENDED",
    "RESUMED",
    "STOPPED",
    "SHUTDOWN",
    "PMSUSPENDED",
    "CRASHED",
)


@dataclass(frozen=True, slots=True)
class LifecycleChanged:
    """A domain was defined, started, stopped, ...

    kind: libvirt's name of the event in lower case, "other" if it is unknown. A pause by an I/O error is also this
    event: libvirt's I/O error event has a path, which may not be UTF-8.
    """

    domain: str
    kind: str
    cause: str = ""
    """Why QEMU ends: "panicked" (the guest's kernel) or "watchdog"; libvirt's state only has "crashed"."""


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """The guest's agent connected or disconnected."""

    domain: str
    is_connected: bool


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The connection is closed. The last event of a connection. reason: eof, keepalive, client, error, unknown."""

    reason: str


Event = LifecycleChanged | AgentChanged | ConnectionClosed


def cause_of_end(events: Iterable[Event]) -> str:
    """Return why QEMU ends, by the last event with a cause; "" for none."""
    causes = [event.cause for event in events if isinstance(event, LifecycleChanged) and event.cause]
    return causes[-1] if causes else ""


class EventQueue:
    """The events of one connection, in order. A full queue drops the oldest."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE_LIMIT)

    def put(self, event: Event) -> None:
        """Add an event. Called in the loop's thread."""
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(event)

    async def get(self) -> Event:
        """Wait for the next event."""
        return await self._queue.get()

    def drain(self) -> list[Event]:
        """Take all events that are queued, without waiting."""
        return [self._queue.get_nowait() for _unused in range(self._queue.qsize())]


def subscriptions(put: Callable[[Event], None]) -> tuple[tuple[int, Callable[..., None]], ...]:
    """Return libvirt's kinds of events that we need, each with its callback."""

    def on_lifecycle(_unused: Any, domain: Any, event: int, detail: int, __: Any) -> None:
        # With a loaded crash kernel, libvirt reports CRASHLOADED: the guest continues, and ends for another cause.
        is_panic = (event, detail) == (libvirt.VIR_DOMAIN_EVENT_CRASHED, libvirt.VIR_DOMAIN_EVENT_CRASHED_PANICKED)
        put(LifecycleChanged(name_of(domain), _lifecycle_kind(event), "panicked" if is_panic else ""))

    def on_watchdog(_unused: Any, domain: Any, action: int, __: Any) -> None:
        # After another action, e.g. a reset, the guest continues: a later crash has another cause.
        is_end = action == libvirt.VIR_DOMAIN_EVENT_WATCHDOG_POWEROFF
        put(LifecycleChanged(name_of(domain), "watchdog", "watchdog" if is_end else ""))

    def on_agent(_unused: Any, domain: Any, state: int, reason: int, __: Any) -> None:  # noqa: ARG001
        connected = libvirt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED
        put(AgentChanged(name_of(domain), state == connected))

    return (
        (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, on_lifecycle),
        (libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, on_agent),
        (libvirt.VIR_DOMAIN_EVENT_ID_WATCHDOG, on_watchdog),
    )


def register(connection: Any, put: Callable[[Event], None], registrations: list[int]) -> None:
    """Subscribe to events; blocks. registrations: gets each registration at once, for `deregister`."""
    for kind, callback in subscriptions(put):
        registrations.append(connection.domainEventRegisterAny(None, kind, callback, None))


def deregister(connection: Any, registrations: Iterable[int]) -> None:
    """Unsubscribe; blocks. Needed on a dead connection too, because each registration keeps it in memory."""
    for registration in registrations:
        with suppress(*FAILURES):
            connection.domainEventDeregisterAny(registration)


def name_of(domain: Any) -> str:
    """Return the name that the peer reports for a domain, cut to a limit."""
    try:
        return str(domain.name()[:_NAME_LIMIT])
    except UnicodeError:
        return "(not UTF-8)"


def close_reason(reason: int) -> str:
    """Translate libvirt's reason for a closed connection."""
    reasons = ("ERROR", "EOF", "KEEPALIVE", "CLIENT")
    by_number = {getattr(libvirt, f"VIR_CONNECT_CLOSE_REASON_{name}", None): name.lower() for name in reasons}
    return by_number.get(reason, "unknown")


def _lifecycle_kind(event: int) -> str:
    by_number = {getattr(libvirt, f"VIR_DOMAIN_EVENT_{kind}", None): kind.lower() for kind in _LIFECYCLE}
    return by_number.get(event, "other")
