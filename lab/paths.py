# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths of the lab's files: the cache of all labs, and the state of one lab, which `down` removes."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError

DEFAULT_NAME = "virtops"
STATE_ROOT = Path("/var/lib/virtops-lab")
SOURCES = Path(__file__).resolve().parent / "go"


@dataclass(frozen=True, kw_only=True)
class Cache:
    """Programs, image stores and the Go toolchain. Shared by all labs; missing files are created again."""

    root: Path

    @classmethod
    def from_environment(cls) -> Cache:
        named = os.environ.get("VIRTOPS_CACHE")
        return cls(root=Path(named).resolve() if named else Path.home() / ".cache" / "virtops")

    @property
    def programs(self) -> Path:
        return self.root / "bin"

    @property
    def named_programs(self) -> Path:
        """Return the file with the programs that the user has named instead of built ones."""
        return self.root / "programs.json"

    @property
    def images(self) -> Path:
        return self.root / "images"

    @property
    def toolchain(self) -> Path:
        return self.root / "go"

    @property
    def locks(self) -> Path:
        return self.root / "locks"


@dataclass(frozen=True, kw_only=True)
class State:
    """The directory of one lab."""

    name: str

    def __post_init__(self) -> None:
        # The name is part of a directory, a cgroup and a socket's path, which may have 107 characters.
        if not re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,28}[a-z0-9])?", self.name):
            raise LabError(f"lab name {self.name!r}: use 1 to 30 lower-case letters, digits and dashes")

    @property
    def root(self) -> Path:
        return STATE_ROOT / self.name

    @property
    def description(self) -> Path:
        return self.root / "lab.json"

    @property
    def kubeconfig(self) -> Path:
        return self.root / "kubeconfig"

    @property
    def certificates(self) -> Path:
        return self.root / "pki"

    @property
    def audit_log(self) -> Path:
        return self.root / "audit" / "audit.log"

    @property
    def etcd(self) -> Path:
        return self.root / "etcd"

    @property
    def shared_volumes(self) -> Path:
        return self.root / "shared"

    @property
    def archives(self) -> Path:
        """Return the directory of imported images, for nodes that join later."""
        return self.root / "archives"

    @property
    def control_plane(self) -> MachinePaths:
        return MachinePaths(root=self.root / "cp")

    def node(self, name: str) -> MachinePaths:
        return MachinePaths(root=self.root / "nodes" / name)


@dataclass(frozen=True, kw_only=True)
class MachinePaths:
    """The directory of one machine, a node or the control plane."""

    root: Path

    @property
    def configuration(self) -> Path:
        return self.root / "machine.json"

    @property
    def socket(self) -> Path:
        return self.root / "init.sock"

    @property
    def logs(self) -> Path:
        return self.root / "log"

    @property
    def etc(self) -> Path:
        """Return the directory of the programs' configuration files."""
        return self.root / "etc"

    @property
    def containerd(self) -> Path:
        return self.root / "containerd"

    @property
    def volumes(self) -> Path:
        return self.root / "volumes"
