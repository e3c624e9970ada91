# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a lab: built ones, and copies of programs that the user has named instead.

Each build and each copy has its own directory in the cache, which never changes. So a running program is never
overwritten, and another program has another command line, by which `lab up` sees that it must restart the program.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from lab.errors import LabError
from lab.locks import locked
from lab.paths import Cache
from lab.programs import releases
from lab.programs.build import build
from lab.programs.choice import recall
from lab.programs.modules import KUBE_PROGRAMS, MINOR, MODULES, Module, source_hash
from lab.programs.named import Named
from lab.progress import Progress

KEPT_COPIES = 3
"""Copies kept of each named program, the newest ones. A kubelet has about 60 MB."""


@dataclass(frozen=True, kw_only=True)
class Programs:
    """The paths of the programs."""

    etcd_directory: Path
    node_directory: Path
    kube_directory: Path
    copies: dict[str, Path] = field(default_factory=dict)
    """By name, the copy that replaces a built program."""
    named: dict[str, str] = field(default_factory=dict)
    """By name, the path that the user has named, and its version."""

    @property
    def etcd(self) -> Path:
        return self._place(self.etcd_directory, "etcd")

    @property
    def runc(self) -> Path | None:
        """Return the path of runc. None: the machine's own."""
        return self.copies.get("runc")

    def node(self, name: str) -> Path:
        return self._place(self.node_directory, name)

    def kube(self, name: str) -> Path:
        return self._place(self.kube_directory, name)

    def directories(self, *names: str) -> list[Path]:
        """Return the directories of these programs and of the node programs, in the order of a PATH."""
        first = [self.copies[name].parent for name in names if name in self.copies]
        return list(dict.fromkeys([*first, self.node_directory, self.kube_directory]))

    def _place(self, directory: Path, name: str) -> Path:
        return self.copies.get(name, directory / name)


def ensure_programs(cache: Cache, progress: Progress, *, kubernetes: str = MINOR) -> Programs:
    """Build and copy the programs that the cache lacks. Several processes may call this: one builds, the others wait.

    A module is not built if the user has named all of its programs. kubernetes: the minor version.
    """
    named = recall(cache)
    names = {program.name for program in named}
    directories = {module.name: _directory(module, cache) for module in MODULES}
    builds = {module.name: partial(build, module, directories[module.name]) for module in MODULES}
    if kubernetes != MINOR:
        release = releases.release_of(kubernetes)
        _refuse_named(names, release)
        directories["kube"] = releases.kube_directory(release, cache)
        builds["kube"] = partial(releases.build_release, release)
    for module in MODULES:
        if not names.issuperset(module.programs):
            _ensure_built(directories[module.name], partial(builds[module.name], cache, progress), cache, progress)
    return Programs(
        etcd_directory=directories["etcd"],
        node_directory=directories["node"],
        kube_directory=directories["kube"],
        copies={program.name: _ensure_copy(program, cache, progress) for program in named},
        named={program.name: f"{program.path} ({program.version})" for program in named},
    )


def _directory(module: Module, cache: Cache) -> Path:
    return cache.programs / f"{module.name}-{source_hash(module, module.sources)}"


def _refuse_named(names: set[str], kubernetes: str) -> None:
    """A lab runs Kubernetes programs of one minor version: those that the user has named are checked against ours."""
    named = sorted(names.intersection(KUBE_PROGRAMS))
    if named:
        raise LabError(
            f"Kubernetes {kubernetes}: {', '.join(named)} are replaced by programs of your own;"
            f" go back to built ones with `lab build {' '.join(f'--program {name}=' for name in named)}`"
        )


def _ensure_built(target: Path, make: Callable[[], None], cache: Cache, progress: Progress) -> None:
    if not target.is_dir():
        with locked(cache, "build", progress):
            if not target.is_dir():
                make()


def _ensure_copy(named: Named, cache: Cache, progress: Progress) -> Path:
    """Copy a named program: its file may be replaced while it runs, and machines do not see all paths of the host."""
    mark = hashlib.sha256(f"{named.path} {named.stamp}".encode()).hexdigest()[:16]
    target = cache.programs / "named" / f"{named.name}-{mark}"
    if not target.is_dir():
        with locked(cache, "build", progress):
            if not target.is_dir():
                _copy(named, target)
                _drop_old(target.parent.glob(f"{named.name}-{'?' * len(mark)}"))
    return target / named.name


def _copy(named: Named, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}-") as scratch:
        output = Path(scratch) / "out"
        output.mkdir()
        shutil.copyfile(named.path, output / named.name)
        (output / named.name).chmod(0o755)
        output.rename(target)


def _drop_old(copies: Iterable[Path]) -> None:
    newest_first = sorted(copies, key=lambda path: path.stat().st_mtime_ns, reverse=True)
    for old in newest_first[KEPT_COPIES:]:
        shutil.rmtree(old)
