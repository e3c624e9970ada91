# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Go on one module and report progress: how many of all packages are compiled.

`go list` reports which packages the build cache lacks, and fetches the modules. `go build -v` prints each package when
its compilation begins. `go list` takes one second per minute of `go build`.
"""

from __future__ import annotations

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

from lab.errors import LabError
from lab.programs.modules import ENVIRONMENT, Module
from lab.programs.toolchain import Go
from lab.progress import Count, Progress, terminal_of

TICK_SECONDS = 1.0
LAST_LINES = 20
_COLLECT_LATE = {"GOGC": "off", "GOMEMLIMIT": "2GiB"}
"""Garbage collection near a limit only, in each of two processes: saves a sixth of the compile time."""


def compile_module(go: Go, module: Module, output: Path, progress: Progress) -> None:
    """Build the module's programs into the output directory."""
    began = time.monotonic()
    count = Count(progress, terminal_of(progress))
    try:
        missing = _missing_packages(go, module, count)
        compiled = _build(go, module, output, missing, count)
    finally:
        count.close()
    progress(f"built {module.name} in {time.monotonic() - began:.0f} s ({compiled} packages compiled)")


def _missing_packages(go: Go, module: Module, count: Count) -> set[str]:
    fetched = 0

    def on_line(line: str) -> None:
        nonlocal fetched
        fetched += line.startswith("go: downloading ")
        if fetched:
            count.say(f"  {module.name}: {fetched} modules fetched")

    arguments = ["list", "-deps", "-f", "{{if .Stale}}{{.ImportPath}}{{end}}", *module.settings, *module.packages]
    return set(run_go(go, module, arguments, on_line).split())


def _build(go: Go, module: Module, output: Path, wanted: set[str], count: Count) -> int:
    compiled: set[str] = set()

    def on_line(line: str) -> None:
        compiled.update({line} & wanted)
        count.say(describe(module.name, len(compiled), len(wanted)))

    run_go(go, module, module.arguments(output), on_line)
    return len(compiled)


def describe(name: str, compiled: int, wanted: int) -> str:
    suffix = ", linking" if compiled == wanted else ""
    return f"  {name}: {compiled} of {wanted} packages compiled{suffix}"


def run_go(
    go: Go, module: Module, arguments: Sequence[str], on_line: Callable[[str], None] = lambda _line: None
) -> str:
    """Return Go's standard output. on_line: called with each line of its errors, and with "" at intervals."""
    last_lines: deque[str] = deque(maxlen=LAST_LINES)
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            [str(go.program), *arguments],
            cwd=module.sources,
            env={**_COLLECT_LATE, **os.environ, **ENVIRONMENT, **go.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
    ):
        assert process.stderr is not None
        for line in lines_and_ticks(process.stderr):
            if line:
                last_lines.append(line)
            on_line(line)
        if process.wait() == 0:
            output.seek(0)
            return output.read()
    # Go's last lines name the package and the reason.
    print("\n".join(last_lines), file=sys.stderr)
    raise LabError(
        f"`go {arguments[0]}` of {module.sources} failed, its last lines are above; if modules could not be"
        " fetched, set GOPROXY to one this machine can reach"
    )


def lines_and_ticks(stream: IO[str], *, tick_seconds: float = TICK_SECONDS) -> Iterator[str]:
    """Yield each line, and "" after each interval without a line: some packages take longer."""
    lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()

    def read() -> None:
        for line in stream:
            lines.put(line)
        lines.put(None)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    while True:
        try:
            line = lines.get(timeout=tick_seconds)
        except queue.Empty:
            yield ""
            continue
        if line is None:
            reader.join()
            return
        yield line.rstrip()
