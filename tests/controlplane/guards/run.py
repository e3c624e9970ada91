# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Take guards out, one at a time, and see who misses them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.guards.copy import Copy
from tests.controlplane.guards.guard import Guard
from tests.controlplane.guards.tests_run import run_tests

LIMIT_SECONDS = 60
"""Of CPU, or five times as many on the wall: what takes longer hangs."""
HANG_SECONDS = 6
"""The same where hanging is what is expected."""
SIMULATED_STEPS = 10_000
NO_PROOF = ("ImportError", "ModuleNotFoundError", "SyntaxError", "NameError", "IndentationError", "fixture ")
"""Failures that say that the changed code does not load, not that the guard is missed."""
_FAILED = re.compile(r"^FAILED (?P<test>.+?)(?: - (?P<error>.*))?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one guard."""

    guard: Guard
    is_caught: bool
    said: str
    """The test that missed it, or what happened instead."""
    seconds: float


def run_whole(copy: Copy, tests: tuple[str, ...]) -> str | None:
    """Run tests on the tree as it is; return what is wrong when they are not green."""
    ended = run_tests(copy.path, tests, limit_seconds=10 * LIMIT_SECONDS)
    return None if ended.code == 0 else ended.said[-4_000:]


def judge(copy: Copy, guard: Guard) -> Verdict:
    """Take the guard out and ask the tests that are to miss it, then the simulation if the entry says so."""
    began = time.monotonic()
    with copy.without(guard):
        is_caught, said = False, "no test is named"
        if guard.tests:
            is_caught, said = _ask_tests(copy.path, guard)
        if not is_caught and guard.seeds:
            is_caught, said = _ask_simulation(copy.path, guard.seeds)
    return Verdict(guard, is_caught, said, time.monotonic() - began)


def _ask_tests(tree: Path, guard: Guard) -> tuple[bool, str]:
    limit = HANG_SECONDS if guard.may_hang else LIMIT_SECONDS
    ended = run_tests(tree, guard.tests, limit_seconds=limit)
    if ended.code is None:
        return guard.may_hang, "hangs"
    if ended.code == 0:
        return False, "no test misses it"
    failed = _FAILED.search(ended.said)
    if ended.code != 1 or failed is None:
        return False, f"the tests do not run without it:\n{ended.said[-2_000:]}"
    if (failed["error"] or "").startswith(NO_PROOF):
        return False, f"the code does not run without it: {failed['error']}"
    return True, failed["test"]


def _ask_simulation(tree: Path, seeds: int) -> tuple[bool, str]:
    for seed in range(1, seeds + 1):
        order = ("-m", "tests.controlplane.simulation", "--steps", str(SIMULATED_STEPS), "--seed", str(seed))
        path = f"{tree}:{tree / 'plugins/module_utils'}"
        try:
            ended = subprocess.run(
                [sys.executable, *order],
                cwd=tree,
                env={**os.environ, "PYTHONPATH": path},
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return False, f"hangs in the simulation's seed {seed}"
        if ended.returncode == 1 and "repeat with" in ended.stderr:
            return True, f"simulation, seed {seed}: {ended.stderr.splitlines()[0]}"
        if ended.returncode != 0:
            return False, f"the simulation does not run without it:\n{ended.stderr[-2_000:]}"
    return False, f"no test misses it, nor do {seeds} seeds of the simulation"
