# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's event loop on asyncio's: its callbacks run there, whatever thread asks for them.

libvirt calls these functions from the threads of calls.py as well as from its own callbacks. (The binding's libvirtaio
takes asyncio's selector and timers from there, which are the loop's thread's alone.) Descriptors are in an epoll of
their own, which is safe from any thread: one is gone from it when `_remove_handle` returns, so libvirt may close it
and another may get its number. What a callback costs is charged to its connection (running.py), and between portions of
what libvirt does the loop does its other work: several connections together take no more of a turn than one. What
libvirt has read of events it tells in one callback, of a timer of no time, however many they are (13 us each, and
intake.py allows ten thousand at once).
"""

from __future__ import annotations

import asyncio
import itertools
import select
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import libvirt

from controlplane.hypervisor.gate import UNASKED, Gate
from controlplane.hypervisor.running import Running
from controlplane.hypervisor.wire import Wire, wire_of_thread

_AT_ONCE = 64
"""Descriptors that are served before others on the loop get their turn."""
_PORTION_SECONDS = 0.01
"""Of processor time, after which they get it as well: a hundred honest events."""


@dataclass(slots=True, eq=False)
class _Handle:
    number: int
    descriptor: int
    callback: Callable[..., None]
    opaque: Any
    wire: Wire | None
    events: int = 0


@dataclass(slots=True, eq=False)
class _Timer:
    number: int
    callback: Callable[..., None]
    opaque: Any
    wire: Wire | None
    milliseconds: int = -1
    """Negative: it sleeps."""
    is_removed: bool = False
    due: asyncio.Handle | None = None


class EventLoop:
    """What libvirt asks of an event loop; `register` makes it the one of this process."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._running = Running()
        self._used = 0.0
        """Of this portion."""
        self._is_paused = False
        self._numbers = itertools.count(1)
        self._epoll = select.epoll()
        self._handles: dict[int, _Handle] = {}
        self._by_descriptor: dict[int, _Handle] = {}
        self._timers: dict[int, _Timer] = {}
        self._loop.add_reader(self._epoll.fileno(), self._dispatch)

    def register(self) -> None:
        """Become the event loop of this process; before the first connection."""
        libvirt.virEventRegisterImpl(
            self._add_handle,
            self._update_handle,
            self._remove_handle,
            self._add_timeout,
            self._update_timeout,
            self._remove_timeout,
        )

    def _add_handle(self, descriptor: int, events: int, callback: Callable[..., None], opaque: Any) -> int:
        if descriptor in self._by_descriptor:
            return -1  # an epoll has one entry for each; libvirt's client asks for no more
        handle = _Handle(next(self._numbers), descriptor, callback, opaque, wire_of_thread())
        self._handles[handle.number] = self._by_descriptor[descriptor] = handle
        if handle.wire is not None:
            handle.wire.attach(descriptor)
            handle.wire.guard(lambda: self._gate(handle))
        self._update_handle(handle.number, events)
        return handle.number

    def _gate(self, handle: _Handle) -> Gate:
        def run(callback: Callable[[], None]) -> None:
            self._run(handle.wire, callback)

        def refuse() -> None:
            if handle.wire is not None:
                handle.wire.cut(UNASKED)

        return Gate(self._loop, handle.descriptor, run=run, refuse=refuse)

    def _update_handle(self, number: int, events: int) -> None:
        handle = self._handles[number]
        mask = select.EPOLLIN if events & libvirt.VIR_EVENT_HANDLE_READABLE else 0
        mask |= select.EPOLLOUT if events & libvirt.VIR_EVENT_HANDLE_WRITABLE else 0
        if mask and handle.events:
            self._epoll.modify(handle.descriptor, mask)
        elif mask:
            self._epoll.register(handle.descriptor, mask)
        elif handle.events:  # an epoll tells of the other side's end even when it is asked for nothing
            self._epoll.unregister(handle.descriptor)
        handle.events = events if mask else 0

    def _remove_handle(self, number: int) -> int:
        handle = self._handles.pop(number, None)
        if handle is None:
            return -1
        if handle.wire is not None:
            handle.wire.detach(handle.descriptor)
        if handle.events:
            handle.events = 0
            self._epoll.unregister(handle.descriptor)
        del self._by_descriptor[handle.descriptor]
        self._on_loop(self._free, handle)
        return 0

    def _add_timeout(self, milliseconds: int, callback: Callable[..., None], opaque: Any) -> int:
        timer = _Timer(next(self._numbers), callback, opaque, wire_of_thread())
        self._timers[timer.number] = timer
        self._update_timeout(timer.number, milliseconds)
        return timer.number

    def _update_timeout(self, number: int, milliseconds: int) -> None:
        timer = self._timers[number]
        timer.milliseconds = milliseconds
        if threading.get_ident() == self._thread:
            self._arm(timer)
        else:
            self._on_loop(self._arm, timer)

    def _remove_timeout(self, number: int) -> int:
        timer = self._timers.pop(number, None)
        if timer is None:
            return -1
        timer.is_removed, timer.milliseconds = True, -1
        self._on_loop(self._arm, timer)
        self._on_loop(self._free, timer)
        return 0

    def _on_loop(self, function: Callable[..., None], *arguments: Any) -> None:
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(function, *arguments)

    def _arm(self, timer: _Timer) -> None:
        if timer.due is not None:
            timer.due.cancel()
            timer.due = None
        if timer.milliseconds > 0:
            timer.due = self._loop.call_later(timer.milliseconds / 1000, self._fire, timer)
        elif timer.milliseconds == 0:
            timer.due = self._loop.call_soon(self._fire, timer)

    def _fire(self, timer: _Timer) -> None:
        timer.due = None
        if timer.is_removed or timer.milliseconds < 0:  # a thread has stopped it a moment ago
            return
        self._run(timer.wire, timer.callback, timer.number, timer.opaque)
        if timer.due is None:
            self._arm(timer)

    def _free(self, what: _Handle | _Timer) -> None:
        """Let libvirt let go: it may be the last that keeps a socket, and what nobody has read of it."""
        self._run(what.wire, libvirt.virEventInvokeFreeCallback, what.opaque)

    def _dispatch(self) -> None:
        """Serve them one by one: of several that are ready, the epoll tells first of who was served longest ago."""
        for _unused in range(_AT_ONCE):
            ready = [] if self._is_paused else self._epoll.poll(0, 1)
            if not ready:
                return
            self._serve(*ready[0])

    def _serve(self, descriptor: int, mask: int) -> None:
        handle = self._by_descriptor.get(descriptor)
        if handle is None:  # a thread has removed it a moment ago
            return
        events = libvirt.VIR_EVENT_HANDLE_WRITABLE if mask & select.EPOLLOUT else 0
        if mask & ~select.EPOLLOUT:  # an end is found by reading, after what came before it
            events |= libvirt.VIR_EVENT_HANDLE_READABLE
        events &= handle.events
        if events:
            self._run(handle.wire, handle.callback, handle.number, descriptor, events, handle.opaque)

    def _run(self, wire: Wire | None, callback: Callable[..., None], *arguments: Any) -> None:
        self._used += self._running.run(wire, callback, *arguments)
        if self._used >= _PORTION_SECONDS and not self._is_paused:
            self._is_paused = True
            self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._used, self._is_paused = 0.0, False
