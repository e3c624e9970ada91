# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Build one Go module's programs into a directory of the cache. What is built is in modules.py."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from lab.errors import LabError
from lab.paths import SOURCES, Cache
from lab.programs import toolchain
from lab.programs.modules import ENVIRONMENT, Module
from lab.progress import Progress

NEEDED_BYTES = 8 << 30
"""Go's module and build caches take 6 GB on top of the 0.4 GB of programs."""


def build(module: Module, target: Path, cache: Cache, progress: Progress) -> None:
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
        env={**os.environ, **ENVIRONMENT, **go.environment},
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
