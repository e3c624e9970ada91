# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Checks the variables of `make quickstart` before anything is created.

Runs on the system's Python, before anything else is installed: standard library only, no imports from this repository.
"""

from __future__ import annotations

import os
import re
import sys

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def find_problem(namespace: str) -> str | None:
    """Return what is wrong with the namespace's name, None if Kubernetes accepts it."""
    if _LABEL.fullmatch(namespace):
        return None
    return (
        f"NAMESPACE={namespace}: a namespace's name has 1 to 63 lower-case letters, digits and dashes,"
        " with a letter or a digit at both ends"
    )


def main() -> int:
    """Check make's variables. They are in the environment, where the shell does not expand them."""
    problem = find_problem(os.environ.get("NAMESPACE", "default"))
    if problem:
        print(f"quickstart: error: {problem}", file=sys.stderr)
    return 2 if problem else 0


if __name__ == "__main__":
    sys.exit(main())
