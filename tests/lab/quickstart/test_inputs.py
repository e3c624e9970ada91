# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""make's variables are checked before anything is created."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.collection import ROOT
from lab.quickstart.inputs import find_problem


@pytest.mark.parametrize("name", ["default", "a", "0", "my-shop-2", "a" * 63])
def test_a_valid_name_is_accepted(name: str) -> None:
    assert find_problem(name) is None


@pytest.mark.parametrize("name", ["", "Bad_Name", "shop.eu", "-a", "a-", "a" * 64, "a b", "a\n", "$(id)", "ä"])
def test_an_invalid_name_is_refused_by_name(name: str) -> None:
    problem = find_problem(name)
    assert problem is not None
    assert problem.startswith(f"NAMESPACE={name}: ")


@pytest.mark.parametrize("name", ["Bad_Name", "x; touch {made}", "`touch {made}`", "'"])
def test_make_prints_one_line_and_creates_nothing(name: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    name = name.format(made=made)
    # With an accepted name the next step would fail, because this venv has no Python.
    command = [
        "make",
        "--no-print-directory",
        "-C",
        str(ROOT),
        "quickstart",
        f"NAMESPACE={name}",
        f"VENV={tmp_path}/no",
    ]
    outside = {key: value for key, value in os.environ.items() if not key.startswith(("MAKE", "MFLAGS"))}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=outside)  # a make may run the tests
    printed = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode == 2
    assert printed == [f"quickstart: error: {find_problem(name)}"]
    assert done.stdout == ""
    assert not made.exists()


def test_the_check_needs_only_the_standard_library(tmp_path: Path) -> None:
    """-I and -S exclude this folder, .venv and installed packages."""
    program = ROOT / "lab/quickstart/inputs.py"
    done = subprocess.run([sys.executable, "-I", "-S", program], cwd=tmp_path, env={"NAMESPACE": "a"}, check=False)
    assert done.returncode == 0
