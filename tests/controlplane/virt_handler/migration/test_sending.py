# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a sending: when the guest may go on at its target, and which guest is ended here for that."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.domain.state import Life, State
from controlplane.virt_handler.launchers.ports import Failed
from controlplane.virt_handler.migration.sending import Sending

LEFT, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
CRASHED = State(Life.SHUT_OFF, "crashed")
ENDS = State(Life.SHUTTING_DOWN, "unknown")
RUNS, CANCELED = State(Life.RUNNING, "unpaused"), State(Life.RUNNING, "migration_canceled")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Guest:
    """Is in these states, one after another; the last for ever. Nothing is done to it."""

    def __init__(self, states: list[State]) -> None:
        self.states = states

    async def state(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))


async def until_gone(guest: Guest) -> None:
    made: Any = Sending
    async with asyncio.timeout(10):
        await made(None, None, None, None, Clock(), directory="")._until_gone(guest)


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([MIGRATED], id="libvirt has ended it"),
        pytest.param([ENDS, ENDS, MIGRATED], id="libvirt is ending it"),
        pytest.param([CRASHED], id="it was killed when all was sent"),
    ],
)
async def test_the_source_is_gone_for_good(states: list[State]) -> None:
    await until_gone(Guest(states))


@pytest.mark.parametrize("state", [RUNS, CANCELED])
async def test_a_source_that_runs_is_the_guest_and_is_not_ended(state: State) -> None:
    with pytest.raises(Failed, match="was let go on"):
        await until_gone(Guest([state]))


async def test_a_source_that_did_not_hear_that_the_target_has_all_is_to_go_on() -> None:
    with pytest.raises(Failed, match="did not hear"):
        await until_gone(Guest([ENDS, LEFT]))


async def test_a_source_that_does_not_end_keeps_the_target_waiting() -> None:
    with pytest.raises(Failed, match="does not end"):
        await until_gone(Guest([ENDS]))
