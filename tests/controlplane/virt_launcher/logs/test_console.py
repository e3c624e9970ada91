# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from controlplane.domain.layout import CONSOLE_BACKLOG_BYTES
from controlplane.virt_launcher.logs import console
from controlplane.virt_launcher.logs.console import FINISH_BYTES, LINE_LIMIT, ConsoleCopy, LineCleaner, Output


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    read, write = os.pipe()
    os.set_blocking(read, False)
    yield read, write
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param(b"ready\r\n", b"ready\n", id="carriage return"),
        pytest.param(b"\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\n", b"red x\n", id="colour and title"),
        pytest.param(b"a\x1b[6nb\x1bcc\n", b"abc\n", id="queries to the terminal"),
        pytest.param("grüße\n".encode(), "grüße\n".encode(), id="UTF-8"),
        pytest.param(b"\xff\xfe\n", b"\\xff\\xfe\n", id="no text"),
        pytest.param(b"a\x00\x08\x07b\tc\n", b"ab\tc\n", id="controls"),
        pytest.param(b"no end", b"", id="a line that goes on"),
        pytest.param(b"\n\n", b"\n\n", id="empty lines"),
    ],
)
def test_only_printable_text_is_copied(raw: bytes, expected: bytes) -> None:
    assert LineCleaner().feed(raw) == expected


def test_a_line_without_end_is_cut() -> None:
    cleaner = LineCleaner()
    lines = cleaner.feed(b"x" * (3 * LINE_LIMIT + 5))
    assert [len(line) for line in lines.splitlines()] == [LINE_LIMIT] * 3
    assert cleaner.flush() == b"x" * 5 + b"\n"


@pytest.mark.parametrize("cut", [1, 7, 4095, 4096, 4097, 65536])
def test_the_result_does_not_depend_on_the_chunks(cut: int) -> None:
    """Not even for a cut line, or for an escape sequence that a line break ends."""
    words = [
        b"x" * 5000,
        b"\n",
        b"\x1b]0;never ended\n",
        b"\x1b[\n31m",
        "\u00fc".encode() * 3000,
        b"\xff\x1b",
        b"\n" * 9,
    ]
    data = b"".join(words) * 3
    whole, pieces = LineCleaner(), LineCleaner()
    result = b"".join(pieces.feed(data[at : at + cut]) for at in range(0, len(data), cut))
    assert result + pieces.flush() == whole.feed(data) + whole.flush()
    assert max(map(len, result.splitlines())) <= 4 * LINE_LIMIT
    assert b"\x1b" not in result


def test_dropped_bytes_are_reported_once_with_their_number(pipe: tuple[int, int]) -> None:
    read, write = pipe
    output = Output(write)
    output.write(b"x" * (1 << 20) + b"\n")
    for _unused in range(3):
        output.write(b"y" * 99 + b"\n")
    assert output.is_stuck
    received = b""
    for line in [b""] * 20 + [b"after\n", b""]:  # a pipe holds a sixteenth of the first write
        output.write(line)
        with contextlib.suppress(BlockingIOError):
            received += os.read(read, 1 << 20)

    assert received.lstrip(b"x") == b"\n[300 bytes of the console were dropped here]\nafter\n"


def test_a_closed_reader_is_no_error(pipe: tuple[int, int]) -> None:
    read, write = pipe
    os.dup2(os.open(os.devnull, os.O_RDONLY), read)
    output = Output(write)
    output.write(b"nobody reads this\n")
    output.write(b"nor this\n")
    assert output.is_stuck


def test_copied_bytes_take_no_space_in_the_log(tmp_path: Path, pipe: tuple[int, int]) -> None:
    read, write = pipe
    log = tmp_path / "serial.log"
    log.write_bytes(b"x" * 99 + b"\n")
    copy = ConsoleCopy(str(log), Output(write))
    for _unused in range(100):
        with log.open("ab") as file:
            file.write((b"y" * 99 + b"\n") * 400)
        while copy.copy():
            os.read(read, 1 << 20)
    copy.close()
    status = log.stat()
    assert status.st_size == 100 + 100 * 40000
    assert status.st_blocks * 512 < 400_000


class Collected(Output):
    """An output with a reader that takes everything."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


def test_the_last_bytes_stay_in_the_file_for_console_sessions(tmp_path: Path) -> None:
    log, output = tmp_path / "serial.log", Collected()
    log.touch()
    copy = ConsoleCopy(str(log), output)
    for _unused in range(20):
        with log.open("ab") as file:
            file.write(b"y" * 65535 + b"\n")
        while copy.copy():
            pass
        kept = log.read_bytes()[-CONSOLE_BACKLOG_BYTES:]
        assert kept == b"y" * 65535 + b"\n"
    copy.close()
    assert log.stat().st_blocks * 512 < 10 * 65536


def test_a_guest_that_writes_faster_than_the_copy_loses_the_oldest_lines(tmp_path: Path, pipe: tuple[int, int]) -> None:
    read, write = pipe
    log = tmp_path / "serial.log"
    log.write_bytes(b"old\n" * (5 << 20) + b"new\n")
    copy = ConsoleCopy(str(log), Output(write))
    copy.copy()
    copy.close()
    assert log.stat().st_blocks * 512 < 9 << 20
    assert b"old\n" in os.read(read, 1 << 20)


def test_a_guest_that_the_copy_keeps_up_with_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(console, "_BACKLOG_BYTES", 1000)
    log, output = tmp_path / "serial.log", Collected()
    log.touch()
    copy = ConsoleCopy(str(log), output)
    for number in range(50):
        with log.open("ab") as file:
            file.write(b"%03d\n" % number * 100)
        copy.copy()
    copy.close()

    assert output.data == b"".join(b"%03d\n" % number * 100 for number in range(50))


@pytest.mark.parametrize("looks", [0, 1], ids=["unseen so far", "seen"])
def test_the_last_lines_of_an_ended_guest_are_copied_up_to_a_limit(tmp_path: Path, looks: int) -> None:
    """A console flooded to the end neither delays the launcher nor hides why the guest ended."""
    log = tmp_path / "serial.log"
    log.write_bytes(b"\n" * (6 << 20) + b"Kernel panic\n")
    output = Collected()
    copy = ConsoleCopy(str(log), output)

    for _unused in range(looks):
        copy.copy()
    copy.finish()
    copy.close()

    assert output.data.endswith(b"\nKernel panic\n")
    assert len(output.data) < FINISH_BYTES + (1 << 18)
    assert b"bytes of the console were dropped here]\n" in output.data
