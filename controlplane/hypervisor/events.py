# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Callbacks of libvirt become frozen events on a queue. They say "look again", never what is true now.

What a domain does is asked of `Guest.state`: events can be lost with a connection, and a flood of them is cut here.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import libvirt

_QUEUE_LIMIT = 256
_WORD_LIMIT = 256
_PORTION = 32
"""Events of a connection in one turn of the loop, half a millisecond's work: libvirt tells all that it has read."""
_PATIENCE_SECONDS = 1.0
"""With a loop that does not turn."""

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


class EventQueue:
    """What happened on one connection, in order. When nobody reads, the oldest goes first."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        """loop: of who gets them, to be told by other threads."""
        self._queue: asyncio.Queue[Event] = asyncio.Queue(_QUEUE_LIMIT)
        self._told: deque[Event] = deque(maxlen=_QUEUE_LIMIT)
        self._is_taken = threading.Event()
        self._lock = threading.Lock()
        self._has_ended = False
        self._loop = loop

    def put(self, event: Event) -> None:
        """Take an event in; called on the loop's thread."""
        if self._queue.full():
            self._queue.get_nowait()
        self._queue.put_nowait(event)

    def tell(self, event: Event) -> None:
        """Take an event in; from any thread. Nothing is taken after the last.

        Blocks when the loop has not taken the portion before: whoever tells without end takes Python's lock each time.
        """
        if self._loop is None:
            return
        with self._lock:
            if self._has_ended:
                return
            self._has_ended = isinstance(event, ConnectionClosed)
            self._told.append(event)
            is_first, is_full = len(self._told) == 1, len(self._told) >= _PORTION and not self._has_ended
            if is_first:
                self._is_taken.clear()
        if is_first:  # the loop is woken once for all that come before its next turn
            with suppress(RuntimeError):  # it is closed: the process ends
                self._loop.call_soon_threadsafe(self._put_all)
        if is_full:
            self._is_taken.wait(_PATIENCE_SECONDS)

    def _put_all(self) -> None:
        with self._lock:
            taken = tuple(self._told)
            self._told.clear()
            self._is_taken.set()
        for event in taken:
            self.put(event)

    async def get(self) -> Event:
        """Wait for the next event."""
        return await self._queue.get()

    def drain(self) -> list[Event]:
        """Take all there are, without waiting."""
        return [self._queue.get_nowait() for _unused in range(self._queue.qsize())]


def subscriptions(put: Callable[[Event], None]) -> tuple[tuple[int, Callable[..., None]], ...]:
    """List the kinds of libvirt's events that we want, each with the callback that puts them."""

    def on_lifecycle(_unused: Any, domain: Any, event: int, detail: int, __: Any) -> None:  # noqa: ARG001
        put(LifecycleChanged(name_of(domain), _lifecycle_word(event)))

    def on_agent(_unused: Any, domain: Any, state: int, reason: int, __: Any) -> None:  # noqa: ARG001
        connected = libvirt.VIR_CONNECT_DOMAIN_EVENT_AGENT_LIFECYCLE_STATE_CONNECTED
        put(AgentChanged(name_of(domain), state == connected))

    return (
        (libvirt.VIR_DOMAIN_EVENT_ID_LIFECYCLE, on_lifecycle),
        (libvirt.VIR_DOMAIN_EVENT_ID_AGENT_LIFECYCLE, on_agent),
    )


def register(connection: Any, put: Callable[[Event], None], registrations: list[int]) -> None:
    """Subscribe to events; blocking. registrations: gets each as soon as it is made, for `deregister`."""
    for kind, callback in subscriptions(put):
        registrations.append(connection.domainEventRegisterAny(None, kind, callback, None))


def deregister(connection: Any, registrations: Iterable[int]) -> None:
    """Take subscriptions back; blocking. Also on a dead connection, which each of them keeps in memory."""
    for one in registrations:
        with suppress(libvirt.libvirtError):
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
