# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits, without polling, until an entry appears below an open directory. It opens no path itself.

The waiter passes `look`, which returns the result, or raises NotYet with the deepest directory that exists. A watch of
that directory begins, `look` runs again (an entry may have appeared in between), and then the waiter sleeps until the
kernel reports a change. A watch reports one change. If a directory changes without end, as a tenant's may, `look` runs
at growing intervals.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import struct
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

T = TypeVar("T")

_CREATE, _MOVED_TO, _DELETE_SELF, _MOVE_SELF = 0x100, 0x80, 0x400, 0x800
_ONLYDIR, _ONESHOT = 0x01000000, 0x80000000
_MASK = _CREATE | _MOVED_TO | _DELETE_SELF | _MOVE_SELF | _ONLYDIR | _ONESHOT
_OVERFLOW = -1
_HEADER = struct.Struct("iIII")
_READ_BYTES = 65536
_FREE_LOOKS = 32
"""Calls of `look` without a pause; a start needs about ten."""

_SLOWEST_SECONDS = 1.0


class NotYet(Exception):
    """The entry does not exist. Owns a descriptor of the deepest existing directory, and closes it after `with`."""

    def __init__(self, directory_fd: int) -> None:
        super().__init__("it does not exist yet")
        self.directory_fd = directory_fd
        self._is_open = True

    def __del__(self) -> None:
        """Close the descriptor if the exception is dropped without `with`."""
        self.close()

    def close(self) -> None:
        """Close the descriptor. May be called twice."""
        if self._is_open:
            self._is_open = False
            os.close(self.directory_fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode of the directory to wait in."""
        status = os.fstat(self.directory_fd)
        return status.st_dev, status.st_ino


class Inotify:
    """One inotify instance, read by the running event loop."""

    def __init__(self) -> None:
        self._libc = ctypes.CDLL(None, use_errno=True)
        self._fd = self._libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._fd < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot create an inotify instance: {os.strerror(number)}")
        self._waiting: dict[int, set[asyncio.Future[None]]] = {}
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Stop reading; waiters are cancelled."""
        self._loop.remove_reader(self._fd)
        os.close(self._fd)
        self._wake(list(self._waiting), cancel=True)

    async def wait_for(self, look: Callable[[], T], run: Callable[[Callable[[], T]], Awaitable[T]] | None = None) -> T:
        """Return the result of `look` once it does not raise NotYet. Its other exceptions are raised.

        run: runs `look`, e.g. in a thread when it may block; by default it is called on the loop.
        """
        armed: tuple[tuple[int, int], asyncio.Future[None]] | None = None
        looks = 0
        while True:
            try:
                return look() if run is None else await run(look)
            except NotYet as not_yet:
                with not_yet:
                    identity = not_yet.identity
                    is_armed = armed is not None and armed[0] == identity and not armed[1].done()
                    if not is_armed:
                        armed = (identity, self._arm(not_yet.directory_fd))
            if is_armed and armed is not None:
                await armed[1]
                armed = None
            looks += 1
            if looks > _FREE_LOOKS:
                await asyncio.sleep(min(_SLOWEST_SECONDS, 0.002 * 1.3 ** (looks - _FREE_LOOKS)))

    def _arm(self, directory_fd: int) -> asyncio.Future[None]:
        # /proc/self/fd/N of a directory's descriptor: no name is resolved.
        watch = self._libc.inotify_add_watch(self._fd, f"/proc/self/fd/{directory_fd}".encode(), ctypes.c_uint32(_MASK))
        if watch < 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot watch a directory: {os.strerror(number)}")
        change: asyncio.Future[None] = self._loop.create_future()
        self._waiting.setdefault(watch, set()).add(change)
        change.add_done_callback(lambda done: self._forget(watch, done))
        return change

    def _forget(self, watch: int, change: asyncio.Future[None]) -> None:
        waiting = self._waiting.get(watch)
        if waiting is None:
            return
        waiting.discard(change)
        if not waiting:
            del self._waiting[watch]
            self._libc.inotify_rm_watch(self._fd, watch)  # EINVAL after it has fired, which is fine

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return
        offset = 0
        while offset < len(data):
            watch, _mask, _cookie, length = _HEADER.unpack_from(data, offset)
            offset += _HEADER.size + length
            self._wake(list(self._waiting) if watch == _OVERFLOW else [watch])

    def _wake(self, watches: list[int], *, cancel: bool = False) -> None:
        for watch in watches:
            for change in self._waiting.pop(watch, set()):
                if cancel:
                    change.cancel()
                elif not change.done():
                    change.set_result(None)
