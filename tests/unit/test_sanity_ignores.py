# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files that only older versions of ansible-test refuse are listed for them: `make test` does not run their sanity
tests.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
READ = ("controlplane", "lab", "plugins", "roles", "tests")
ONE_LINE_BODY = re.compile(r"^ *(?:(?:async )?def |\)).*: \.\.\.$", re.MULTILINE)
"""Ruff formats the methods of a protocol like this."""


def ignored(version: str, test: str) -> set[str]:
    """Return the files that a version of ansible-test ignores in one test."""
    lines = (ROOT / f"tests/sanity/ignore-{version}.txt").read_text().splitlines()
    entries = (line.partition("#")[0].split() for line in lines)
    return {path for path, name in entries if name == test}


@pytest.mark.parametrize("version", ["2.17", "2.18"])
def test_files_with_bodies_on_the_line_of_their_def_are_listed(version: str) -> None:
    files = [path for folder in READ for path in (ROOT / folder).rglob("*.py")]
    matches = {str(path.relative_to(ROOT)) for path in files if ONE_LINE_BODY.search(path.read_text())}

    assert ignored(version, "pep8:E704") == matches


def test_packages_of_module_utils_with_docstrings_are_listed() -> None:
    packages = (ROOT / "plugins/module_utils").rglob("__init__.py")
    result = {str(path.relative_to(ROOT)) for path in packages if path.stat().st_size}

    assert ignored("2.17", "empty-init") == result
