# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios from a checkout of any name: python -m tests.molecule [--all | NAME ...].

The scenarios of a group run one after the other on one lab; two groups run at a time. The output of a scenario is
printed when it has ended. Failures are repeated at the very end, because a CI shows the end of a log.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from lab import Lab
from lab.collection import linked_under
from tests.two_at_a_time import AT_ONCE, ROOT, shown

SCENARIOS = ROOT / "extensions/molecule"

GROUPS = {
    "molecule-roles": ("launcher_image", "node_kvm", "control_plane", "virtual_machine"),
    "molecule-drain": ("drain_node",),
    "molecule-changes": ("control_plane_changes",),
    "molecule-default": ("default",),
    "molecule-upgrade": ("upgrade",),
}
"""Lab -> the scenarios that run on it, in order."""
NIGHTLY = ("control_plane_changes", "default", "upgrade")
"""Scenarios that run by name or with --all only."""

SHOWN = 40
"""Lines of a failure that are printed again."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run_group(name: str, scenarios: Iterable[str]) -> dict[str, list[str]]:
    """Run scenarios on one lab, until one fails; the lab is removed in any case.

    Returns the failed scenario with the output of its last failure; empty when all passed.
    """
    lab = Lab(name)
    with tempfile.TemporaryDirectory(prefix="virtops-molecule-") as directory:
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "ANSIBLE_COLLECTIONS_PATH": str(linked_under(Path(directory))),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
            "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
            "MOLECULE_GLOB": f"{SCENARIOS}/*/molecule.yml",
            "MOLECULE_SHARED_LAB": name,
        }
        lab.down()
        try:
            for scenario in scenarios:
                command = [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario, "--destroy", "always"]
                code, output = shown(command, environment)
                if code:
                    return {scenario: last_failure([_COLOUR.sub("", line).rstrip() for line in output.splitlines()])}
        finally:
            lab.down()
    return {}


def last_failure(lines: list[str]) -> list[str]:
    """Return the lines around the last failed task (earlier ones were rescued), or the last lines without one."""
    failures = [number for number, line in enumerate(lines) if re.search(r"\b(fatal|failed): \[|ERROR!", line)]
    return lines[max(0, failures[-1] - 5) :][:SHOWN] if failures else lines[-SHOWN:]


def main() -> int:
    """Run the named scenarios, or all; the exit code is 0 when all passed."""
    every = [scenario for scenarios in GROUPS.values() for scenario in scenarios]
    names = every if sys.argv[1:] == ["--all"] else sys.argv[1:] or [name for name in every if name not in NIGHTLY]
    chosen = {lab: [name for name in scenarios if name in names] for lab, scenarios in GROUPS.items()}
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        groups = [pool.submit(run_group, lab, scenarios) for lab, scenarios in chosen.items() if scenarios]
        failed = {name: failure for group in groups for name, failure in group.result().items()}
    for name, failure in failed.items():
        print(f"molecule: {name} failed:", *failure, sep="\n  ")
    print(f"molecule: {len(names)} scenarios, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
