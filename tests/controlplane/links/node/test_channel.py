# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets and descriptors over real sockets."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import AsyncIterator

import pytest

from controlplane.links.node.channel import Channel, Closed
from controlplane.links.node.messages import MESSAGE_LIMIT_BYTES, ProtocolError
from tests.controlplane.links.node.lingering import others_closed
from tests.controlplane.virt_handler.fakes import until

__all__ = ["others_closed"]

pytestmark = pytest.mark.usefixtures("others_closed")


@pytest.fixture
async def ends() -> AsyncIterator[tuple[Channel, Channel]]:
    channel, other = (Channel(end) for end in socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
    yield channel, other
    channel.close()
    other.close()


@pytest.fixture
async def raw() -> AsyncIterator[tuple[socket.socket, Channel]]:
    """A raw socket, which can break every rule, and the channel at its other end."""
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel = Channel(ours)
    yield theirs, channel
    theirs.close()
    channel.close()


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


async def test_packets_arrive_separately(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    await sender.send(b"first")
    await sender.send(b"x" * MESSAGE_LIMIT_BYTES)
    assert await receiver.receive() == (b"first", None)
    assert await receiver.receive() == (b"x" * MESSAGE_LIMIT_BYTES, None)


async def test_a_descriptor_is_passed_to_the_receiver(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    read, write = os.pipe()
    await sender.send(b"a pipe", write)
    os.close(write)
    data, received = await receiver.receive()
    assert data == b"a pipe"
    assert received is not None
    assert not os.get_inheritable(received)
    os.write(received, b"through")
    assert os.read(read, 10) == b"through"
    os.close(received)
    os.close(read)


async def test_a_sender_waits_for_room_in_the_socket(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    sending = asyncio.create_task(_send_many(sender, 200))
    packets = [await receiver.receive() for _unused in range(200)]
    await sending
    assert len(packets) == 200


async def _send_many(channel: Channel, count: int) -> None:
    for _unused in range(count):
        await channel.send(b"x" * 32768)


async def test_a_closed_end_ends_the_channel(ends: tuple[Channel, Channel]) -> None:
    closed_end, other = ends
    closed_end.close()
    with pytest.raises(Closed):
        await other.receive()
    with pytest.raises(Closed):
        await other.send(b"anyone?")


async def test_a_too_long_packet_is_refused(raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    theirs.send(b"x" * (MESSAGE_LIMIT_BYTES + 1))
    with pytest.raises(ProtocolError, match="too long"):
        await channel.receive()


@pytest.mark.parametrize("count", [2, 4, 200], ids=lambda count: f"{count}")
async def test_several_descriptors_are_refused_and_closed(count: int, raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    before = descriptors()
    packet = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()] * count))]
    theirs.sendmsg([b"take these"], packet)
    with pytest.raises(ProtocolError, match="descriptors"):
        await channel.receive()
    await until(lambda: descriptors() == before, "everything closed")


async def test_the_descriptor_of_an_empty_packet_is_closed(raw: tuple[socket.socket, Channel]) -> None:
    theirs, channel = raw
    before = descriptors()
    theirs.sendmsg([b""], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs.fileno()]))])
    with pytest.raises(Closed):
        await channel.receive()
    await until(lambda: descriptors() == before, "everything closed")


async def test_a_failed_send_also_ends_waiting_receives(
    ends: tuple[Channel, Channel],
) -> None:
    """The packet is larger than the send buffer: the channel closes in both directions."""
    sender, other = ends
    sender._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4608)
    receiving = [asyncio.create_task(end.receive()) for end in (sender, other)]
    with pytest.raises(Closed):
        await sender.send(b"x" * 60_000)
    for task in receiving:
        with pytest.raises(Closed):
            await asyncio.wait_for(task, 5)


async def test_a_reused_descriptor_number_works_after_a_close(ends: tuple[Channel, Channel]) -> None:
    """The next socket gets the number of the closed channel: the loop must have removed its old handlers."""
    channel, _unused = ends
    waiting = [asyncio.create_task(_send_many(channel, 200)), asyncio.create_task(channel.receive())]
    await asyncio.sleep(0.01)
    number, closed = channel._socket.fileno(), asyncio.Event()
    channel.close(closed.set)
    await asyncio.wait_for(closed.wait(), 5)
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    assert number in (theirs.fileno(), ours.fileno())
    successor, peer = Channel(theirs), Channel(ours)
    await asyncio.gather(*waiting, return_exceptions=True)
    receiving = asyncio.create_task(successor.receive())
    await asyncio.sleep(0)
    await peer.send(b"new")
    assert await asyncio.wait_for(receiving, 5) == (b"new", None)
    successor.close()
    peer.close()


async def test_send_now_closes_a_full_channel(ends: tuple[Channel, Channel]) -> None:
    sender, receiver = ends
    sender.send_now(b"at once")
    assert await receiver.receive() == (b"at once", None)
    sending = asyncio.create_task(_send_many(sender, 200))
    await asyncio.sleep(0.01)
    sender.send_now(b"no room")
    with pytest.raises(Closed):
        await asyncio.wait_for(sending, 5)
