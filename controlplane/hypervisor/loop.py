# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's event loop, built on asyncio's. libvirt's callbacks run on the asyncio loop, whichever thread adds them.

libvirt calls these functions from the threads of calls.py and from its own callbacks. (The binding's libvirtaio uses
asyncio's selector and timers from those threads, which is not allowed.) Descriptors are in a separate epoll, which any
thread may use: when `_remove_handle` returns, the epoll does not have the descriptor any more, so libvirt may close it
and the kernel may reuse its number. The time of each callback is charged to its connection (callback_runner.py). After
each portion of libvirt's work the loop does its other work, so many connections delay it no more than one does.

libvirt reports all events that it has read in one callback of a zero timer. That callback cannot be split: it takes
13 us per event, and receive_quota.py allows ten thousand events at once.
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

from controlplane.hypervisor.callback_runner import CallbackRunner
from controlplane.hypervisor.message_filter import UNEXPECTED_MESSAGE, MessageFilter
from controlplane.hypervisor.transport import Transport, transport_of_thread

_MAX_DESCRIPTORS = 64
"""Limit of descriptors to serve before the loop does its other work."""
_PORTION_SECONDS = 0.01
"""Processor time after which the loop does its other work: enough for a hundred ordinary events."""


@dataclass(slots=True, eq=False)
class _Handle:
    number: int
    descriptor: int
    callback: Callable[..., None]
    opaque: Any
    transport: Transport | None
    events: int = 0


@dataclass(slots=True, eq=False)
class _Timer:
    number: int
    callback: Callable[..., None]
    opaque: Any
    transport: Transport | None
    milliseconds: int = -1
    """Negative: disabled."""
    is_removed: bool = False
    due: asyncio.Handle | None = None


class EventLoop:
    """The functions that libvirt needs of an event loop."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._thread = threading.get_ident()
        self._runner = CallbackRunner()
        self._used_seconds = 0.0
        """Processor time of the current portion."""
        self._is_paused = False
        self._numbers = itertools.count(1)
        self._epoll = select.epoll()
        self._handles: dict[int, _Handle] = {}
        self._by_descriptor: dict[int, _Handle] = {}
        self._timers: dict[int, _Timer] = {}
        self._loop.add_reader(self._epoll.fileno(), self._dispatch)

    def register(self) -> None:
        """Make this the process's libvirt event loop. Call it before the first connection."""
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
            return -1  # an epoll has one entry per descriptor, which is enough for libvirt's client
        handle = _Handle(next(self._numbers), descriptor, callback, opaque, transport_of_thread())
        self._handles[handle.number] = self._by_descriptor[descriptor] = handle
        if handle.transport is not None:
            handle.transport.attach(descriptor)
            handle.transport.install_filter(lambda: self._filter(handle))
        self._update_handle(handle.number, events)
        return handle.number

    def _filter(self, handle: _Handle) -> MessageFilter:
        def run(callback: Callable[[], None]) -> None:
            self._run(handle.transport, callback)

        def refuse() -> None:
            if handle.transport is not None:
                handle.transport.cut(UNEXPECTED_MESSAGE)

        return MessageFilter(self._loop, handle.descriptor, run=run, refuse=refuse)

    def _update_handle(self, number: int, events: int) -> None:
        handle = self._handles[number]
        mask = select.EPOLLIN if events & libvirt.VIR_EVENT_HANDLE_READABLE else 0
        mask |= select.EPOLLOUT if events & libvirt.VIR_EVENT_HANDLE_WRITABLE else 0
        if mask and handle.events:
            self._epoll.modify(handle.descriptor, mask)
        elif mask:
            self._epoll.register(handle.descriptor, mask)
        elif handle.events:  # an epoll reports a hang-up even for an empty mask
            self._epoll.unregister(handle.descriptor)
        handle.events = events if mask else 0

    def _remove_handle(self, number: int) -> int:
        handle = self._handles.pop(number, None)
        if handle is None:
            return -1
        if handle.transport is not None:
            handle.transport.detach(handle.descriptor)
        if handle.events:
            handle.events = 0
            self._epoll.unregister(handle.descriptor)
        del self._by_descriptor[handle.descriptor]
        self._on_loop(self._free, handle)
        return 0

    def _add_timeout(self, milliseconds: int, callback: Callable[..., None], opaque: Any) -> int:
        timer = _Timer(next(self._numbers), callback, opaque, transport_of_thread())
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
        if timer.is_removed or timer.milliseconds < 0:  # another thread has just disabled it
            return
        self._run(timer.transport, timer.callback, timer.number, timer.opaque)
        if timer.due is None:
            self._arm(timer)

    def _free(self, entry: _Handle | _Timer) -> None:
        """Let libvirt free its data. It may close a socket with unread data, so its time is charged as well."""
        self._run(entry.transport, libvirt.virEventInvokeFreeCallback, entry.opaque)

    def _dispatch(self) -> None:
        """Serve one ready descriptor after another. The epoll first returns the one that was served longest ago."""
        for _unused in range(_MAX_DESCRIPTORS):
            ready = [] if self._is_paused else self._epoll.poll(0, 1)
            if not ready:
                return
            self._serve(*ready[0])

    def _serve(self, descriptor: int, mask: int) -> None:
        handle = self._by_descriptor.get(descriptor)
        if handle is None:  # another thread has just removed it
            return
        events = libvirt.VIR_EVENT_HANDLE_WRITABLE if mask & select.EPOLLOUT else 0
        if mask & ~select.EPOLLOUT:  # a hang-up too: libvirt reads it, after the data that came before it
            events |= libvirt.VIR_EVENT_HANDLE_READABLE
        events &= handle.events
        if events:
            self._run(handle.transport, handle.callback, handle.number, descriptor, events, handle.opaque)

    def _run(self, transport: Transport | None, callback: Callable[..., None], *arguments: Any) -> None:
        self._used_seconds += self._runner.run(transport, callback, *arguments)
        if self._used_seconds >= _PORTION_SECONDS and not self._is_paused:
            self._is_paused = True
            self._loop.call_soon(self._resume)

    def _resume(self) -> None:
        self._used_seconds, self._is_paused = 0.0, False
