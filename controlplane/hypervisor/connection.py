# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection to one libvirtd: open, close, the domains, the events.

libvirt's callbacks run on the asyncio loop (loop.py). The implementation is process-wide and must be registered before
the first connection: `register_event_loop` at the start of the process.

The other side may be a tenant's. A call that is overdue ends the connection; so does closing it, without a goodbye.
Domains of a connection that is closed are let go with it, in a thread: the last reference to a connection is what makes
libvirt say one, and wait for an answer (wire.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import libvirt

from controlplane.domain.host_cpu import host_model, read_host_cpu
from controlplane.hypervisor import events
from controlplane.hypervisor.calls import DEADLINE_SECONDS, call
from controlplane.hypervisor.errors import FAILURES, NoSuchDomain, TimedOut
from controlplane.hypervisor.guest import Guest
from controlplane.hypervisor.loop import EventLoop
from controlplane.hypervisor.watch import watch
from controlplane.hypervisor.wire import CLIENT, Wire
from controlplane.process.thread_interrupt import make_interruptible

CLOSE_SECONDS = 1.0
KEEPALIVE_SECONDS = 15
KEEPALIVE_COUNT = 2
"""An idle connection to a libvirtd that hangs is given up after 45 s, one with a call under way after the call's
deadline, one to a libvirtd that dies at once."""


def register_event_loop() -> None:
    """Let libvirt use the running asyncio loop; once per process, in its main thread, before the first connection."""
    libvirt.registerErrorHandler(_be_quiet, None)
    make_interruptible()
    watch()
    EventLoop().register()


def socket_uri(path: str) -> str:
    """Name the session libvirtd behind a socket. path: absolute, e.g. /proc/self/fd/7; no characters to escape."""
    if not path.startswith("/") or set(path) & set("?#&%; ") or not path.isprintable():
        raise ValueError(f"{path!r} cannot stand in a libvirt URI")
    return f"qemu+unix:///session?socket={path}"


class Connection:
    """An open connection. Make one with `open_connection`."""

    def __init__(self, handle: Any, uri: str, wire: Wire, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._handle = handle
        self._uri = uri
        self._wire = wire
        self._deadline = deadline_seconds
        self._loop = asyncio.get_running_loop()
        self._registrations: list[int] = []
        self._guests: WeakSet[Guest] = WeakSet()
        self.events = events.EventQueue()

    async def guest(self, name: str) -> Guest | None:
        """Look a domain up; None when libvirt knows none of that name."""
        try:
            found = await self._call(f"look up domain {name}", self._handle.lookupByName, name)
        except NoSuchDomain:
            return None
        return self._keep(Guest(found, name, self._wire, self._deadline))

    async def define(self, xml: str) -> Guest:
        """Define a domain, or replace the definition of the one with the same name and UUID. InvalidDomain."""
        made = await self._call("define a domain", self._handle.defineXML, xml)
        return self._keep(Guest(made, events.name_of(made), self._wire, self._deadline))

    async def receive(
        self, guest: Guest, parameters: Mapping[str, object], flags: int, *, deadline_seconds: float
    ) -> Guest:
        """Have a guest of another connection come here. HypervisorError. See hypervisor.migration."""
        made = await guest.sent(self._handle, parameters, flags, wire=self._wire, deadline_seconds=deadline_seconds)
        return self._keep(Guest(made, guest.name, self._wire, self._deadline))

    async def host_cpu(self) -> dict[str, Any] | None:
        """Say what the node's processor is and has for guests that use KVM; None where none can have it."""
        about = (None, "x86_64", "q35", "kvm")
        said = await self._call("ask what a domain can have", self._handle.getDomainCapabilities, *about, 0)
        model = host_model(said)
        if model is None:
            return None
        expand = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        ask = self._handle.baselineHypervisorCPU
        return read_host_cpu(said, await self._call("ask what its processor has", ask, *about, [model], expand))

    async def ping(self, deadline_seconds: float) -> None:
        """Ask for something that needs no domain, to see that libvirtd answers. TimedOut ends the connection."""
        await call("ping", self._handle.getLibVersion, deadline_seconds=deadline_seconds, wire=self._wire)

    async def close(self) -> None:
        """Let go of the connection, dead or alive. The domains do not notice."""
        try:
            # Not on its wire: calls of others may be under way there, and are waited for.
            await call("close the connection", self._close, deadline_seconds=CLOSE_SECONDS, payer=self._wire)
        except TimedOut:
            return  # it will be closed in a moment: the wire is cut
        finally:
            self._wire.cut(CLIENT)

    def _keep(self, guest: Guest) -> Guest:
        self._guests.add(guest)
        return guest

    async def _call(self, doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return await call(doing, function, *arguments, deadline_seconds=self._deadline, wire=self._wire)

    def _close(self) -> None:
        self._wire.retire(CLOSE_SECONDS / 2)
        events.deregister(self._handle, self._registrations)
        with suppress(*FAILURES):  # it was gone before
            self._handle.unregisterCloseCallback()
        for guest in tuple(self._guests):  # whoever keeps one, or an error that does
            guest.let_go()
        _let_go(self._handle)

    async def _prepare(self, keepalive_seconds: int) -> None:
        await self._call("watch the connection", self._handle.registerCloseCallback, self._on_close, None)
        if keepalive_seconds and self._uri.startswith("qemu"):  # other drivers have no wire to keep alive
            every = (keepalive_seconds, KEEPALIVE_COUNT)
            await self._call("keep the connection alive", self._handle.setKeepAlive, *every)
        await self._call("watch the domains", events.register, self._handle, self._told, self._registrations)

    def _told(self, event: events.Event) -> None:
        self._wire.completed()
        self.events.put(event)

    def _on_close(self, _unused: Any, reason: int, __: Any) -> None:
        """Called in whatever thread reads that the other side says so."""
        closed = events.ConnectionClosed(self._wire.because or events.close_reason(reason))
        with suppress(RuntimeError):  # the loop is closed: the process ends
            self._loop.call_soon_threadsafe(self.events.put, closed)


async def open_connection(
    uri: str, *, deadline_seconds: float = DEADLINE_SECONDS, keepalive_seconds: int = KEEPALIVE_SECONDS
) -> Connection:
    """Open a connection and subscribe to its events. HypervisorError (Disconnected when nobody listens).

    deadline_seconds: of this and of every call that has none of its own.
    keepalive_seconds: libvirt asks a silent libvirtd so often whether it is there; 0: never, the caller sees to it.
    """
    wire = Wire()
    handle = await call(
        f"connect to {uri}", libvirt.open, uri, deadline_seconds=deadline_seconds, wire=wire, discard=_let_go
    )
    connection = Connection(handle, uri, wire, deadline_seconds)
    try:
        wire.opened()
        await connection._prepare(keepalive_seconds)
    except BaseException:
        await connection.close()
        raise
    return connection


def _let_go(handle: Any) -> None:
    with suppress(*FAILURES):  # it was gone before
        handle.close()


def _be_quiet(_unused: Any, __: Any) -> None:
    """Keep libvirt from printing errors: they are raised as well."""
