# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a run of role control_plane that changes nothing leaves out."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, load, role_variables

ROLE = ROLES / "control_plane"
VARIABLES = role_variables("control_plane")
TASKS = {task["name"]: task for task in load(ROLE / "tasks/install.yml")}
SERVES, STARTS = ({"name": name, "missing": text} for name, text in (("virt-api", ""), ("virt-node", "1 of 2 ready")))


@pytest.mark.parametrize(
    ("components", "is_changed", "is_wanted", "is_awaited"),
    [
        pytest.param([SERVES], False, True, False, id="nothing changed, and all served before"),
        pytest.param([SERVES], True, True, True, id="changed"),
        pytest.param([SERVES, STARTS], False, True, True, id="one did not serve"),
        pytest.param([], False, True, True, id="none was found"),
        pytest.param([STARTS], True, "false", False, id="without control_plane_wait"),
    ],
)
def test_components_are_awaited_unless_all_serve_already(
    components: list[dict[str, Any]], is_changed: bool, is_wanted: object, is_awaited: bool
) -> None:
    variables = {
        "__control_plane_found": {"components": components},
        "__control_plane_installed": {"changed": is_changed},
        "control_plane_wait": is_wanted,
    }

    assert Host(ROLE, VARIABLES | variables).holds(TASKS["Wait until the components serve"]["when"]) is is_awaited
