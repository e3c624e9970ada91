# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the tarball, look what is in it, and let Galaxy's importer judge it: python -m tests.sanity.importer.

The importer runs without ansible-test (Docker; the session sanity) and ansible-lint (the session lint). Its warnings
count.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from images.recipes import NAMES, recipe
from tests import environments
from tests.ansible_test import INSTALLED, ROOT, tracked
from tests.sanity import contents


def build(folder: Path) -> Path:
    """Build the collection's tarball; return it."""
    _tool("ansible-galaxy", "collection", "build", "--output-path", str(folder), cwd=ROOT)
    return next(folder.glob("virtops-kubevirt-*.tar.gz"))


def install(tarball: Path, folder: Path) -> Path:
    """Install a tarball below a folder, without what it depends on; return the collection's folder."""
    _tool("ansible-galaxy", "collection", "install", "--offline", "--no-deps", "-p", ".", str(tarball), cwd=folder)
    return folder / INSTALLED


def images_that_differ(installed: Path) -> list[str]:
    """Name the images that an installed collection would build of other sources than this checkout does."""
    layers = [(name, layer) for name in NAMES for layer in recipe(name).layers]
    differ = {name for name, layer in layers if layer.key(installed) != layer.key(ROOT)}
    return [f"images/{name}: is built of other sources than in the checkout" for name in sorted(differ)]


SETTINGS = "[galaxy-importer]\nrun_ansible_lint = False\n"


def imported(tarball: Path, folder: Path) -> list[str]:
    """Run Galaxy's importer; return its warnings and errors."""
    programs = environments.make("importer") / "bin"
    settings = folder / "galaxy-importer.cfg"
    settings.write_text(SETTINGS)
    done = subprocess.run(
        [str(programs / "python"), "-m", "galaxy_importer.main", str(tarball)],
        cwd=folder,
        env={
            **os.environ,
            "PATH": f"{programs}:{os.environ['PATH']}",  # it calls ansible-doc
            "GALAXY_IMPORTER_CONFIG": str(settings),
        },
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    problems = [line for line in done.stdout.splitlines() if line.startswith(("WARNING", "ERROR"))]
    return problems or ([done.stdout] if done.returncode else [])


def _tool(name: str, *args: str, cwd: Path) -> None:
    """Run a program of this interpreter's environment; its output is shown only when it fails."""
    command = [str(Path(sys.executable).parent / name), *args]
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{name} {' '.join(args)} failed:\n{done.stdout}")


def main() -> int:
    """Build, look, install, import; the exit code says whether nothing is wrong."""
    with tempfile.TemporaryDirectory(prefix="virtops-importer-") as scratch:
        folder = Path(scratch)
        tarball = build(folder)
        wrong = contents.check(tarball, tracked(ROOT)) or [
            *images_that_differ(install(tarball, folder)),
            *imported(tarball, folder),
        ]
    print("\n".join(("The tarball is not what it should be:", *wrong)) if wrong else "importer: the tarball is right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
