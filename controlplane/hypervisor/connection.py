# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection to one libvirtd: open, close, the domains, the events.

libvirt's callbacks run on the asyncio loop (libvirtaio). The implementation is process-wide and must be registered
before the first connection: `register_event_loop` at the start of the process.
"""

from __future__ import annotations

from typing import Any

import libvirt
import libvirtaio

from controlplane.hypervisor import events
from controlplane.hypervisor.calls import call
from controlplane.hypervisor.errors import NoSuchDomain
from controlplane.hypervisor.guest import Guest

OPEN_SECONDS = 10.0
KEEPALIVE_SECONDS = 2
KEEPALIVE_COUNT = 2
"""A libvirtd that hangs is given up 5 s later (measured), one that dies at once."""


def register_event_loop() -> None:
    """Let libvirt use the running asyncio loop; once per process, before any connection is opened."""
    libvirt.registerErrorHandler(_be_quiet, None)
    libvirtaio.virEventRegisterAsyncIOImpl()


def socket_uri(path: str) -> str:
    """Name the session libvirtd behind a socket. path: absolute, e.g. /proc/self/fd/7; no characters to escape."""
    if not path.startswith("/") or set(path) & set("?#&%; ") or not path.isprintable():
        raise ValueError(f"{path!r} cannot stand in a libvirt URI")
    return f"qemu+unix:///session?socket={path}"


class Connection:
    """An open connection. Make one with `open_connection`."""

    def __init__(self, handle: Any, uri: str) -> None:
        self._handle = handle
        self._uri = uri
        self._registrations: list[int] = []
        self.events = events.EventQueue()

    async def guest(self, name: str) -> Guest | None:
        """Look a domain up; None when libvirt knows none of that name."""
        try:
            return Guest(await call(f"look up domain {name}", self._handle.lookupByName, name))
        except NoSuchDomain:
            return None

    async def guests(self) -> list[Guest]:
        """List every domain, running or only defined."""
        return [Guest(one) for one in await call("list domains", self._handle.listAllDomains)]

    async def define(self, xml: str) -> Guest:
        """Define a domain, or replace the definition of the one with the same name and UUID. InvalidDomain."""
        return Guest(await call("define a domain", self._handle.defineXML, xml))

    async def close(self) -> None:
        """Let go of the connection, dead or alive. The domains do not notice."""
        await call("close the connection", self._close)

    def _close(self) -> None:
        events.deregister(self._handle, self._registrations)
        try:
            self._handle.unregisterCloseCallback()
            self._handle.close()
        except libvirt.libvirtError:
            return  # it was gone before

    async def _prepare(self) -> None:
        await call("watch the connection", self._handle.registerCloseCallback, self._on_close, None)
        if self._uri.startswith("qemu"):  # other drivers have no wire to keep alive
            await call("keep the connection alive", self._handle.setKeepAlive, KEEPALIVE_SECONDS, KEEPALIVE_COUNT)
        self._registrations = await call("watch the domains", events.register, self._handle, self.events.put)

    def _on_close(self, _unused: Any, reason: int, __: Any) -> None:
        self.events.put(events.ConnectionClosed(events.close_reason(reason)))


async def open_connection(uri: str, *, deadline_seconds: float = OPEN_SECONDS) -> Connection:
    """Open a connection and subscribe to its events. HypervisorError (Disconnected when nobody listens)."""
    handle = await call(f"connect to {uri}", libvirt.open, uri, deadline_seconds=deadline_seconds)
    connection = Connection(handle, uri)
    try:
        await connection._prepare()
    except BaseException:
        await connection.close()
        raise
    return connection


def _be_quiet(_unused: Any, __: Any) -> None:
    """Keep libvirt from printing errors: they are raised as well."""
