# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages with another implementation (aiohttp), and with servers that send no messages."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import websocket, websocket_frames
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket import WebSocket
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_frames import BROKEN, Closed
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_messages import Messages

from tests.unit.plugins.module_utils._client.test_websocket import PLAIN, VMI, serving


def soon() -> float:
    return time.monotonic() + 10


@pytest.mark.parametrize("size", [0, 1, 125, 126, 65535, 65536, 200_000])
def test_messages_of_each_length_go_both_ways(size: int) -> None:
    data = bytes(index % 251 for index in range(size))
    with serving() as api:
        stream = Messages(websocket.opened(api, VMI, "web", "console", PLAIN))
        assert stream.receive(soon()) == b"hello"
        stream.send(data, soon())
        assert stream.receive(soon()) == data
        stream.close()


@pytest.fixture
def ends() -> Iterator[tuple[Messages, socket.socket]]:
    """A stream, and the server's end of its connection."""
    client, server = socket.socketpair()
    stream = Messages(WebSocket(client, client.makefile("rb")))
    server.settimeout(10)
    yield stream, server
    stream.close()
    server.close()


def test_fragments_are_joined_and_texts_and_pings_are_not_data(ends: tuple[Messages, socket.socket]) -> None:
    stream, server = ends
    server.sendall(b"\x81\x02hi" + b"\x89\x01p" + b"\x02\x02ab" + b"\x89\x00" + b"\x80\x01c")
    assert stream.receive(soon()) == b"abc"
    pong = server.recv(7)
    assert pong[:2] == b"\x8a\x81"
    assert pong[6] ^ pong[2] == ord("p")


def test_a_close_frame_says_why(ends: tuple[Messages, socket.socket]) -> None:
    stream, server = ends
    server.sendall(b"\x88\x08" + struct.pack("!H", 4001) + b"by joe")
    with pytest.raises(Closed, match="by joe") as closed:
        stream.receive(soon())
    assert closed.value.code == 4001


@pytest.mark.parametrize(
    "sent", [b"\x82\x81keyx", b"\x82\x7f" + struct.pack("!Q", websocket_frames.MESSAGE_LIMIT + 1), b"\x82\x05ab"]
)
def test_what_is_no_message_ends_the_stream(ends: tuple[Messages, socket.socket], sent: bytes) -> None:
    stream, server = ends
    server.sendall(sent)
    server.shutdown(socket.SHUT_WR)
    with pytest.raises(Closed) as closed:
        stream.receive(soon())
    assert closed.value.code == BROKEN


def test_a_silent_server_ends_in_time(ends: tuple[Messages, socket.socket]) -> None:
    stream, _server = ends
    with pytest.raises(TimeoutError):
        stream.receive(time.monotonic() + 0.01)
    with pytest.raises(TimeoutError):
        stream.receive(time.monotonic() - 1)


def test_messages_that_came_together_are_one_and_what_follows_them_is_not_lost(
    ends: tuple[Messages, socket.socket],
) -> None:
    stream, server = ends
    server.sendall(b"\x82\x01a" * 1000 + b"\x88\x05" + struct.pack("!H", 4001) + b"joe")
    assert stream.receive(soon()) == b"a" * 1000
    for _unused in range(2):
        with pytest.raises(Closed, match="joe"):
            stream.receive(soon())


def test_a_message_has_its_own_time_to_be_sent(ends: tuple[Messages, socket.socket]) -> None:
    stream, server = ends
    with pytest.raises(TimeoutError):
        stream.receive(time.monotonic() + 0.001)
    size = 4 << 20
    reader = threading.Timer(0.2, lambda: server.makefile("rb").read(size))
    reader.start()
    stream.send(bytes(size), soon())
    reader.join()
