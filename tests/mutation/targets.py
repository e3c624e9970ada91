# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files to mutate, and the tests to run with each: the globs of targets.toml, and the mirrored test files."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GLOBS = Path(__file__).with_name("targets.toml")
TREES = {"controlplane": "tests/controlplane", "plugins": "tests/unit/plugins"}
"""Folder of the code -> folder that mirrors it."""
SIBLINGS = ("decide", "status", "world")
"""Modules of one controller: a decision depends on its World, so the tests of all three run."""


def find_files() -> list[str]:
    """Return the paths, relative to the repository, of all files to mutate. ValueError: a glob matches nothing."""
    globs = tomllib.loads(GLOBS.read_text())["files"]
    idle = [pattern for pattern in globs if not any(ROOT.glob(pattern))]
    if idle:
        raise ValueError(f"{GLOBS.name}: no file matches {', '.join(idle)}. Follow the file if it was renamed")
    paths = {path.relative_to(ROOT) for pattern in globs for path in ROOT.glob(pattern)}
    return sorted(str(path) for path in paths if path.name != "__init__.py")


def find_tests(file: str) -> list[str]:
    """Return the test files for one file: those named after it or in targets.toml, or all of the mirrored folder."""
    path = Path(file)
    folder = ROOT / TREES[path.parts[0]] / Path(*path.parts[1:]).parent
    names = tomllib.loads(GLOBS.read_text())["tests"].get(path.stem) or (
        SIBLINGS if path.stem in SIBLINGS else (path.stem,)
    )
    named = {test for name in names for test in (ROOT.glob(name) if "/" in name else folder.glob(f"test_{name}*.py"))}
    if path.stem in SIBLINGS and not list(folder.glob(f"test_{path.stem}*.py")):
        named = set()
    named = named or set(folder.glob("test_*.py"))
    return sorted(str(test.relative_to(ROOT)) for test in named)
