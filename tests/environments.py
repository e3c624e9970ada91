# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments beside .venv, for what it cannot hold: python -m tests.environments NAME makes one and says where it is.

One per file in tests/requirements, made when it is first needed, kept in the cache of all checkouts under a hash of its
pins.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "tests/requirements"
OLDEST = {"ansible-core-2.20": (3, 12), "ansible-core-2.21": (3, 12)}
"""The oldest Python of environments that cannot be on the project's own."""
COLLECTIONS = Path(sysconfig.get_path("purelib")) / "ansible_collections"
"""Other collections that are in this environment; those made here have the same."""
NEWEST = (3, 14)
_PREFIX = "ansible-core-"


def ansible_cores() -> list[str]:
    """Return the versions of ansible-core that have an environment of their own, oldest first."""
    return sorted(path.stem.removeprefix(_PREFIX) for path in REQUIREMENTS.glob(f"{_PREFIX}*.txt"))


def cache() -> Path:
    """Return the folder of all environments, beside the lab's programs."""
    return Path(os.environ.get("VIRTOPS_CACHE") or Path.home() / ".cache/virtops") / "environments"


def make(name: str) -> Path:
    """Return the folder of an environment; it is made if it is not there as pinned. Others of that name go."""
    pins = REQUIREMENTS / f"{name}.txt"
    # Resolved: another link to the same Python must not rebuild an environment in use.
    python = os.path.realpath(_interpreter(OLDEST.get(name, (3, 0))))
    key = hashlib.sha256(pins.read_bytes() + python.encode()).hexdigest()[:12]
    folder = cache() / f"{name}-{key}"
    with _alone(name):
        if not (folder / "complete").exists():
            for old in cache().glob(f"{name}-????????????"):
                shutil.rmtree(old)
            print(f"environments: making {name}", file=sys.stderr, flush=True)
            subprocess.run([python, "-m", "venv", str(folder)], check=True)
            pip = [str(folder / "bin/python"), "-m", "pip", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, "install", "--no-deps", "--no-compile", "--requirement", str(pins)], check=True)
            (folder / "complete").touch()
        _share_collections(folder)
    return folder


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Wait until no other process makes this environment."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f"{name}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _share_collections(folder: Path) -> None:
    """Link the collections of this environment where another one's Ansible finds them by itself."""
    (library,) = folder.glob("lib/python3.*/site-packages")
    link = library / COLLECTIONS.name
    if COLLECTIONS.exists() and not link.exists():  # the checkout that made the link may be gone
        link.unlink(missing_ok=True)
        link.symlink_to(COLLECTIONS)


def has_interpreter(name: str) -> bool:
    """Tell whether an environment can be made here."""
    return _found(OLDEST.get(name, (3, 0))) is not None


def _interpreter(oldest: tuple[int, int]) -> str:
    """Return a Python that is new enough; ends the program with what to do where there is none."""
    found = _found(oldest)
    if found is None:
        wanted = ".".join(map(str, oldest))
        sys.exit(f"environments: no Python {wanted} or newer on PATH or among pyenv's; install one")
    return found


def _found(oldest: tuple[int, int]) -> str | None:
    """Return this Python, or the first other one that is new enough and runs."""
    if sys.version_info >= oldest:
        return sys.executable
    for candidate in _candidates(oldest):
        tried = subprocess.run([candidate, "-c", "import ensurepip, venv"], capture_output=True, check=False)
        if tried.returncode == 0:
            return candidate
    return None


def _candidates(oldest: tuple[int, int]) -> Iterator[str]:
    """Name the places where other Pythons may be."""
    for minor in range(NEWEST[1], oldest[1] - 1, -1):
        found = shutil.which(f"python3.{minor}")
        yield from [found] if found else []
        yield from map(str, sorted(_pyenv().glob(f"versions/3.{minor}.*/bin/python3")))


def _pyenv() -> Path:
    return Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))


if __name__ == "__main__":
    print(make(sys.argv[1]))
