# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait for changes in a directory, without looking again and again. Linux's inotify by ctypes; asyncio around it."""

from __future__ import annotations

import asyncio
import ctypes
import os

IN_MODIFY = 0x002
IN_CREATE = 0x100
IN_MOVED_TO = 0x080


class DirectoryWatch:
    """Wakes who waits when something in a directory was created or written. Use as a context manager."""

    def __init__(self, path: str) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        self._descriptor: int = libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._changed = asyncio.Event()
        if self._descriptor < 0:
            raise OSError(ctypes.get_errno(), "cannot make an inotify instance")
        if libc.inotify_add_watch(self._descriptor, path.encode(), IN_MODIFY | IN_CREATE | IN_MOVED_TO) < 0:
            number = ctypes.get_errno()
            os.close(self._descriptor)
            raise OSError(number, f"cannot watch {path}: {os.strerror(number)}")

    def __enter__(self) -> DirectoryWatch:
        asyncio.get_running_loop().add_reader(self._descriptor, self._on_readable)
        return self

    def __exit__(self, *_unused: object) -> None:
        asyncio.get_running_loop().remove_reader(self._descriptor)
        os.close(self._descriptor)

    async def wait(self) -> None:
        """Return once something has changed since the last call returned."""
        await self._changed.wait()
        self._changed.clear()

    def _on_readable(self) -> None:
        try:
            os.read(self._descriptor, 65536)
        except BlockingIOError:
            return
        self._changed.set()
