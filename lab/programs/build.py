# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build one Go module's programs into a directory of the cache. modules.py has the modules."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

from lab.errors import LabError
from lab.paths import Cache
from lab.programs import toolchain
from lab.programs.compiling import compile_module
from lab.programs.modules import Module
from lab.progress import Progress

NEEDED_BYTES = 8 << 30
"""Go's module and build caches take 6 GB, the programs 0.4 GB."""


def build(module: Module, target: Path, cache: Cache, progress: Progress) -> None:
    cache.programs.mkdir(parents=True, exist_ok=True)
    _check_disk(cache)
    go = toolchain.find_go(cache, progress)
    estimate = "; about 5 minutes on 2 cores" if module.name == "kube" else ""
    progress(f"building {module.name} with Go {'.'.join(map(str, go.version))}{estimate}")
    with tempfile.TemporaryDirectory(dir=cache.programs, prefix=f".{module.name}-") as scratch:
        output = Path(scratch) / "out"
        output.mkdir()
        compile_module(go, module, output, progress)
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
