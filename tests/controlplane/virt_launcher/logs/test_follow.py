# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following the console log cheaply. Files and pipes are real."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
import pytest_asyncio

from controlplane.virt_launcher.logs.console import ConsoleCopy, Output
from controlplane.virt_launcher.logs.directory_watch import DirectoryWatch
from controlplane.virt_launcher.logs.follow import FIRST_SECONDS, LAST_SECONDS, PARTIAL_LINE_SECONDS, Pace, follow_logs


class Reader:
    """The reader of the launcher's output."""

    def __init__(self) -> None:
        self.descriptor, self.output = os.pipe()
        os.set_blocking(self.descriptor, False)
        self.seen = bytearray()
        self._arrived = asyncio.Event()
        asyncio.get_running_loop().add_reader(self.descriptor, self.read)

    def read(self) -> None:
        with contextlib.suppress(BlockingIOError):
            self.seen.extend(os.read(self.descriptor, 1 << 20))
        self._arrived.set()

    async def until(self, condition: Callable[[bytes], bool]) -> None:
        async with asyncio.timeout(10):
            while not condition(bytes(self.seen)):
                self._arrived.clear()
                await self._arrived.wait()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self.descriptor)
        os.close(self.descriptor)
        os.close(self.output)


@pytest_asyncio.fixture
async def reader() -> AsyncIterator[Reader]:
    pipe_reader = Reader()
    yield pipe_reader
    pipe_reader.close()


@pytest_asyncio.fixture
async def watch(tmp_path: Path) -> AsyncIterator[DirectoryWatch]:
    with DirectoryWatch(str(tmp_path)) as directory_watch:
        yield directory_watch


class Deaf:
    """A directory watch that does not work."""

    def listen(self) -> bool:
        return False

    async def written(self) -> None:
        raise AssertionError("it has no notifications")


class Notified:
    """A directory watch whose notifications the test triggers. `done`: all calls, in order."""

    def __init__(self, done: list[str], *writes: Callable[[], object]) -> None:
        self._done, self._writes = done, iter(writes)

    def listen(self) -> bool:
        self._done.append("listen")
        return True

    async def written(self) -> None:
        self._done.append("rest")
        write = next(self._writes, None)
        if write is None:
            raise asyncio.CancelledError
        write()


def opened_kind(descriptor: str) -> str:
    """Return the target of a descriptor of this process; "" if it is closed."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except FileNotFoundError:
        return ""


def nothing_to_trim() -> bool:
    return False


def test_a_quiet_console_is_read_ever_less_often_down_to_every_two_seconds() -> None:
    pace = Pace()
    pauses = [pace.pause(happened=False) for _unused in range(30)]
    assert pauses == sorted(pauses)
    assert pauses[0] < 2 * FIRST_SECONDS
    assert set(pauses[15:]) == {LAST_SECONDS} == {2.0}


def test_new_output_makes_the_reads_frequent_again() -> None:
    pace = Pace()
    for _unused in range(30):
        pace.pause(happened=False)
    assert pace.pause(happened=True) == FIRST_SECONDS
    assert pace.quiet_seconds == FIRST_SECONDS


async def test_the_log_is_followed_from_its_creation_to_its_last_line(
    tmp_path: Path, reader: Reader, watch: DirectoryWatch
) -> None:
    log = tmp_path / "serial.log"
    task = asyncio.create_task(follow_logs(ConsoleCopy(str(log), Output(reader.output)), nothing_to_trim, watch))
    await asyncio.sleep(0)
    log.write_bytes(b"first\n")
    await reader.until(lambda seen: seen == b"first\n")
    with log.open("ab") as file:
        file.write(b"last words")
    task.cancel()
    await asyncio.wait([task])
    reader.read()
    assert bytes(reader.seen) == b"first\nlast words\n"


async def test_the_qemu_log_is_trimmed_as_often(tmp_path: Path, reader: Reader, watch: DirectoryWatch) -> None:
    looked = asyncio.Event()

    def trim() -> bool:
        looked.set()
        return True

    task = asyncio.create_task(follow_logs(ConsoleCopy(str(tmp_path / "none"), Output(reader.output)), trim, watch))
    async with asyncio.timeout(10):
        for _unused in range(3):
            looked.clear()
            await looked.wait()
    task.cancel()
    await asyncio.wait([task])


async def test_following_uses_no_inotify(tmp_path: Path, reader: Reader, watch: DirectoryWatch) -> None:
    """A user has 128 inotify instances, and every launcher of a node is user 107."""
    log = tmp_path / "serial.log"
    log.write_bytes(b"x\n")
    task = asyncio.create_task(follow_logs(ConsoleCopy(str(log), Output(reader.output)), nothing_to_trim, watch))
    await reader.until(lambda seen: seen == b"x\n")
    kinds = {opened_kind(descriptor) for descriptor in os.listdir("/proc/self/fd")}
    task.cancel()
    await asyncio.wait([task])
    assert "anon_inode:inotify" not in kinds


async def followed(log: Path, watch: Notified | Deaf, output: int, done: list[str], sleeps: int = 100) -> None:
    """Follow a log and record reads and sleeps, until there is nothing to wait for or the sleeps are used up."""

    class Noted(ConsoleCopy):
        def copy(self) -> int:
            done.append("look")
            return super().copy()

    async def sleep(seconds: float) -> None:
        done.append(f"sleep {seconds:.2f}")
        if len([step for step in done if step.startswith("sleep")]) == sleeps:
            raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        await follow_logs(Noted(str(log), Output(output)), nothing_to_trim, watch, lambda: 0.0, sleep)  # type: ignore[arg-type]


async def test_a_write_is_copied_after_a_short_delay(tmp_path: Path, reader: Reader) -> None:
    """A guest may write byte by byte. The launcher reads twenty times a second at most."""
    log, done = tmp_path / "serial.log", list[str]()
    await followed(log, Notified(done, lambda: log.write_bytes(b"text\n")), reader.output, done)
    looked = ["listen", "look"]
    assert done[:10] == [*looked, "rest", "sleep 0.05", *looked, "sleep 0.05", *looked, "rest"]
    reader.read()
    assert bytes(reader.seen) == b"text\n"


async def test_a_started_line_is_awaited(tmp_path: Path, reader: Reader) -> None:
    log, done = tmp_path / "serial.log", list[str]()
    log.write_bytes(b"login: ")
    await followed(log, Notified(done), reader.output, done)
    slept = [float(step.split()[1]) for step in done[: done.index("rest")] if step.startswith("sleep")]
    assert sum(slept) >= PARTIAL_LINE_SECONDS
    reader.read()
    assert bytes(reader.seen) == b"login: \n"


async def test_output_for_a_blocked_reader_is_retried(tmp_path: Path, reader: Reader) -> None:
    """A full pipe holds up the rest of a line. The reader may continue when the guest no longer writes."""
    log, done = tmp_path / "serial.log", list[str]()
    log.write_bytes(b"x" * 4000 + b"\n")
    with contextlib.suppress(BlockingIOError):
        os.set_blocking(reader.output, False)
        while True:
            os.write(reader.output, bytes(4096))
    await followed(log, Notified(done), reader.output, done, sleeps=20)
    assert "rest" not in done


async def test_a_line_that_starts_after_a_silence_is_not_cut(tmp_path: Path) -> None:
    """Its rest may follow in a moment, however long the silence was."""
    log, done = tmp_path / "serial.log", list[float]()
    read, write = os.pipe()

    async def sleep(seconds: float) -> None:
        done.append(seconds)
        if sum(done) < PARTIAL_LINE_SECONDS:
            return
        rest = [b"lo", b"gin", b": \n"][len([step for step in done if step == 0]) :]
        done.append(0)
        if not rest:
            raise asyncio.CancelledError
        with log.open("ab") as file:
            file.write(rest[0])

    with contextlib.suppress(asyncio.CancelledError):
        await follow_logs(ConsoleCopy(str(log), Output(write)), nothing_to_trim, Deaf(), lambda: 0.0, sleep)  # type: ignore[arg-type]

    assert os.read(read, 100) == b"login: \n"
    os.close(read)
    os.close(write)


async def test_without_notifications_the_log_is_polled(tmp_path: Path, reader: Reader) -> None:
    done: list[str] = []
    await followed(tmp_path / "none", Deaf(), reader.output, done, sleeps=30)
    assert done.count("look") > 30
    assert f"sleep {LAST_SECONDS:.2f}" in done


class Costly:
    """A console whose reads cost some seconds of CPU time."""

    def __init__(self, *seconds: float) -> None:
        self.used, self._each = 0.0, iter(seconds)

    def copy(self) -> int:
        self.used += next(self._each)
        return 1

    def flush(self) -> None: ...

    def finish(self) -> None: ...

    def close(self) -> None: ...


async def test_guest_output_costs_at_most_a_tenth_of_a_cpu() -> None:
    """Some bytes cost many times more than others, and the guest chooses them."""
    console, rests = Costly(0.1, 0.02, 0.0), []

    async def sleep(seconds: float) -> None:
        rests.append(seconds)
        if len(rests) == 3:
            raise asyncio.CancelledError

    with contextlib.suppress(asyncio.CancelledError):
        await follow_logs(console, nothing_to_trim, Deaf(), lambda: console.used, sleep)  # type: ignore[arg-type]

    assert rests == [pytest.approx(0.9), pytest.approx(0.18), FIRST_SECONDS]
