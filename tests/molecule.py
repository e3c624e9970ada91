# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run Molecule's scenarios, one after the other, from a checkout of any name: python -m tests.molecule [NAME ...]."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from lab import Lab
from lab.collection import linked_under

ROOT = Path(__file__).resolve().parent.parent
SCENARIOS = ROOT / "extensions/molecule"


def run(scenario: str, collections: Path) -> bool:
    """Run one scenario with this checkout as the collection; its lab is removed whatever comes."""
    environment = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "ANSIBLE_COLLECTIONS_PATH": str(collections),
        "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
        "K8S_AUTH_KUBECONFIG": str(Lab(scenario.replace("_", "-")).kubeconfig),
        "MOLECULE_GLOB": f"{SCENARIOS}/*/molecule.yml",
    }
    command = [sys.executable, "-m", "molecule", "test", "--scenario-name", scenario, "--destroy", "always"]
    return subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode == 0


def main() -> int:
    """Run the named scenarios, or all; the exit code says whether all passed."""
    names = sys.argv[1:] or sorted(path.parent.name for path in SCENARIOS.glob("*/molecule.yml"))
    with tempfile.TemporaryDirectory() as directory:
        collections = linked_under(Path(directory))
        failed = [name for name in names if not run(name, collections)]
    print(f"molecule: {len(names) - len(failed)} passed, {len(failed)} failed {' '.join(failed)}".rstrip())
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
