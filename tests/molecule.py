# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios, two at a time, from a checkout of any name: python -m tests.molecule [--all | NAME ...].

Each has a lab of its own, and waits half of its time. What it prints is shown when it has ended, in one piece.

What the last task that failed said is said again at the very end: that end is what a CI shows.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from lab import Lab
from lab.collection import linked_under
from tests.two_at_a_time import AT_ONCE, ROOT, shown

SCENARIOS = ROOT / "extensions/molecule"

NIGHTLY = ("upgrade",)
"""Scenarios that run by name or with --all only."""

SHOWN = 40
"""Lines of a failure that are said again."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run(scenario: str, collections: Path) -> list[str] | None:
    """Run one scenario with this checkout as the collection; its lab is removed whatever comes.

    Returns None when it passed, else what was said about the last failure.
    """
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
        "K8S_AUTH_KUBECONFIG": str(Lab(scenario.replace("_", "-")).kubeconfig),
        "MOLECULE_GLOB": f"{SCENARIOS}/*/molecule.yml",
    }
    command = [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario, "--destroy", "always"]
    code, printed = shown(command, environment)
    said = [_COLOUR.sub("", line).rstrip() for line in printed.splitlines()]
    return None if code == 0 else last_failure(said)


def last_failure(said: list[str]) -> list[str]:
    """Return what stands around the last task that failed (those before were rescued); the end when no task did."""
    found = [number for number, line in enumerate(said) if re.search(r"\b(fatal|failed): \[|ERROR!", line)]
    return said[max(0, found[-1] - 5) :][:SHOWN] if found else said[-SHOWN:]


def main() -> int:
    """Run the named scenarios, or all; the exit code says whether all passed."""
    every = sorted(path.parent.name for path in SCENARIOS.glob("*/molecule.yml"))
    names = every if sys.argv[1:] == ["--all"] else sys.argv[1:] or [name for name in every if name not in NIGHTLY]
    with tempfile.TemporaryDirectory() as directory, ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        failures = pool.map(partial(run, collections=linked_under(Path(directory))), names)
        failed = {name: failure for name, failure in zip(names, failures, strict=True) if failure is not None}
    for name, failure in failed.items():
        print(f"molecule: {name} failed:", *failure, sep="\n  ")
    print(f"molecule: {len(names) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
