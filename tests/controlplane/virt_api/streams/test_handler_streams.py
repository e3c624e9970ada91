# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A compromised virt-handler at the far end of a console: bytes of its choice, over real TLS."""

from __future__ import annotations

import asyncio
import base64
import hashlib
from contextlib import suppress

import pytest
from kubevirt_api.close_codes import LOST

from controlplane.http_server import websocket as http_websocket
from controlplane.links import streams as link
from controlplane.links.handler import NotDone
from controlplane.links.streams import StreamOpened
from controlplane.virt_api.streams import handler_streams
from tests.controlplane.virt_api.streams.stage import Streaming
from tests.controlplane.virt_api.subresources.stage import Speak, captured
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams.stage import is_closed

BINARY, PING, CLOSE = 0x82, 0x89, 0x88


def frame(first: int, payload: bytes = b"") -> bytes:
    head = bytes([first, len(payload)]) if len(payload) < 126 else bytes([first, 126]) + len(payload).to_bytes(2, "big")
    return head + payload


OPENED = frame(0x81, link.encode(StreamOpened()).encode())


def accepting(*then: bytes, forever: bytes = b"", reads: bool = True) -> Speak:
    """Be a virt-handler that accepts a stream, sends frames, and then others without end."""

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        key = next(line for line in request.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n")
        writer.write(b"Sec-WebSocket-Accept: " + _accept(key.partition(b":")[2].strip()) + b"\r\n\r\n")
        writer.write(b"".join(then))
        with suppress(OSError):
            while forever:
                writer.write(forever)
                await writer.drain()
                await asyncio.sleep(0)
            while reads and await reader.read(65536):
                pass
            if not reads:
                await asyncio.Event().wait()
        writer.transport.abort()

    return speak


def _accept(key: bytes) -> bytes:

    return base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())


async def test_a_redirect_is_not_followed(stage: Streaming) -> None:
    """A compromised node would have virt-api call an address of its choice."""
    called = asyncio.Event()

    async def note(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        called.set()
        writer.close()

    other = await asyncio.start_server(note, "127.0.0.1", 0)
    port = other.sockets[0].getsockname()[1]

    async def redirect(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/\r\nContent-Length: 0\r\n\r\n" % port)
        await reader.read()
        writer.close()

    async with captured(stage, redirect):
        stage.put_vmi()
        code, message = await stage.refusal("console")
    other.close()
    assert (code, "redirect" in message, called.is_set()) == (503, True, False)


@pytest.mark.parametrize(
    "first",
    [
        frame(0x81, b"no json"),
        frame(BINARY, link.encode(StreamOpened()).encode()),
        frame(0x81, b" " * 5000),
        frame(CLOSE, b"\x03\xe8"),
        frame(PING),
        b"\xff\xff\xff",
    ],
    ids=["no message", "no text", "too long", "closed", "a ping", "no frame"],
)
async def test_an_invalid_first_message_is_503(stage: Streaming, first: bytes) -> None:
    async with captured(stage, accepting(first)):
        stage.put_vmi()
        code, message = await stage.refusal("console")
    assert code == 503
    assert "virt-handler of node node-1 did not open the stream" in message
    assert message.isprintable()


async def test_a_text_of_a_compromised_node_is_bounded_and_printable(stage: Streaming) -> None:
    refusal = link.encode(NotDone("lost", "\x1b[31m" + "x" * 1000)).encode()
    async with captured(stage, accepting(frame(0x81, refusal))):
        stage.put_vmi()
        code, message = await stage.refusal("console")
    assert (code, message.isprintable(), len(message) < 700) == (500, True, True)


async def test_a_silent_virt_handler_is_503(stage: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "OPEN_SECONDS", 0.1)
    monkeypatch.setattr(handler_streams, "CONNECT_SECONDS", 0.1)
    async with captured(stage, accepting()):
        stage.put_vmi()
        code, message = await stage.refusal("console")
    assert (code, "it does not answer" in message) == (503, True)


@pytest.mark.parametrize(
    "speak",
    [
        accepting(OPENED, forever=frame(BINARY, b"x") * 100),
        accepting(OPENED, forever=frame(PING, b"x") * 100),
        accepting(OPENED, forever=frame(0x81, b"x") * 100),
        accepting(OPENED, reads=False),
    ],
    ids=["floods", "pings", "texts", "reads nothing"],
)
async def test_its_session_ends_with_its_client(
    stage: Streaming, speak: Speak, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It can neither keep others of this virt-api waiting nor hold the session's place."""
    monkeypatch.setattr(handler_streams, "CLOSE_SECONDS", 0.1)
    monkeypatch.setattr(http_websocket, "CLOSE_SECONDS", 0.1)
    assert stage.served.server is not None
    streams = stage.served.server.streams
    async with captured(stage, speak):
        stage.put_vmi()
        async with stage.stream("console") as websocket:
            await websocket.send_bytes(b"x" * 1000)
            await stage.refusal("portforward/0")  # another request is answered meanwhile
        await until(lambda: streams.by_machine.is_unused, "the end of the session")


async def test_a_node_without_power_ends_the_stream(stage: Streaming, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing closes the connection: a ping stays without an answer."""
    monkeypatch.setattr(handler_streams, "HEARTBEAT_SECONDS", 0.1)
    async with captured(stage, accepting(OPENED)):
        stage.put_vmi()
        async with stage.stream("console") as websocket:
            assert await is_closed(websocket) == (LOST, "the connection to the guest's virt-handler broke")
