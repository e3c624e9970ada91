# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a sending: when the guest may go on at its target, and which guest is ended here for that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError
from controlplane.virt_handler.launchers.ports import Failed
from controlplane.virt_handler.migration.sending import Sending

LEFT, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
DESTROYED, CRASHED = State(Life.SHUT_OFF, "destroyed"), State(Life.SHUT_OFF, "crashed")
ENDS = State(Life.SHUTTING_DOWN, "unknown")
RUNS, CANCELED = State(Life.RUNNING, "unpaused"), State(Life.RUNNING, "migration_canceled")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Guest:
    """Does this, one after another, whatever is done to it; the last for ever."""

    def __init__(self, states: list[State], *, is_stuck: bool = False) -> None:
        self.states = states
        self.destroyed = 0
        self._is_stuck = is_stuck

    async def state(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    async def destroy(self) -> None:
        self.destroyed += 1
        if self._is_stuck:
            raise HypervisorError("cannot destroy")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))


async def until_gone(guest: Guest) -> None:
    made: Any = Sending
    async with asyncio.timeout(10):
        await made(None, None, None, None, Clock(), directory="")._until_gone(guest)


@pytest.mark.parametrize(
    ("states", "destroyed"),
    [
        pytest.param([MIGRATED], 0, id="libvirt has ended it"),
        pytest.param([ENDS, ENDS, MIGRATED], 0, id="libvirt is ending it"),
        pytest.param([LEFT, DESTROYED], 1, id="libvirt has not heard that the target has all"),
        pytest.param([CRASHED], 0, id="it was killed when all was sent"),
    ],
)
async def test_the_source_is_gone_for_good(states: list[State], destroyed: int) -> None:
    guest = Guest(states)
    await until_gone(guest)
    assert guest.destroyed == destroyed


@pytest.mark.parametrize("state", [RUNS, CANCELED])
async def test_a_source_that_runs_is_the_guest_and_is_not_ended(state: State) -> None:
    guest = Guest([state])
    with pytest.raises(Failed, match="was let go on"):
        await until_gone(guest)
    assert guest.destroyed == 0


async def test_one_that_was_let_go_on_while_it_was_to_end_stays_too() -> None:
    guest = Guest([LEFT, RUNS], is_stuck=True)
    with pytest.raises(Failed, match="was let go on"):
        await until_gone(guest)


async def test_a_source_that_does_not_end_keeps_the_target_waiting() -> None:
    guest = Guest([LEFT], is_stuck=True)
    with pytest.raises(Failed, match="does not end"):
        await until_gone(guest)
    assert guest.destroyed > 1
