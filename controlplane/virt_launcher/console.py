# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copy the serial console's log to our standard output, so that `kubectl logs` shows it. Never make anybody wait.

QEMU appends to a file, which cannot stall a guest; what is copied (or must be dropped) is punched out of the file, so
that it takes a bounded space. Our output is a pipe whose reader may be stopped: what does not fit is dropped, and a
line says how much. The guest chooses the bytes: escapes and other controls do not reach a terminal.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.virt_launcher.inotify import DirectoryWatch

LINE_LIMIT = 4096
BYTES_PER_SECOND = 1 << 20
_CHUNK = 64 * 1024
_PUNCH_BYTES = 256 * 1024
_KEEP_SIZE_AND_PUNCH = 0x01 | 0x02
_PARTIAL_LINE_SECONDS = 0.5

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]{0,256}(?:\x07|\x1b\\)|[ -/]*[0-~])")
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(slots=True)
class LineCleaner:
    """Turns a stream of bytes into lines that a terminal can show. Holds at most one line back."""

    _rest: bytes = field(default=b"", init=False)

    def feed(self, data: bytes) -> bytes:
        """Take bytes in and return the lines that they complete, each ended by a newline."""
        *whole, self._rest = (self._rest + data).split(b"\n")
        lines = [piece for line in whole for piece in _pieces(line)]
        while len(self._rest) > LINE_LIMIT:
            lines.append(self._rest[:LINE_LIMIT])
            self._rest = self._rest[LINE_LIMIT:]
        return b"".join(_clean(line) for line in lines)

    @property
    def holds_back(self) -> bool:
        """A line has begun and not ended."""
        return bool(self._rest)

    def flush(self) -> bytes:
        """Return what was held back, as a line; nothing if there is none."""
        rest, self._rest = self._rest, b""
        return _clean(rest) if rest else b""


def _pieces(line: bytes) -> list[bytes]:
    return [line[at : at + LINE_LIMIT] for at in range(0, len(line), LINE_LIMIT)] or [b""]


def _clean(line: bytes) -> bytes:
    plain = _CONTROLS.sub(b"", _ESCAPES.sub(b"", line))
    return plain.decode("utf-8", "backslashreplace").encode() + b"\n"


class Output:
    """A descriptor that is never waited for. Dropped bytes are counted and told when there is room again."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._pending = b""
        self._dropped = 0

    def write(self, data: bytes) -> None:
        """Write as much as fits; keep the rest of a line, drop what comes while the reader stands still."""
        if not self._flush():
            self._dropped += len(data)
            return
        if self._dropped:
            data = f"[{self._dropped} bytes of the console were dropped here]\n".encode() + data
            self._dropped = 0
        self._pending = data
        self._flush()

    def _flush(self) -> bool:
        while self._pending:
            try:
                self._pending = self._pending[os.write(self._descriptor, self._pending) :]
            except (BlockingIOError, BrokenPipeError):
                return False
        return True


class ConsoleCopy:
    """The state of the copying: how far it is in the file, and what was let go of."""

    def __init__(self, path: str, output: Output) -> None:
        self._path, self._output = path, output
        self._descriptor: int | None = None
        self._cleaner = LineCleaner()
        self._at = self._punched = 0
        self._punch = _find_punch()

    async def run(self) -> None:
        """Copy for ever, at a bounded rate."""
        with DirectoryWatch(os.path.dirname(self._path)) as watch:
            while True:
                copied = self.copy()
                if copied:
                    await asyncio.sleep(copied / BYTES_PER_SECOND)
                    continue
                try:
                    async with asyncio.timeout(_PARTIAL_LINE_SECONDS if self._cleaner.holds_back else None):
                        await watch.wait()
                except TimeoutError:  # a prompt ends without a newline
                    self._output.write(self._cleaner.flush())

    def copy(self) -> int:
        """Copy one chunk of what is new; return how many bytes that was. A file that is far ahead is cut short."""
        if self._descriptor is None:
            try:
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
            except OSError:
                return 0
        data = os.pread(self._descriptor, _CHUNK, self._at)
        self._at += len(data)
        self._output.write(self._cleaner.feed(data) if data else b"")
        self._skip_backlog()
        if self._at - self._punched >= _PUNCH_BYTES:
            self._punch(self._descriptor, self._punched, self._at - self._punched)
            self._punched = self._at
        return len(data)

    def finish(self) -> None:
        """Copy what is left, up to a bound, when the guest has ended."""
        for _unused in range(64):
            if not self.copy():
                break
        self._output.write(self._cleaner.flush())

    def close(self) -> None:
        """Let go of the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _skip_backlog(self) -> None:
        """Let go of the oldest when the guest writes faster than is copied: 8 MiB may wait."""
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        behind = size - self._at - 8 * 1024 * 1024
        if behind > 0:
            self._at += behind
            self._output.write(self._cleaner.flush() + f"[{behind} bytes of the console were dropped here]\n".encode())


def _find_punch() -> Callable[[int, int, int], object]:
    """Return fallocate(2) as a function that frees a range of a file; where that cannot be done, nothing happens."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fallocate.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)

    def punch(descriptor: int, start: int, length: int) -> None:
        libc.fallocate(descriptor, _KEEP_SIZE_AND_PUNCH, start, length)

    return punch


async def copy_console(path: str, descriptor: int) -> None:
    """Copy the console's log until cancelled, then what is left of it."""
    copy = ConsoleCopy(path, Output(descriptor))
    try:
        await copy.run()
    finally:
        copy.finish()
        copy.close()
