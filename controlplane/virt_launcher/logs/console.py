# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Copies the serial console's log to standard output, for `kubectl logs`. It never blocks.

QEMU appends to a file, which cannot stall a guest. Bytes that are copied or dropped are freed (hole_punching), but for
the last ones, with which console sessions begin. So the file stays small. Standard output is a pipe whose reader may
stop: output that does not fit is dropped, and a line says how much. The guest controls the bytes, so escapes and other
control characters are removed.
"""

from __future__ import annotations

import contextlib
import os
import re
from dataclasses import dataclass, field

from controlplane.domain.layout import CONSOLE_BACKLOG_BYTES
from controlplane.virt_launcher.logs.hole_punching import free_range

LINE_LIMIT = 4096
FINISH_BYTES = 256 * 1024
"""At the guest's end, at most this many bytes are copied, the newest."""
_BACKLOG_BYTES = 8 * 1024 * 1024
_CHUNK = 64 * 1024
_FREED_BYTES = 256 * 1024

_ESCAPES = re.compile(rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b\n]{0,256}(?:\x07|\x1b\\)|[ -/]*[0-~])")
_TOO_LONG = re.compile(rb"[^\n]{%d}(?=[^\n])" % LINE_LIMIT)
_CONTROLS = re.compile(rb"[\x00-\x08\x0b-\x1f\x7f]")


@dataclass(slots=True)
class LineCleaner:
    """Turns a stream of bytes into lines that a terminal can show. Buffers at most one line."""

    _incomplete: bytes = field(default=b"", init=False)

    def feed(self, data: bytes) -> bytes:
        """Add bytes; return the lines that they complete, each with its newline."""
        complete, newline, self._incomplete = (self._incomplete + data).rpartition(b"\n")
        lines = complete + newline
        if len(self._incomplete) > LINE_LIMIT:
            kept = len(self._incomplete) - (len(self._incomplete) - 1) % LINE_LIMIT - 1
            lines, self._incomplete = lines + self._incomplete[:kept] + b"\n", self._incomplete[kept:]
        return _clean(lines)

    @property
    def holds_back(self) -> bool:
        """The buffer has an incomplete line."""
        return bool(self._incomplete)

    def flush(self) -> bytes:
        """Return the buffered bytes as a line, if there are any."""
        rest, self._incomplete = self._incomplete, b""
        return _clean(rest + b"\n") if rest else b""


def _clean(lines: bytes) -> bytes:
    """Remove control characters from lines; in one pass, because a guest may write only newlines."""
    plain = _CONTROLS.sub(b"", _ESCAPES.sub(b"", _TOO_LONG.sub(rb"\g<0>\n", lines)))
    return plain.decode("utf-8", "backslashreplace").encode()


class Output:
    """A non-blocking output. Dropped bytes are counted, and reported when it accepts bytes again."""

    def __init__(self, descriptor: int) -> None:
        os.set_blocking(descriptor, False)
        self._descriptor = descriptor
        self._pending = b""
        self._dropped = 0

    @property
    def is_stuck(self) -> bool:
        """Bytes are still to be written, or dropped bytes still to be reported."""
        return bool(self._pending or self._dropped)

    def write(self, data: bytes) -> None:
        """Write as much as fits. Keep the rest, and drop further output until the reader continues."""
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
    """Copies the file, and stores the position in it."""

    def __init__(self, path: str, output: Output) -> None:
        self._path, self._output = path, output
        self._descriptor: int | None = None
        self._cleaner = LineCleaner()
        self._position = self._freed = 0

    def copy(self) -> int:
        """Copy one chunk; return its number of bytes. Skip the oldest bytes of a backlog that is too large."""
        if not self._open() or self._descriptor is None:
            return 0
        data = os.pread(self._descriptor, _CHUNK, self._position)
        self._position += len(data)
        self._output.write(self._cleaner.feed(data) if data else b"")
        self._skip_backlog(_BACKLOG_BYTES)
        unneeded = self._position - CONSOLE_BACKLOG_BYTES
        if unneeded - self._freed >= _FREED_BYTES:
            with contextlib.suppress(OSError):  # no holes on this file system; the emptyDir's limit remains
                free_range(self._descriptor, self._freed, unneeded - self._freed)
            self._freed = unneeded
        return len(data)

    @property
    def is_unfinished(self) -> bool:
        """There is work without new bytes: an incomplete line, or output that was not accepted."""
        return self._cleaner.holds_back or self._output.is_stuck

    def flush(self) -> None:
        """Copy an incomplete line."""
        if self._cleaner.holds_back:
            self._output.write(self._cleaner.flush())

    def finish(self) -> None:
        """Copy the newest bytes after the guest has ended."""
        if self._open():
            self._skip_backlog(FINISH_BYTES)
        for _unused in range(2 * FINISH_BYTES // _CHUNK):
            if not self.copy():
                break
        self.flush()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> bool:
        """Open the file if it is not open; return whether it is."""
        if self._descriptor is None:
            with contextlib.suppress(OSError):
                self._descriptor = os.open(self._path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        return self._descriptor is not None

    def _skip_backlog(self, limit_bytes: int) -> None:
        """Skip the oldest bytes beyond a limit, if the guest writes faster than this copies."""
        assert self._descriptor is not None
        size = os.fstat(self._descriptor).st_size
        behind = size - self._position - limit_bytes
        if behind > 0:
            self._position += behind
            self._output.write(self._cleaner.flush() + f"[{behind} bytes of the console were dropped here]\n".encode())
