# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VM against an API server with behaviour: what is sent, what is stored, what the user is told."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    BadArgument,
    Conflict,
    Invalid,
    NotFound,
    VirtError,
)
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import Refused, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
WRITES = ("POST", "PUT", "PATCH", "DELETE")


def test_first_run_creates_and_the_second_sends_one_request(world: World, task: Task) -> None:
    first = task(**MACHINE)
    assert (first["changed"], first["method"]) == (True, "create")
    world.requests.clear()
    second = task(**MACHINE)
    assert second["changed"] is False
    assert world.requests == [("GET", "/apis/kubevirt.io/v1/namespaces/default/virtualmachines/web")]
    assert second["result"]["metadata"]["name"] == "web"
    assert "managedFields" not in second["result"]["metadata"]


def test_a_change_is_one_write_and_keeps_what_the_server_added(world: World, task: Task) -> None:
    task(**MACHINE)
    world.requests.clear()
    assert task(memory="2Gi")["method"] == "patch"
    assert len(world.sent(*WRITES)) == 1
    machine = world.vm("web")["spec"]["template"]["spec"]
    assert machine["domain"]["memory"] == {"guest": "2Gi"}
    assert machine["volumes"], "options say what they name and nothing else"
    assert machine["domain"]["machine"] == {"type": "q35"}


@pytest.mark.parametrize("keyed", [False, True], ids=["atomic lists", "keyed lists"])
def test_a_definition_is_the_whole(world: World, task: Task, keyed: bool) -> None:
    world.keyed_lists = keyed
    volumes = [{"name": "a", "emptyDisk": {"capacity": "1Gi"}}, {"name": "b", "emptyDisk": {"capacity": "1Gi"}}]
    definition = {
        "metadata": {"labels": {"one": "1", "two": "2"}},
        "spec": {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}, "volumes": volumes}}},
    }
    task(definition=definition)
    world.vm("web")["metadata"]["labels"]["foreign"] = "3"
    assert task(definition=definition)["changed"] is False
    del definition["metadata"]["labels"]["two"]
    volumes.pop()
    result = task(definition=definition, diff=True)
    assert (result["changed"], result["method"]) == (True, "apply")
    assert world.vm("web")["metadata"]["labels"] == {"one": "1", "foreign": "3"}
    assert [one["name"] for one in world.vm("web")["spec"]["template"]["spec"]["volumes"]] == ["a"]
    assert result["diff"]["before"]["metadata"]["labels"]["two"] == "2"
    assert task(definition=definition)["changed"] is False


def test_with_keyed_lists_a_hotplugged_disk_of_somebody_else_stays(world: World, task: Task) -> None:
    world.keyed_lists = True
    definition = {
        "spec": {"runStrategy": "Halted", "template": {"spec": {"volumes": [{"name": "a", "emptyDisk": {}}]}}},
    }
    task(definition=definition)
    world.vm("web")["spec"]["template"]["spec"]["volumes"].append({"name": "hot", "dataVolume": {"name": "x"}})
    assert task(definition=definition)["changed"] is False
    definition["spec"]["template"]["spec"]["hostname"] = "h"
    assert task(definition=definition)["changed"] is True
    assert [one["name"] for one in world.vm("web")["spec"]["template"]["spec"]["volumes"]] == ["a", "hot"]


def test_run_strategy_is_kept_over_a_stop_and_a_change(world: World, task: Task) -> None:
    definition = {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}
    task(definition=definition)
    task(state="stopped")
    assert task(definition=definition)["changed"] is False
    definition["spec"]["template"]["spec"]["hostname"] = "h"
    task(definition=definition)
    assert world.vm("web")["spec"]["runStrategy"] == "Halted"


def test_check_mode_stores_nothing_and_tells_what_it_would_do(world: World, task: Task) -> None:
    assert task(check_mode=True, **MACHINE)["changed"] is True
    assert world.objects == {}
    task(**MACHINE)
    stored = world.vm("web")["metadata"]["resourceVersion"]
    result = task(check_mode=True, diff=True, memory="2Gi")
    assert result["changed"] is True
    assert result["diff"]["after"]["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "2Gi"}
    assert task(check_mode=True, state="stopped")["method"] == "stop"
    assert task(check_mode=True, state="started")["changed"] is False
    assert task(check_mode=True, state="absent")["changed"] is True
    assert world.vm("web")["metadata"]["resourceVersion"] == stored


@pytest.mark.parametrize(("state", "changed", "strategy"), [("started", False, "Always"), ("stopped", True, "Halted")])
def test_power_states_are_idempotent(world: World, task: Task, state: str, changed: bool, strategy: str) -> None:
    task(**MACHINE)
    assert task(state=state)["changed"] is changed
    assert task(state=state)["changed"] is False
    assert world.vm("web")["spec"]["runStrategy"] == strategy


def test_restart_makes_a_new_instance_and_returns_the_new_state(world: World, task: Task) -> None:
    task(**MACHINE)
    old = world.objects["virtualmachineinstances", "default", "web"]["metadata"]["uid"]
    result = task(state="restarted", wait=True)
    assert (result["changed"], result["method"]) == (True, "restart")
    assert world.objects["virtualmachineinstances", "default", "web"]["metadata"]["uid"] != old


def test_a_power_state_creates_what_is_declared_and_nothing_else(world: World, task: Task) -> None:
    with pytest.raises(BadArgument, match="does not exist, and nothing says what it should be"):
        task(state="started")
    assert world.sent(*WRITES) == []
    assert task(state="stopped", **MACHINE)["method"] == "create"
    assert world.vm("web")["spec"]["runStrategy"] == "Halted"
    assert task(state="started", **MACHINE)["method"] == "start"


def test_absent_is_one_request_when_it_is_so(world: World, task: Task) -> None:
    assert task(state="absent")["changed"] is False
    assert len(world.requests) == 1
    task(**MACHINE)
    result = task(state="absent", diff=True)
    assert (result["changed"], result["result"], result["diff"]["after"]) == (True, {}, {})


def test_a_precondition_that_fails_is_reported(task: Task) -> None:
    task(**MACHINE)
    with pytest.raises(Conflict, match="precondition"):
        task(state="absent", delete_options={"propagationPolicy": "Foreground", "preconditions": {"uid": "other"}})


def test_a_conflict_begins_anew(world: World, task: Task) -> None:
    task(**MACHINE)
    world.refuse_next = []
    original = world.patch

    def once(*args: Any, **kwargs: Any) -> Any:
        world.patch = original  # type: ignore[method-assign]
        raise Refused(409, "Conflict", "modified", name="web")

    world.patch = once  # type: ignore[method-assign]
    assert task(memory="2Gi")["changed"] is True


def test_a_refusal_names_the_fields_and_is_short(task: Task) -> None:
    with pytest.raises(Invalid) as caught:
        task(definition={"spec": {"colour": "red", "template": {"spec": {}}}})
    assert caught.value.message == "cannot apply VirtualMachine default/web: spec.colour: unknown field"


def test_a_vm_that_is_being_deleted_is_not_changed(world: World, task: Task) -> None:
    task(**MACHINE)
    world.vm("web")["metadata"]["deletionTimestamp"] = "now"
    with pytest.raises(VirtError, match="is being deleted"):
        task(memory="2Gi")
    assert task(state="absent")["changed"] is False


def test_a_cluster_without_kubevirt_is_named(world: World, task: Task) -> None:
    world.kubevirt_installed = False
    with pytest.raises(NotFound, match=r"is KubeVirt .* installed in this cluster"):
        task(**MACHINE)


def test_generate_name_makes_another_every_time(task: Task) -> None:
    names = {task(name=None, generate_name="web-", **MACHINE)["result"]["metadata"]["name"] for _unused in range(2)}
    assert len(names) == 2


def test_force_replaces(world: World, task: Task) -> None:
    task(**MACHINE)
    assert task(force=True, memory="1Gi")["method"] == "replace"
    assert "volumes" not in world.vm("web")["spec"]["template"]["spec"]
    assert task(force=True, memory="1Gi")["changed"] is False


def test_secrets_are_in_no_result_and_no_diff(task: Task) -> None:
    first = task(diff=True, cloud_init={"user_data": "canary-1", "type": "no_cloud"}, **MACHINE)
    second = task(diff=True, cloud_init={"user_data": "canary-2", "type": "no_cloud"}, **MACHINE)
    assert second["changed"] is True
    assert "canary" not in str(first) + str(second)
    assert "(changed)" in str(second["diff"]["after"])
