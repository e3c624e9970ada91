# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make clean undoes quickstart, and nothing that others have on this machine."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

from lab.__main__ import parser

ROOT = Path(__file__).resolve().parents[3]


def asked_of_the_lab(checkout: Path) -> list[str]:
    """Run make clean in a checkout whose lab only notes what it is asked, line by line."""
    shutil.copy(ROOT / "Makefile", checkout)
    program = checkout / ".venv/bin/lab"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nfor one in "$@"; do echo "$one"; done >> asked\n')
    program.chmod(0o755)
    words = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    subprocess.run(["make", "clean"], cwd=checkout, env=words, check=True)
    return (checkout / "asked").read_text().split()


def test_the_lab_that_quickstart_brings_up_goes_and_no_other(tmp_path: Path) -> None:
    """Labs of other checkouts, and those of tests that run, are not its own."""
    down = parser().parse_args(asked_of_the_lab(tmp_path))
    up = parser().parse_args(["up"])  # as quickstart says it

    assert (down.command, down.name, down.all) == ("down", up.name, False)
