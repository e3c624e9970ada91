# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Streams to a guest's device through virt-handler's endpoint, over real TLS, with a socket in the guest's place."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from kubevirt_api.close_codes import LOST, MOVED, TAKEN_OVER, TOO_SLOW

from controlplane.links import streams as link
from controlplane.links.handler import NotDone, server_name
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream, StreamOpened
from controlplane.tls.contexts import client_context
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.launchers.of_guest import absent
from controlplane.virt_handler.streams import sessions as sessions_module
from controlplane.virt_handler.streams.guest_sockets import StreamRefused
from controlplane.virt_handler.streams.sessions import Sockets
from tests.controlplane.virt_api.served import an_authority
from tests.controlplane.virt_handler.api_endpoint.test_server import INSTALL_NAMESPACE, a_caller
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams.stage import GUEST, Device, DeviceSockets, is_closed

Socket = aiohttp.ClientWebSocketResponse
OPENING = OpenStream(GUEST, "serial", "jane")


class Stage:
    """An endpoint, a device, and virt-api's certificates."""

    def __init__(self, pair: SelfSignedPair, directory: Path, sockets: Sockets | None = None) -> None:
        """sockets: instead of those of the device alone."""
        self._pair = pair
        self._caller = a_caller(authority := an_authority("ours"))
        self.device = Device(directory)
        self.sockets = DeviceSockets(self.device)
        tls = EndpointTls(pair)
        tls.use_authority(authority.certificate)
        self.endpoint = ApiEndpoint(tls, INSTALL_NAMESPACE, {}, sockets or self.sockets)
        self.port = 0

    async def open(self) -> None:
        await self.device.open()
        self.port = await self.endpoint.open("127.0.0.1", 0)

    @asynccontextmanager
    async def dial(self, first: str) -> AsyncIterator[Socket]:
        """Open a WebSocket as virt-api does, and send the first message."""
        context = client_context(self._pair.der, self._caller.certificate, self._caller.key)
        url = f"https://127.0.0.1:{self.port}{link.PATH}"
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(url, ssl=context, server_hostname=server_name("node-1")) as websocket,
        ):
            await websocket.send_str(first)
            yield websocket

    @asynccontextmanager
    async def stream(self, opening: OpenStream = OPENING) -> AsyncIterator[Socket]:
        async with self.dial(link.encode(opening)) as websocket:
            assert link.read_answer(await websocket.receive_str()) == StreamOpened()
            await until(lambda: len(self.device.connections) > self.device.closed, "the connection to the device")
            yield websocket

    async def refusal(self, opening: OpenStream = OPENING) -> NotDone:
        async with self.dial(link.encode(opening)) as websocket:
            answer = link.read_answer(await websocket.receive_str())
            assert isinstance(answer, NotDone)
            await is_closed(websocket)
            return answer


@pytest.fixture
async def stage(pair: SelfSignedPair, tmp_path: Path) -> AsyncIterator[Stage]:
    stage = Stage(pair, tmp_path)
    await stage.open()
    yield stage
    await stage.endpoint.close()
    await stage.device.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_bytes_go_both_ways_unchanged(stage: Stage) -> None:
    everything = bytes(range(256))
    async with stage.stream() as websocket:
        await websocket.send_bytes(everything)
        await websocket.send_str("a text message is ignored")
        await until(lambda: bytes(stage.device.read) == everything, "the bytes at the guest")
        stage.device.write(everything)
        assert await websocket.receive_bytes() == everything
    assert stage.sockets.openings == [OPENING]


async def test_a_console_begins_with_its_backlog_without_gap_and_repetition(stage: Stage) -> None:
    stage.sockets.printed, stage.sockets.printing = b"booting\r\n", b"login: "
    async with stage.stream(OpenStream(GUEST, "serial", "jane", with_backlog=True)) as websocket:
        assert await websocket.receive_bytes() == b"booting\r\nlogin: ", "one message"
        stage.device.write(b"root")
        assert await websocket.receive_bytes() == b"root"


async def test_a_console_without_a_backlog_begins_with_what_comes(stage: Stage) -> None:
    async with stage.stream(OpenStream(GUEST, "serial", "jane", with_backlog=True)) as websocket:
        stage.device.write(b"login: ")
        assert await websocket.receive_bytes() == b"login: "


async def test_a_closed_stream_disconnects_the_device(stage: Stage) -> None:
    """A guest blocks on a console that is connected and that nobody reads."""
    async with stage.stream():
        pass
    await until(lambda: stage.device.closed == 1, "the end of the connection")


async def test_a_later_session_ends_the_former_and_says_by_whom(stage: Stage) -> None:
    async with stage.stream() as former, stage.stream(OpenStream(GUEST, "serial", "joe")) as later:
        assert await is_closed(former) == (TAKEN_OVER, "taken over by joe")
        stage.device.write(b"login:")
        assert await later.receive_bytes() == b"login:"


async def test_a_session_that_keeps_the_existing_one_is_refused(stage: Stage) -> None:
    opening = OpenStream(GUEST, "vnc", "jane")
    async with stage.stream(opening) as websocket:
        answer = await stage.refusal(OpenStream(GUEST, "vnc", "joe", keep_existing=True))
        assert answer == NotDone("busy", "it is in use by jane")
        stage.device.write(b"RFB")
        assert await websocket.receive_bytes() == b"RFB"


async def test_console_and_screen_are_separate_sessions(stage: Stage) -> None:
    async with stage.stream() as console, stage.stream(OpenStream(GUEST, "vnc", "joe")):
        stage.device.connections[0].write(b"login:")
        assert await console.receive_bytes() == b"login:"


async def test_the_end_of_the_guest_is_explained(stage: Stage) -> None:
    stage.sockets.end = Close(MOVED, "the guest moved to node node-2: connect again")
    async with stage.stream() as websocket:
        stage.device.write(b"bye")
        stage.device.writer.close()
        assert await websocket.receive_bytes() == b"bye"
        assert await is_closed(websocket) == (MOVED, "the guest moved to node node-2: connect again")


async def test_a_refusal_says_why(stage: Stage) -> None:
    stage.sockets.refusal = StreamRefused(absent("node-1"))
    assert await stage.refusal() == stage.sockets.refusal.answer


async def test_a_device_without_a_listener_is_an_error(stage: Stage) -> None:
    await stage.device.close()
    answer = await stage.refusal()
    assert answer.kind == "lost"
    assert "cannot connect" in answer.text


@pytest.mark.parametrize("first", ["", "{}", '{"type": "OpenStream"}', "x" * 5000])
async def test_an_invalid_first_message_closes_the_stream(stage: Stage, first: str) -> None:
    async with stage.dial(first) as websocket:
        code, reason = await is_closed(websocket)
    assert code == LOST
    assert reason.startswith("no request for a stream")
    assert stage.sockets.openings == []


async def test_sessions_are_limited(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sessions_module, "SESSIONS", 1)
    async with stage.stream():
        answer = await stage.refusal(OpenStream(GUEST, "vnc", "joe"))
        assert (answer.kind, "close one of them" in answer.text) == ("busy", True)
        async with stage.stream():  # a device that is taken over needs no further place
            pass


async def test_a_client_that_does_not_read_is_disconnected(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(link.STALL_SECONDS, "serial", 0.05)
    async with stage.stream() as websocket:
        websocket._reader._protocol.transport.pause_reading()  # type: ignore[attr-defined]
        flood = asyncio.create_task(_flood(stage.device))
        await until(lambda: stage.device.closed == 1, "the end of the connection")
        flood.cancel()
        websocket._reader._protocol.transport.resume_reading()  # type: ignore[attr-defined]
        code, _unused = await is_closed(websocket)
    assert code == TOO_SLOW


async def _flood(device: Device) -> None:
    while True:
        device.write(b"x" * 65536)
        await device.writer.drain()


async def test_sessions_leave_no_descriptor(stage: Stage) -> None:
    async with stage.stream():
        pass
    await until(lambda: stage.device.closed == 1, "the end of the connection")
    before = descriptors()
    for _unused in range(10):
        async with stage.stream():
            pass
    await until(lambda: stage.device.closed == 11, "the end of all connections")
    await until(lambda: descriptors() <= before, "the descriptors")
