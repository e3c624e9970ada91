# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other minor versions of Kubernetes than the lab's own: a Go module for each, built on demand.

The requirements of such a module are those of the release: its go.mod names the staging modules (k8s.io/api, ...)
without a version, and all of them are published under the release's own number. `go mod tidy` adds the rest.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from lab.errors import LabError
from lab.paths import SOURCES, Cache
from lab.programs import toolchain
from lab.programs.build import build
from lab.programs.compiling import run_go
from lab.programs.modules import KUBE, KUBERNETES, MINOR, Module, build_hash, kube_linker_flags
from lab.progress import Progress

RELEASES = {"1.33": "1.33.13", "1.34": "1.34.4", "1.35": "1.35.4", MINOR: KUBERNETES, "1.37": "1.37.2"}
"""Minor version -> the release of it that a lab runs."""

_STAGING = re.compile(r"^\s*(k8s\.io/[a-z-]+) v0\.0\.0$", re.MULTILINE)


def release_of(minor: str) -> str:
    """Return the release of a minor version. Raises LabError for an unknown one."""
    if minor not in RELEASES:
        raise LabError(f"Kubernetes {minor}: the lab can run {', '.join(RELEASES)}")
    return RELEASES[minor]


def kube_module(release: str, cache: Cache) -> Module:
    """Return the module of a release."""
    generated = cache.root / "sources" / f"kube-{release}"
    return replace(KUBE, linker_flags=kube_linker_flags(release), generated=generated)


def _files(release: str) -> list[Path]:
    """Return the source files of a release: the lab's own, or those that replace them for its minor version."""
    others = SOURCES / f"kube-{release.rpartition('.')[0]}"
    own = sorted((SOURCES / "kube").glob("*.go"))
    return [replacement if (replacement := others / file.name).exists() else file for file in own]


def kube_directory(release: str, cache: Cache) -> Path:
    """Return the directory of a release's programs."""
    module = kube_module(release, cache)
    return cache.programs / f"kube-{release}-{build_hash(module, {file.name: file for file in _files(release)})}"


def build_release(release: str, cache: Cache, progress: Progress) -> None:
    """Build a release's programs."""
    module = kube_module(release, cache)
    sources = module.sources
    shutil.rmtree(sources, ignore_errors=True)
    sources.mkdir(parents=True)
    for file in _files(release):
        shutil.copyfile(file, sources / file.name)
    go = toolchain.find_go(cache, progress)
    progress(f"resolving the modules of Kubernetes {release}")
    described = run_go(go, module, ["list", "-m", "-f", "{{.GoMod}}", f"k8s.io/kubernetes@v{release}"])
    staging = _STAGING.findall(Path(described.rstrip()).read_text())
    (sources / "go.mod").write_text(requirements(release, staging, toolchain.EXACT))
    run_go(go, module, ["mod", "tidy"])
    build(module, kube_directory(release, cache), cache, progress)


def requirements(release: str, staging: Iterable[str], go_version: tuple[int, ...]) -> str:
    """Return the go.mod before `go mod tidy`."""
    number = release.removeprefix("1.")
    lines = [f"\t{module} v0.{number}" for module in sorted(set(staging))]
    lines.append(f"\tk8s.io/kubernetes v{release}")
    version = ".".join(map(str, go_version))
    return "\n".join(["module virtops.example/lab/kube", "", f"go {version}", "", "require (", *lines, ")", ""])
