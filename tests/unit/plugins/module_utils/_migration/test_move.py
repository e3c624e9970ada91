# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One machine, on an API server whose migrations behave as the test says."""

from __future__ import annotations

import copy
import threading
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    BadArgument,
    Forbidden,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration.decide import Unmovable
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import stuck
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils import fake_migrations
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils._migration.conftest import (
    Migrate,
    a_guest,
    a_node,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_migrations import MIGRATIONS


def migrations(world: World) -> list[dict[str, Any]]:
    return [item for (plural, *_rest), item in world.objects.items() if plural == MIGRATIONS]


def under_way(world: World, name: str = "m1", **spec: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, "namespace": "default"}, "spec": {"vmiName": "web", **spec}}
    return world.put(MIGRATIONS, body)


def later(deed: Any, *arguments: Any, **options: Any) -> threading.Timer:
    timer = threading.Timer(0.2, deed, arguments, options)
    timer.start()
    return timer


def test_a_machine_is_moved_and_waited_for(migrate: Migrate, world: World) -> None:
    result = migrate()
    assert (result["changed"], result["method"], result["node"], result["phase"]) == (
        True, "create", "node-2", "Succeeded",
    )  # fmt: skip
    assert [item["phase"] for item in result["phases"]] == ["Scheduling", "Succeeded"]
    assert result["result"]["spec"] == {"vmiName": "web"}
    assert result["vmi"]["status"]["nodeName"] == "node-2"
    assert "duration" in result


def test_a_target_node_is_selected_by_its_host_name_and_needs_one_move(migrate: Migrate, world: World) -> None:
    world.put("nodes", a_node("node-3", **{"kubernetes.io/hostname": "third"}))
    world.migrations = fake_migrations.STAY
    begun = migrate(target_node="node-3", wait=False)
    assert begun["result"]["spec"]["addedNodeSelector"] == {"kubernetes.io/hostname": "third"}
    world.put("virtualmachineinstances", a_guest("web", "node-3"))
    world.drop(MIGRATIONS, "default", begun["result"]["metadata"]["name"])
    again = migrate(target_node="node-3")
    assert (again["changed"], again["node"], again["result"]) == (False, "node-3", {})


def test_a_node_selector_needs_one_move(migrate: Migrate, world: World) -> None:
    world.migrations = fake_migrations.STAY
    world.put("virtualmachineinstances", a_guest("web", "node-3"))
    assert migrate(node_selector={"disks": "fast"})["changed"] is False
    assert migrate(node_selector={"disks": "slow"}, wait=False)["result"]["spec"]["addedNodeSelector"] == {
        "disks": "slow"
    }


@pytest.mark.parametrize("place", [{}, {"target_node": "node-3"}, {"name": "web", "from_node": "node-1"}])
def test_a_matching_migration_in_progress_is_waited_for_and_not_duplicated(
    migrate: Migrate, world: World, place: dict[str, Any]
) -> None:
    under_way(world, addedNodeSelector={"kubernetes.io/hostname": "node-3"})
    timer = later(fake_migrations.end, world, "m1")
    result = migrate(**place)
    timer.join()
    assert (result["changed"], result["node"], result["phase"]) == (False, "node-3", "Succeeded")
    assert len(migrations(world)) == 1


@pytest.mark.parametrize("wait", [False, True])
def test_a_migration_being_cancelled_is_waited_for_and_then_replaced(
    migrate: Migrate, world: World, wait: bool
) -> None:
    under_way(world)["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z"
    foreseen = migrate(wait=wait, check_mode=True)
    timer = later(world.drop, MIGRATIONS, "default", "m1")
    result = migrate(wait=wait)
    timer.join()
    assert [(item["changed"], item["method"]) for item in (foreseen, result)] == [(True, "create")] * 2


def test_a_rivals_migration_is_waited_for(migrate: Migrate, world: World) -> None:
    def rival(method: str, _path: str) -> None:
        if method == "POST" and not migrations(world):
            under_way(world)
            later(fake_migrations.end, world, "m1")

    world.mischief = rival
    result = migrate()
    assert (result["changed"], result["phase"], len(migrations(world))) == (False, "Succeeded", 1)


def test_a_failure_reports_node_and_reason(migrate: Migrate, world: World) -> None:
    world.migrations = fake_migrations.FAIL
    with pytest.raises(VirtError, match=r"failed: the tunnel broke; .* default/web is on node node-1") as caught:
        migrate()
    facts = caught.value.facts
    assert (facts["changed"], facts["phase"], facts["node"]) == (True, "Failed", "node-1")
    assert [item["phase"] for item in facts["phases"]] == ["Scheduling", "Failed"]


def test_a_timeout_reports_the_message_of_the_target_pod(migrate: Migrate, world: World) -> None:
    migration = under_way(world)
    fake_migrations.move(world, "m1", "Scheduling")
    labels = {"kubevirt.io/migrationJobUID": migration["metadata"]["uid"]}
    condition = {"type": "PodScheduled", "status": "False", "message": "0/3 nodes are available"}
    pod = {"metadata": {"name": "target", "namespace": "default", "labels": labels}}
    world.put("pods", {**pod, "status": {"conditions": [condition]}})
    with pytest.raises(
        TimedOut, match=r"it is Scheduling: launcher Pod target finds no node: 0/3 nodes .*state=absent"
    ):
        migrate(wait_timeout=1)


def a_target_pod(world: World, migration: dict[str, Any], **status: Any) -> None:
    labels = {"kubevirt.io/migrationJobUID": migration["metadata"]["uid"]}
    metadata = {"name": "target", "namespace": "default", "labels": labels}
    requests = {"resources": {"requests": {"memory": "1Gi"}}}
    world.put("pods", {"metadata": metadata, "spec": {"containers": [requests]}, "status": status})


PULL = {"containerStatuses": [{"state": {"waiting": {"reason": "ErrImagePull", "message": "no such image"}}}]}
NO_NODE = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1"}]}


@pytest.mark.parametrize(
    ("status", "nodes", "words"),
    [
        pytest.param(PULL, {}, "ErrImagePull: no such image; correct the name of the image", id="image"),
        pytest.param(
            NO_NODE, {"node-2": "1Mi", "node-3": "2Mi"}, "no node has more than 2Mi of memory", id="too large"
        ),
        pytest.param(NO_NODE, {"node-2": None, "node-3": None}, "there is no other node", id="alone"),
    ],
)
def test_a_target_pod_that_is_stuck_ends_the_wait_early(
    migrate: Migrate, world: World, monkeypatch: pytest.MonkeyPatch, status: Any, nodes: dict[str, Any], words: str
) -> None:
    monkeypatch.setattr(stuck, "SECONDS", 0.0)
    for name, memory in nodes.items():
        world.drop("nodes", "", name)
        if memory:
            world.put("nodes", {**a_node(name), "status": {"allocatable": {"memory": memory}}})
    a_target_pod(world, under_way(world), **status)
    with pytest.raises(VirtError, match=f"m1 will not succeed: .*{words}.*It continues; cancel it") as caught:
        migrate(wait_timeout=60)

    assert not isinstance(caught.value, TimedOut)
    assert words in caught.value.facts["reason"]
    with pytest.raises(TimedOut):
        migrate(wait_timeout=1, fail_fast=False)


@pytest.mark.parametrize(
    ("phase", "words"),
    [
        pytest.param(
            "Pending", r"is not over after 1 s, it is Pending; .* is on node node-1\. It continues", id="in vain"
        ),
        pytest.param("Failed", r"failed, for an unknown reason; .* is on node node-1$", id="failed"),
    ],
)
def test_a_phase_without_a_reason_is_reported_once(migrate: Migrate, world: World, phase: str, words: str) -> None:
    under_way(world)
    timer = later(fake_migrations.move, world, "m1", phase)
    with pytest.raises(VirtError, match=words) as caught:
        migrate(wait_timeout=1)
    timer.join()
    assert caught.value.facts["reason"] == f"it is {phase}"
    assert caught.value.facts["migration"] == "m1"


def test_a_migration_that_somebody_cancels_is_a_failure(migrate: Migrate, world: World) -> None:
    under_way(world)
    timer = later(world.drop, MIGRATIONS, "default", "m1")
    with pytest.raises(VirtError, match="was cancelled"):
        migrate()
    timer.join()


def test_a_migration_replaced_by_another_of_its_name_was_cancelled(migrate: Migrate, world: World) -> None:
    under_way(world)
    other = {"metadata": {"name": "m1", "namespace": "default"}, "spec": {"vmiName": "web"}}
    timer = later(world.put, MIGRATIONS, {**other, "status": {"phase": "Succeeded"}})
    with pytest.raises(VirtError, match="was cancelled"):
        migrate()
    timer.join()


def test_a_migration_deleted_after_its_success_is_a_success(migrate: Migrate, world: World) -> None:
    vmi = copy.deepcopy(world.objects["virtualmachineinstances", "default", "web"])
    vmi["status"]["migrationState"] = {"migrationUid": under_way(world)["metadata"]["uid"], "completed": True}
    vmi["status"]["nodeName"] = "node-2"
    world.put("virtualmachineinstances", vmi)
    timer = later(world.drop, MIGRATIONS, "default", "m1")
    assert migrate()["node"] == "node-2"
    timer.join()


@pytest.mark.parametrize(
    ("status", "words"),
    [
        pytest.param({"phase": "Scheduling"}, "its instance is Scheduling, not Running", id="starting"),
        pytest.param({"phase": "Failed"}, r"its run is over \(Failed\)", id="over"),
        pytest.param(
            {"conditions": [{"type": "LiveMigratable", "status": "False", "reason": "HostDevice", "message": "a GPU"}]},
            r"LiveMigratable is False \(HostDevice: a GPU\)",
            id="fixed",
        ),
    ],
)
def test_an_unmovable_machine_is_refused_before_any_write(
    migrate: Migrate, world: World, status: dict[str, Any], words: str
) -> None:
    world.put("virtualmachineinstances", a_guest("web", **status))
    with pytest.raises(Unmovable, match=words):
        migrate()
    assert world.sent("POST") == []


def test_a_machine_that_does_not_run_cannot_be_moved(migrate: Migrate, world: World) -> None:
    world.put("virtualmachines", {"metadata": {"name": "other", "namespace": "default"}, "spec": {}})
    with pytest.raises(Unmovable, match="default/other cannot be migrated: it does not run; start it first"):
        migrate(name="other")


@pytest.mark.parametrize("options", [{"name": "wbe"}, {"name": "web", "namespace": "defualt"}])
@pytest.mark.parametrize("more", [{}, {"from_node": "node-1"}, {"unmovable": "leave"}])
def test_a_missing_machine_is_an_error_with_every_option(
    migrate: Migrate, options: dict[str, str], more: dict[str, str]
) -> None:
    """It does not count as unmovable: unmovable=leave would hide a mistyped name."""
    title = f"{options.get('namespace', 'default')}/{options['name']}"
    missing = "namespace defualt" if "namespace" in options else "such machine in namespace default"
    with pytest.raises(VirtError, match=f"{title} cannot be migrated: there is no {missing}; look at its") as caught:
        migrate(**options, **more)
    assert not isinstance(caught.value, Unmovable)
    assert migrate(**options, state="absent")["changed"] is False


@pytest.mark.parametrize(
    ("node", "words"),
    [
        pytest.param(None, "no node node-3", id="unknown"),
        pytest.param({**a_node("node-3"), "spec": {"unschedulable": True}}, "it is cordoned", id="cordoned"),
        pytest.param(a_node("node-3", **{"kubevirt.io/schedulable": "false"}), "is 'false', not 'true'", id="not ours"),
    ],
)
def test_a_node_that_accepts_no_machine_is_refused_before_any_write(
    migrate: Migrate, world: World, node: dict[str, Any] | None, words: str
) -> None:
    world.drop("nodes", "", "node-3")
    if node is not None:
        world.put("nodes", copy.deepcopy(node))
    with pytest.raises((VirtError, BadArgument), match=words):
        migrate(target_node="node-3")
    assert world.sent("POST") == []


def test_a_selector_that_matches_no_node_is_refused(migrate: Migrate) -> None:
    with pytest.raises(VirtError, match="a node with zone=x: no other node has them"):
        migrate(node_selector={"zone": "x"})


def test_a_user_who_may_not_read_nodes_can_name_a_target_node(migrate: Migrate, world: World) -> None:
    def guarded(_method: str, path: str) -> None:
        if path.startswith("/api/v1/nodes"):
            world.refuse_next = [Refused(403, "Forbidden", 'User "x" cannot get resource "nodes"')]

    world.mischief = guarded
    assert migrate(target_node="node-3")["node"] == "node-3"
    with pytest.raises(Forbidden):
        migrate(node_selector={"disks": "slow"})


def test_check_mode_sends_a_dry_run_and_creates_nothing(migrate: Migrate, world: World) -> None:
    result = migrate(check_mode=True, diff=True, target_node="node-3")
    assert (result["changed"], result["node"]) == (True, "node-1")
    assert result["diff"]["after"]["spec"]["vmiName"] == "web"
    assert any("dryRun=All" in item for item in world.sent("POST"))
    assert migrations(world) == []
    world.refuse_next = []
    world.mischief = lambda method, _path: (
        world.refuse_next.append(Refused(422, "Invalid", "no room")) if method == "POST" else None
    )
    with pytest.raises(VirtError, match="no room"):
        migrate(check_mode=True)


@pytest.mark.parametrize("exists", [False, True])
def test_check_mode_predicts_the_migration_of_a_machine_that_an_earlier_task_starts(
    migrate: Migrate, world: World, exists: bool
) -> None:
    if exists:
        world.put("virtualmachineinstances", {**a_guest("new"), "status": {"phase": "Scheduling"}})
    result = migrate(name="new", target_node="node-3", check_mode=True)

    assert (result["changed"], result["method"], result["result"]["spec"]["vmiName"]) == (True, "create", "new")
    assert "unless an earlier task starts it" in result["warnings"][0]
    assert migrate(name="new", from_node="node-1", check_mode=True)["changed"] is False
    assert world.sent("POST") == []


def test_an_unfinished_migration_is_cancelled_and_its_end_waited_for(migrate: Migrate, world: World) -> None:
    under_way(world)
    result = migrate(state="absent", diff=True)
    assert (result["changed"], result["method"], result["node"]) == (True, "delete", "node-1")
    assert (result["diff"]["before"]["spec"]["vmiName"], result["diff"]["after"]) == ("web", {})
    assert migrations(world) == []
    assert migrate(state="absent")["changed"] is False


def test_check_mode_predicts_a_cancellation(migrate: Migrate, world: World) -> None:
    under_way(world)
    assert migrate(state="absent", check_mode=True)["changed"] is True
    assert len(migrations(world)) == 1
