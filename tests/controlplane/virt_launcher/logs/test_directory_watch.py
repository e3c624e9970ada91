# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A DirectoryWatch notices writes, with real directories and signals."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from controlplane.virt_launcher.logs.directory_watch import SIGNAL, DirectoryWatch


def write(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"x\n")


def truncate(path: Path) -> None:
    os.truncate(path, 0)


async def heard(watch: DirectoryWatch) -> bool:
    async with asyncio.timeout(10):
        await watch.written()
    return True


@pytest.mark.parametrize("change", [write, truncate])
@pytest.mark.parametrize("where", ["one", "other"])
async def test_writes_in_each_directory_are_noticed(tmp_path: Path, where: str, change: Callable[[Path], None]) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "log").touch()

    with DirectoryWatch(str(tmp_path / "one"), str(tmp_path / "other")) as watch:
        for _unused in range(3):
            assert watch.listen()
            change(tmp_path / where / "log")
            assert await heard(watch)


async def test_an_earlier_write_is_not_noticed_again(tmp_path: Path) -> None:
    (tmp_path / "log").touch()
    with DirectoryWatch(str(tmp_path)) as watch:
        assert watch.listen()
        write(tmp_path / "log")
        assert await heard(watch)

        assert watch.listen()
        waiting = asyncio.create_task(watch.written())
        for _unused in range(5):
            await asyncio.sleep(0)
        assert not waiting.done()
        write(tmp_path / "log")
        async with asyncio.timeout(10):
            await waiting


async def test_a_directory_can_be_watched_once_it_exists(tmp_path: Path) -> None:
    with DirectoryWatch(str(tmp_path), str(tmp_path / "later")) as watch:
        assert not watch.listen()
        (tmp_path / "later").mkdir()
        assert watch.listen()
        write(tmp_path / "later" / "log")
        assert await heard(watch)


async def test_a_link_cannot_be_watched(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)

    with DirectoryWatch(str(tmp_path / "link")) as watch:
        assert not watch.listen()


async def test_a_closed_watch_leaves_nothing_open(tmp_path: Path) -> None:
    before = set(os.listdir("/proc/self/fd"))
    with DirectoryWatch(str(tmp_path)) as watch:
        assert watch.listen()

    assert set(os.listdir("/proc/self/fd")) <= before
    assert signal.getsignal(SIGNAL) is signal.SIG_DFL
