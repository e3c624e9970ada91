# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for entries in directories that appear, vanish and change, on real directories."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from controlplane.virt_node.inotify import Inotify, NotYet


@pytest.fixture
async def inotify() -> AsyncIterator[Inotify]:
    opened = Inotify()
    yield opened
    opened.close()


def looking_for(
    path: Path, counter: list[int] | None = None, hook: Callable[[], None] = lambda: None
) -> Callable[[], str]:
    """Return a look for `path` that waits in its deepest existing parent directory."""

    def look() -> str:
        if counter is not None:
            counter.append(1)
        if path.exists():
            return path.name
        parent = next(directory for directory in path.parents if directory.exists())
        gap = NotYet(os.open(parent, os.O_PATH | os.O_DIRECTORY))
        hook()
        raise gap

    return look


async def settle(inotify: Inotify, turns: int = 20) -> None:
    """Let the loop read the events that the kernel has queued, without waiting."""
    for _unused in range(turns):
        await asyncio.sleep(0)


async def test_an_existing_entry_is_returned_at_once(tmp_path: Path, inotify: Inotify) -> None:
    (tmp_path / "a").touch()
    assert await inotify.wait_for(looking_for(tmp_path / "a")) == "a"


async def test_a_chain_of_directories_is_followed_as_it_appears(tmp_path: Path, inotify: Inotify) -> None:
    target = tmp_path / "a" / "b" / "c"
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(inotify.wait_for(looking_for(target)))
        for step in (tmp_path / "a", tmp_path / "a" / "b", target):
            await settle(inotify)
            assert not waiting.done()
            step.mkdir()
    assert waiting.result() == "c"


async def test_an_entry_that_appears_between_look_and_watch_is_seen(tmp_path: Path, inotify: Inotify) -> None:
    target = tmp_path / "a"
    async with asyncio.timeout(5):
        assert await inotify.wait_for(looking_for(target, hook=target.touch)) == "a"


async def test_a_directory_that_appears_between_look_and_watch_is_watched(tmp_path: Path, inotify: Inotify) -> None:
    """Its parent directory does not change any more."""
    target = tmp_path / "a" / "b"
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(
            inotify.wait_for(looking_for(target, hook=lambda: target.parent.mkdir(exist_ok=True)))
        )
        await settle(inotify)
        target.touch()
    assert waiting.result() == "b"


async def test_every_waiter_looks_after_an_overflow_of_the_queue(
    tmp_path: Path, inotify: Inotify, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lost events may concern any waiter."""
    is_there: set[Path] = set()
    quiet = [tmp_path / name for name in ("a", "b")]
    for directory_made in quiet:
        directory_made.mkdir()

    def look_into(directory: Path) -> Callable[[], str]:
        def look() -> str:
            if directory in is_there:
                return directory.name
            raise NotYet(os.open(directory, os.O_PATH | os.O_DIRECTORY))

        return look

    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = [group.create_task(inotify.wait_for(look_into(path))) for path in quiet]
        await settle(inotify)
        is_there.update(quiet)
        with monkeypatch.context() as patch:
            patch.setattr(os, "read", lambda *_unused: struct.pack("iIII", -1, 0x4000, 0, 0))
            inotify._read()
    assert [task.result() for task in waiting] == ["a", "b"]


async def test_a_directory_removed_and_made_again_is_waited_for_again(tmp_path: Path, inotify: Inotify) -> None:
    holder = tmp_path / "holder"
    holder.mkdir()
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        waiting = group.create_task(inotify.wait_for(looking_for(holder / "a")))
        await settle(inotify)
        holder.rmdir()
        await settle(inotify)
        holder.mkdir()
        await settle(inotify)
        (holder / "a").touch()
    assert waiting.result() == "a"


async def test_a_quiet_directory_is_not_looked_at(tmp_path: Path, inotify: Inotify) -> None:
    looks: list[int] = []
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(inotify.wait_for(looking_for(tmp_path / "a", looks)))
        await settle(inotify, 200)
        waiting.cancel()
    assert len(looks) == 2


async def test_looks_into_an_endlessly_changing_directory_back_off(
    tmp_path: Path, inotify: Inotify, monkeypatch: pytest.MonkeyPatch
) -> None:
    pauses: list[float] = []

    async def record(seconds: float, real: Callable[[float], object] = asyncio.sleep) -> None:
        pauses.append(seconds)
        await real(0)  # type: ignore[misc]

    turns = 80
    files_made = 0

    def churn() -> None:
        nonlocal files_made
        files_made += 1
        (tmp_path / ("a" if files_made > turns else f"noise{files_made}")).touch()

    monkeypatch.setattr("controlplane.virt_node.inotify.asyncio.sleep", record)
    async with asyncio.timeout(20):
        await inotify.wait_for(looking_for(tmp_path / "a", hook=churn))
    assert pauses == sorted(pauses)
    assert pauses[-1] == 1.0


async def test_a_cancelled_waiter_leaves_no_watch(tmp_path: Path, inotify: Inotify) -> None:
    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(inotify.wait_for(looking_for(tmp_path / "a")))
        await settle(inotify)
        waiting.cancel()
    assert inotify._waiting == {}
