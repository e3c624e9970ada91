# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Go modules to build: versions, flags, and the hash that identifies a build. build.py builds them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from lab.paths import SOURCES

KUBERNETES = "1.36.3"
MINOR = KUBERNETES.rpartition(".")[0]
"""The minor version of Kubernetes that a lab runs by default."""
ETCD = "3.7.3"
CONTAINERD = "2.3.7"
CNI = "1.9.1"
COREDNS = "1.14.7"

KUBE_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
CNI_PROGRAMS = ("host-local", "loopback", "portmap", "ptp", "bridge")

# One set of flags for all modules: other flags for one would mean another five minutes of build time.
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-tags=providerless", "-gcflags=all=-dwarf=false")
"""Without debug information: the linker would drop it, and generating it takes a fifth of the time."""
ENVIRONMENT = {"GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def kube_linker_flags(release: str) -> str:
    """Return the flags that write a release's version into its programs."""
    _unused, minor, _unused = release.split(".")
    values = {
        "gitVersion": f"v{release}",
        "gitMajor": "1",
        "gitMinor": minor,
        "gitCommit": f"v{release}",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())


@dataclass(frozen=True, kw_only=True)
class Module:
    """One of the Go modules below lab/go, or one that is generated."""

    name: str
    packages: tuple[str, ...]
    programs: tuple[str, ...]
    """Names of the programs that the module builds."""
    linker_flags: str = ""
    links: tuple[str, ...] = ()
    """Names of the programs in the multi-call binary, which has the module's name."""
    generated: Path | None = None
    """Directory of the go.mod, if it is not in lab/go."""

    @property
    def sources(self) -> Path:
        """Return the directory of the go.mod."""
        return self.generated or SOURCES / self.name

    @property
    def settings(self) -> list[str]:
        """Return the arguments of both `go build` and `go list`, so that both mean the same packages."""
        return [*_FLAGS, f"-ldflags=-s -w {self.linker_flags}".rstrip()]

    def arguments(self, output: Path) -> list[str]:
        target = f"{output}/{self.name}" if self.packages == (".",) else f"{output}/"
        return ["build", "-v", *self.settings, "-o", target, *self.packages]


KUBE = Module(
    name="kube",
    packages=(".",),
    programs=KUBE_PROGRAMS,
    linker_flags=kube_linker_flags(KUBERNETES),
    links=KUBE_PROGRAMS,
)
MODULES = (
    Module(name="etcd", packages=(".",), programs=("etcd",)),
    Module(
        name="node",
        packages=("./init", "./pause", "./coredns", "tool"),
        programs=("init", "pause", "coredns", "containerd", "containerd-shim-runc-v2", "ctr", *CNI_PROGRAMS),
        linker_flags=f"-X github.com/containerd/containerd/v2/version.Version=v{CONTAINERD}"
        f" -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v{CNI}",
    ),
    KUBE,
)


def source_hash(module: Module, directory: Path) -> str:
    """Hash the inputs of the build of a module in this directory."""
    paths = sorted(path for path in directory.rglob("*") if path.is_file())
    return build_hash(module, {f"{path.relative_to(directory)}": path for path in paths})


def build_hash(module: Module, files: Mapping[str, Path]) -> str:
    """Hash the inputs of a module's build: its files by name, the flags and the machine's architecture."""
    digest = hashlib.sha256()
    for name, path in files.items():
        digest.update(f"{name}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    settings = [*module.arguments(Path("OUT")), *map("=".join, sorted(ENVIRONMENT.items())), os.uname().machine]
    digest.update("\0".join((*settings, *module.links)).encode())
    return digest.hexdigest()[:16]
