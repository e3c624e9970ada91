# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The event loop for libvirt, one request at a time. libvirt's client on it, and hostile peers: test_hostile."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import libvirt
import pytest

from controlplane.hypervisor.loop import EventLoop
from tests.controlplane.virt_handler.fakes import until

READ, WRITE = libvirt.VIR_EVENT_HANDLE_READABLE, libvirt.VIR_EVENT_HANDLE_WRITABLE


@pytest.fixture
def freed(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The values that libvirt was asked to free."""
    values: list[Any] = []
    monkeypatch.setattr(libvirt, "virEventInvokeFreeCallback", values.append)
    return values


@pytest.fixture
async def loop(freed: list[Any]) -> AsyncIterator[EventLoop]:
    event_loop = EventLoop()
    yield event_loop
    asyncio.get_running_loop().remove_reader(event_loop._epoll.fileno())
    event_loop._epoll.close()
    event_loop._runner.meter.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


async def turns() -> None:
    for _unused in range(5):
        await asyncio.sleep(0)


async def test_a_timer_fires_repeatedly_until_it_is_disabled(loop: EventLoop, freed: list[Any]) -> None:
    """libvirt's keepalive uses such a timer: otherwise it would be sent only once."""
    fired: list[int] = []
    number = loop._add_timeout(0, lambda timer, _opaque: fired.append(timer), "opaque")
    await until(lambda: len(fired) >= 3, "three times")
    loop._update_timeout(number, -1)
    so_far = len(fired)
    await turns()
    assert len(fired) == so_far
    assert set(fired) == {number}
    assert (loop._remove_timeout(number), loop._remove_timeout(number)) == (0, -1)
    await turns()
    assert freed == ["opaque"]


async def test_a_handle_gets_only_the_events_that_it_watches(loop: EventLoop, pipe: tuple[int, int]) -> None:
    received: list[int] = []
    number = loop._add_handle(pipe[0], READ, lambda _number, _fd, events, _opaque: received.append(events), None)
    os.write(pipe[1], b"x")
    await until(lambda: bool(received), "the byte")
    assert set(received) == {READ}
    loop._update_handle(number, 0)
    received.clear()
    await turns()
    assert received == []


async def test_a_closed_peer_wakes_readers_and_makes_writers_writable(loop: EventLoop, pipe: tuple[int, int]) -> None:
    """A reader reads the remaining data and then the end; a writer just sees that it can write."""
    received: list[int] = []
    beyond = os.dup(pipe[1])
    loop._add_handle(beyond, WRITE, lambda _number, _fd, events, _opaque: received.append(events), None)
    os.dup2(pipe[1], pipe[0])  # closes the only reading end
    await until(lambda: bool(received), "the end")
    assert set(received) == {WRITE}
    os.close(beyond)


async def test_a_second_handle_for_a_descriptor_is_refused(loop: EventLoop, pipe: tuple[int, int]) -> None:
    """epoll has one entry for each descriptor: the second handle would replace the first."""
    called: list[str] = []
    assert loop._add_handle(pipe[0], READ, lambda *_unused: called.append("first"), None) > 0
    assert loop._add_handle(pipe[0], READ, lambda *_unused: called.append("second"), None) == -1
    os.write(pipe[1], b"x")
    await until(lambda: bool(called), "the byte")
    assert set(called) == {"first"}


async def test_a_removed_handle_gets_no_events_and_is_freed(
    loop: EventLoop, pipe: tuple[int, int], freed: list[Any]
) -> None:
    received: list[int] = []
    number = loop._add_handle(pipe[0], READ, lambda *_unused: received.append(1), "opaque")
    assert (loop._remove_handle(number), loop._remove_handle(number)) == (0, -1)
    os.write(pipe[1], b"x")
    await turns()
    assert (received, freed) == ([], ["opaque"])
    assert loop._add_handle(pipe[0], READ, lambda *_unused: None, None) > number, "its number may be another's"


async def test_expensive_handles_leave_the_loop_a_turn_in_between(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise a few flooding launchers could occupy the loop. Each handle runs once before any runs again."""
    monkeypatch.setattr("controlplane.hypervisor.loop._PORTION_SECONDS", 0.0)
    pipes = [os.pipe() for _unused in range(3)]
    turn, served = [0], list[tuple[int, int]]()
    for number, (read, write) in enumerate(pipes):
        loop._add_handle(read, READ, lambda *_unused, number=number: served.append((turn[0], number)), None)
        os.write(write, b"x")
    while len(served) < 9:
        turn[0] += 1
        await asyncio.sleep(0)
    for read, write in pipes:
        loop._remove_handle(loop._by_descriptor[read].number)
        os.close(read)
        os.close(write)
    assert len({at for at, _unused in served}) == len(served)
    assert all(sorted(number for _unused, number in served[at : at + 3]) == [0, 1, 2] for at in (0, 3, 6))
