# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the tests of the console page's pure modules, *.test.js beside this file, on the Node.js that Playwright brings.

The page as a whole, in a browser and on a lab: tests/e2e/test_page.py.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import playwright
import pytest

NODE = Path(playwright.__file__).parent / "driver/node"
FILES = sorted(Path(__file__).parent.glob("*.test.js"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_a_module_of_the_page(file: Path) -> None:
    done = subprocess.run([NODE, "--test", file], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout
    assert "tests 0" not in done.stdout
