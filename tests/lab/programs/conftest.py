# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs that only print their version."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

WriteProgram = Callable[[str, str], Path]


@pytest.fixture
def a_program(tmp_path: Path) -> WriteProgram:
    """Write a program with this file name that prints this text."""

    def write(name: str, answer: str) -> Path:
        path = tmp_path / "given" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\ncat <<'END'\n{answer}\nEND\n")
        path.chmod(0o755)
        return path

    return write
