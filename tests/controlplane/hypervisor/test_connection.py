# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On libvirt's own test driver: the real binding, the real event loop, no virtual machine."""

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
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain, WrongState
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
    made = await open_connection("test:///default")
    yield made
    await made.close()


async def test_an_event_is_the_end_of_what_a_connection_holds(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is asked on it: it may tell for days."""
    together = PartialMessages()
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", together)
    other = await open_connection("test:///default")
    for amount in (0, 600):
        connection._transport.count_received(amount, time.monotonic())
    await other.define(XML)
    assert await connection.events.get() == LifecycleChanged("web", "defined")
    connection._transport.count_received(0, time.monotonic())
    assert together.total == 0
    await other.close()


async def test_a_domain_lives_and_dies_and_tells_of_it(connection: Connection) -> None:
    guest = await connection.define(XML)
    await guest.start()
    assert await guest.state() == State(Life.RUNNING, "booted")
    await guest.destroy()
    assert await guest.state() == State(Life.SHUT_OFF, "destroyed")
    kinds = [(await connection.events.get()) for _unused in range(3)]
    assert kinds == [LifecycleChanged("web", kind) for kind in ("defined", "started", "stopped")]


async def test_a_domain_is_found_by_name(connection: Connection) -> None:
    await connection.define(XML)
    found = await connection.guest("web")
    assert found is not None
    assert "<name>web</name>" in await found.described(str)
    assert 'uid="u"' in await found.described(str)


async def test_an_unknown_domain_is_none(connection: Connection) -> None:
    assert await connection.guest("nobody") is None


async def test_a_domain_that_is_off_is_not_destroyed(connection: Connection) -> None:
    guest = await connection.define(XML)
    with pytest.raises(WrongState, match="cannot destroy domain web"):
        await guest.destroy()


async def test_a_description_that_is_none_is_refused(connection: Connection) -> None:
    with pytest.raises(InvalidDomain, match="cannot define a domain"):
        await connection.define("<domain/>")


async def test_nobody_at_the_socket_is_a_disconnection(tmp_path: object) -> None:
    with pytest.raises(HypervisorError) as raised:
        await open_connection(socket_uri(f"{tmp_path}/none"))
    assert type(raised.value) in (Disconnected, HypervisorError)


@pytest.mark.parametrize("path", ["relative", "/run/x?command=sh", "/run/a b", "/run/\n", "/a&b", "/a#b", "/a%2e"])
async def test_a_socket_path_cannot_add_to_the_uri(path: str) -> None:
    with pytest.raises(ValueError, match="cannot stand in a libvirt URI"):
        socket_uri(path)


async def test_a_socket_is_named_by_its_descriptor() -> None:
    assert socket_uri("/proc/self/fd/7") == "qemu+unix:///session?socket=/proc/self/fd/7"


class BusyHandle:
    """A connection of libvirt's with a call on it that ends when it is let."""

    def __init__(self) -> None:
        self.has_begun, self.may_end = threading.Event(), threading.Event()
        self.order: list[str] = []

    def lookupByName(self, _unused: str) -> None:  # noqa: N802 - the binding's name
        self.has_begun.set()
        self.may_end.wait(5)
        self.order.append("looked up")
        raise libvirt.libvirtError("no transport")

    def unregisterCloseCallback(self) -> None:  # noqa: N802 - the binding's name
        """Nothing is registered."""

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


async def test_that_a_connection_is_gone_is_told_on_the_loop(
    monkeypatch: pytest.MonkeyPatch, connection: Connection
) -> None:
    """libvirt tells of it in whatever thread reads that the other side says so."""
    told_in = list[int]()
    monkeypatch.setattr(connection.events, "put", lambda _unused: told_in.append(threading.get_ident()))
    await asyncio.to_thread(connection._on_close, None, 0, None)
    await asyncio.sleep(0)
    assert told_in == [threading.get_ident()]


async def test_a_connection_is_not_closed_under_a_call_of_another_thread() -> None:
    """The client library would deadlock, or use what it has freed."""
    handle = BusyHandle()
    made = Connection(handle, "test:///default", Transport())
    looking = asyncio.create_task(made.guest("web"))
    await asyncio.to_thread(handle.has_begun.wait)
    closing = asyncio.create_task(made.close())
    await asyncio.sleep(0.02)
    handle.may_end.set()
    await closing
    with pytest.raises(HypervisorError):
        await looking
    assert handle.order == ["looked up", "closed"]
    with pytest.raises(Disconnected, match="the connection is closed"):
        await made.guest("web")


async def test_what_comes_while_a_connection_is_closed_is_charged_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever is hung up on may send as much as it can: libvirt reads on until it has its last answer."""

    class Talkative(BusyHandle):
        def close(self) -> None:
            read_bytes(50_000)

    made, taken = Connection(Talkative(), "test:///default", Transport()), list[int]()
    monkeypatch.setattr(made._transport, "count_received", lambda amount, _unused: taken.append(amount))
    await made.close()
    assert 50_000 <= sum(taken) < 51_000
