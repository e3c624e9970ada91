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

from controlplane.hypervisor import callback_runner
from controlplane.hypervisor.callback_runner import CallbackRunner
from controlplane.hypervisor.cpu_quota import BURST_SECONDS, CPU_QUOTA_EXCEEDED
from controlplane.hypervisor.transport import BLOCKED_BY_PEER, Transport
from controlplane.process.thread_interrupt import make_interruptible

_LIBC = ctypes.CDLL(None, use_errno=True)


@pytest.fixture
def here() -> Iterator[CallbackRunner]:
    """A runner of callbacks in this thread."""
    make_interruptible()
    runner = CallbackRunner()
    yield runner
    runner.meter.close()


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set after several looks: a thread that waits for it sleeps during all of them."""
    event, remaining, look = threading.Event(), list(range(6)), CallbackRunner.look

    def look_and_count(runner: CallbackRunner) -> float | None:
        after = look(runner)
        remaining.pop()
        if not remaining:
            event.set()
        return after if remaining else None

    monkeypatch.setattr(CallbackRunner, "look", look_and_count)
    return event


def read_forever() -> int:
    """Block in libc's read(2) on a pipe without data and return the errno."""
    ours, theirs = os.pipe()
    try:
        assert _LIBC.read(ours, ctypes.create_string_buffer(1), 1) == -1
        return ctypes.get_errno()
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_callback_that_waits_for_its_peer_is_interrupted_and_the_connection_cut(here: CallbackRunner) -> None:
    transport, ended = Transport(), list[int]()
    here.run(transport, lambda: ended.append(read_forever()))
    assert ended == [errno.EINTR]
    assert transport.because == BLOCKED_BY_PEER


def test_waiting_for_another_thread_does_not_count_as_waiting_for_the_peer(
    here: CallbackRunner, looked: threading.Event
) -> None:
    """On a busy machine this takes a while and must not cut the connection."""
    transport = Transport()
    here.run(transport, looked.wait)
    assert not transport.because


def test_a_callback_that_works_between_two_waits_is_not_interrupted(
    here: CallbackRunner, looked: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if every look sees it asleep."""
    used = itertools.count(time.thread_time(), 1e-6)
    monkeypatch.setattr(callback_runner, "processor_seconds", lambda _unused: next(used))
    monkeypatch.setattr(callback_runner, "is_blocked_by_peer", lambda _unused: True)
    transport = Transport()
    here.run(transport, looked.wait)
    assert not transport.because


def test_a_callback_over_its_cpu_quota_is_cut_while_it_runs(here: CallbackRunner) -> None:
    transport = Transport()

    def work() -> None:
        while not transport.because and time.thread_time() < began + 20 * BURST_SECONDS:
            pass
        assert transport.because == CPU_QUOTA_EXCEEDED

    began = time.thread_time()
    here.run(transport, work)


def test_a_blocked_call_that_the_callback_waits_for_is_interrupted_too(here: CallbackRunner) -> None:
    """The call holds libvirt's lock of the connection, and the callback waits for the lock."""
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


def test_a_call_that_waits_for_an_answer_is_not_interrupted(here: CallbackRunner, looked: threading.Event) -> None:
    """The call of the connection waits in poll(2) all the time."""
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


def test_nothing_is_interrupted_after_the_callback_has_ended(
    here: CallbackRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal would interrupt the next work of the thread."""
    interrupted: list[int] = []
    monkeypatch.setattr(callback_runner, "interrupt", interrupted.append)
    monkeypatch.setattr(callback_runner, "is_blocked_by_peer", lambda _unused: True)
    here.run(Transport(), lambda: None)
    assert here.look() is None
    assert here.look() is None
    assert interrupted == []
