# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The relay between a WebSocket and a far end, with both ends played by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import WSCloseCode, WSMessage, WSMsgType
from kubevirt_api.close_codes import ENDED, LOST, TOO_SLOW

from controlplane.links.relay import Close, FarEnd, Transferred, relay
from tests.controlplane.virt_handler.fakes import until

BINARY = WSMessage(WSMsgType.BINARY, b"x", "")
TEXT = WSMessage(WSMsgType.TEXT, "x", "")
PING = WSMessage(WSMsgType.PING, b"p", "")
PONG = WSMessage(WSMsgType.PONG, b"p", "")
CLOSE = WSMessage(WSMsgType.CLOSE, WSCloseCode.OK, "")
BROKEN = WSMessage(WSMsgType.ERROR, ConnectionError(), "")


async def forever(*_unused: object) -> Any:
    await asyncio.Event().wait()


async def gone(*_unused: object) -> Any:
    raise ConnectionResetError


class Client:
    """A client's WebSocket: gives the messages it has, then the last one again and again, or none."""

    def __init__(self, *messages: WSMessage, repeats: bool = False) -> None:
        self.messages, self.repeats = list(messages), repeats
        self.received: list[bytes] = []
        self.pongs: list[bytes] = []

    async def receive(self) -> WSMessage:
        if not self.messages:
            await forever()
        return self.messages[0] if self.repeats and len(self.messages) == 1 else self.messages.pop(0)

    async def send_bytes(self, data: bytes) -> None:
        self.received.append(data)

    async def pong(self, data: bytes) -> None:
        self.pongs.append(data)


class Far:
    """A far end that gives one chunk again and again, or nothing."""

    stall_seconds = input_seconds = 0.01

    def __init__(self, output: bytes = b"") -> None:
        self.output = output
        self.sent: list[bytes] = []

    async def receive(self) -> bytes | Close:
        return self.output or await forever()

    async def send(self, data: bytes) -> None:
        self.sent.append(data)

    async def close(self) -> None: ...


class Relay:
    """A relay that runs as a task."""

    def __init__(self, client: Client, far: FarEnd) -> None:
        self.ended: asyncio.Future[Close] = asyncio.get_running_loop().create_future()
        self.transferred = Transferred()
        self.task = asyncio.create_task(relay(client, far, self.ended, self.transferred))  # type: ignore[arg-type]


async def test_only_binary_messages_reach_the_guest() -> None:
    client, far = Client(TEXT, BINARY, PING, PONG, BINARY, CLOSE), Far()
    running = Relay(client, far)
    assert await running.task == Close(ENDED, "the client has closed the stream")
    assert (far.sent, client.pongs) == ([b"x", b"x"], [b"p"])
    assert running.transferred == Transferred(to_client=0, from_client=2)


async def test_a_connection_that_breaks_is_no_close_frame() -> None:
    assert (await Relay(Client(BINARY, BROKEN), Far()).task).code == LOST


@pytest.mark.parametrize("message", [BINARY, TEXT, PING, PONG], ids=lambda message: message.type.name)
async def test_a_client_that_always_has_a_message_lets_others_run(message: WSMessage) -> None:
    """A client's buffer may hold ten thousands of tiny frames."""
    running = Relay(Client(message, repeats=True), Far())
    for _unused in range(10):
        await asyncio.sleep(0)
    running.ended.set_result(Close(LOST, "over"))
    assert await running.task == Close(LOST, "over")


async def test_a_guest_that_always_has_data_lets_others_run() -> None:
    running = Relay(Client(), Far(b"x"))
    for _unused in range(10):
        await asyncio.sleep(0)
    running.ended.set_result(Close(LOST, "over"))
    assert await running.task == Close(LOST, "over")


@pytest.mark.parametrize(
    ("spoil", "end"),
    [
        (lambda client, _far: setattr(client, "send_bytes", forever), Close(TOO_SLOW, "you did not read")),
        (lambda client, _far: setattr(client, "send_bytes", gone), Close(LOST, "the client is gone")),
        (lambda _client, far: setattr(far, "send", forever), Close(LOST, "the guest did not take")),
        (lambda client, _far: setattr(client, "pong", forever), Close(TOO_SLOW, "you did not read")),
        (lambda client, _far: setattr(client, "pong", gone), Close(LOST, "the client is gone")),
    ],
    ids=["reads nothing", "is gone", "a guest that reads nothing", "reads no pongs", "is gone before its pong"],
)
async def test_an_end_that_takes_nothing_ends_the_stream(spoil: Callable[[Client, Far], None], end: Close) -> None:
    """Without a bound, a guest that does not read would hold the place of a client that has gone."""
    client, far = Client(BINARY, PING), Far(b"x")
    spoil(client, far)
    ended = await Relay(client, far).task
    assert (ended.code, ended.reason.startswith(end.reason)) == (end.code, True)


async def test_what_was_copied_is_counted_even_when_the_relay_is_cancelled() -> None:
    running = Relay(Client(BINARY), Far(b"xx"))
    await until(lambda: running.transferred.to_client > 0 and running.transferred.from_client > 0)
    running.task.cancel()
    await asyncio.wait({running.task})
    assert running.transferred.from_client == 1
    assert running.transferred.to_client % 2 == 0
