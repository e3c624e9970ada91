# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import errno
import itertools
import os
import socket
import threading
import time
from collections.abc import Iterator

import pytest

from controlplane.hypervisor import callback_runner, cpu_quota
from controlplane.hypervisor.callback_runner import CallbackRunner
from controlplane.hypervisor.cpu_quota import BURST_SECONDS, CPU_QUOTA_EXCEEDED
from controlplane.hypervisor.transport import BLOCKED_BY_PEER, Transport
from controlplane.process.thread_interrupt import make_interruptible

_LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def here() -> Iterator[CallbackRunner]:
    """What runs in this thread."""
    make_interruptible()
    made = CallbackRunner()
    yield made
    made.meter.close()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set after several looks; whoever waits for it sleeps through them all."""
    made, left, look = threading.Event(), list(range(6)), CallbackRunner.look

    def look_and_count(one: CallbackRunner) -> float | None:
        after = look(one)
        left.pop()
        if not left:
            made.set()
        return after if left else None

    monkeypatch.setattr(CallbackRunner, "look", look_and_count)
    return made


def read_forever() -> int:
    """Read as C does, from somebody who never writes; return why it ended."""
    ours, theirs = os.pipe()
    try:
        assert _LIBC.read(ours, ctypes.create_string_buffer(1), 1) == -1
        return ctypes.get_errno()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_sleep_that_others_would_end_is_ended_and_their_connection_cut(here: CallbackRunner) -> None:
    transport, ended = Transport(), list[int]()
    here.run(transport, lambda: ended.append(read_forever()))
    assert ended == [errno.EINTR]
    assert transport.because == BLOCKED_BY_PEER


def test_each_further_sleep_is_ended_too(here: CallbackRunner) -> None:
    """What lies in a socket that is cut is read to its end."""
    ended = list[int]()
    here.run(Transport(), lambda: ended.extend(read_forever() for _unused in range(20)))
    assert ended == [errno.EINTR] * 20


def test_a_sleep_of_nobody_s_is_ended(here: CallbackRunner) -> None:
    ended = list[int]()
    here.run(None, lambda: ended.append(read_forever()))
    assert ended == [errno.EINTR]


def test_who_waits_for_another_thread_of_ours_is_not_held_by_the_other_side(
    here: CallbackRunner, looked: threading.Event
) -> None:
    """On a machine with much to do that takes a while: nobody is cut for it."""
    transport = Transport()
    here.run(transport, looked.wait)
    assert not transport.because


def test_who_works_is_not_held_by_the_other_side(
    here: CallbackRunner, looked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cpu_quota, "BURST_SECONDS", 3600.0)
    transport = Transport()

    def work() -> None:
        while not looked.is_set():
            pass

    here.run(transport, work)
    assert not transport.because


def test_who_works_between_two_sleeps_is_not_held(
    here: CallbackRunner, looked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it is found asleep."""
    used = itertools.count(time.thread_time(), 1e-6)
    monkeypatch.setattr(callback_runner, "processor_seconds", lambda _unused: next(used))
    monkeypatch.setattr(callback_runner, "is_blocked_by_peer", lambda _unused: True)
    transport = Transport()
    here.run(transport, looked.wait)
    assert not transport.because


def test_who_takes_more_than_its_share_is_cut_while_it_goes_on(here: CallbackRunner) -> None:
    transport = Transport()

    def work() -> None:
        while not transport.because and time.thread_time() < began + 20 * BURST_SECONDS:
            pass
        assert transport.because == CPU_QUOTA_EXCEEDED

    began = time.thread_time()
    here.run(transport, work)


def test_a_call_of_the_connection_that_is_held_with_what_is_waited_for_is_ended_too(here: CallbackRunner) -> None:
    """It has libvirt's lock of the connection, which what runs here wants."""
    transport, ended, is_done, has_begun = Transport(), list[int](), threading.Event(), threading.Event()

    def work() -> None:
        with transport.in_use():
            has_begun.set()
            ended.append(read_forever())
        is_done.set()

    thread = threading.Thread(target=work)
    thread.start()
    has_begun.wait()
    here.run(transport, is_done.wait)
    thread.join()
    assert ended == [errno.EINTR]
    assert transport.because == BLOCKED_BY_PEER


def test_who_waits_for_an_answer_is_not_held(here: CallbackRunner, looked: threading.Event) -> None:
    """A call of the connection is there all the time, in poll(2)."""
    transport, (ours, theirs) = Transport(), socket.socketpair()
    ours.settimeout(600)

    def work() -> None:
        with transport.in_use():
            ours.recv(1)

    thread = threading.Thread(target=work)
    thread.start()
    here.run(transport, looked.wait)
    theirs.send(b"x")
    thread.join()
    ours.close()
    theirs.close()
    assert not transport.because


def test_nobody_is_interrupted_when_it_is_over(here: CallbackRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signal would meet what the thread does next."""
    interrupted: list[int] = []
    monkeypatch.setattr(callback_runner, "interrupt", interrupted.append)
    monkeypatch.setattr(callback_runner, "is_blocked_by_peer", lambda _unused: True)
    here.run(Transport(), lambda: None)
    assert here.look() is None
    assert here.look() is None
    assert interrupted == []
