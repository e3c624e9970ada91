# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build the lab's programs into the cache, named by a hash of their sources and flags; a second build only looks."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.locks import locked
from lab.paths import SOURCES, Cache
from lab.programs import toolchain
from lab.progress import Progress

KUBERNETES = "1.36.3"
ETCD = "3.7.3"
CONTAINERD = "2.3.7"
CNI = "1.9.1"
COREDNS = "1.14.7"

KUBE_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubelet", "kube-proxy", "kubectl")
NEEDED_BYTES = 8 << 30
"""Go's module and build caches take 6 GB on top of the 0.4 GB of programs."""

# One set of flags for all: another value of any of them means another five minutes.
_FLAGS = ("-mod=readonly", "-buildvcs=false", "-trimpath", "-tags=providerless")
_ENVIRONMENT = {"GOFLAGS": "", "GOWORK": "off", "CGO_ENABLED": "0"}


def _kube_linker_flags() -> str:
    _unused, minor, _unused = KUBERNETES.split(".")
    values = {
        "gitVersion": f"v{KUBERNETES}",
        "gitMajor": "1",
        "gitMinor": minor,
        "gitCommit": f"v{KUBERNETES}",
        "gitTreeState": "clean",
        "buildDate": "2026-01-01T00:00:00Z",
    }
    packages = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
    return " ".join(f"-X {package}.{name}={value}" for package in packages for name, value in values.items())


@dataclass(frozen=True, kw_only=True)
class Module:
    """One of the Go modules below lab/go."""

    name: str
    packages: tuple[str, ...]
    linker_flags: str = ""
    links: tuple[str, ...] = ()
    """Names by which the multi-call binary of the module's own name is called."""

    def arguments(self, output: Path) -> list[str]:
        target = f"{output}/{self.name}" if self.packages == (".",) else f"{output}/"
        flags = f"-ldflags=-s -w {self.linker_flags}".rstrip()
        return ["build", "-v", *_FLAGS, flags, "-o", target, *self.packages]


MODULES = (
    Module(name="etcd", packages=(".",)),
    Module(
        name="node",
        packages=("./init", "./pause", "./coredns", "tool"),
        linker_flags=f"-X github.com/containerd/containerd/v2/version.Version=v{CONTAINERD}"
        f" -X github.com/containernetworking/plugins/pkg/utils/buildversion.BuildVersion=v{CNI}",
    ),
    Module(name="kube", packages=(".",), linker_flags=_kube_linker_flags(), links=KUBE_PROGRAMS),
)


@dataclass(frozen=True, kw_only=True)
class Programs:
    """Directories of the built programs."""

    etcd_directory: Path
    node_directory: Path
    kube_directory: Path

    @property
    def etcd(self) -> Path:
        return self.etcd_directory / "etcd"

    def node(self, name: str) -> Path:
        return self.node_directory / name

    def kube(self, name: str) -> Path:
        return self.kube_directory / name


def source_hash(module: Module, directory: Path) -> str:
    """Hash what decides the module's programs: its files, the flags and the machine's architecture."""
    digest = hashlib.sha256()
    for path in sorted(path for path in directory.rglob("*") if path.is_file()):
        digest.update(f"{path.relative_to(directory)}\0{path.stat().st_size}\0".encode())
        digest.update(path.read_bytes())
    settings = [*module.arguments(Path("OUT")), *map("=".join, sorted(_ENVIRONMENT.items())), os.uname().machine]
    digest.update("\0".join((*settings, *module.links)).encode())
    return digest.hexdigest()[:16]


def ensure_programs(cache: Cache, progress: Progress) -> Programs:
    """Build what the cache does not have. Safe to call from several processes at once: one builds, others wait."""
    directories = {}
    for module in MODULES:
        target = cache.programs / f"{module.name}-{source_hash(module, SOURCES / module.name)}"
        if not target.is_dir():
            with locked(cache, "build", progress):
                if not target.is_dir():
                    _build(module, target, cache, progress)
        directories[module.name] = target
    return Programs(
        etcd_directory=directories["etcd"], node_directory=directories["node"], kube_directory=directories["kube"]
    )


def _build(module: Module, target: Path, cache: Cache, progress: Progress) -> None:
    cache.programs.mkdir(parents=True, exist_ok=True)
    _check_disk(cache)
    go = toolchain.find_go(cache, progress)
    patience = "; about 5 minutes on 2 cores" if module.name == "kube" else ""
    progress(f"building {module.name} with Go {'.'.join(map(str, go.version))}{patience}")
    with tempfile.TemporaryDirectory(dir=cache.programs, prefix=f".{module.name}-") as scratch:
        output = Path(scratch) / "out"
        output.mkdir()
        _run_go(go, module, output, progress)
        for link in module.links:
            (output / link).symlink_to(module.name)
        output.chmod(0o755)
        output.rename(target)


def _check_disk(cache: Cache) -> None:
    free = shutil.disk_usage(cache.root).free
    if free < NEEDED_BYTES:
        raise LabError(
            f"{free >> 20} MiB free at {cache.root}, the build needs {NEEDED_BYTES >> 20} MiB; free some space, or set"
            " VIRTOPS_CACHE (programs) and GOCACHE and GOMODCACHE (Go's own caches) to a larger disk"
        )


def _run_go(go: toolchain.Go, module: Module, output: Path, progress: Progress) -> None:
    began = spoken = time.monotonic()
    counts = {"compiled": 0, "downloaded": 0}
    tail: deque[str] = deque(maxlen=20)
    with subprocess.Popen(
        [str(go.program), *module.arguments(output)],
        cwd=SOURCES / module.name,
        env={**os.environ, **_ENVIRONMENT, **go.environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        for line in process.stderr:
            tail.append(line.rstrip())
            counts["downloaded" if line.startswith("go: downloading") else "compiled"] += 1
            if time.monotonic() - spoken > 2:
                spoken = time.monotonic()
                progress(
                    f"  {module.name}: {counts['downloaded']} modules fetched, {counts['compiled']} packages compiled"
                )
    if process.returncode != 0:
        # Go names the package and the reason; its last lines are the useful ones.
        print("\n".join(tail), file=sys.stderr)
        raise LabError(
            f"`go build` of lab/go/{module.name} failed, its last lines are above; if modules could not be fetched,"
            " set GOPROXY to one this machine can reach"
        )
    progress(f"built {module.name} in {time.monotonic() - began:.0f} s")
