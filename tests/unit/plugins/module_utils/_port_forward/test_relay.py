# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One connection and its stream, with a server whose bytes the test writes."""

from __future__ import annotations

import socket
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket import WebSocket
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.websocket_frames import BROKEN, Closed
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward import relay as relay_module
from ansible_collections.virtops.kubevirt.plugins.module_utils._port_forward.relay import Relay, Stopped

LIMIT_SECONDS = 20.0
TOO_MUCH = 64 << 20
"""Bytes; no kernel keeps as many for a socket."""


@dataclass
class Ends:
    """The far ends of a relay, and the relay."""

    client: socket.socket
    server: socket.socket
    stopper: socket.socket
    relay: Relay

    def start(self) -> threading.Thread:
        """Run the relay in a thread that ignores its end."""
        thread = threading.Thread(target=self._run)
        thread.start()
        return thread

    def _run(self) -> None:
        with suppress(Closed, Stopped):
            self.relay.run()


@pytest.fixture
def ends() -> Iterator[Ends]:
    local, client = socket.socketpair()
    near, server = socket.socketpair()
    stop, stopper = socket.socketpair()
    for end in (client, server):
        end.settimeout(LIMIT_SECONDS)
    yield Ends(client, server, stopper, Relay(local, WebSocket(near, near.makefile("rb")), stop))
    for end in (client, server, stop, stopper):
        end.close()


def close_frame(code: int, reason: bytes = b"") -> bytes:
    return bytes([0x88, 2 + len(reason)]) + code.to_bytes(2, "big") + reason


def test_bytes_before_the_close_frame_are_delivered(ends: Ends) -> None:
    ends.server.sendall(b"\x82\x03abc" + close_frame(1000))
    ends.client.shutdown(socket.SHUT_WR)
    ends.relay.run()
    assert ends.client.recv(10) == b"abc"
    assert ends.client.recv(10) == b""


def test_upstream_ends_a_stream_without_a_close_frame(ends: Ends) -> None:
    ends.server.sendall(b"\x82\x03abc")
    ends.server.shutdown(socket.SHUT_WR)
    ends.client.shutdown(socket.SHUT_WR)
    ends.relay.run()
    assert (ends.client.recv(10), ends.client.recv(10)) == (b"abc", b"")


def test_a_ping_is_answered(ends: Ends) -> None:
    ends.server.sendall(b"\x89\x01p")
    thread = ends.start()
    pong = ends.server.recv(7)
    assert (pong[:2], pong[6] ^ pong[2]) == (b"\x8a\x81", ord("p"))
    ends.server.sendall(close_frame(1000))
    ends.client.close()
    thread.join()


def test_pings_of_a_server_that_reads_nothing_take_up_no_memory(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "LINGER_SECONDS", 0.01)
    frames = b"\x89\x7f" + (60_000).to_bytes(8, "big") + bytes(60_000)
    tracemalloc.start()
    thread = ends.start()
    for _unused in range(150):  # 9 MB
        ends.server.sendall(frames)
    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    ends.stopper.close()
    thread.join()
    assert peak < 4 << 20


@pytest.mark.parametrize(
    ("sent", "code", "reason"),
    [
        pytest.param(close_frame(4002, b"moved"), 4002, "moved", id="a close frame"),
        pytest.param(b"\x82\x03ab", BROKEN, "in the middle of a message", id="half a message"),
        pytest.param(b"\x82\x81keyx", BROKEN, "no message", id="no message"),
    ],
)
def test_an_end_that_is_not_the_guests_is_an_error(ends: Ends, sent: bytes, code: int, reason: str) -> None:
    ends.server.sendall(sent)
    ends.server.shutdown(socket.SHUT_WR)
    with pytest.raises(Closed, match=reason) as closed:
        ends.relay.run()
    assert closed.value.code == code


def test_a_client_that_has_ended_is_waited_for_no_longer_than_the_guest_is_silent(
    ends: Ends, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay_module, "SILENT_SECONDS", 0.01)
    ends.client.sendall(b"quit")
    ends.client.shutdown(socket.SHUT_WR)
    ends.relay.run()
    frame, close = ends.server.recv(10), ends.server.recv(10)
    assert (frame[:2], close[:2]) == (b"\x82\x84", b"\x88\x82")


def test_pings_do_not_keep_a_connection_whose_client_has_ended(ends: Ends, monkeypatch: pytest.MonkeyPatch) -> None:
    """Upstream sends one in each second."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1.0
        ends.server.sendall(b"\x89\x00")
        return now

    monkeypatch.setattr(relay_module.time, "monotonic", clock)
    ends.client.shutdown(socket.SHUT_WR)
    ends.relay.run()
    assert now < 10 * relay_module.SILENT_SECONDS


def test_a_server_that_does_not_read_holds_the_client_up(ends: Ends) -> None:
    thread = ends.start()
    ends.client.settimeout(0.5)
    with pytest.raises(TimeoutError):
        ends.client.sendall(bytes(TOO_MUCH))
    ends.stopper.close()
    ends.server.close()
    thread.join()
    assert ends.relay.to_guest < TOO_MUCH


def test_a_client_that_does_not_read_holds_the_server_up(ends: Ends) -> None:
    thread = ends.start()
    ends.server.settimeout(0.5)
    with pytest.raises(TimeoutError):
        ends.server.sendall((b"\x82\x7e\x80\x00" + bytes(0x8000)) * (TOO_MUCH // 0x8000))
    ends.client.close()
    thread.join()
    assert ends.relay.from_guest < TOO_MUCH


def test_it_can_be_stopped(ends: Ends) -> None:
    ends.stopper.close()
    with pytest.raises(Stopped):
        ends.relay.run()
