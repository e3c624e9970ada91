# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make clean undoes quickstart and leaves other labs alone."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab.__main__ import parser

ROOT = Path(__file__).resolve().parents[3]


def arguments_of_the_lab(checkout: Path) -> list[str]:
    """Run make clean in a checkout with a fake lab; return the lab's arguments."""
    shutil.copy(ROOT / "Makefile", checkout)
    program = checkout / ".venv/bin/lab"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor word in "$@"; do echo "$word"; done >> asked\n')
    program.chmod(0o755)
    words = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "clean"], cwd=checkout, env=words, check=True)
    return (checkout / "asked").read_text().split()


def test_only_the_lab_of_quickstart_is_removed(tmp_path: Path) -> None:
    down = parser().parse_args(arguments_of_the_lab(tmp_path))
    up = parser().parse_args(["up"])  # as quickstart calls it

    assert (down.command, down.name, down.all) == ("down", up.name, False)
