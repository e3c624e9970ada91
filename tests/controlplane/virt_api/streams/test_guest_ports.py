# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forwarded ports of a guest whose Pod ends, and what is left of the bytes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.links.relay import Close
from controlplane.links.streams import ENDED
from controlplane.virt_api.streams import serve
from controlplane.virt_api.streams.guest_ports import DATAGRAMS, UdpPort, open_port
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.served import Json, serving
from tests.controlplane.virt_api.streams.test_serve import CREATED_BY, NETWORK, POD, Streaming, echoing, pair
from tests.controlplane.virt_api.subresources.test_power_requests import a_vmi
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams.stage import GUEST
from tests.controlplane.virt_handler.streams.test_sessions import is_closed

__all__ = ["pair"]  # a fixture


def a_pod(phase: str = "Running") -> Json:
    metadata = {"uid": GUEST.pod_uid, "name": "p", "namespace": "ns", "labels": {CREATED_BY: GUEST.vmi_uid}}
    return {"metadata": metadata, "status": {"podIP": "127.0.0.1", "phase": phase}}


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Streaming]:
    async with serving(tmp_path) as served:
        stage = Streaming(served, pair, tmp_path)
        await stage.open()
        stage.put_vmi(a_vmi(interfaces=NETWORK))
        yield stage
        await stage.endpoint.close()
        await stage.device.close()


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_the_address_of_a_pod_that_is_over_is_not_used(stage: Streaming, phase: str) -> None:
    """Another Pod may have it by now."""
    stage.served.api.put(POD, a_pod(phase))
    code, message = await stage.refusal("portforward/22")
    assert (code, "is over" in message) == (400, True)


@pytest.mark.parametrize("protocol", ["tcp", "udp"])
@pytest.mark.parametrize("is_deleted", [True, False], ids=["deleted", "over"])
async def test_a_stream_ends_with_its_pod(
    stage: Streaming, monkeypatch: pytest.MonkeyPatch, protocol: str, is_deleted: bool
) -> None:
    """No packet says that a guest is gone; the next Pod with its address must get none of the client's datagrams."""
    monkeypatch.setattr(serve, "PRESENCE_SECONDS", 0.01)
    async with echoing() as port, stage.stream(f"portforward/{port}/{protocol}") as websocket:
        if is_deleted:
            stage.served.api.drop(POD)
        else:
            stage.served.api.put(POD, a_pod("Succeeded"))
        code, reason = await is_closed(websocket)
    assert (code, reason) == (ENDED, "the guest has stopped, or runs on another node: connect again")


async def test_what_the_client_sent_before_it_closed_reaches_the_guest(stage: Streaming) -> None:
    received, is_over = bytearray(), asyncio.Event()

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(0)
        while data := await reader.read(1000):
            received.extend(data)
        writer.close()
        is_over.set()

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0, limit=1000)
    data = bytes(range(256)) * 8192
    async with stage.stream(f"portforward/{server.sockets[0].getsockname()[1]}") as websocket:
        for start in range(0, len(data), 65536):
            await websocket.send_bytes(data[start : start + 65536])
    await is_over.wait()
    server.close()
    assert received == data


async def test_datagrams_that_the_socket_does_not_take_are_dropped() -> None:
    far = await open_port("127.0.0.1", 9, "udp")
    assert isinstance(far, UdpPort)
    assert far._transport is not None
    sent: list[bytes] = []
    far._transport.sendto = lambda data, _address=None: sent.append(data)  # type: ignore[method-assign]
    far.pause_writing()
    await far.send(b"dropped")
    far.resume_writing()
    await far.send(b"sent")
    assert sent == [b"sent"]
    await far.close()


async def test_a_client_that_reads_no_datagrams_gets_the_first_ones() -> None:
    far = UdpPort()
    for number in range(DATAGRAMS + 10):
        far.datagram_received(b"%d" % number, None)
    received = [await far.receive() for _unused in range(DATAGRAMS)]
    assert received[-1] == b"%d" % (DATAGRAMS - 1)
    far.error_received(ConnectionRefusedError())
    end = await far.receive()
    assert isinstance(end, Close)
    assert "nothing listens" in end.reason


async def test_a_client_that_goes_while_its_stream_is_opened_ends_no_session(stage: Streaming) -> None:
    """It would end another user's."""
    waiting, go_on = asyncio.Event(), asyncio.Event()
    plain = stage.sockets.open

    async def wait(opening: object) -> object:
        waiting.set()
        await go_on.wait()
        return await plain(opening)  # type: ignore[arg-type]

    async with stage.stream("console") as former:
        stage.sockets.open = wait  # type: ignore[method-assign,assignment]
        opening = asyncio.create_task(stage.refusal("console"))
        await waiting.wait()
        opening.cancel()
        await asyncio.wait({opening})
        await until(lambda: stage.served.server.streams.by_machine.used_by("ns/web") == 1, "its end in virt-api")  # type: ignore[union-attr]
        go_on.set()
        stage.device.write(b"still")
        assert await former.receive_bytes() == b"still"
