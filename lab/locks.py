# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks between processes that share the cache."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager

from lab.paths import Cache
from lab.progress import Progress


@contextmanager
def locked(cache: Cache, name: str, progress: Progress) -> Iterator[None]:
    """Hold a lock among all processes that use the cache. The lock ends with the process."""
    cache.locks.mkdir(parents=True, exist_ok=True)
    with (cache.locks / name).open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another process that holds {file.name}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
