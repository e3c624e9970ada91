# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits until a process writes to a file in one of a few directories.

It uses dnotify, which has no limits per user. inotify allows 128 instances per user, and all launchers of a node share
one user.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import signal
from contextlib import suppress
from typing import Any

SIGNAL = signal.SIGURG
"""Not the default SIGIO, which ends the process when it arrives after the handler was removed."""
_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class DirectoryWatch:
    """Reports one write after each `listen`. For one task at a time."""

    def __init__(self, *paths: str) -> None:
        self._paths = paths
        self._descriptors: dict[str, int] = {}
        self._written = asyncio.Event()

    def __enter__(self) -> DirectoryWatch:
        asyncio.get_running_loop().add_signal_handler(SIGNAL, self._written.set)
        return self

    def __exit__(self, *_unused: Any) -> None:
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()
        asyncio.get_running_loop().remove_signal_handler(SIGNAL)

    def listen(self) -> bool:
        """Listen for the next write in each directory; return whether that is possible.

        False: a directory does not exist yet, or the kernel has no dnotify.
        """
        self._written.clear()
        with suppress(OSError):
            for path in self._paths:
                fcntl.fcntl(self._open(path), fcntl.F_NOTIFY, fcntl.DN_MODIFY)
            return True
        return False

    async def written(self) -> None:
        """Wait for a write after `listen`."""
        await self._written.wait()

    def _open(self, path: str) -> int:
        if path not in self._descriptors:
            descriptor = self._descriptors[path] = os.open(path, _FLAGS)
            fcntl.fcntl(descriptor, fcntl.F_SETSIG, SIGNAL)
        return self._descriptors[path]
