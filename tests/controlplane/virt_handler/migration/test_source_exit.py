# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a guest counts as left: complete at the target, no QEMU at the source, and again complete at the target."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import Disconnected
from controlplane.hypervisor.events import ConnectionClosed, Event, EventQueue, LifecycleChanged
from controlplane.links.node.messages import EXIT_WAIT_LIMIT_SECONDS
from controlplane.virt_handler.launchers.ports import NodeAway
from controlplane.virt_handler.migration.source_exit import WHOLE, SourceExit
from controlplane.virt_handler.vmi.world import Traces

COMES = State(Life.PAUSED, "migration")
PAUSED = LifecycleChanged("vm", "suspended")
STARTED = LifecycleChanged("vm", "started")
CLOSED = ConnectionClosed("eof")


class Place:
    """The target's libvirtd, its domain, and the source's virt-node. Each has a list of answers."""

    def __init__(self, events: list[Event], states: list[State | Exception], emulators: list[int | Exception]) -> None:
        self.events = EventQueue()
        for event in events:
            self.events.put(event)
        self.states = states
        self.emulators = emulators
        self.asked: list[str] = []

    async def guest(self, name: str) -> Place:
        assert name == "vm"
        return self

    async def state(self) -> State:
        self.asked.append("target")
        return _say(self.states)

    async def find_traces(self, pod_uid: str, *, wait_seconds: float) -> Traces:
        assert pod_uid == "source-pod"
        assert 0 < wait_seconds <= EXIT_WAIT_LIMIT_SECONDS
        self.asked.append("node")
        return Traces(True, 3, _say(self.emulators))


def _say(words: list[Any]) -> Any:
    word = words.pop(0)
    if isinstance(word, Exception):
        raise word
    return word


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))


async def watched(place: Place) -> SourceExit:
    source_exit: Any = SourceExit
    watcher: SourceExit = source_exit(place, "source-pod", "vm", place)
    async with asyncio.timeout(10):
        await watcher.watch()
    return watcher


async def test_a_guest_has_left_when_it_is_complete_at_the_target_and_qemu_is_gone() -> None:
    place = Place([STARTED, PAUSED], [WHOLE, WHOLE], [1, 1, 0])
    assert (await watched(place)).there is place
    assert place.asked == ["target", "node", "node", "node", "target"]


async def test_an_incomplete_target_is_awaited() -> None:
    place = Place([PAUSED, PAUSED], [COMES, WHOLE, WHOLE], [0])
    assert (await watched(place)).there is place


@pytest.mark.parametrize(
    ("events", "states", "emulators"),
    [
        pytest.param([STARTED, CLOSED], [], [], id="no pause"),
        pytest.param([PAUSED, CLOSED], [COMES], [], id="incomplete"),
        pytest.param([PAUSED], [WHOLE, Disconnected("gone")], [0], id="the connection is lost"),
        pytest.param([PAUSED], [WHOLE, State(Life.SHUT_OFF, "failed")], [0], id="ended at the target"),
        pytest.param([PAUSED], [WHOLE], [NodeAway("no")], id="virt-node is away"),
    ],
)
async def test_without_proof_the_watch_ends(
    events: list[Event], states: list[State | Exception], emulators: list[int | Exception]
) -> None:
    assert (await watched(Place(events, states, emulators))).there is None
