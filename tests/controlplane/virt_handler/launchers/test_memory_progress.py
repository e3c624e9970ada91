# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often virt-handler checks whether a guest has taken its memory."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from controlplane.domain.observed import Observed
from controlplane.virt_handler.launchers.memory_progress import PAUSES_SECONDS, MemoryProgress, is_taking
from controlplane.virt_handler.vmi.ports import NoContact
from tests.controlplane.virt_handler.builders import observed

GIB = 1 << 30
TAKING, HAS_IT = replace(observed(), requested_bytes=GIB), replace(observed(), requested_bytes=GIB, taken_bytes=GIB)


class Guest:
    """A guest that has its memory after so many reads."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.looks = 0
        self.pauses: list[float] = []
        self.taking = MemoryProgress(self.look, self.seen)

    async def look(self) -> None:
        self.looks += 1
        self.left -= 1
        if self.looks == 1:
            raise NoContact("no")

    def seen(self) -> Observed:
        return TAKING if self.left > 0 else HAS_IT

    async def follow(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Follow until there is nothing left to check."""

        async def pass_time(seconds: float) -> None:
            self.pauses.append(seconds)

        sleep = asyncio.sleep
        monkeypatch.setattr("controlplane.virt_handler.launchers.memory_progress.asyncio.sleep", pass_time)
        task = asyncio.create_task(self.taking.follow())
        for _unused in range(5):
            await sleep(0)
        task.cancel()


@pytest.mark.parametrize(
    ("needed", "looks"), [(0, 0), (2, 2), (99, len(PAUSES_SECONDS))], ids=["it has it", "it takes it", "it never does"]
)
async def test_the_checks_slow_down_until_the_guest_has_its_memory(
    needed: int, looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest = Guest(needed)
    await guest.follow(monkeypatch)
    assert guest.looks == looks
    assert guest.pauses == sorted(guest.pauses)


async def test_a_new_request_starts_the_checks_again(monkeypatch: pytest.MonkeyPatch) -> None:
    guest = Guest(0)
    guest.taking.begin()
    await guest.follow(monkeypatch)
    assert guest.pauses == [PAUSES_SECONDS[0]] * 2


def test_a_guest_without_the_device_takes_no_memory() -> None:
    assert not is_taking(None)
    assert not is_taking(observed())
    assert is_taking(TAKING)
    assert not is_taking(HAS_IT)
