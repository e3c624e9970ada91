# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run pytest in a tree, quickly: in a fork of a process that has loaded all but the code under test."""

from __future__ import annotations

import importlib
import os
import resource
import select
import signal
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

OUTSIDE = "component or lab or guest or root"
"""Markers of tests that need more than Python: they do not count."""
OURS = ("controlplane", "kubevirt_api", "tests")
LOADED = (
    "pytest",
    "hypothesis",
    "msgspec",
    "aiohttp.test_utils",
    "aiohttp.web",
    "cryptography.x509",
    "grpclib.server",
    "kubernetes.aio.client",
    "prometheus_client",
    "pyroute2",
)
"""What tests load beside our code, and what takes most of their time."""
PATIENCE = 5
"""So many times the CPU seconds may pass on the wall: for tests that wait, and for busy machines."""


@dataclass(frozen=True, slots=True)
class Ended:
    code: int | None
    """pytest's exit code; None: it did not come to an end."""
    said: str


def load() -> None:
    """Load what does not change, so that a fork has it."""
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    os.environ["COLUMNS"] = "400"
    for name in LOADED:
        with suppress(ImportError):
            importlib.import_module(name)


def run_tests(tree: Path, tests: tuple[str, ...], *, limit_seconds: int) -> Ended:
    """Run tests of a tree in a process of their own, that may use so many seconds of CPU. The caller has no threads."""
    with tempfile.TemporaryFile() as said:
        child = os.fork()
        if child == 0:
            resource.setrlimit(resource.RLIMIT_CPU, (limit_seconds, limit_seconds))
            _be_pytest(tree, tests, said.fileno())
        watched = os.pidfd_open(child)
        try:
            is_over = bool(select.select([watched], [], [], PATIENCE * limit_seconds)[0])
        finally:
            os.close(watched)
            with suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)  # it, or what it has left behind
            _unused, status = os.waitpid(child, 0)
        said.seek(0)
        code = os.waitstatus_to_exitcode(status)
        is_out_of_time = not is_over or -code in (signal.SIGXCPU, signal.SIGKILL)
        return Ended(None if is_out_of_time else code, said.read().decode(errors="replace"))


def _be_pytest(tree: Path, tests: tuple[str, ...], output: int) -> NoReturn:
    code = 3
    try:
        os.setpgid(0, 0)
        os.chdir(tree)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        for name in [one for one in sys.modules if one.split(".")[0] in OURS]:
            del sys.modules[name]
        ours = [str(tree), str(tree / "plugins/module_utils")]
        sys.path[:] = [*ours, *(one for one in sys.path if "site-packages" in one or "lib/python" in one)]
        os.environ["PYTHONPATH"] = ":".join(ours)
        importlib.invalidate_caches()
        pytest = importlib.import_module("pytest")
        order = ["-x", "-q", "--tb=line", "-rf", "-p", "no:cacheprovider", "-p", "pytest_asyncio.plugin"]
        code = int(pytest.main([*order, "-m", f"not ({OUTSIDE})", *tests]))
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
