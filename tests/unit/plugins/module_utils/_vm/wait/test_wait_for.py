# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting: the condition, the watch, and the reason of a timeout."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import TimedOut, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import kinds
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait.goal import Goal
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait.wait_for import wait_for
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import FORBIDDEN, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}


def wait(api: Api, *names: str, goal: str = "running", **known: Any) -> dict[str, Any]:
    machines = kinds.virtual_machines("default")
    return wait_for(api, machines, dict.fromkeys(names, Goal(goal)), known, timeout_seconds=5)


def pause_until(happened: Callable[[], bool]) -> None:
    """Wait for another thread, at most some seconds."""
    for _attempt in range(5000):
        if happened():
            return
        threading.Event().wait(0.001)


def test_a_condition_that_already_holds_needs_no_watch(world: World, task: Task) -> None:
    task(**MACHINE)
    world.requests.clear()
    task(wait=True, **MACHINE)
    assert len(world.requests) == 1


def test_the_event_ends_the_wait(world: World, task: Task, api: Api) -> None:
    world.unschedulable = "0/1 nodes are available: 1 Insufficient memory."
    task(**MACHINE)
    instance = world.objects["virtualmachineinstances", "default", "web"]

    def a_node_comes() -> None:
        pause_until(lambda: bool(world.watchers))
        instance["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
        world.put("virtualmachineinstances", instance)
        world.reconcile("default", "web")

    thread = threading.Thread(target=a_node_comes)
    thread.start()
    result = wait(api, "web")
    thread.join()
    assert result["web"]["status"]["printableStatus"] == "Running"


def test_a_timeout_reports_the_message_of_the_scheduler(world: World, task: Task) -> None:
    world.unschedulable = "0/1 nodes are available: 1 Insufficient memory."
    with pytest.raises(TimedOut) as caught:
        task(wait=True, wait_timeout=1, **MACHINE)
    assert "default/web is not running after 1 s" in caught.value.message
    assert "Unschedulable: 0/1 nodes are available: 1 Insufficient memory." in caught.value.message
    assert caught.value.facts["printable_status"] == "ErrorUnschedulable"
    assert caught.value.facts["changed"] is True


def test_the_reason_of_a_pod_comes_first(world: World, task: Task) -> None:
    world.unschedulable = "no node"
    task(**MACHINE)
    uid = world.objects["virtualmachineinstances", "default", "web"]["metadata"]["uid"]
    state = {"waiting": {"reason": "ErrImagePull", "message": "registry/guest:1: not found"}}
    world.put(
        "pods",
        {
            "metadata": {"name": "launcher", "namespace": "default", "labels": {"kubevirt.io/created-by": uid}},
            "status": {"containerStatuses": [{"name": "compute", "state": state}]},
        },
    )
    with pytest.raises(TimedOut, match="launcher Pod launcher cannot start: ErrImagePull: registry/guest:1: not found"):
        task(wait=True, wait_timeout=1, **MACHINE)


def test_one_list_serves_all_vms_of_a_namespace(world: World, task: Task) -> None:
    result = task(wait=True, vms=[{"name": name} for name in "abcdef"], **MACHINE)
    assert [item["result"]["status"]["ready"] for item in result["results"]] == [True] * 6
    listed = [path for method, path in world.requests if method == "GET" and "virtualmachines?" in path]
    assert len(listed) == 2, "one before the changes, one to wait"


def instances_read(world: World) -> tuple[int, int]:
    """Return the number of lists of instances, and of reads of single ones."""
    read = [path for method, path in world.requests if method == "GET" and "watch=" not in path]
    lists = [path for path in read if "/virtualmachineinstances?" in path]
    return len(lists), len([path for path in read if "/virtualmachineinstances/" in path])


@pytest.mark.parametrize(("names", "read"), [("abcd", (1, 0)), ("abc", (0, 3))])
def test_many_instances_are_read_with_one_list(world: World, task: Task, names: str, read: tuple[int, int]) -> None:
    """When a proxy ends every watch at once, all of them are read again and again."""
    task(wait=True, vms=[{"name": name} for name in names], **MACHINE)

    assert instances_read(world) == read


def test_without_the_right_to_list_each_instance_is_read(world: World, task: Task) -> None:
    world.mischief = lambda _method, path: FORBIDDEN if "/virtualmachineinstances?" in path else None

    result = task(wait=True, vms=[{"name": name} for name in "abcd"], **MACHINE)

    assert [item["result"]["status"]["ready"] for item in result["results"]] == [True] * 4
    assert instances_read(world)[1] == 4


def test_an_event_is_judged_with_the_current_instance(world: World, task: Task, api: Api) -> None:
    world.unschedulable = "no node"
    task(vms=[{"name": name} for name in "abcd"], **MACHINE)

    def a_node_comes() -> None:
        pause_until(lambda: bool(world.watchers))
        for name in "abcd":
            instance = world.objects["virtualmachineinstances", "default", name]
            instance["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
            world.put("virtualmachineinstances", instance)
            world.reconcile("default", name)

    thread = threading.Thread(target=a_node_comes)
    thread.start()
    result = wait(api, *"abcd")
    thread.join()
    assert [item["status"]["printableStatus"] for item in result.values()] == ["Running"] * 4
    assert instances_read(world) == (1, 4)


def only(*plurals: str) -> Callable[[str, str], bytes | None]:
    """Refuse every request but those for these kinds."""
    return lambda _method, path: None if any(f"/{plural}" in path for plural in plurals) else FORBIDDEN


def test_deletion_waits_for_the_finalizer_and_for_nothing_else(world: World, task: Task, api: Api) -> None:
    """A VM exists until its instance is gone, and the instance until its Pods are: no right to read them is needed."""
    task(**MACHINE)
    vm = world.vm("web")
    vm["metadata"]["deletionTimestamp"] = "now"

    def slowly() -> None:
        pause_until(lambda: bool(world.watchers))
        world.drop("virtualmachineinstances", "default", "web")
        world.drop("virtualmachines", "default", "web")

    world.mischief = only("virtualmachines/", "virtualmachines?")
    thread = threading.Thread(target=slowly)
    thread.start()
    assert wait(api, "web", goal="gone", web=vm) == {"web": None}
    thread.join()
    assert world.objects == {}


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"memory": "2Gi"}, id="present"),
        pytest.param({"state": "started"}, id="started"),
        pytest.param({"state": "restarted"}, id="restarted"),
        pytest.param({"state": "paused"}, id="paused"),
        pytest.param({"state": "stopped"}, id="stopped"),
        pytest.param({"state": "absent"}, id="absent"),
        pytest.param({"vms": [{"name": name} for name in "abcd"], **MACHINE}, id="many"),
    ],
)
def test_who_may_use_machines_may_wait_for_them(world: World, task: Task, options: dict[str, Any]) -> None:
    task(**MACHINE)
    operations = "subresources.kubevirt.io"
    world.mischief = only("virtualmachines/", "virtualmachines?", f"apis/{operations}")
    if options.get("state") == "paused":  # the control plane mirrors the condition
        original = world.put

        def put(plural: str, obj: dict[str, Any]) -> dict[str, Any]:
            stored = original(plural, obj)
            if plural == "virtualmachineinstances":
                vm = world.vm("web")
                vm["status"].update(conditions=obj["status"]["conditions"], printableStatus="Paused")
                original("virtualmachines", vm)
            return stored

        world.put = put  # type: ignore[method-assign]

    result = task(wait=True, **options)

    assert result["changed"] is (options.get("state") != "started")
    assert "warnings" not in result


def test_the_members_of_a_deleted_set_are_waited_for_if_they_can_be_read(
    world: World, of_sets: Task, of_pools: Task
) -> None:
    for task, plural in ((of_sets, "virtualmachineinstancereplicasets"), (of_pools, "virtualmachinepools")):
        task(replicas=1, labels={"app": "web"}, **MACHINE)
        world.mischief = only(plural)
        result = task(state="absent", wait=True)
        world.mischief = None

        assert (result["changed"], result["method"]) == (True, "delete")
        assert "were not waited for" in result["warnings"][0]


def test_a_change_of_a_pool_warns_that_unreadable_machines_are_not_waited_for(world: World, of_pools: Task) -> None:
    of_pools(replicas=1, labels={"app": "web"}, **MACHINE)
    world.mischief = only("virtualmachinepools")
    result = of_pools(memory="2Gi", wait=True)

    assert (result["changed"], len(result["warnings"])) == (True, 1)
    assert "the machines of VirtualMachinePool default/web are not waited for one by one" in result["warnings"][0]


def test_an_orphaned_instance_is_not_waited_for(world: World, task: Task) -> None:
    task(**MACHINE)
    world.objects["virtualmachineinstances", "default", "web"]["metadata"]["ownerReferences"] = []
    result = task(state="absent", delete_options={"propagationPolicy": "Orphan"}, wait=True)
    assert result["changed"] is True
    assert ("virtualmachineinstances", "default", "web") in world.objects


def test_a_failed_wait_reports_for_each_machine_whether_it_changed(world: World, task: Task) -> None:
    task(run_strategy="Halted", **MACHINE)
    world.mischief = lambda _method, path: FORBIDDEN if "watch=" in path or "limit=" in path else None

    with pytest.raises(VirtError) as caught:
        task(vms=[{"name": "web"}, {"name": "new", "memory": "1Gi"}], wait=True, run_strategy="Always", wait_timeout=1)
    assert [item["changed"] for item in caught.value.facts["results"]] == [True, True]
    with pytest.raises(VirtError) as caught:
        task(vms=[{"name": "web"}, {"name": "newer", "memory": "1Gi"}], wait=True, state="started", wait_timeout=1)
    assert [item["changed"] for item in caught.value.facts["results"]] == [False, True]


def test_a_machine_that_somebody_deletes_ends_the_wait(api: Api) -> None:
    error = wait(api, "web")["web"]
    assert isinstance(error, VirtError)
    assert "will not be running: somebody deleted it meanwhile" in error.message
