# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A copy of the tree in which one line at a time is changed and put back."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.controlplane.guards.guard import Guard

ROOT = Path(__file__).resolve().parents[3]
PARTS = (
    "controlplane",
    "playbooks",
    "plugins",
    "tests/controlplane",
    "tests/unit",
    "tests/conftest.py",
    "tests/failed.py",
    "roles",
    "docs",
    "images",
    "lab",
    "pyproject.toml",
    "requirements.txt",
)
"""What the unit tests of the control plane and of the modules read."""


class Copy:
    """One worker's tree. Not for two at once."""

    def __init__(self, directory: Path) -> None:
        self.path = directory
        self._seconds = 0
        for part in PARTS:
            if (ROOT / part).is_dir():
                shutil.copytree(ROOT / part, directory / part, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                (directory / part).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / part, directory / part)

    @contextmanager
    def without(self, guard: Guard) -> Iterator[None]:
        """Take the guard out for as long as this lasts."""
        path = self.path / guard.file
        whole = path.read_text()
        self._write(path, whole.replace(guard.line, guard.without, 1))
        try:
            yield
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        """Write a file so that no bytecode of what it was before is taken for it.

        Python knows stale bytecode by size and mtime in whole seconds: two states of a file within a second, of the
        same length, are one to it. So every write is some seconds later than the one before.
        """
        former = path.stat().st_mtime
        path.write_text(text)
        self._seconds += 2
        os.utime(path, (former + self._seconds, former + self._seconds))
