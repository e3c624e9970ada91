# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Descriptors whose close blocks because of what their sender set up."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from controlplane.links.node import descriptor_closer
from controlplane.links.node.channel import Channel
from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.links.node.messages import ProtocolError
from controlplane.process import threads
from controlplane.process.thread_interrupt import make_interruptible
from tests.controlplane.links.node.lingering import give_away, lingering, old_kernel
from tests.controlplane.virt_handler.fakes import until

__all__ = ["old_kernel"]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No blocked close is interrupted."""
    monkeypatch.setattr(descriptor_closer, "_INTERRUPT_SECONDS", 3600.0)


@pytest.fixture
def interruptible() -> Iterator[None]:
    before = signal.getsignal(signal.SIGUSR2)
    make_interruptible()
    yield
    signal.signal(signal.SIGUSR2, before)


def closing() -> int:
    return sum(thread.name == "close" for thread in threading.enumerate())


def stands_still() -> bool:
    """Return whether a closing thread is blocked."""
    threads = [thread for thread in threading.enumerate() if thread.name == "close"]
    for entry in threads:
        entry.join(0.1)
    return any(thread.is_alive() for thread in threads)


@pytest.mark.usefixtures("patient")
async def test_a_blocking_close_blocks_one_thread_and_not_the_loop() -> None:
    closed: list[bool] = []
    closer = DescriptorCloser()
    with lingering() as sock:
        closer.add(sock.detach())
        await until(lambda: not closer, "a thread for it")
        read, write = os.pipe()
        closer.add(read, write)
        closer.when_closed(lambda: closed.append(True))
        assert (len(closer), closing(), closed) == (2, 1, [])
    await until(lambda: bool(closed), "everything closed")
    for descriptor in (read, write):
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.usefixtures("interruptible")
async def test_a_signal_interrupts_each_blocking_close() -> None:
    closed: list[bool] = []
    closer = DescriptorCloser()
    with lingering() as sock, lingering() as other:
        closer.add(sock.detach(), other.detach())
        closer.when_closed(lambda: closed.append(True))
        await until(lambda: bool(closed), "everything closed, while its peers are there")


async def test_a_failed_start_of_a_thread_is_retried(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[bool] = []
    begin = threads.start_thread

    def no_thread(*_unused: object, **__: object) -> None:
        monkeypatch.setattr(threads, "start_thread", begin)
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads, "start_thread", no_thread)
    read, write = os.pipe()
    closer = DescriptorCloser()
    closer.add(read, write)
    closer.when_closed(lambda: closed.append(True))
    assert not closed
    await until(lambda: bool(closed), "everything closed")


@pytest.mark.usefixtures("patient", "old_kernel")
@pytest.mark.parametrize(("data", "count"), [(b"x", 1), (b"x", 253), (b"x" * 65_537, 2)], ids=["one", "many", "long"])
async def test_closing_the_descriptors_of_a_packet_does_not_block_the_loop(data: bytes, count: int) -> None:
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, closed = Channel(ours, takes_descriptors=False), []
    with lingering() as sock:
        give_away(theirs, data, sock, count)
        with pytest.raises(ProtocolError, match="too many descriptors"):
            await channel.receive()
        channel.close(lambda: closed.append(True))
        assert stands_still(), "the kernel has not closed it"
        assert not closed
    await until(lambda: bool(closed), "everything closed")
    theirs.close()


@pytest.mark.usefixtures("patient", "old_kernel")
async def test_closing_unreceived_descriptors_does_not_block_the_loop() -> None:
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    channel, closed = Channel(ours, takes_descriptors=False), []
    with lingering() as sock:
        give_away(theirs, b"x", sock)
        channel.close(lambda: closed.append(True))
        with suppress(ConnectionResetError):  # its packet was not read
            assert theirs.recv(1) == b"", "the peer notices it at once"
        assert not closed
    await until(lambda: bool(closed), "everything closed")
    theirs.close()


async def test_a_channel_without_descriptors_asks_the_kernel_to_refuse_them(monkeypatch: pytest.MonkeyPatch) -> None:
    refused: list[socket.socket] = []
    monkeypatch.setattr("controlplane.links.node.channel.refuse_descriptors", refused.append)
    theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    for end, takes in ((theirs, True), (ours, False)):
        Channel(end, takes_descriptors=takes).close()
    assert refused == [ours]
