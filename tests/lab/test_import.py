# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start-up cost of each command: Ansible runs one for each task on a node."""

from __future__ import annotations

import subprocess
import sys

from lab.collection import ROOT


def test_the_command_line_does_not_import_cryptography() -> None:
    code = "import sys, lab.__main__; print([name for name in sys.modules if name.startswith('cryptography')])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.strip() == "[]"
