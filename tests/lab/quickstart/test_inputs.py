# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a newcomer may mistype is told before anything is made."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.collection import ROOT
from lab.quickstart.inputs import find_problem


@pytest.mark.parametrize("name", ["default", "a", "0", "my-shop-2", "a" * 63])
def test_name_that_kubernetes_takes_is_taken(name: str) -> None:
    assert find_problem(name) is None


@pytest.mark.parametrize("name", ["", "Bad_Name", "shop.eu", "-a", "a-", "a" * 64, "a b", "a\n", "$(id)", "ä"])
def test_name_that_kubernetes_refuses_is_refused_by_name(name: str) -> None:
    problem = find_problem(name)
    assert problem is not None
    assert problem.startswith(f"NAMESPACE={name}: ")


@pytest.mark.parametrize("name", ["Bad_Name", "x; touch {made}", "`touch {made}`", "'"])
def test_make_says_one_line_and_makes_nothing(name: str, tmp_path: Path) -> None:
    made = tmp_path / "made"
    name = name.format(made=made)
    # Were the name let through, the next step would not find its Python.
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
    said = [line for line in done.stderr.splitlines() if not line.startswith("make:")]
    assert done.returncode == 2
    assert said == [f"quickstart: error: {find_problem(name)}"]
    assert done.stdout == ""
    assert not made.exists()


def test_it_needs_nothing_that_is_not_there_yet(tmp_path: Path) -> None:
    """-I and -S: neither this folder, nor .venv, nor what is installed."""
    program = ROOT / "lab/quickstart/inputs.py"
    done = subprocess.run([sys.executable, "-I", "-S", program], cwd=tmp_path, env={"NAMESPACE": "a"}, check=False)
    assert done.returncode == 0
