# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Restarts of libvirtd, with other processes in its place: only their life and their silence matter."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Iterator

import pytest

from controlplane.virt_launcher.guest import libvirtd_restart as restart
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness
from tests.support.tasks import cancel_task


class Libvirtd:
    """Starts idle processes instead of libvirtd. refusals: number of starts that fail first."""

    def __init__(self) -> None:
        self.made: list[subprocess.Popen[bytes]] = []
        self.command = ["sleep", "3600"]
        self.refusals = 0

    def spawn(self) -> subprocess.Popen[bytes]:
        if self.refusals:
            self.refusals -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        self.made.append(subprocess.Popen(self.command, stderr=subprocess.PIPE))
        return self.made[-1]

    async def has_made(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.made) < count:  # noqa: ASYNC110 - there is no event for it
                await asyncio.sleep(0.005)


@pytest.fixture
def libvirtd(monkeypatch: pytest.MonkeyPatch) -> Iterator[Libvirtd]:
    fake = Libvirtd()
    monkeypatch.setattr(restart, "spawn", fake.spawn)
    yield fake
    for process in fake.made:
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


async def end(task: asyncio.Task[None]) -> None:
    await cancel_task(task)


async def test_a_libvirtd_that_dies_is_replaced(libvirtd: Libvirtd) -> None:
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), LibvirtdLiveness(lambda: 0.0)))
    libvirtd.made[0].kill()
    await libvirtd.has_made(2)
    await end(task)


async def test_a_libvirtd_that_is_silent_for_too_long_is_killed_and_replaced(libvirtd: Libvirtd) -> None:
    liveness = LibvirtdLiveness(asyncio.get_running_loop().time, hung_after=0.05)
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), liveness))
    await libvirtd.has_made(2)
    assert libvirtd.made[0].returncode == -9
    assert liveness.hung_after == 0.1
    await end(task)


async def test_a_libvirtd_that_answers_is_left_alone(libvirtd: Libvirtd) -> None:
    liveness = LibvirtdLiveness(asyncio.get_running_loop().time, hung_after=0.05)
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), liveness))
    for _unused in range(10):
        await asyncio.sleep(0.01)
        liveness.restarted()
    assert libvirtd.made[0].poll() is None
    await end(task)


async def test_a_new_libvirtd_has_the_whole_timeout(libvirtd: Libvirtd) -> None:
    """However long its predecessor was silent."""
    now = [0.0]
    liveness = LibvirtdLiveness(lambda: now[0])
    now[0] += 1000
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), liveness))
    for _unused in range(10):
        await asyncio.sleep(0.001)
    assert libvirtd.made[0].poll() is None
    assert liveness.seconds_left() == 15
    await end(task)


@pytest.fixture
def delays(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Record the delays before starts, and shorten them."""
    noted: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        if seconds >= restart._FIRST_DELAY_SECONDS:
            noted.append(seconds)
        await sleep(min(seconds, 0.005))

    monkeypatch.setattr(asyncio, "sleep", at_once)
    return noted


async def test_a_failing_start_is_retried_with_back_off(libvirtd: Libvirtd, delays: list[float]) -> None:
    first = libvirtd.spawn()
    libvirtd.refusals = 9
    task = asyncio.create_task(restart.keep_libvirtd(first, LibvirtdLiveness(lambda: 0.0)))
    first.kill()
    await libvirtd.has_made(2)
    assert delays == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0, 5.0]
    await end(task)


async def test_a_libvirtd_that_lived_long_is_replaced_soon(
    libvirtd: Libvirtd, delays: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restart, "_SHORT_LIFE_SECONDS", 0.0)
    libvirtd.command = ["true"]
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), LibvirtdLiveness(lambda: 0.0)))
    await libvirtd.has_made(4)
    assert set(delays) == {0.05}
    await end(task)


async def test_a_closed_stderr_is_read_once(libvirtd: Libvirtd, monkeypatch: pytest.MonkeyPatch) -> None:
    """A pipe without a writer stays readable for ever."""
    reads: list[bytes] = []
    log_lines = restart._log_lines

    def counted(descriptor: int) -> None:
        reads.append(b"")
        log_lines(descriptor)

    monkeypatch.setattr(restart, "_log_lines", counted)
    libvirtd.command = ["sh", "-c", "exec sleep 3600 2>&-"]
    task = asyncio.create_task(restart.keep_libvirtd(libvirtd.spawn(), LibvirtdLiveness(lambda: 0.0)))
    async with asyncio.timeout(5):
        while not reads:  # noqa: ASYNC110 - there is no event for it
            await asyncio.sleep(0.005)
    for _unused in range(20):
        await asyncio.sleep(0)
    assert len(reads) == 1
    assert libvirtd.made[0].poll() is None
    await end(task)
