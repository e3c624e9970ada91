# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is true or false in a role may come as text: `-e x=false` is the word "false", which a template takes for true.

A role's argument spec checks such a value and does not change it. So every use says `| bool`, or hands the value to a
module, whose own spec reads it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"


def booleans(role: Path) -> list[str]:
    """Name a role's options that are true or false."""
    spec = yaml.safe_load((role / "meta/argument_specs.yml").read_text())
    return [
        name
        for entry in spec["argument_specs"].values()
        for name, option in entry.get("options", {}).items()
        if option.get("type") == "bool"
    ]


def uses(role: Path, name: str) -> list[str]:
    """Return the lines in which an option is judged: not prose, not a module's argument, not the table of options."""
    found = []
    for path in sorted(item for part in ("tasks", "templates", "vars") for item in role.glob(f"{part}/*")):
        for line in path.read_text().splitlines():
            is_prose = re.search(rf"\b{name} to (true|false)\b", line)
            is_argument = re.fullmatch(rf'\s*\w+: "{{{{ {name} }}}}"', line)
            is_entry = line.strip() == f"{name}: {{type: bool}}"
            if re.search(rf"\b{name}\b", line) and not is_prose and not is_argument and not is_entry:
                found.append(line.strip())
    return found


CASES = [(role, name) for role in sorted(ROLES.iterdir()) for name in booleans(role)]


@pytest.mark.parametrize(("role", "name"), CASES, ids=[name for _unused, name in CASES])
def test_a_word_is_never_taken_for_true(role: Path, name: str) -> None:
    for line in uses(role, name):
        assert re.search(rf"\b{name} \| bool\b", line), line


def test_an_option_that_is_judged_is_found() -> None:
    assert uses(ROLES / "control_plane", "control_plane_remove_with_workloads")
