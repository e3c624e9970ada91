# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which instance gets a migration because its guest has to leave the node, as a table."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import EVACUATION_MIGRATION

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.api.objects.node import DRAIN, Node, NodeSpec, Taint
from controlplane.api.timestamps import format_timestamp
from controlplane.virt_controller.evacuation.decide import decide, derive_back_off
from controlplane.virt_controller.evacuation.world import World
from tests.controlplane.decision_table import steps
from tests.controlplane.virt_controller.builders import NOW, a_condition
from tests.controlplane.virt_controller.migration.worlds import BEGUN, LEFT, a_migration, an_instance

MIGRATABLE = [a_condition("LiveMigratable", "True")]
STRATEGY = {"evictionStrategy": "LiveMigrate"}
USUAL = {"conditions": MIGRATABLE, "evacuationNodeName": "node-1", "spec": STRATEGY}
CREATE = "CreateMigration"


def a_world(changes: dict[str, Any], *migrations: VirtualMachineInstanceMigration, **facts: Any) -> World:
    return World(vmi=an_instance(**{**USUAL, **changes}), migrations=migrations, **{"now": NOW, **facts})


def evacuation(number: int, phase: str = "Failed", ago: float = 0.0) -> VirtualMachineInstanceMigration:
    name = f"kubevirt-evacuation-bbbbbbbb-{number}"
    notes = {EVACUATION_MIGRATION: "node-1"}
    return a_migration(phase, uid=name, name=name, annotations=notes, entered=format_timestamp(NOW - ago))


def tainted(effect: str, key: str = DRAIN) -> Node:
    return Node(spec=NodeSpec(taints=(Taint(key=key, effect=effect),)))


OTHER_KEY = KubeVirtConfiguration(migrations=MigrationConfiguration(node_drain_taint_key="example.com/out"))


TABLE: dict[str, tuple[World, str]] = {
    "evacuated": (a_world({}), CREATE),
    "evacuated, if possible": (a_world({"spec": {"evictionStrategy": "LiveMigrateIfPossible"}}), CREATE),
    "evacuated, strategy by the configuration": (
        a_world({"spec": {}}, configuration=KubeVirtConfiguration(eviction_strategy="LiveMigrate")),
        CREATE,
    ),
    "evacuated, no strategy": (a_world({"spec": {}}), "-"),
    "evacuated, strategy External": (a_world({"spec": {"evictionStrategy": "External"}}), "-"),
    "evacuated, not migratable": (a_world({"conditions": [a_condition("LiveMigratable", "False")]}), "-"),
    "evacuated, without a condition LiveMigratable": (a_world({"conditions": []}), "-"),
    "evacuated from a former node": (a_world({"evacuationNodeName": "node-2"}), "-"),
    "not evacuated": (a_world({"evacuationNodeName": ""}), "-"),
    "its node is drained": (a_world({"evacuationNodeName": ""}, node=tainted("NoSchedule")), CREATE),
    "its node has the taint with another effect": (
        a_world({"evacuationNodeName": ""}, node=tainted("NoExecute")),
        "-",
    ),
    "its node has the configured taint": (
        a_world({"evacuationNodeName": ""}, node=tainted("NoSchedule", "example.com/out"), configuration=OTHER_KEY),
        CREATE,
    ),
    "its node has the usual taint, another is configured": (
        a_world({"evacuationNodeName": ""}, node=tainted("NoSchedule"), configuration=OTHER_KEY),
        "-",
    ),
    "evacuated, not running": (a_world({"phase": "Scheduled"}), "-"),
    "evacuated, deleting": (a_world({"deleting": True}), "-"),
    "evacuated, two Pods": (a_world({"activePods": {"a": "node-1", "b": "node-2"}}), "-"),
    "evacuated, a migration is unfinished": (a_world({}, a_migration("Running")), "-"),
    "evacuated, under way by its status only": (a_world({"moving": BEGUN}), "-"),
    "evacuated, a former migration": (
        a_world({"moving": {**LEFT, "sourcePodUID": "before"}}, a_migration("Succeeded")),
        CREATE,
    ),
    "evacuated, has left the node": (a_world({"moving": LEFT}), "-"),
    "evacuated, a user's migration failed: no back-off": (a_world({}, a_migration("Failed")), CREATE),
    "evacuated, ours failed 19 s ago": (a_world({}, evacuation(1, ago=19)), "-"),
    "evacuated, ours failed 20 s ago": (a_world({}, evacuation(1, ago=20)), CREATE),
    "two failed": (a_world({}, evacuation(1, ago=90), evacuation(2, ago=39)), "-"),
    "two failed 40 s ago": (a_world({}, evacuation(1, ago=90), evacuation(2, ago=40)), CREATE),
    "one failed after a success": (
        a_world({}, evacuation(1, ago=90), evacuation(2, "Succeeded", 80), evacuation(3, ago=20)),
        CREATE,
    ),
    "five failed": (a_world({}, *(evacuation(number, ago=319) for number in range(5, 10))), "-"),
    "five failed 320 s ago": (a_world({}, *(evacuation(number, ago=320) for number in range(5, 10))), CREATE),
}


@pytest.mark.parametrize("case", TABLE)
def test_which_vmis_get_a_migration(case: str) -> None:
    world, expected = TABLE[case]
    plan = decide(world)
    assert steps(plan) == expected
    assert (derive_back_off(world) is not None) == (plan.requeue_after is not None)


def test_a_back_off_is_reported_once_per_failure() -> None:
    world = a_world({}, evacuation(1, ago=5))
    back_off = derive_back_off(world)
    assert back_off is not None
    assert back_off.failures == 1
    assert derive_back_off(a_world({}, evacuation(1, ago=5), announced=back_off.after)) is None
    assert decide(world).requeue_after == 15


def test_a_wrong_clock_delays_by_at_most_the_back_off() -> None:
    assert a_world({}, evacuation(1, ago=-15)).waits_for == 20
    assert a_world({}, evacuation(1, ago=-21)).waits_for == 0


def test_names_are_numbered_from_the_existing_migrations() -> None:
    assert a_world({}).next_name == "kubevirt-evacuation-bbbbbbbb-1"
    assert a_world({}, evacuation(3), evacuation(12), a_migration()).next_name == "kubevirt-evacuation-bbbbbbbb-13"


def test_an_eviction_by_the_descheduler_has_a_lower_priority() -> None:
    world = a_world({})
    assert world.priority == "system-critical"
    world.vmi.metadata.annotations["kubevirt.io/eviction-source"] = "descheduler"
    assert world.priority == "system-maintenance"
