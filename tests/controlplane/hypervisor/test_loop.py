# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What libvirt asks of an event loop, one request at a time. libvirt itself on it, and who means harm: test_hostile."""

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
    """What libvirt was told to free."""
    found: list[Any] = []
    monkeypatch.setattr(libvirt, "virEventInvokeFreeCallback", found.append)
    return found


@pytest.fixture
async def loop(freed: list[Any]) -> AsyncIterator[EventLoop]:
    made = EventLoop()
    yield made
    asyncio.get_running_loop().remove_reader(made._epoll.fileno())
    made._epoll.close()
    made._runner.meter.close()


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    yield read, write
    os.close(read)
    os.close(write)


async def turns() -> None:
    for _unused in range(5):
        await asyncio.sleep(0)


async def test_a_timer_fires_again_and_again_until_it_is_put_to_sleep(loop: EventLoop, freed: list[Any]) -> None:
    """libvirt's keepalive is one: it would ask once, and never again."""
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


async def test_what_was_not_asked_for_is_not_told(loop: EventLoop, pipe: tuple[int, int]) -> None:
    told: list[int] = []
    number = loop._add_handle(pipe[0], READ, lambda _number, _fd, events, _opaque: told.append(events), None)
    os.write(pipe[1], b"x")
    await until(lambda: bool(told), "the byte")
    assert set(told) == {READ}
    loop._update_handle(number, 0)
    told.clear()
    await turns()
    assert told == []


async def test_the_end_of_the_other_side_is_told_to_who_reads_and_not_to_who_writes(
    loop: EventLoop, pipe: tuple[int, int]
) -> None:
    """It is found by reading, after what came before it; a writer is told that he can write."""
    told: list[int] = []
    beyond = os.dup(pipe[1])
    loop._add_handle(beyond, WRITE, lambda _number, _fd, events, _opaque: told.append(events), None)
    os.dup2(pipe[1], pipe[0])  # nobody reads any more
    await until(lambda: bool(told), "the end")
    assert set(told) == {WRITE}
    os.close(beyond)


async def test_a_descriptor_that_is_watched_already_is_refused(loop: EventLoop, pipe: tuple[int, int]) -> None:
    """An epoll has one entry for each: the second would take the first one's away."""
    told: list[str] = []
    assert loop._add_handle(pipe[0], READ, lambda *_unused: told.append("first"), None) > 0
    assert loop._add_handle(pipe[0], READ, lambda *_unused: told.append("second"), None) == -1
    os.write(pipe[1], b"x")
    await until(lambda: bool(told), "the byte")
    assert set(told) == {"first"}


async def test_one_that_is_taken_away_is_told_nothing_and_freed(
    loop: EventLoop, pipe: tuple[int, int], freed: list[Any]
) -> None:
    told: list[int] = []
    number = loop._add_handle(pipe[0], READ, lambda *_unused: told.append(1), "opaque")
    assert (loop._remove_handle(number), loop._remove_handle(number)) == (0, -1)
    os.write(pipe[1], b"x")
    await turns()
    assert (told, freed) == ([], ["opaque"])
    assert loop._add_handle(pipe[0], READ, lambda *_unused: None, None) > number, "its number may be another's"


async def test_several_that_cost_much_leave_the_loop_a_turn_in_between(
    loop: EventLoop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few launchers that flood together would be all that it does; and each has its turn before one has its next."""
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
