# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which Python runs the probe by default."""

from __future__ import annotations

import re
from pathlib import Path

import jinja2
import pytest
import yaml

DEFAULTS = yaml.safe_load((Path(__file__).resolve().parents[4] / "roles/node_kvm/defaults/main.yml").read_text())


@pytest.mark.parametrize(
    ("variables", "python"),
    [
        ({}, "python3"),
        ({"ansible_python_interpreter": "/opt/python/bin/python3.11"}, "/opt/python/bin/python3.11"),
        *(({"ansible_python_interpreter": how}, "python3") for how in ("auto", "auto_silent", "auto_legacy_silent")),
        (
            {"ansible_python_interpreter": "auto_silent", "discovered_interpreter_python": "/usr/bin/python3.11"},
            "/usr/bin/python3.11",
        ),
    ],
)
def test_an_interpreter_discovery_mode_is_not_taken_for_a_path(variables: dict[str, str], python: str) -> None:
    environment = jinja2.Environment()
    environment.tests["match"] = lambda value, pattern: re.match(pattern, value) is not None
    template = DEFAULTS["node_kvm_python"].strip()
    facts = {"ansible_facts": {k: v for k, v in variables.items() if k.startswith("discovered")}}

    assert environment.from_string(template).render(variables, **facts).strip() == python
