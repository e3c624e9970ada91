# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to libvirt's test driver: the real binding and the real event loop, no virtual machine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import AsyncIterator

import libvirt
import pytest
import pytest_asyncio

from controlplane.domain.state import Life, State
from controlplane.hypervisor import partial_messages
from controlplane.hypervisor.connection import Connection, open_connection, socket_uri
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.hypervisor.partial_messages import PartialMessages
from controlplane.hypervisor.transport import Transport
from tests.controlplane.hypervisor.test_calls import read_bytes

XML = """
<domain type="test"><name>web</name><memory>8192</memory><os><type>hvm</type></os>
<metadata><v:vmi xmlns:v="urn:virtops:kubevirt:1" uid="u"/></metadata></domain>
"""


pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]


@pytest_asyncio.fixture(loop_scope="session")
async def connection() -> AsyncIterator[Connection]:
    opened = await open_connection("test:///default")
    yield opened
    await opened.close()


async def test_an_event_completes_a_partial_message(connection: Connection, monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection without calls may receive only events for days."""
    process_wide = PartialMessages()
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", process_wide)
    other = await open_connection("test:///default")
    for amount in (0, 600):
        connection._transport.count_received(amount, time.monotonic())
    await other.define(XML)
    assert await connection.events.get() == LifecycleChanged("web", "defined")
    connection._transport.count_received(0, time.monotonic())
    assert process_wide.total == 0
    await other.close()


async def test_loading_the_capabilities_changes_nothing(connection: Connection) -> None:
    await connection.load_capabilities()
    assert connection.events.drain() == []


async def test_starting_and_destroying_a_domain_emits_events(connection: Connection) -> None:
    guest = await connection.define(XML)
    await guest.start()
    assert await guest.state() == State(Life.RUNNING, "booted")
    await guest.destroy()
    assert await guest.state() == State(Life.SHUT_OFF, "destroyed")
    kinds = [(await connection.events.get()) for _unused in range(3)]
    assert kinds == [LifecycleChanged("web", kind) for kind in ("defined", "started", "stopped")]


async def test_an_unknown_domain_is_none(connection: Connection) -> None:
    assert await connection.guest("nobody") is None


async def test_an_invalid_description_is_refused(connection: Connection) -> None:
    with pytest.raises(InvalidDomain, match="cannot define a domain"):
        await connection.define("<domain/>")


async def test_a_missing_socket_is_a_hypervisor_error(tmp_path: object) -> None:
    with pytest.raises(HypervisorError) as raised:
        await open_connection(socket_uri(f"{tmp_path}/none"))
    assert type(raised.value) in (Disconnected, HypervisorError)


@pytest.mark.parametrize("path", ["relative", "/run/x?command=sh", "/run/a b", "/run/\n", "/a&b", "/a#b", "/a%2e"])
async def test_a_socket_path_cannot_inject_into_the_uri(path: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in a libvirt URI"):
        socket_uri(path)


class BusyHandle:
    """A libvirt connection with a call that ends when the test allows it."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.order: list[str] = []

    def lookupByName(self, _unused: str) -> None:  # noqa: N802 - the binding's name
        self.has_begun.set()
        self.may_end.wait(5)
        self.order.append("looked up")
        raise libvirt.libvirtError("no transport")

    def unregisterCloseCallback(self) -> None:  # noqa: N802 - the binding's name
        """No callback is registered."""

    def close(self) -> None:
        self.order.append("closed")


async def test_a_connection_that_cannot_be_watched_is_closed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    class Deaf(BusyHandle):
        def registerCloseCallback(self, *_unused: object) -> None:  # noqa: N802 - the binding's name
            raise libvirt.libvirtError("no transport")

    handle = Deaf()
    monkeypatch.setattr(libvirt, "open", lambda _uri: handle)
    with pytest.raises(HypervisorError, match="cannot watch the connection"):
        await open_connection("test:///default")
    assert handle.order == ["closed"]


async def test_a_closed_connection_is_reported_on_the_loop(
    monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    """libvirt calls back in the thread that reads the end of the connection."""
    put_in = list[int]()
    monkeypatch.setattr(connection.events, "put", lambda _unused: put_in.append(threading.get_ident()))
    await asyncio.to_thread(connection._on_close, None, 0, None)
    await asyncio.sleep(0)
    assert put_in == [threading.get_ident()]


async def test_a_connection_is_not_closed_during_a_call_in_another_thread() -> None:
    """The client library would deadlock or use freed memory."""
    handle = BusyHandle()
    connection = Connection(handle, "test:///default", Transport())
    looking = asyncio.create_task(connection.guest("web"))
    await asyncio.to_thread(handle.has_begun.wait)
    closing = asyncio.create_task(connection.close())
    await asyncio.sleep(0.02)
    handle.may_end.set()
    await closing
    with pytest.raises(HypervisorError):
        await looking
    assert handle.order == ["looked up", "closed"]
    with pytest.raises(Disconnected, match="the connection is closed"):
        await connection.guest("web")


async def test_bytes_received_during_close_are_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """libvirt reads until it has the answer to its last call, however much the peer sends before."""

    class Talkative(BusyHandle):
        def close(self) -> None:
            read_bytes(50_000)

    connection, charges = Connection(Talkative(), "test:///default", Transport()), list[int]()
    monkeypatch.setattr(connection._transport, "count_received", lambda amount, _unused: charges.append(amount))
    await connection.close()
    assert 50_000 <= sum(charges) < 51_000
