# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios from a checkout of any name: python -m tests.molecule [--all] [NAME ...].

--all runs the nightly scenarios as well, and the side effects of each scenario after its test.

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
    "molecule-default": ("default",),
    "molecule-upgrade": ("upgrade",),
}
"""Lab -> the scenarios that run on it, in order."""
NIGHTLY = ("default", "drain_node", "upgrade")
"""Scenarios that run by name or with --all only."""

MOLECULE = (sys.executable, "-m", "molecule")
SHOWN = 40
"""Lines of a failure that are printed again."""
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def run_group(name: str, scenarios: Iterable[str], *, side_effects: bool) -> dict[str, list[str]]:
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
                has_side_effect = side_effects and (SCENARIOS / scenario / "side_effect.yml").exists()
                steps = (["test", "--destroy", "never"], ["side-effect"]) if has_side_effect else (["test"],)
                for step in steps:
                    code, printed = shown([*MOLECULE, *step, "--scenario-name", scenario], environment)
                    if code:
                        return {scenario: last_failure(printed)}
        finally:
            lab.down()
    return {}


def last_failure(printed: str) -> list[str]:
    """Return the lines around the last failed task (earlier ones were rescued); the end when no task failed."""
    lines = [_COLOUR.sub("", line).rstrip() for line in printed.splitlines()]
    failed = [number for number, line in enumerate(lines) if re.search(r"\b(fatal|failed): \[|ERROR!", line)]
    return lines[max(0, failed[-1] - 5) :][:SHOWN] if failed else lines[-SHOWN:]


def main() -> int:
    """Run the named scenarios, or all; the exit code is 0 when all passed."""
    arguments = sys.argv[1:]
    side_effects = "--all" in arguments
    every = [scenario for scenarios in GROUPS.values() for scenario in scenarios]
    by_default = [name for name in every if side_effects or name not in NIGHTLY]
    names = [argument for argument in arguments if argument != "--all"] or by_default
    chosen = {lab: [name for name in scenarios if name in names] for lab, scenarios in GROUPS.items()}
    with ThreadPoolExecutor(max_workers=AT_ONCE) as pool:
        groups = [
            pool.submit(run_group, lab, scenarios, side_effects=side_effects)
            for lab, scenarios in chosen.items()
            if scenarios
        ]
        failed = {name: failure for group in groups for name, failure in group.result().items()}
    for name, failure in failed.items():
        print(f"molecule: {name} failed:", *failure, sep="\n  ")
    print(f"molecule: {len(names)} scenarios, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
