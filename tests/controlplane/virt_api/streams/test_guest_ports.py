# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forwarded ports of a guest: TCP and UDP, refusals, the end of its Pod."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from kubevirt_api.close_codes import ENDED, LOST

from controlplane.links.relay import Close
from controlplane.virt_api.streams import serve
from controlplane.virt_api.streams.guest_ports import DATAGRAMS, UdpPort
from tests.controlplane.api import golden
from tests.controlplane.virt_api.served import Json
from tests.controlplane.virt_api.streams.stage import CREATED_BY, NETWORK, POD, Streaming, echoing
from tests.controlplane.virt_api.subresources.stage import VMI, a_vmi
from tests.controlplane.virt_handler.streams.stage import GUEST, is_closed

VM = VMI.replace("virtualmachineinstances", "virtualmachines")


def a_pod(phase: str = "Running") -> Json:
    metadata = {"uid": GUEST.pod_uid, "name": "p", "namespace": "ns", "labels": {CREATED_BY: GUEST.vmi_uid}}
    return {"metadata": metadata, "status": {"podIP": "127.0.0.1", "phase": phase}}


@pytest.fixture
async def stage(stage: Streaming) -> Streaming:
    """With a guest that has a network."""
    stage.put_vmi(a_vmi(interfaces=NETWORK))
    return stage


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
    """No packet says that a guest is gone; the next Pod with its address must get none of the client's datagrams.

    What was received may be half of an answer, so it is no regular end.
    """
    monkeypatch.setattr(serve, "PRESENCE_SECONDS", 0.01)
    async with echoing() as port, stage.stream(f"portforward/{port}/{protocol}") as websocket:
        if is_deleted:
            stage.served.api.drop(POD)
        else:
            stage.served.api.put(POD, a_pod("Succeeded"))
        code, reason = await is_closed(websocket)
    assert (code, reason) == (LOST, "the guest has stopped, or runs on another node")


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


class Datagrams(asyncio.DatagramTransport):
    """A socket that keeps what is sent."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[bytes] = []

    def sendto(self, data: Any, addr: Any = None) -> None:
        self.sent.append(data)

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass


async def test_datagrams_that_the_socket_does_not_take_are_dropped() -> None:
    far, transport = UdpPort(), Datagrams()
    far.connection_made(transport)
    far.pause_writing()
    await far.send(b"dropped")
    far.resume_writing()
    await far.send(b"sent")
    assert transport.sent == [b"sent"]


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


def a_vm(*, created: bool) -> Json:
    vm = golden.load("vm-cirros")
    return {**vm, "metadata": {"name": "web", "namespace": "ns"}, "status": {"created": created}}


class EchoUdp(asyncio.DatagramProtocol):
    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.transport.sendto(data.upper(), addr)


@pytest.mark.parametrize("machine", ["virtualmachines", "virtualmachineinstances"])
async def test_a_port_of_the_guest_is_forwarded(stage: Streaming, machine: str) -> None:
    """The address is the launcher Pod's: the VMI's status, which its node writes, names another."""
    stage.served.api.put(VM, a_vm(created=True))
    async with echoing() as port, stage.stream(f"portforward/{port}", machine) as websocket:
        await websocket.send_bytes(b"hello")
        assert await websocket.receive_bytes() == b"hello"


async def test_datagrams_are_forwarded(stage: Streaming) -> None:
    transport, _unused = await asyncio.get_running_loop().create_datagram_endpoint(EchoUdp, ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    async with stage.stream(f"portforward/{port}/udp") as websocket:
        for datagram in (b"a", b"b"):
            await websocket.send_bytes(datagram)
            assert await websocket.receive_bytes() == datagram.upper()
    transport.close()


async def test_the_end_of_a_forwarded_connection_closes_the_stream(stage: Streaming) -> None:
    async def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"bye")
        writer.close()

    server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
    async with stage.stream(f"portforward/{server.sockets[0].getsockname()[1]}") as websocket:
        assert await websocket.receive_bytes() == b"bye"
        assert await is_closed(websocket) == (ENDED, "the guest has closed the connection")
    server.close()


async def test_a_closed_port_of_the_guest_is_named(stage: Streaming) -> None:
    async with echoing() as port:
        pass
    code, message = await stage.refusal(f"portforward/{port}")
    assert code == 500
    assert f"port {port} of the guest: nothing listens there" in message


async def test_a_vm_without_an_instance_has_no_ports(stage: Streaming) -> None:
    stage.served.api.put(VM, a_vm(created=False))
    code, message = await stage.refusal("portforward/22", "virtualmachines")
    assert (code, "start it first" in message) == (409, True)


async def test_a_pod_without_an_address_has_no_ports(stage: Streaming) -> None:
    stage.served.api.put(
        POD, {"metadata": {"name": "virt-launcher-web", "uid": "another", "labels": {CREATED_BY: "x"}}}
    )
    code, message = await stage.refusal("portforward/22")
    assert (code, "no address" in message) == (400, True)


async def test_a_port_of_a_guest_whose_readiness_probe_fails_is_forwarded(stage: Streaming) -> None:
    condition = {"type": "Ready", "status": "False", "reason": "GuestNotReady"}
    stage.put_vmi(a_vmi(interfaces=NETWORK, conditions=[condition]))
    async with echoing() as port, stage.stream(f"portforward/{port}") as websocket:
        await websocket.send_bytes(b"hello")
        assert await websocket.receive_bytes() == b"hello"
