# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role control_plane deletes what it made, and nothing that only has the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
OBJECTS = "virtops.kubevirt.kubevirt_objects"
USERS = "{{ __control_plane_found.workload_objects }}"
"""Machines, which users made; they go if control_plane_remove_with_workloads says so."""


def deletions() -> list[Any]:
    return [
        pytest.param(task[OBJECTS], id=task["name"])
        for path in sorted((ROLE / "tasks").glob("*.yml"))
        for task in yaml.safe_load(path.read_text())
        if task.get(OBJECTS, {}).get("state") == "absent" and task[OBJECTS]["definitions"] != USERS
    ]


@pytest.mark.parametrize("options", deletions())
def test_only_what_carries_the_roles_marks_is_deleted(options: dict[str, Any]) -> None:
    assert options["only_with_labels"] == "{{ __control_plane_marks }}"


def test_deletions_are_found() -> None:
    assert len(deletions()) == 2


def test_the_marks_are_on_all_that_is_applied_and_outlive_an_upgrade() -> None:
    known = yaml.safe_load((ROLE / "vars/main.yml").read_text())

    assert known["__control_plane_marks"]["app.kubernetes.io/managed-by"] == "virtops.kubevirt"
    assert "app.kubernetes.io/version" not in known["__control_plane_marks"]
    assert known["__control_plane_labels"].startswith("{{ __control_plane_marks | combine(")
    for name in ("install.yml", "configure.yml"):
        for task in yaml.safe_load((ROLE / "tasks" / name).read_text()):
            options = task.get(OBJECTS)
            if options is not None and options.get("state") != "absent":
                assert options["labels"] == "{{ __control_plane_labels }}"


def test_handing_a_namespace_over_does_not_let_it_be_deleted_before_the_role_took_it() -> None:
    """A removal where nothing was ever installed: managed-by alone says that the role may, not that it did."""
    known = yaml.safe_load((ROLE / "vars/main.yml").read_text())

    assert len(known["__control_plane_marks"]) > 1
