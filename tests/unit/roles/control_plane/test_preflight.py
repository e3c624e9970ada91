# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What role control_plane refuses before it writes anything, and that it says why. The conditions are plain Jinja."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
EMPTY: dict[str, Any] = {"owner": "none", "evidence": "", "version": None, "namespace": None, "namespace_owner": "none"}


def refusal(found: dict[str, Any] | None = None, **options: Any) -> str | None:
    """Return what the first assertion that does not hold says; None when all hold."""
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.tests["version"] = lambda value, other, _operator: value == other  # Ansible's
    defaults = yaml.safe_load((ROLE / "defaults/main.yml").read_text())
    known = {"__control_plane_version": "0.1.0", "__control_plane_found": {**EMPTY, **(found or {})}}
    variables = {**defaults, **known, **options}

    def holds(conditions: str | list[str]) -> bool:
        each = [conditions] if isinstance(conditions, str) else conditions
        return all(environment.compile_expression(one, undefined_to_none=False)(**variables) for one in each)

    for task in yaml.safe_load((ROLE / "tasks/preflight.yml").read_text()):
        check = task.get("ansible.builtin.assert")
        if check and holds(task.get("when", [])) and not holds(check["that"]):
            return environment.from_string(check["fail_msg"]).render(variables)
    return None


def test_an_empty_cluster_is_taken() -> None:
    assert refusal() is None


def test_a_namespace_of_our_own_is_taken_and_so_is_one_that_was_handed_over() -> None:
    assert refusal({"namespace_owner": "ours"}) is None


def test_a_namespace_that_somebody_else_made_is_refused_and_what_can_be_done_is_said() -> None:
    said = refusal({"namespace_owner": "other"}, control_plane_namespace="production")

    assert said is not None
    assert "Namespace production exists" in said
    assert "another name" in said
    assert "kubectl label --overwrite namespace production app.kubernetes.io/managed-by=virtops.kubevirt" in said
    assert "privileged" in said
    assert "removed" in said


def test_removal_looks_at_each_object_and_needs_no_refusal() -> None:
    assert refusal({"namespace_owner": "other"}, control_plane_state="absent") is None
