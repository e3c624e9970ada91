# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The decision table for one machine."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import decide
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.decide import Plan
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.request import MigrationRequest
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import a_guest, a_node

ANYWHERE = MigrationRequest("default", "web")
TO_2 = MigrationRequest("default", "web", target_node="node-2")
FAST = MigrationRequest("default", "web", node_selector={"disks": "fast"})
FROM_1 = MigrationRequest("default", "web", from_node="node-1")
CANCELLED = MigrationRequest("default", "web", state="absent")


def migration(phase: str = "", node: str = "", *, going: bool = False, **labels: str) -> dict[str, Any]:
    metadata = {"name": "m", "uid": "u", **({"deletionTimestamp": "now"} if going else {})}
    state = {"targetNode": node} if node else {}
    return {
        "metadata": metadata,
        "spec": {"addedNodeSelector": labels},
        "status": {"phase": phase, "migrationState": state},
    }


def on(node: str) -> dict[str, Any]:
    return a_guest("web", node)


@pytest.mark.parametrize(
    ("migration_request", "vmi", "migrations", "place", "deed"),
    [
        pytest.param(ANYWHERE, on("node-1"), [], None, decide.CREATE, id="anywhere"),
        pytest.param(ANYWHERE, on("node-1"), [migration("Succeeded")], None, decide.CREATE, id="again"),
        pytest.param(ANYWHERE, on("node-1"), [migration("Failed")], None, decide.CREATE, id="after a failure"),
        pytest.param(ANYWHERE, on("node-1"), [migration()], None, decide.JOIN, id="under way"),
        pytest.param(ANYWHERE, on("node-1"), [migration("Running", going=True)], None, decide.OUTWAIT, id="cancelled"),
        pytest.param(TO_2, on("node-2"), [], a_node("node-2"), decide.NOTHING, id="there"),
        pytest.param(TO_2, on("node-1"), [], a_node("node-2"), decide.CREATE, id="not there"),
        pytest.param(TO_2, on("node-1"), [migration("Running", "node-2")], a_node("node-2"), decide.JOIN, id="going"),
        pytest.param(
            TO_2, on("node-1"), [migration(**{decide.HOSTNAME: "node-2"})], None, decide.JOIN, id="going, not yet seen"
        ),
        pytest.param(FAST, on("node-1"), [], a_node("node-1", disks="fast"), decide.NOTHING, id="has the labels"),
        pytest.param(FAST, on("node-1"), [], a_node("node-1"), decide.CREATE, id="has them not"),
        pytest.param(FAST, on("node-1"), [migration(disks="fast", a="b")], a_node("node-1"), decide.JOIN, id="to such"),
        pytest.param(FROM_1, on("node-1"), [], None, decide.CREATE, id="on it"),
        pytest.param(FROM_1, on("node-2"), [], None, decide.NOTHING, id="not on it"),
        pytest.param(FROM_1, None, [], None, decide.NOTHING, id="on none"),
        pytest.param(FROM_1, on("node-1"), [migration("Running")], None, decide.JOIN, id="leaving it"),
        pytest.param(FROM_1, a_guest("web", phase="Failed"), [], None, decide.NOTHING, id="over on it"),
        pytest.param(CANCELLED, on("node-1"), [migration("Running")], None, decide.CANCEL, id="cancel"),
        pytest.param(CANCELLED, on("node-1"), [migration("Succeeded")], None, decide.NOTHING, id="nothing to cancel"),
        pytest.param(CANCELLED, None, [migration("Running")], None, decide.CANCEL, id="cancel what has no instance"),
        pytest.param(
            CANCELLED._replace(from_node="node-2"), on("node-1"), [migration()], None, decide.NOTHING, id="not there"
        ),
    ],
)
def test_the_decision(
    migration_request: MigrationRequest, vmi: Any, migrations: list[Any], place: Any, deed: str
) -> None:
    assert decide.decide(migration_request, vmi, migrations, place).action == deed


def test_a_migration_to_another_node_is_an_error() -> None:
    for other in (migration("Running", "node-3"), migration(**{decide.HOSTNAME: "node-3"}), migration()):
        with pytest.raises(VirtError, match="wait for it, or cancel it first"):
            decide.decide(TO_2, on("node-2"), [other], a_node("node-2"))


def test_a_machine_without_a_live_migratable_condition_is_left_to_the_server() -> None:
    vmi = on("node-1")
    vmi["status"]["conditions"] = []
    assert decide.decide(ANYWHERE, vmi, []) == Plan(decide.CREATE)


def test_an_unmovable_machine_on_the_wanted_node_needs_no_action() -> None:
    vmi = on("node-2")
    vmi["status"]["conditions"] = [{"type": "LiveMigratable", "status": "False"}]
    assert decide.decide(TO_2, vmi, [], a_node("node-2")) == Plan(decide.NOTHING)
