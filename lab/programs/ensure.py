# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The programs of a lab: built ones, and in their places copies of those that the user has named.

Each build and each copy is a directory of its own in the cache, and a directory never changes: a program that runs is
never written over, and another program is another command line, by which `lab up` knows what to start again.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from lab.locks import locked
from lab.paths import SOURCES, Cache
from lab.programs.build import build
from lab.programs.choice import recall
from lab.programs.modules import MODULES, Module, source_hash
from lab.programs.named import Named
from lab.progress import Progress

KEPT_COPIES = 3
"""Of each program that the user has named: the newest ones. A kubelet has some 60 MB."""


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Where the programs are."""

    etcd_directory: Path
    node_directory: Path
    kube_directory: Path
    copies: dict[str, Path] = field(default_factory=dict)
    """By name, what stands in the place of a built program."""
    named: dict[str, str] = field(default_factory=dict)
    """By name, the path that the user has named, and the version found there."""

    @property
    def etcd(self) -> Path:
        return self._place(self.etcd_directory, "etcd")

    @property
    def runc(self) -> Path | None:
        """None: the machine's own."""
        return self.copies.get("runc")

    def node(self, name: str) -> Path:
        return self._place(self.node_directory, name)

    def kube(self, name: str) -> Path:
        return self._place(self.kube_directory, name)

    def directories(self, *names: str) -> list[Path]:
        """Where these programs are found, and all that was built for nodes, in the order of a PATH."""
        first = [self.copies[name].parent for name in names if name in self.copies]
        return list(dict.fromkeys([*first, self.node_directory, self.kube_directory]))

    def _place(self, directory: Path, name: str) -> Path:
        return self.copies.get(name, directory / name)


def ensure_programs(cache: Cache, progress: Progress) -> Programs:
    """Build and copy what the cache does not have. Safe to call from several processes at once: one does it, others
    wait. Nothing is built of a module whose every program is named."""
    named = recall(cache)
    names = {each.name for each in named}
    directories = {module.name: _directory(module, cache) for module in MODULES}
    for module in MODULES:
        if not names.issuperset(module.programs):
            _ensure_built(module, directories[module.name], cache, progress)
    return Programs(
        etcd_directory=directories["etcd"],
        node_directory=directories["node"],
        kube_directory=directories["kube"],
        copies={each.name: _ensure_copy(each, cache, progress) for each in named},
        named={each.name: f"{each.path} ({each.version})" for each in named},
    )


def _directory(module: Module, cache: Cache) -> Path:
    return cache.programs / f"{module.name}-{source_hash(module, SOURCES / module.name)}"


def _ensure_built(module: Module, target: Path, cache: Cache, progress: Progress) -> None:
    if not target.is_dir():
        with locked(cache, "build", progress):
            if not target.is_dir():
                build(module, target, cache, progress)


def _ensure_copy(named: Named, cache: Cache, progress: Progress) -> Path:
    """A copy, because the file may be replaced while it runs, and not every path of the host is seen in a machine."""
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
