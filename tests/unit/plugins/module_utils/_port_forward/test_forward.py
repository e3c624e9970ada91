# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local port whose connections lead to a port of a guest, over HTTP and TLS of another implementation (aiohttp)."""

from __future__ import annotations

import errno
import socket
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import forward as forward_module
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import relay
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward.forward import Forward

from .conftest import CLOSED, CUT, ECHO, FLOOD, FLOOD_BYTES, GUESTS, ONE_LINE, Server

LIMIT_SECONDS = 60.0
NOW = 0.001


@contextmanager
def connected(forward: Forward) -> Iterator[socket.socket]:
    with closing(socket.create_connection(forward.address, LIMIT_SECONDS)) as client:
        yield client


def exchange(client: socket.socket, data: bytes) -> bytes:
    """Send data; return as many bytes."""
    sender = threading.Thread(target=client.sendall, args=(data,))
    sender.start()
    received = b""
    while len(received) < len(data):
        received += client.recv(1 << 20)
    sender.join()
    return received


def rest(client: socket.socket) -> bytes:
    received = b""
    while data := client.recv(1 << 20):
        received += data
    return received


@pytest.fixture(params=["api", "tls_api"])
def any_api(request: pytest.FixtureRequest) -> Api:
    client: Api = request.getfixturevalue(request.param)
    return client


@pytest.mark.parametrize("size", [1, 100_000, 5_000_000])
def test_bytes_go_both_ways(any_api: Api, size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    with Forward(any_api, GUESTS, "database", ECHO) as forward, connected(forward) as client:
        assert exchange(client, data) == data


@pytest.fixture
def not_lingering(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that stops sending is gone at once, if the guest sends nothing."""
    monkeypatch.setattr(relay, "SILENT_SECONDS", NOW)


@pytest.mark.usefixtures("not_lingering")
def test_each_connection_has_its_own_stream(api: Api, server: Server) -> None:
    with Forward(api, GUESTS, "database", ECHO) as forward:
        with connected(forward) as one, connected(forward) as two:
            assert (exchange(one, b"1"), exchange(two, b"2"), exchange(one, b"3")) == (b"1", b"2", b"3")
        assert forward.wait(LIMIT_SECONDS, NOW) is True
        assert (server.opened, forward.connections, forward.to_guest, forward.from_guest) == (2, 2, 3, 3)
    assert forward.errors == []


def test_the_end_of_the_guest_is_the_end_of_the_connection(any_api: Api) -> None:
    with Forward(any_api, GUESTS, "database", ONE_LINE) as forward, connected(forward) as client:
        client.sendall(b"line\n")
        assert rest(client) == b"line\n"
    assert forward.errors == []


def test_a_client_that_only_stops_sending_still_receives(any_api: Api) -> None:
    with Forward(any_api, GUESTS, "database", ONE_LINE) as forward, connected(forward) as client:
        client.sendall(b"line\n")
        client.shutdown(socket.SHUT_WR)
        assert rest(client) == b"line\n"


def test_a_client_that_reads_late_receives_everything(any_api: Api) -> None:
    with Forward(any_api, GUESTS, "database", FLOOD) as forward, connected(forward) as client:
        client.shutdown(socket.SHUT_WR)
        assert len(rest(client)) == FLOOD_BYTES


def test_a_connection_that_is_cut_is_reset_and_says_why(api: Api) -> None:
    with Forward(api, GUESTS, "database", CUT) as forward, connected(forward) as client:
        with pytest.raises(ConnectionResetError):
            rest(client)
        forward.wait(LIMIT_SECONDS, NOW)
    (error,) = forward.errors
    assert error.startswith("the connection to port 13 of VirtualMachineInstance default/database ended: the guest has")
    assert "run the task that uses the port again" in error
    assert forward.has_failed_last


def test_a_port_that_is_closed_resets_the_connection_and_says_what_to_do(api: Api) -> None:
    with Forward(api, GUESTS, "database", CLOSED) as forward:
        for _attempt in range(2):
            with connected(forward) as client, pytest.raises(ConnectionResetError):
                rest(client)
        forward.wait(LIMIT_SECONDS, NOW)
    (error,) = forward.errors
    assert "cannot connect to port 9 of VirtualMachineInstance default/database" in error
    assert "have a program in the guest listen on this port" in error
    assert forward.has_failed_last


@pytest.mark.usefixtures("not_lingering")
def test_a_connection_that_succeeds_after_a_failure_is_what_counts(api: Api, server: Server) -> None:
    server.refusals = [(500, "nothing listens there")]
    with Forward(api, GUESTS, "database", ECHO) as forward:
        with connected(forward) as client, pytest.raises(ConnectionResetError):
            rest(client)
        with connected(forward) as client:
            assert exchange(client, b"x") == b"x"
        forward.wait(LIMIT_SECONDS, NOW)
    assert (len(forward.errors), forward.has_failed_last) == (1, False)


def test_the_end_of_the_forward_ends_its_connections(api: Api) -> None:
    with Forward(api, GUESTS, "database", ECHO) as forward, connected(forward) as client:
        exchange(client, b"x")
        address = forward.address
        forward.close()
        with pytest.raises(ConnectionResetError):
            rest(client)
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
    assert forward.errors == []


def test_it_is_over_after_its_lifetime_also_while_it_is_used(api: Api) -> None:
    with Forward(api, GUESTS, "database", ECHO) as forward, connected(forward) as client:
        exchange(client, b"x")
        assert forward.wait(NOW, NOW) is False


def test_further_connections_are_closed(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forward_module, "CONNECTIONS", 1)
    with Forward(api, GUESTS, "database", ECHO) as forward, connected(forward) as first:
        exchange(first, b"x")
        with pytest.raises(ConnectionResetError), connected(forward) as second:
            rest(second)
        assert exchange(first, b"x") == b"x"
    assert "has 1 open connections" in forward.errors[0]


def test_a_local_port_that_is_in_use_is_named(api: Api) -> None:
    for is_started in (False, True):
        forward = Forward(api, GUESTS, "database", ECHO)
        if is_started:
            forward.start()
        port = forward.address[1]
        refusal = f"local_port: cannot listen on 127.0.0.1:{port}: Address already in use"
        with closing(forward), pytest.raises(BadArgument, match=refusal):
            Forward(api, GUESTS, "database", ECHO, local_port=port)


def test_a_local_port_whose_connections_ended_just_now_can_be_taken_again(api: Api) -> None:
    with Forward(api, GUESTS, "database", ONE_LINE) as forward, connected(forward) as client:
        exchange(client, b"x")
        port = forward.address[1]
        forward.close()
        with closing(Forward(api, GUESTS, "database", ONE_LINE, local_port=port)) as again:
            again.start()
            with connected(again) as another:
                assert exchange(another, b"x") == b"x"


def test_a_program_that_takes_the_port_meanwhile_is_an_error(api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    with closing(Forward(api, GUESTS, "database", ECHO)) as forward:
        monkeypatch.setattr(forward, "_listener", Taken(forward._listener))
        with pytest.raises(BadArgument, match="local_port: cannot listen on"):
            forward.start()


class Taken:
    """A socket at whose port another program listens."""

    def __init__(self, listener: socket.socket) -> None:
        self.getsockname, self.close = listener.getsockname, listener.close

    def listen(self) -> None:
        raise OSError(errno.EADDRINUSE, "Address already in use")
