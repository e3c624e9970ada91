# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on the collection as a user would get it: built, installed, in the place that Ansible wants.

Without Docker and without the network but for a package index. Arguments are handed to ansible-test, e.g. --test pep8.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ansible_test._internal.python_requirements import get_venv_packages

from tests.sanity import contents

ROOT = Path(__file__).resolve().parents[2]
INSTALLED = Path("ansible_collections") / "virtops" / "kubevirt"

BOOTSTRAP = '''"""Give an environment pip from Python itself: what ansible-test would else download."""
import subprocess
import sys

subprocess.check_call([sys.executable, "-m", "ensurepip", "--default-pip"])  # apart: it unsets pip's variables
wanted = [one for one in sys.argv[1:] if one not in ("--no-setuptools", "--no-wheel")]
sys.exit(subprocess.call([sys.executable, "-m", "pip", "install", *wanted]))
'''


class _Python:
    """What get_venv_packages asks for."""

    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    major_version = sys.version_info.major


def build(root: Path, folder: Path) -> Path:
    """Build the collection's tarball from a checkout; return it."""
    tool("ansible-galaxy", "collection", "build", "--output-path", str(folder), cwd=root)
    return next(folder.glob("virtops-kubevirt-*.tar.gz"))


def install(tarball: Path, folder: Path) -> Path:
    """Install a tarball below a folder, as `ansible-galaxy collection install` does; return the collection's folder."""
    options = ("--offline", "--no-deps", "--force", "-p", str(folder))  # what it needs is in our own environment
    tool("ansible-galaxy", "collection", "install", *options, str(tarball), cwd=folder)
    return folder / INSTALLED


def tracked(root: Path) -> frozenset[str]:
    """Return the paths of a checkout that git tracks, or would: all that is there and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return frozenset(path for path in listed.split("\0") if path and (root / path).exists())


def tool(name: str, *args: str, cwd: Path) -> None:
    """Run a program of this interpreter's environment; its output is shown only when it fails."""
    command = [str(Path(sys.executable).parent / name), *args]
    done = subprocess.run(command, cwd=cwd, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if done.returncode:
        sys.exit(f"{name} {' '.join(args)} failed:\n{done.stdout}")


def prepare_pip() -> None:
    """Put our bootstrap where ansible-test looks for the one that it would download."""
    version = get_venv_packages(_Python())["pip"].replace(".", "_")  # type: ignore[arg-type]
    script = Path.home() / ".ansible" / "test" / "cache" / f"get_pip_{version}.py"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(BOOTSTRAP)


def main(arguments: list[str]) -> int:
    """Build, install, test; return ansible-test's verdict."""
    prepare_pip()
    with tempfile.TemporaryDirectory(prefix="virtops-sanity-") as scratch:
        folder = Path(scratch)
        tarball = build(ROOT, folder)
        wrong = contents.check(tarball, tracked(ROOT))
        if wrong:
            sys.exit("\n".join(("The tarball is not what it should be:", *wrong)))
        collection = install(tarball, folder)
        for command in (("init", "-q"), ("add", "-A")):  # ansible-test looks at files that git knows
            subprocess.run(["git", *command], cwd=collection, check=True)
        ansible_test = str(Path(sys.executable).parent / "ansible-test")
        command = [ansible_test, "sanity", "--local", "--python", _Python.version, "--color", "no", *arguments]
        environment = {**os.environ, "LC_ALL": "C.UTF-8"}
        return subprocess.run(command, cwd=collection, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
