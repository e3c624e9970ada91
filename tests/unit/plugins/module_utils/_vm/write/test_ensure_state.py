# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One VM on a fake API server: the requests, the stored object, the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import (
    BadArgument,
    Conflict,
    Invalid,
    NotFound,
    TimedOut,
    VirtError,
)
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.batch import requests_from
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request.vm_request import Terms, VmRequest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import ensure_state
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


def test_a_change_is_one_write_and_keeps_defaults_of_the_server(world: World, task: Task) -> None:
    task(**MACHINE)
    world.requests.clear()
    assert task(memory="2Gi")["method"] == "patch"
    assert len(world.sent(*WRITES)) == 1
    machine = world.vm("web")["spec"]["template"]["spec"]
    assert machine["domain"]["memory"] == {"guest": "2Gi"}
    assert machine["volumes"], "options say what they name and nothing else"
    assert machine["domain"]["machine"] == {"type": "q35"}


@pytest.mark.parametrize("keyed", [False, True], ids=["atomic lists", "keyed lists"])
def test_a_definition_is_complete(world: World, task: Task, keyed: bool) -> None:
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
    assert [item["name"] for item in world.vm("web")["spec"]["template"]["spec"]["volumes"]] == ["a"]
    assert result["diff"]["before"]["metadata"]["labels"]["two"] == "2"
    assert task(definition=definition)["changed"] is False


def test_run_strategy_survives_a_stop_and_a_change(world: World, task: Task) -> None:
    definition = {"spec": {"template": {"spec": {"domain": {"devices": {}}}}}}
    task(definition=definition)
    task(state="stopped")
    assert task(definition=definition)["changed"] is False
    definition["spec"]["template"]["spec"]["hostname"] = "h"
    task(definition=definition)
    assert world.vm("web")["spec"]["runStrategy"] == "Halted"


def test_check_mode_stores_nothing_and_reports_the_change(world: World, task: Task) -> None:
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


def test_a_power_state_creates_the_declared_machine_only(world: World, task: Task) -> None:
    with pytest.raises(
        BadArgument, match="web cannot be started: there is no such machine in namespace default; look at"
    ):
        task(state="started")
    assert world.sent(*WRITES) == []
    assert task(state="stopped", **MACHINE)["method"] == "create"
    assert world.vm("web")["spec"]["runStrategy"] == "Halted"
    assert task(state="started", **MACHINE)["method"] == "start"


def test_absent_is_one_request_for_a_missing_machine(world: World, task: Task) -> None:
    assert task(state="absent")["changed"] is False
    assert len(world.requests) == 1
    task(**MACHINE)
    result = task(state="absent", diff=True)
    assert (result["changed"], result["result"], result["diff"]["after"]) == (True, {}, {})


def test_a_failed_precondition_is_reported(task: Task) -> None:
    task(**MACHINE)
    with pytest.raises(Conflict, match="precondition"):
        task(state="absent", delete_options={"propagationPolicy": "Foreground", "preconditions": {"uid": "other"}})


def losing(world: World, method: str, rounds: int) -> None:
    """Let other writers win this many times."""
    original = getattr(world, method)
    remaining = [None] * rounds

    def refuse(*args: Any, **kwargs: Any) -> Any:
        if remaining:
            remaining.pop()
            raise Refused(409, "Conflict", "modified", name="web")
        return original(*args, **kwargs)

    setattr(world, method, refuse)


def a_request(state: str = "present", **params: Any) -> VmRequest:
    return requests_from({"name": "web", "namespace": "default", "state": state, **params})[0]


def test_a_conflict_restarts_the_task_after_a_pause(world: World, task: Task, api: Api) -> None:
    task(**MACHINE)
    losing(world, "patch", 3)
    pauses: list[float] = []
    outcome = ensure_state.ensure(api, a_request(memory="2Gi"), Terms(), pause=pauses.append)
    assert outcome.changed is True
    assert len(pauses) == 3


def test_endless_conflicts_are_an_error(world: World, task: Task, api: Api) -> None:
    task(**MACHINE)
    losing(world, "patch", 99)
    pauses: list[float] = []
    with pytest.raises(Conflict):
        ensure_state.ensure(api, a_request(memory="2Gi"), Terms(), pause=pauses.append)
    assert len(pauses) == ensure_state.ATTEMPTS - 1


def test_pauses_grow_to_a_limit_with_jitter() -> None:
    longest = [ensure_state.backoff(attempt, lambda: 1.0) for attempt in range(1, ensure_state.ATTEMPTS)]
    assert longest == [0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]
    assert [ensure_state.backoff(attempt, lambda: 0.0) for attempt in (1, 2)] == [0.05, 0.1]
    assert ensure_state.backoff(3) != ensure_state.backoff(3)


def test_changes_before_a_conflict_are_reported(world: World, task: Task, api: Api) -> None:
    """The change is written, the start is refused, and somebody else starts it before the next attempt."""
    task(run_strategy="Manual", **MACHINE)

    def refuse(namespace: str, name: str, *_rest: Any) -> None:
        world.reconcile(namespace, name, start=True)
        raise Refused(409, "Conflict", "VM is already running", name=name)

    world.operate = refuse  # type: ignore[method-assign]
    outcome = ensure_state.ensure(api, a_request("started", memory="2Gi"), Terms(), pause=lambda _seconds: None)
    assert (outcome.changed, outcome.method) == (True, "patch")
    assert (outcome.before or {})["spec"]["template"]["spec"]["domain"]["memory"] == {"guest": "1Gi"}


def test_a_failure_reports_the_changes_before_it(world: World, task: Task) -> None:
    task(run_strategy="Once", **MACHINE)
    world.reconcile("default", "web", start=True)
    with pytest.raises(VirtError, match="does not allow a restart") as caught:
        task(state="restarted", memory="2Gi")
    assert caught.value.facts["changed"] is True


def leaving(world: World) -> str:
    """Begin the deletion of the machine, which ends when somebody watches it; return its UID."""
    vm = world.vm("web")
    vm["metadata"].update(deletionTimestamp="2026-11-24T08:00:00Z", finalizers=["example.com/backup"])

    def ends(_method: str, path: str) -> None:
        if "watch=" in path and "/virtualmachines?" in path:
            world.drop("virtualmachineinstances", "default", "web")
            world.drop("virtualmachines", "default", "web")

    world.mischief = ends  # type: ignore[assignment]
    return str(vm["metadata"]["uid"])


@pytest.mark.parametrize(
    ("options", "method"),
    [
        pytest.param({}, "create", id="present"),
        pytest.param({"wait": True}, "create", id="present, and wait"),
        pytest.param({"state": "started"}, "create", id="started"),
        pytest.param({"state": "restarted"}, "create", id="restarted"),
        pytest.param({"state": "stopped"}, "create", id="stopped"),
        pytest.param({"force": True}, "create", id="replaced"),
    ],
)
def test_a_machine_that_is_being_deleted_is_created_again(
    world: World, task: Task, options: dict[str, Any], method: str
) -> None:
    """Its deletion is waited for, without wait=true too: a write to it would be lost."""
    task(**MACHINE)
    uid = leaving(world)
    foreseen = task(check_mode=True, **MACHINE, **options)
    assert (foreseen["changed"], foreseen["method"], world.vm("web")["metadata"]["uid"]) == (True, method, uid)

    result = task(**MACHINE, **options)

    assert (result["changed"], result["method"]) == (True, method)
    assert world.vm("web")["metadata"]["uid"] == result["result"]["metadata"]["uid"] != uid


def test_a_deletion_that_does_not_end_is_reported_with_its_finalizers(world: World, task: Task) -> None:
    task(**MACHINE)
    leaving(world)
    world.mischief = None
    with pytest.raises(TimedOut) as caught:
        task(wait_timeout=1, **MACHINE)

    assert "default/web cannot be created after 1 s, because the former one of its name is not gone" in str(
        caught.value
    )
    assert "being deleted since 2026-11-24T08:00:00Z; it waits for its finalizers: example.com/b" in str(caught.value)
    assert not caught.value.facts.get("changed")


def test_a_machine_that_is_being_deleted_and_not_described_is_refused_at_once(world: World, task: Task) -> None:
    task(**MACHINE)
    leaving(world)
    with pytest.raises(VirtError, match="is being deleted, and nothing says what a new one should be"):
        task(state="started")
    assert task(state="absent")["changed"] is False


@pytest.mark.parametrize("is_gone", [False, True], ids=["its finalizer holds it", "it is gone"])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"memory": "2Gi"}, id="patch"),
        pytest.param({"definition": {"spec": {"template": {"spec": {"domain": {"memory": {}}}}}}}, id="apply"),
        pytest.param({"memory": "2Gi", "force": True}, id="replace"),
    ],
)
def test_a_write_is_not_lost_when_the_machine_is_deleted_at_the_same_time(
    world: World, task: Task, options: dict[str, Any], is_gone: bool
) -> None:
    task(**MACHINE)
    uid = world.vm("web")["metadata"]["uid"]

    def others(method: str, _path: str) -> None:
        if method in ("PATCH", "PUT"):
            leaving(world)
            if is_gone:
                world.mischief = None
                world.drop("virtualmachineinstances", "default", "web")
                world.drop("virtualmachines", "default", "web")

    world.mischief = others  # type: ignore[assignment]
    result = task(**options)

    assert (result["changed"], result["method"]) == (True, "apply" if is_gone and "definition" in options else "create")
    assert world.vm("web")["metadata"]["uid"] == result["result"]["metadata"]["uid"] != uid


def test_a_cluster_without_kubevirt_is_named_but_has_no_vm_to_delete(world: World, task: Task) -> None:
    world.kubevirt_installed = False
    for state in ("present", "started", "stopped", "restarted"):
        with pytest.raises(NotFound, match=r"is KubeVirt .* installed in this cluster"):
            task(state=state, **MACHINE)
    assert task(state="absent", wait=True)["changed"] is False
    assert task(state="absent", vms=[{"name": f"n{index}"} for index in range(5)])["changed"] is False


def test_a_404_of_another_server_does_not_count_as_absent(world: World, task: Task) -> None:
    world.kubevirt_installed = False
    world.is_api_server = False
    with pytest.raises(VirtError):
        task(state="absent")


def test_a_refused_option_is_named(world: World, task: Task) -> None:
    field = "spec.template.spec.volumes[1].cloudInitConfigDrive"
    causes = [{"field": field, "message": "not built"}]
    world.refuse_next = [Refused(404, "NotFound", "no", name="web"), Refused(422, "Invalid", "no", causes=causes)]
    with pytest.raises(Invalid, match=r"not built \(spec\..*ConfigDrive comes from the option cloud_init\)"):
        task(cloud_init={"user_data": "x", "type": "config_drive"}, **MACHINE)


def test_generate_name_creates_a_new_machine_each_time(task: Task) -> None:
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
