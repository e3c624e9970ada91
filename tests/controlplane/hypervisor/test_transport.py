# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import nullcontext, suppress

import pytest

from controlplane.hypervisor.cpu_quota import BURST_SECONDS, RATE, CpuQuota
from controlplane.hypervisor.receive_quota import BURST_BYTES, PEER_DOES_NOT_READ, RECEIVE_QUOTA_EXCEEDED, UNREAD_BYTES
from controlplane.hypervisor.transport import Retired, Transport, transport_of_thread
from controlplane.process.fd_passing import refuse_descriptors

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    ours.settimeout(5)
    yield ours, theirs
    ours.close()
    theirs.close()


def is_ended(pair: Pair) -> bool:
    pair[1].setblocking(False)
    try:
        return pair[1].recv(1) == b""
    except BlockingIOError:
        return False


def test_a_cut_shuts_the_socket_down_without_closing_the_descriptor(pair: Pair) -> None:
    transport = Transport()
    transport.attach(pair[0].fileno())
    transport.cut("enough")
    assert is_ended(pair)
    assert pair[0].recv(1) == b""


def test_the_kernel_refuses_descriptors_for_an_attached_socket(pair: Pair) -> None:
    """The kernel would close them in the reading thread, and some block that close forever."""
    with socket.socket(socket.AF_UNIX) as sock:
        can_refuse = refuse_descriptors(sock)
    Transport().attach(pair[0].fileno())
    with pytest.raises(PermissionError) if can_refuse else nullcontext():  # kernels before Linux 6.16 refuse none
        socket.send_fds(pair[1], [b"x"], [0])
    pair[1].send(b"y")
    assert pair[0].recv(1) == (b"y" if can_refuse else b"x")


def test_a_transport_cut_before_attach_is_shut_down_at_attach(pair: Pair) -> None:
    transport = Transport()
    transport.cut("nobody waits")
    transport.attach(pair[0].fileno())
    assert is_ended(pair)


def test_a_detached_descriptor_is_not_cut(pair: Pair) -> None:
    transport = Transport()
    transport.attach(pair[0].fileno())
    transport.detach(pair[0].fileno())
    transport.cut("too late")
    assert not is_ended(pair)


def test_a_peer_that_sends_without_reading_is_cut_off(pair: Pair) -> None:
    transport = Transport()
    transport.attach(pair[0].fileno())
    for _unused in range(3):
        transport.count_received(UNREAD_BYTES, 0.0)
    assert not transport.because, "nothing waits for it to read"
    fill(pair[0])
    transport.count_received(UNREAD_BYTES, 0.0)
    empty(pair[1])
    transport.count_received(1, 0.0)
    fill(pair[0])
    transport.count_received(UNREAD_BYTES, 0.0)
    assert not transport.because, "it has read in between"
    transport.count_received(1, 0.0)
    assert transport.because == PEER_DOES_NOT_READ


def test_a_peer_over_its_receive_quota_is_cut_off(pair: Pair) -> None:
    transport = Transport()
    transport.attach(pair[0].fileno())
    transport.count_received(BURST_BYTES + 1, 0.0)
    assert transport.because == RECEIVE_QUOTA_EXCEEDED
    assert is_ended(pair)


def fill(end: socket.socket) -> None:
    end.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            end.send(b"x" * 28)


def empty(end: socket.socket) -> None:
    end.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            end.recv(65536)


def test_the_first_reason_is_kept(pair: Pair) -> None:
    transport = Transport()
    transport.cut("it floods")
    transport.cut("client")
    assert transport.because == "it floods"


def test_a_thread_knows_the_transport_that_it_works_for() -> None:
    transport = Transport()
    with transport.in_use():
        assert transport_of_thread() is transport
    assert transport_of_thread() is None


def test_a_retired_transport_accepts_no_new_call() -> None:
    transport = Transport()
    transport.retire(1.0)
    with pytest.raises(Retired), transport.in_use():
        pass


def test_retiring_waits_for_a_call_and_then_cuts_it_off(pair: Pair) -> None:
    transport, has_begun, ended = Transport(), threading.Event(), []
    transport.attach(pair[0].fileno())

    def work() -> None:
        with transport.in_use():
            has_begun.set()
            pair[0].recv(1)
            ended.append("work")

    thread = threading.Thread(target=work)
    thread.start()
    has_begun.wait()
    transport.retire(0.01)
    assert ended == ["work"]
    thread.join()


def test_a_cpu_quota_is_used_up_and_refills() -> None:
    quota = CpuQuota()
    assert quota.take(BURST_SECONDS, 0.0)
    assert not quota.take(0.001, 0.0)
    assert quota.take(0.1 * RATE, 0.2)
    assert not quota.take(BURST_SECONDS + 0.001, 1e6)
