# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between versions of ansible-core, on one of the others, another with each commit: `nox -s in_turn`.

Each alone takes a minute, all of them (`nox -s sanity_all`) too long for every run. With --ansible-core 2.17 that one.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence

from tests import environments

TESTS = ("compile", "import", "validate-modules")
"""Of ansible-test, those whose answer depends on the version; the others judge the same text alike."""
PLAYS = ("tests/unit/roles/test_variables.py", "tests/unit/playbooks")
"""Tests that have Ansible itself template, loop and refuse: by the Python that ANSIBLE_PYTHON names."""


def chosen(versions: Sequence[str], commit: str) -> str:
    """Return the version whose turn it is at a commit (its id): the same at each try, any of them sooner or later."""
    return versions[int(commit, 16) % len(versions)]


def main(arguments: list[str]) -> int:
    """Try one version; return 1 when something does not hold there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ansible-core", choices=environments.ansible_cores())
    version = parser.parse_args(arguments).ansible_core or chosen(_possible(), _commit())
    print(f"in_turn: ansible-core {version}", flush=True)
    python = environments.make(f"ansible-core-{version}") / "bin/python"
    sanity = [str(python), "-m", "tests.sanity.run_sanity", *(word for test in TESTS for word in ("--test", test))]
    plays = [sys.executable, "-m", "pytest", "-q", "-n", "2", *PLAYS]
    environment = {**os.environ, "ANSIBLE_PYTHON": str(python)}
    codes = [
        subprocess.run(item, cwd=environments.ROOT, env=environment, check=False).returncode for item in (sanity, plays)
    ]
    return int(any(codes))


def _possible() -> list[str]:
    """Return the versions for which there is a Python; say which are left out."""
    versions = environments.ansible_cores()
    possible = [version for version in versions if environments.has_interpreter(f"ansible-core-{version}")]
    for version in sorted(set(versions) - set(possible)):
        print(f"in_turn: no Python here for ansible-core {version}", flush=True)
    return possible


def _commit() -> str:
    command = ["git", "rev-parse", "HEAD"]
    return subprocess.run(command, cwd=environments.ROOT, capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
