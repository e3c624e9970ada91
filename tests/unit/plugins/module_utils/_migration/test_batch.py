# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several machines in one task: limited parallelism, one result."""

from __future__ import annotations

import threading

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_migrations
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import Migrate, a_guest
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_migrations import MIGRATIONS

BOTH = [{"name": "web"}, {"name": "database"}]


def test_the_result_has_each_object_and_a_summary(migrate: Migrate) -> None:
    result = migrate(vms=BOTH, target_node="node-3", diff=True)
    assert [(item["name"], item["node"], item["result"]["spec"]["vmiName"]) for item in result["results"]] == [
        ("web", "node-3", "web"),
        ("database", "node-3", "database"),
    ]
    assert result["summary"] == {"moved": 2, "cancelled": 0, "unchanged": 0, "unmovable": 0, "failed": 0}
    assert len(result["diff"]) == 2
    again = migrate(vms=BOTH, target_node="node-3")
    assert (again["changed"], again["summary"]["unchanged"]) == (False, 2)


def test_a_failure_does_not_stop_the_others(migrate: Migrate, world: World) -> None:
    world.put("virtualmachineinstances", a_guest("web", phase="Scheduling"))
    with pytest.raises(VirtError, match=r"1 of 2 machines failed: .*default/web cannot be migrated") as caught:
        migrate(vms=BOTH)
    facts = caught.value.facts
    assert facts["changed"] is True
    assert facts["summary"] == {"moved": 1, "cancelled": 0, "unchanged": 0, "unmovable": 1, "failed": 1}
    assert [item["name"] for item in facts["unmovable"]] == ["web"]
    assert facts["results"][0]["failed"] is True


def test_all_machines_of_a_node_are_moved_in_all_namespaces_and_only_once(migrate: Migrate, world: World) -> None:
    world.put("virtualmachineinstances", a_guest("far", "node-2"))
    world.put("virtualmachineinstances", a_guest("over", phase="Succeeded"))
    world.put("virtualmachineinstances", a_guest("foreign", namespace="other"))
    world.put("virtualmachineinstances", a_guest("going"))["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    result = migrate(from_node="node-1")
    assert sorted(item["name"] for item in result["results"]) == ["database", "foreign", "web"]
    assert result["changed"] is True
    again = migrate(from_node="node-1")
    assert (again["changed"], again["results"]) == (False, [])


@pytest.mark.parametrize(
    ("options", "named"),
    [
        pytest.param({"from_node": "node-9"}, ["node-9"], id="all machines of it"),
        pytest.param({"from_node": "node-9", "name": "web"}, ["node-9"], id="one of it"),
        pytest.param(
            {"vms": [{"name": "web", "from_node": "node-8"}, {"name": "database", "from_node": "node-1"}]},
            ["node-8"],
            id="each its own",
        ),
        pytest.param({"from_node": "node-3"}, [], id="nothing is there"),
    ],
)
def test_a_missing_from_node_gets_a_warning(migrate: Migrate, options: dict[str, object], named: list[str]) -> None:
    """The node may have been removed after it was drained, so it is no failure."""
    assert [item.partition(",")[0] for item in migrate(**options).get("warnings", [])] == [
        f"from_node: the cluster has no node {name}" for name in named
    ]


def test_a_node_that_was_removed_under_a_machine_gets_no_warning(migrate: Migrate, world: World) -> None:
    """The machine, which cannot be moved, says that it is there."""
    fixed = {"type": "LiveMigratable", "status": "False", "reason": "HostDevice"}
    world.put("virtualmachineinstances", a_guest("web", "node-9", conditions=[fixed]))
    result = migrate(from_node="node-9", unmovable="leave")
    assert result["summary"]["unmovable"] == 1
    assert "warnings" not in result


def test_machines_of_a_node_can_be_limited_to_a_namespace(migrate: Migrate, world: World) -> None:
    world.put("virtualmachineinstances", a_guest("foreign", namespace="other"))
    result = migrate(from_node="node-1", namespace="other")
    assert [item["name"] for item in result["results"]] == ["foreign"]


def test_an_unmovable_machine_may_be_left(migrate: Migrate, world: World) -> None:
    fixed = {"type": "LiveMigratable", "status": "False", "reason": "HostDevice"}
    world.put("virtualmachineinstances", a_guest("web", conditions=[fixed]))
    result = migrate(from_node="node-1", unmovable="leave")
    assert result["summary"] == {"moved": 1, "cancelled": 0, "unchanged": 0, "unmovable": 1, "failed": 0}
    (remaining,) = result["unmovable"]
    assert (remaining["name"], "HostDevice" in remaining["reason"]) == ("web", True)
    assert migrate(from_node="node-1", unmovable="leave")["changed"] is False
    assert migrate(name="web", unmovable="leave")["unmovable"] == [remaining]


def test_a_missing_machine_is_a_failure_and_not_unmovable(migrate: Migrate) -> None:
    with pytest.raises(VirtError, match=r"1 of 2 machines failed: .*default/nope .*no such machine") as caught:
        migrate(vms=[{"name": "nope"}, {"name": "web"}], from_node="node-1", namespace="default", unmovable="leave")
    facts = caught.value.facts
    assert (facts["unmovable"], facts["results"][0]["failed"]) == ([], True)
    assert facts["summary"] == {"moved": 1, "cancelled": 0, "unchanged": 0, "unmovable": 0, "failed": 1}


def test_a_machine_of_a_node_that_ends_before_its_turn_is_no_failure(migrate: Migrate, world: World) -> None:
    """No option names it."""

    def end(method: str, path: str) -> None:
        if method == "GET" and path.startswith("/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"):
            world.drop("virtualmachineinstances", "default", "web")

    world.mischief = end
    result = migrate(from_node="node-1")
    assert (result["summary"]["moved"], result["summary"]["unchanged"], result["summary"]["failed"]) == (1, 1, 0)


def test_parallel_limits_the_migrations_in_progress(migrate: Migrate, world: World) -> None:
    world.migrations = fake_migrations.STAY
    most = [0]

    def under_way() -> list[str]:
        with world.lock:
            names = [key[2] for key, item in world.objects.items() if key[0] == MIGRATIONS]
            return [item for item in names if "status" not in world.objects[MIGRATIONS, "default", item]]

    def look(method: str, _path: str) -> None:
        if method == "POST":
            threading.Timer(0.1, count).start()

    def count() -> None:
        names = under_way()
        most[0] = max(most[0], len(names))
        for name in names:
            fake_migrations.end(world, name)

    for index in range(4):
        world.put("virtualmachineinstances", a_guest(f"guest-{index}"))
    world.mischief = look
    result = migrate(vms=[{"name": f"guest-{index}"} for index in range(4)], parallel=1, wait_timeout=20)
    assert (result["summary"]["moved"], most[0]) == (4, 1)


def test_a_machine_without_a_turn_before_the_timeout_is_reported(migrate: Migrate, world: World) -> None:
    world.migrations = fake_migrations.STAY
    with pytest.raises(VirtError, match="database was not migrated: its turn did not come within 1 s"):
        migrate(vms=BOTH, parallel=1, wait_timeout=1)
    assert len([key for key in world.objects if key[0] == MIGRATIONS]) == 1
