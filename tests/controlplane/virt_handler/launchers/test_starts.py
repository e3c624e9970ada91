# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is to start a domain: how many at once, in which order, and what a start that hangs costs others."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Iterable

import pytest

from controlplane.virt_handler.launchers import starts as module
from controlplane.virt_handler.launchers.starts import Starts, Turn
from tests.controlplane.virt_handler.fakes import until

LONG = 3600.0


def at(second: int, namespace: str = "default", *, again: bool = False) -> Turn:
    return Turn(namespace, f"2026-01-01T00:00:{second:02}Z", is_again=again)


class Node:
    """Starts by name, each of which ends when it is let."""

    def __init__(self, places: int = 2, lent_seconds: float = LONG) -> None:
        self.starts = Starts(places, lent_seconds)
        self.begun: list[str] = []
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._may_end: dict[str, asyncio.Event] = {}

    async def ask(self, name: str, turn: Turn) -> None:
        self._may_end[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._start(name, turn))
        await _settle()

    async def end(self, *names: str) -> None:
        for name in names:
            self._may_end[name].set()
            await self.tasks[name]
        await _settle()

    async def cancel(self, name: str) -> None:
        self.tasks[name].cancel()
        await asyncio.wait({self.tasks[name]})
        await _settle()

    @property
    def under_way(self) -> list[str]:
        return [name for name in self.begun if not self.tasks[name].done()]

    async def _start(self, name: str, turn: Turn) -> None:
        async with self.starts.place(turn):
            self.begun.append(name)
            await self._may_end[name].wait()


async def _settle() -> None:
    for _unused in range(5):
        await asyncio.sleep(0)


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    made = Node()
    yield made
    await _end_all([made])


async def _end_all(nodes: Iterable[Node]) -> None:
    for one in nodes:
        for task in one.tasks.values():
            task.cancel()
        if one.tasks:
            await asyncio.wait(one.tasks.values())


async def test_a_start_alone_begins_without_giving_way_to_anything() -> None:
    placed = Starts(places=1).place(at(0))
    with pytest.raises(StopIteration):
        placed.__aenter__().__await__().send(None)
    await placed.__aexit__(None, None, None)


async def test_there_are_never_more_at_once_than_places(node: Node) -> None:
    for number in range(6):
        await node.ask(f"vm-{number}", at(number))
    most = []
    for number in range(6):
        most.append(len(node.under_way))
        await node.end(f"vm-{number}")
    assert most == [2, 2, 2, 2, 2, 1]


async def test_the_oldest_goes_first_whenever_it_asked(node: Node) -> None:
    for name, second in (("first", 50), ("second", 51), ("young", 40), ("old", 10), ("middle", 20)):
        await node.ask(name, at(second))
    await node.end("first", "second", "old", "middle")
    assert node.begun == ["first", "second", "old", "middle", "young"]


async def test_of_one_second_who_asked_first_goes_first(node: Node) -> None:
    for name in ("a", "b", "d", "c"):
        await node.ask(name, at(0))
    await node.end("a", "b")
    assert node.begun == ["a", "b", "d", "c"]


async def test_a_namespace_without_a_place_goes_before_older_ones_of_another() -> None:
    node = Node(places=3)
    for number in range(5):
        await node.ask(f"many-{number}", at(number, "many"))
    await node.ask("one", at(50, "one"))
    await node.ask("two", at(51, "two"))
    assert node.under_way == ["many-0", "many-1", "many-2", "one"], "it finds one place more"
    await node.end("many-0", "many-1")
    assert node.under_way == ["many-2", "one", "two"]
    await node.end("one")
    assert node.under_way == ["many-2", "two", "many-3"]
    await _end_all([node])


async def test_one_that_is_tried_again_goes_after_all_that_are_tried_first(node: Node) -> None:
    for name, second in (("a", 0), ("b", 1)):
        await node.ask(name, at(second))
    await node.ask("again", at(2, again=True))
    await node.ask("young", at(50))
    await node.end("a")
    assert node.begun == ["a", "b", "young"]


async def test_of_those_that_are_tried_again_there_is_one_at_a_time(node: Node) -> None:
    for number in range(3):
        await node.ask(f"again-{number}", at(number, again=True))
    assert node.under_way == ["again-0"], "so they never have all places"
    await node.ask("young", at(50))
    assert node.under_way == ["again-0", "young"]
    await node.end("again-0")
    assert node.under_way == ["young", "again-1"]


async def test_one_that_hangs_gives_its_place_back_and_goes_on() -> None:
    node = Node(places=1, lent_seconds=0.01)
    await node.ask("hung", at(0))
    await node.ask("web", at(1))
    await until(lambda: node.begun == ["hung", "web"], "the neighbour's turn")
    assert not node.tasks["hung"].done()
    await node.end("hung")
    assert at(0) not in node.starts._held, "and not a second time, when it ends after all"
    await _end_all([node])


async def test_where_many_hang_the_next_are_lent_for_ever_shorter(monkeypatch: pytest.MonkeyPatch) -> None:
    """A node's storage may hang for all of them: whose does not is not to wait seconds for each."""
    lent: list[float] = []
    monkeypatch.setattr(module, "LENT_LEAST_SECONDS", 0.002)
    node = Node(places=1, lent_seconds=0.016)
    usual = Starts._lent_seconds
    monkeypatch.setattr(Starts, "_lent_seconds", lambda self: lent.append(usual(self)) or lent[-1])
    for number in range(6):
        await node.ask(f"hung-{number}", at(number))
    await until(lambda: len(node.begun) == 6 and not node.starts._held, "all of them, and the end of their turns")
    assert lent == [0.016, 0.008, 0.004, 0.002, 0.002, 0.002]

    await node.ask("web", at(50))
    await node.end("web")
    await node.ask("next", at(51))
    assert lent[7] == 0.016, "until one is given back in time"
    await _end_all([node])


async def test_one_that_fails_gives_its_place_back(node: Node) -> None:
    for _unused in range(3):
        with pytest.raises(ZeroDivisionError):
            async with node.starts.place(at(0)):
                raise ZeroDivisionError
    await node.ask("a", at(1))
    await node.ask("b", at(2))
    assert node.under_way == ["a", "b"]


async def test_one_that_is_cancelled_while_it_waits_takes_no_place(node: Node) -> None:
    for number in range(4):
        await node.ask(f"vm-{number}", at(number))
    await node.cancel("vm-2")
    await node.end("vm-0")
    assert node.under_way == ["vm-1", "vm-3"]


async def test_one_that_is_cancelled_as_its_turn_comes_passes_it_on(node: Node) -> None:
    for number in range(4):
        await node.ask(f"vm-{number}", at(number))
    node._may_end["vm-0"].set()
    for _unused in range(5):
        if at(2) not in node.starts._held:
            await asyncio.sleep(0)
    assert at(2) in node.starts._held
    assert "vm-2" not in node.begun, "it has a place, and has not heard of it"
    node.tasks["vm-2"].cancel()
    await _settle()
    assert node.under_way == ["vm-1", "vm-3"]


async def test_one_that_is_cancelled_just_before_its_turn_is_passed_over(node: Node) -> None:
    for number in range(4):
        await node.ask(f"vm-{number}", at(number))
    node._may_end["vm-0"].set()
    node.tasks["vm-2"].cancel()  # in the same turn of the loop: it has not heard yet when the place is free
    await _settle()
    assert node.tasks["vm-0"].exception() is None
    assert node.under_way == ["vm-1", "vm-3"]


def test_there_are_as_many_places_as_processors_and_two_at_least(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _unused: set(range(48)))
    assert Starts().places == 48
    monkeypatch.setattr(os, "sched_getaffinity", lambda _unused: {0})
    assert Starts().places == 2
