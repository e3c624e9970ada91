# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run ansible-test sanity on a copy of this checkout, without Docker: python -m tests.sanity.run_sanity [...].

With --ansible-core 2.17 that version runs, in an environment of its own (tests/environments.py), with `all` every one
that has such an environment; without, the one that the project pins. All other arguments are handed to ansible-test,
e.g. --test pep8.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import environments


def main(arguments: list[str]) -> int:
    """Copy, test; return ansible-test's verdict."""
    parser = argparse.ArgumentParser(description=__doc__, add_help=False, allow_abbrev=False)
    parser.add_argument("--ansible-core", choices=["all", *environments.ansible_cores()])
    chosen, rest = parser.parse_known_args(arguments)
    if chosen.ansible_core:
        versions = environments.ansible_cores() if chosen.ansible_core == "all" else [chosen.ansible_core]
        return max([_elsewhere(version, rest) for version in versions])

    from tests import ansible_test  # noqa: PLC0415  # only where ansible-core is

    ansible_test.prepare_pip()
    with tempfile.TemporaryDirectory(prefix="virtops-sanity-") as scratch:
        collection = ansible_test.copy_checkout(Path(scratch))
        return ansible_test.run(collection, "sanity", *rest).returncode


def _elsewhere(version: str, arguments: list[str]) -> int:
    """Run this program in the environment of another ansible-core; return the verdict."""
    print(f"sanity: ansible-core {version}", flush=True)
    python = environments.make(f"ansible-core-{version}") / "bin/python"
    command = [str(python), "-m", "tests.sanity.run_sanity", *arguments]
    return subprocess.run(command, cwd=environments.ROOT, check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
