# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On processes that are not libvirtd: what matters is only whether they live, and whether they were heard."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator
from contextlib import suppress

import pytest

from controlplane.virt_launcher import restart
from controlplane.virt_launcher.pulse import Pulse


class Libvirtd:
    """Spawns processes that do nothing, in the place of libvirtd."""

    def __init__(self) -> None:
        self.made: list[subprocess.Popen[bytes]] = []

    def spawn(self) -> subprocess.Popen[bytes]:
        self.made.append(subprocess.Popen(["sleep", "3600"], stderr=subprocess.PIPE))
        return self.made[-1]

    async def has_made(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.made) < count:  # noqa: ASYNC110 - a process tells nobody
                await asyncio.sleep(0.005)


@pytest.fixture
def libvirtd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Libvirtd]:
    made = Libvirtd()
    monkeypatch.setattr(restart, "spawn", made.spawn)
    yield made
    for one in made.made:
        one.kill()
        one.wait()
        if one.stderr is not None:
            one.stderr.close()


async def end(task: asyncio.Task[None]) -> None:
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_a_libvirtd_that_dies_is_replaced(libvirtd: Libvirtd) -> None:
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), Pulse(lambda: 0.0)))
    libvirtd.made[0].kill()
    await libvirtd.has_made(2)
    await end(task)


async def test_a_libvirtd_that_is_silent_for_too_long_is_killed_and_replaced(libvirtd: Libvirtd) -> None:
    pulse = Pulse(asyncio.get_running_loop().time, patience=0.05)
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), pulse))
    await libvirtd.has_made(2)
    assert libvirtd.made[0].returncode == -9
    assert pulse.patience == 0.1
    await end(task)


async def test_a_libvirtd_that_answers_is_left_alone(libvirtd: Libvirtd) -> None:
    pulse = Pulse(asyncio.get_running_loop().time, patience=0.05)
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), pulse))
    for _unused in range(10):
        await asyncio.sleep(0.01)
        pulse.begin()
    assert libvirtd.made[0].poll() is None
    await end(task)
