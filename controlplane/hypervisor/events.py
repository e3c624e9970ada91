# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks of libvirt become frozen events on a queue. They say "look again", never what is true now.

What a domain does is asked of `Guest.state`: events can be lost with a connection, and a flood of them is cut here.
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
_WORD_LIMIT = 256

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
    """A domain was defined, started, stopped, ...: kind is libvirt's word in lower case, "other" if unknown to us.

    So is a pause by an I/O error: libvirt's own event of that comes with a path, which may be no text.
    """

    domain: str
    kind: str
    cause: str = ""
    """Why its QEMU ends with this: "panicked" (its kernel), "watchdog"; libvirt's state will only say "crashed"."""


@dataclass(frozen=True, slots=True)
class AgentChanged:
    """The guest's agent came or went."""

    domain: str
    is_connected: bool


@dataclass(frozen=True, slots=True)
class ConnectionClosed:
    """The connection is gone: eof, keepalive, client, error. The last event of a connection."""

    reason: str


Event = LifecycleChanged | AgentChanged | ConnectionClosed


def cause_of_end(happened: Iterable[Event]) -> str:
    """Return why QEMU ends, as the last of these events tells it; "" when none does."""
    causes = [one.cause for one in happened if isinstance(one, LifecycleChanged) and one.cause]
    return causes[-1] if causes else ""


class EventQueue:
    """What happened on one connection, in order. When nobody reads, the oldest goes first."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE_LIMIT)

    def put(self, event: Event) -> None:
        """Take an event in; called on the loop's thread."""
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(event)

    async def get(self) -> Event:
        """Wait for the next event."""
        return await self._queue.get()

    def drain(self) -> list[Event]:
        """Take all there are, without waiting."""
        return [self._queue.get_nowait() for _unused in range(self._queue.qsize())]


def subscriptions(put: Callable[[Event], None]) -> tuple[tuple[int, Callable[..., None]], ...]:
    """List the kinds of libvirt's events that we want, each with the callback that puts them."""

    def on_lifecycle(_unused: Any, domain: Any, event: int, detail: int, __: Any) -> None:
        is_panic = (event, detail) == (libvirt.VIR_DOMAIN_EVENT_CRASHED, libvirt.VIR_DOMAIN_EVENT_CRASHED_PANICKED)
        put(LifecycleChanged(name_of(domain), _lifecycle_word(event), "panicked" if is_panic else ""))

    def on_watchdog(_unused: Any, domain: Any, action: int, __: Any) -> None:
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
    """Subscribe to events; blocking. registrations: gets each as soon as it is made, for `deregister`."""
    for kind, callback in subscriptions(put):
        registrations.append(connection.domainEventRegisterAny(None, kind, callback, None))


def deregister(connection: Any, registrations: Iterable[int]) -> None:
    """Take subscriptions back; blocking. Also on a dead connection, which each of them keeps in memory."""
    for one in registrations:
        with suppress(*FAILURES):
            connection.domainEventDeregisterAny(one)


def name_of(domain: Any) -> str:
    """Return what the other side calls a domain, bounded."""
    try:
        return str(domain.name()[:_WORD_LIMIT])
    except UnicodeError:
        return "(not UTF-8)"


def close_reason(reason: int) -> str:
    """Name libvirt's reason of a closed connection."""
    words = ("ERROR", "EOF", "KEEPALIVE", "CLIENT")
    found = {getattr(libvirt, f"VIR_CONNECT_CLOSE_REASON_{word}", None): word.lower() for word in words}
    return found.get(reason, "unknown")


def _lifecycle_word(event: int) -> str:
    found = {getattr(libvirt, f"VIR_DOMAIN_EVENT_{word}", None): word.lower() for word in _LIFECYCLE}
    return found.get(event, "other")
