# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on a copy of this checkout, without Docker: python -m tests.sanity.run_sanity [...].

By default: what Ansible loads, with the ansible-core that the project pins, without the tests in COVERED. With
--ansible-core 2.17 (or `all`): the whole checkout, all tests, and PLAYS, with that version (or each other supported
one) in an environment of its own (tests/environments.py). Other arguments go to ansible-test, e.g. --test pep8.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import environments

ANSIBLE_PATHS = (
    "changelogs/", "extensions/eda/", "galaxy.yml", "meta/", "playbooks/", "plugins/", "roles/", "tests/config.yml"
)  # fmt: skip
"""Prefixes of the paths that Ansible loads. Ruff and mypy check the others."""
COVERED = {
    "ansible-doc": "nox -s docs",
    "changelog": "antsibull-changelog lint",
    "compile": "ruff, and the test import",
    "pep8": "ruff",
    "pylint": "ruff",
    "yamllint": "yamllint, and antsibull-docs for the documentation in plugins",
}
"""Tests of ansible-test that a faster check replaces by day. They run at night."""
PLAYS = ("tests/unit/roles/test_variables.py", "tests/unit/playbooks/test_ends.py")
"""Tests in which Ansible templates, loops and refuses, with the Python that ANSIBLE_PYTHON names."""


def main(arguments: list[str]) -> int:
    """Copy, test; return ansible-test's exit code."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("--ansible-core", choices=["all", *environments.ansible_cores()])
    parser.add_argument("--whole", action="store_true")
    chosen, rest = parser.parse_known_args(arguments)
    if chosen.ansible_core:
        versions = possible_versions() if chosen.ansible_core == "all" else [chosen.ansible_core]
        return max([_run_version(version, rest) for version in versions])

    from tests import ansible_test  # noqa: PLC0415  # only where ansible-core is

    skipped = [] if rest or chosen.whole else [word for test in COVERED for word in ("--skip-test", test)]
    ansible_test.prepare_pip()
    with tempfile.TemporaryDirectory(prefix="virtops-sanity-") as scratch:
        collection = ansible_test.copy_checkout(Path(scratch), ("",) if chosen.whole else ANSIBLE_PATHS)
        return ansible_test.run(collection, "sanity", *skipped, *rest).returncode


def possible_versions() -> list[str]:
    """Return the versions of ansible-core that a Python here can run; print the others."""
    versions = environments.ansible_cores()
    possible = [version for version in versions if environments.has_interpreter(f"ansible-core-{version}")]
    for version in sorted(set(versions) - set(possible)):
        print(f"sanity: no Python here for ansible-core {version}", flush=True)
    return possible


def _run_version(version: str, arguments: list[str]) -> int:
    """Run sanity and PLAYS with another ansible-core; return 1 if one of them fails."""
    print(f"sanity: ansible-core {version}", flush=True)
    python = environments.make(f"ansible-core-{version}") / "bin/python"
    sanity = [str(python), "-m", "tests.sanity.run_sanity", "--whole", *arguments]
    plays = [sys.executable, "-m", "pytest", "-q", "-n", "2", *PLAYS]
    environment = {**os.environ, "ANSIBLE_PYTHON": str(python)}
    commands = (sanity,) if arguments else (sanity, plays)
    codes = [
        subprocess.run(command, cwd=environments.ROOT, env=environment, check=False).returncode for command in commands
    ]
    return int(any(codes))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
