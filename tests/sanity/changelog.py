# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write CHANGELOG.rst as it would be if this version were released now, or say (--check) that it is not current.

The fragments stay, and changelogs/changelog.yaml gets its entry, when the version really is released (CONTRIBUTING.md).
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[2]
CHANGELOG = ROOT / "CHANGELOG.rst"
READ = ("changelogs", "meta", "plugins", "roles", "playbooks")
"""The folders that antsibull-changelog looks at; it does not follow links."""
_CACHES = shutil.ignore_patterns(".plugin-cache.yaml", "__pycache__")


def generated(root: Path) -> str:
    """Return the changelog of all releases and of the fragments that wait for one."""
    version = yaml.safe_load((root / "galaxy.yml").read_text())["version"]
    with tempfile.TemporaryDirectory(prefix="virtops-changelog-") as scratch:
        copy = Path(scratch) / "ansible_collections/virtops/kubevirt"
        for name in READ:
            shutil.copytree(root / name, copy / name, ignore=_CACHES)
        shutil.copy(root / "galaxy.yml", copy)
        released = yaml.safe_load((copy / "changelogs/changelog.yaml").read_text())["releases"]
        words = ["generate"] if version in released else ["release", "--version", version, "--date", "2026-01-01"]
        programs = Path(sys.executable).parent
        done = subprocess.run(
            [str(programs / "antsibull-changelog"), *words],  # the text that it makes names no date
            cwd=copy,
            env={**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"},  # it calls ansible-doc
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )
        if done.returncode:
            sys.exit(f"antsibull-changelog {words[0]} failed:\n{done.stdout}")
        return (copy / "CHANGELOG.rst").read_text()


def main(arguments: list[str]) -> int:
    """Write the file, or compare it; the exit code says whether it is current."""
    text = generated(ROOT)
    if arguments == ["--check"]:
        if CHANGELOG.read_text() == text:
            return 0
        print("CHANGELOG.rst is not what changelogs/ makes: run `.venv/bin/python -m tests.sanity.changelog`")
        return 1
    CHANGELOG.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
