# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection to one libvirtd: opening, closing, its domains and its events.

libvirt's callbacks run on the asyncio loop (loop.py). That event loop is process-wide and must be registered before the
first connection: `register_event_loop` at the start of the process.

The peer may be a tenant's. An overdue call ends the connection. Closing ends it too, without libvirt's closing message:
dropping the last reference to a connection makes libvirt send one and wait for the reply (transport.py). So all domains
of a connection are dropped while it is closed, in a thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import libvirt

from controlplane.domain.host_cpu import host_model, read_emulated_cpu, read_host_cpu, read_machines
from controlplane.hypervisor import events
from controlplane.hypervisor.calls import DEADLINE_SECONDS, call
from controlplane.hypervisor.domain import Domain
from controlplane.hypervisor.errors import FAILURES, NoSuchDomain, TimedOut
from controlplane.hypervisor.loop import EventLoop
from controlplane.hypervisor.transport import CLIENT, Transport
from controlplane.hypervisor.watchdog import watchdog
from controlplane.process.thread_interrupt import make_interruptible

CLOSE_SECONDS = 1.0
KEEPALIVE_SECONDS = 15
KEEPALIVE_COUNT = 2
"""A connection to a hanging libvirtd ends after 45 s, or after the deadline of a call on it. One to a libvirtd that
dies ends at once."""


def register_event_loop() -> None:
    """Let libvirt use the running asyncio loop. Once per process, in its main thread, before the first connection."""
    libvirt.registerErrorHandler(_be_quiet, None)
    make_interruptible()
    watchdog()
    EventLoop().register()


def socket_uri(path: str) -> str:
    """Return the URI of a session libvirtd. path: of its socket, absolute, without characters that need escaping."""
    if not path.startswith("/") or set(path) & set("?#&%; ") or not path.isprintable():
        raise ValueError(f"{path!r} cannot stand in a libvirt URI")
    return f"qemu+unix:///session?socket={path}"


class Connection:
    """An open connection, made by `open_connection`."""

    def __init__(self, handle: Any, uri: str, transport: Transport, deadline_seconds: float = DEADLINE_SECONDS) -> None:
        self._handle = handle
        self._uri = uri
        self._transport = transport
        self._deadline = deadline_seconds
        self._loop = asyncio.get_running_loop()
        self._registrations: list[int] = []
        self._guests: WeakSet[Domain] = WeakSet()
        self.events = events.EventQueue()

    async def guest(self, name: str) -> Domain | None:
        """Look a domain up by name; None when libvirt has none."""
        try:
            handle = await self._call(f"look up domain {name}", self._handle.lookupByName, name)
        except NoSuchDomain:
            return None
        return self._keep(Domain(handle, name, self._transport, self._deadline))

    async def load_capabilities(self) -> None:
        """Make libvirtd load QEMU's capabilities. Otherwise the first `define` waits for that, some 20 ms."""
        await self._call("read QEMU's version", self._handle.getVersion)

    async def define(self, xml: str) -> Domain:
        """Define a domain, or replace the definition with the same name and UUID. InvalidDomain."""
        made = await self._call("define a domain", self._handle.defineXML, xml)
        return self._keep(Domain(made, events.name_of(made), self._transport, self._deadline))

    async def receive(
        self, guest: Domain, parameters: Mapping[str, object], flags: int, *, deadline_seconds: float
    ) -> Domain:
        """Migrate a guest of another connection to this libvirtd (migration.py). HypervisorError."""
        made = await guest.sent(
            self._handle, parameters, flags, transport=self._transport, deadline_seconds=deadline_seconds
        )
        return self._keep(Domain(made, guest.name, self._transport, self._deadline))

    async def host_cpu(self) -> dict[str, Any] | None:
        """Describe processor and boards as guests with KVM see them; None where KVM cannot be used."""
        about = (None, "x86_64", "q35", "kvm")
        capabilities = await self._call("read the domain capabilities", self._handle.getDomainCapabilities, *about, 0)
        model = host_model(capabilities)
        if model is None:
            return None
        expand = libvirt.VIR_CONNECT_BASELINE_CPU_EXPAND_FEATURES
        ask = self._handle.baselineHypervisorCPU
        expanded = await self._call("read the features of its processor", ask, *about, [model], expand)
        described = read_host_cpu(capabilities, expanded)
        return None if described is None else {**described, **await self._machines()}

    async def emulated_cpu(self) -> dict[str, Any]:
        """Describe the processors and boards that guests without KVM can have."""
        about = (None, "x86_64", "q35", "qemu")
        described = read_emulated_cpu(
            await self._call("read the domain capabilities", self._handle.getDomainCapabilities, *about, 0)
        )
        return {**described, **await self._machines()}

    async def _machines(self) -> dict[str, list[str]]:
        return read_machines(await self._call("read the capabilities", self._handle.getCapabilities), "x86_64")

    async def ping(self, deadline_seconds: float) -> None:
        """Check that libvirtd responds. Needs no domain. TimedOut ends the connection."""
        await call("ping", self._handle.getLibVersion, deadline_seconds=deadline_seconds, transport=self._transport)

    async def close(self) -> None:
        """Close the connection, dead or alive. This does not affect the domains."""
        try:
            # Not counted as a user of the transport: it waits until there is no user.
            await call("close the connection", self._close, deadline_seconds=CLOSE_SECONDS, payer=self._transport)
        except TimedOut:
            return  # the transport is cut, so the thread ends in a moment
        finally:
            self._transport.cut(CLIENT)

    def _keep(self, guest: Domain) -> Domain:
        self._guests.add(guest)
        return guest

    async def _call(self, doing: str, function: Callable[..., Any], *arguments: Any) -> Any:
        return await call(doing, function, *arguments, deadline_seconds=self._deadline, transport=self._transport)

    def _close(self) -> None:
        self._transport.retire(CLOSE_SECONDS / 2)
        events.deregister(self._handle, self._registrations)
        with suppress(*FAILURES):  # it was closed before
            self._handle.unregisterCloseCallback()
        for guest in tuple(self._guests):  # callers, and tracebacks, may still hold some
            guest.drop()
        _close_handle(self._handle)

    async def _prepare(self, keepalive_seconds: int) -> None:
        await self._call("watch the connection", self._handle.registerCloseCallback, self._on_close, None)
        if keepalive_seconds and self._uri.startswith("qemu"):  # other drivers have no socket
            every = (keepalive_seconds, KEEPALIVE_COUNT)
            await self._call("keep the connection alive", self._handle.setKeepAlive, *every)
        await self._call("watch the domains", events.register, self._handle, self._on_event, self._registrations)

    def _on_event(self, event: events.Event) -> None:
        self._transport.message_completed()
        self.events.put(event)

    def _on_close(self, _unused: Any, reason: int, __: Any) -> None:
        """Called in the thread that reads the end of the connection."""
        closed = events.ConnectionClosed(self._transport.because or events.close_reason(reason))
        with suppress(RuntimeError):  # the loop is closed: the process is ending
            self._loop.call_soon_threadsafe(self.events.put, closed)


async def open_connection(
    uri: str, *, deadline_seconds: float = DEADLINE_SECONDS, keepalive_seconds: int = KEEPALIVE_SECONDS
) -> Connection:
    """Open a connection and subscribe to its events. HypervisorError (Disconnected when libvirtd does not listen).

    deadline_seconds: of this call, and the default of later ones.
    keepalive_seconds: interval of libvirt's keepalive; 0 for none, when the caller checks the connection itself.
    """
    transport = Transport()
    handle = await call(
        f"connect to {uri}",
        libvirt.open,
        uri,
        deadline_seconds=deadline_seconds,
        transport=transport,
        discard=_close_handle,
    )
    connection = Connection(handle, uri, transport, deadline_seconds)
    try:
        transport.allow_events()
        await connection._prepare(keepalive_seconds)
    except BaseException:
        await connection.close()
        raise
    return connection


def _close_handle(handle: Any) -> None:
    with suppress(*FAILURES):  # it was closed before
        handle.close()


def _be_quiet(_unused: Any, __: Any) -> None:
    """Keep libvirt from printing errors, which are raised as well."""
