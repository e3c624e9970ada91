# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Booleans of a role may be texts: `-e x=false` is the text "false", which is true in a template.

The argument spec of a role checks such a value without converting it. So every use has `| bool`, or passes the value to
a module, whose own spec converts it.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROLES = Path(__file__).resolve().parents[3] / "roles"


def booleans(role: Path) -> list[str]:
    """Name the boolean options of a role."""
    spec = yaml.safe_load((role / "meta/argument_specs.yml").read_text())
    return [
        name
        for entry in spec["argument_specs"].values()
        for name, option in entry.get("options", {}).items()
        if option.get("type") == "bool"
    ]


def uses(role: Path, name: str) -> list[str]:
    """Return the lines that test an option: no prose, no argument of a module, no table of options."""
    results = []
    for path in sorted(item for part in ("tasks", "templates", "vars") for item in role.glob(f"{part}/*")):
        for line in path.read_text().splitlines():
            is_prose = line.lstrip().startswith("#") or re.search(rf"\b{name} to (true|false)\b", line)
            is_argument = re.fullmatch(rf'\s*\w+: "{{{{ {name} }}}}"', line)
            is_entry = line.strip() == f"{name}: {{type: bool}}"
            if re.search(rf"\b{name}\b", line) and not is_prose and not is_argument and not is_entry:
                results.append(line.strip())
    return results


CASES = [(role, name) for role in sorted(ROLES.iterdir()) for name in booleans(role)]


@pytest.mark.parametrize(("role", "name"), CASES, ids=[name for _unused, name in CASES])
def test_every_test_of_a_boolean_converts_it(role: Path, name: str) -> None:
    for line in uses(role, name):
        assert re.search(rf"\b{name} \| bool\b", line), line


def test_a_line_that_tests_an_option_is_detected() -> None:
    assert uses(ROLES / "control_plane", "control_plane_remove_with_workloads")
