# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A checkout as ansible-test wants it: at a path that names the collection, with files that git knows; no network.

Runs on the Python of any environment that has ansible-core: standard library only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from ansible_test._internal.python_requirements import get_venv_packages

ROOT = Path(__file__).resolve().parent.parent
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


def tracked(root: Path) -> frozenset[str]:
    """Return the paths of a checkout that git tracks, or would: all that is there and not ignored."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True).stdout
    return frozenset(path for path in listed.split("\0") if path and (root / path).is_file())


def copy_checkout(folder: Path, prefixes: tuple[str, ...] = ("",)) -> Path:
    """Copy the tracked paths with one of these prefixes below a folder, as a checkout of its own; return its path."""
    collection = folder / INSTALLED
    for path in sorted(path for path in tracked(ROOT) if path.startswith(prefixes)):
        (collection / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, collection / path)
    for command in (("init", "-q"), ("add", "-A")):
        subprocess.run(["git", *command], cwd=collection, check=True)
    return collection


def prepare_pip() -> None:
    """Put our bootstrap where ansible-test looks for the one that it would download."""
    version = get_venv_packages(_Python())["pip"].replace(".", "_")  # type: ignore[arg-type]
    script = Path.home() / ".ansible" / "test" / "cache" / f"get_pip_{version}.py"
    if not script.exists():
        script.parent.mkdir(parents=True, exist_ok=True)
        script.write_text(BOOTSTRAP)


def run(collection: Path, command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ansible-test of this interpreter's environment; what it prints is shown as it comes, and returned."""
    programs = Path(sys.executable).parent
    words = [str(programs / "ansible-test"), command, "--local", "--python", _Python.version, "--color", "no"]
    # This environment's Python first: ansible-test asks for it by its version, and shims of others may not run.
    environment = {**os.environ, "LC_ALL": "C.UTF-8", "PATH": f"{programs}:{os.environ['PATH']}"}
    printed: list[str] = []
    with subprocess.Popen(
        [*words, *arguments],
        cwd=collection,
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout or ():
            printed.append(line)
            print(line, end="", flush=True)
    return subprocess.CompletedProcess(words, process.returncode, "".join(printed))
