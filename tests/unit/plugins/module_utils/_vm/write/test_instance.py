# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Instances without a VM on a fake API server: the requests, the stored object, the messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut, VirtError
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import FORBIDDEN, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1"}
WRITES = ("POST", "PUT", "PATCH", "DELETE")
KEY = ("virtualmachineinstances", "default", "web")


def test_first_run_creates_and_the_second_sends_one_request(world: World, of_instances: Task) -> None:
    first = of_instances(labels={"app": "web"}, **MACHINE)
    assert (first["changed"], first["method"]) == (True, "create")
    stored = world.objects[KEY]
    assert stored["spec"]["domain"]["memory"] == {"guest": "1Gi"}
    assert stored["spec"]["domain"]["devices"]["disks"] == [{"name": "containerdisk", "disk": {"bus": "virtio"}}]
    assert (stored["metadata"]["labels"], "template" in stored["spec"]) == ({"app": "web"}, False)
    assert "runStrategy" not in stored["spec"]
    world.requests.clear()
    assert of_instances(**MACHINE)["changed"] is False
    assert world.requests == [("GET", "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances/web")]


def test_the_spec_is_immutable_but_labels_can_change(world: World, of_instances: Task) -> None:
    of_instances(labels={"old": "1"}, **MACHINE)
    world.requests.clear()
    with pytest.raises(VirtError, match=r"spec\.domain\.memory\.guest differ .* force=true"):
        of_instances(memory="2Gi", labels={"new": "2"})
    assert world.sent(*WRITES) == []
    assert of_instances(labels={"new": "2"}, **MACHINE)["method"] == "patch"
    assert world.objects[KEY]["metadata"]["labels"] == {"old": "1", "new": "2"}


def test_a_definition_that_declares_less_changes_nothing(of_instances: Task) -> None:
    whole = {"spec": {"hostname": "h", "domain": {"devices": {}}}}
    of_instances(definition=whole)
    del whole["spec"]["hostname"]
    assert of_instances(definition=whole)["changed"] is False


def test_an_instance_that_does_not_run_yet_is_not_reported_as_started(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    world.objects[KEY]["status"]["phase"] = "Scheduling"
    with pytest.raises(VirtError, match=r"is Scheduling, not Running; .*kubevirt_vmi with state=present"):
        of_instances(state="paused")


@pytest.mark.parametrize("phase", ["Running", "Failed"])
def test_force_recreates_an_instance_that_differs_or_is_over(world: World, of_instances: Task, phase: str) -> None:
    of_instances(**MACHINE)
    assert of_instances(force=True, **MACHINE)["changed"] is False, "it is as declared"
    old = world.objects[KEY]["metadata"]["uid"]
    world.objects[KEY]["status"]["phase"] = phase
    wanted = MACHINE if phase == "Failed" else {**MACHINE, "memory": "2Gi"}
    foreseen = of_instances(force=True, check_mode=True, **wanted)
    assert (foreseen["changed"], foreseen["method"], world.objects[KEY]["metadata"]["uid"]) == (True, "replace", old)
    assert of_instances(force=True, diff=True, **wanted)["method"] == "replace"
    assert world.objects[KEY]["metadata"]["uid"] != old


@pytest.mark.parametrize(
    ("kind", "module"),
    [("VirtualMachine", "kubevirt_vm"), ("VirtualMachineInstanceReplicaSet", "kubevirt_replicaset"), ("Pool", "Pool")],
)
def test_an_instance_with_an_owner_is_not_recreated(world: World, of_instances: Task, kind: str, module: str) -> None:
    """It was once deleted, its owner recreated it as before, and the task failed: the guest was lost for nothing."""
    of_instances(**MACHINE)
    world.objects[KEY]["metadata"]["ownerReferences"] = [{"kind": kind, "name": "web", "uid": "u", "controller": True}]
    for options in ({}, {"force": True}, {"force": True, "check_mode": True}):
        with pytest.raises(
            VirtError, match=rf"memory\.guest differ .* belongs to {kind} default/web, .*{module}"
        ) as caught:
            of_instances(memory="2Gi", **options)
        assert "force" not in caught.value.message
    world.objects[KEY]["status"]["phase"] = "Failed"
    with pytest.raises(VirtError, match=rf"its run is over \(Failed\).* belongs to {kind} default/web"):
        of_instances(force=True, **MACHINE)
    assert world.sent("DELETE") == []
    assert of_instances(**MACHINE)["changed"] is False


def test_an_instance_created_concurrently_is_not_deleted(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)

    def others(command: str, _path: str) -> None:
        if command == "DELETE":
            world.mischief = None
            world.drop(*KEY)
            made = {"name": "web", "namespace": "default"}
            spec = {"domain": {"memory": {"guest": "2Gi"}, "devices": {}}}
            world.put(KEY[0], {"metadata": made, "spec": spec, "status": {"phase": "Running", "conditions": []}})

    world.mischief = others
    assert of_instances(force=True, memory="2Gi")["changed"] is False
    assert len(world.sent("DELETE")) == 1


def test_an_instance_that_does_not_go_is_not_recreated(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    world.delete = lambda *_args: {}  # type: ignore[method-assign]
    with pytest.raises(TimedOut, match="cannot be created after 1 s, because the former one") as caught:
        of_instances(force=True, wait_timeout=1, memory="2Gi")
    assert caught.value.facts["changed"] is True


@pytest.mark.parametrize(("state", "verb"), [("paused", "pause"), ("reset", "reset"), ("softrebooted", "softreboot")])
def test_a_guest_is_operated_through_its_instance(world: World, of_instances: Task, state: str, verb: str) -> None:
    of_instances(**MACHINE)
    world.requests.clear()
    result = of_instances(state=state, wait=True, diff=True)
    assert (result["changed"], result["method"]) == (True, verb)
    assert result["diff"]["after"]["requested"] == verb
    path = "/apis/subresources.kubevirt.io/v1/namespaces/default/virtualmachineinstances/web"
    assert world.sent("PUT") == [f"PUT {path}/{verb}"]


def test_pausing_is_idempotent_and_the_result_shows_it(of_instances: Task) -> None:
    of_instances(**MACHINE)
    paused = of_instances(state="paused", wait=True)["result"]
    assert "Paused" in [item["type"] for item in paused["status"]["conditions"]]
    assert of_instances(state="paused", wait=True)["changed"] is False
    assert of_instances(state="unpaused", wait=True)["changed"] is True
    assert of_instances(state="unpaused", wait=True)["changed"] is False


def test_check_mode_predicts_and_changes_nothing(world: World, of_instances: Task) -> None:
    assert of_instances(check_mode=True, **MACHINE)["changed"] is True
    assert world.objects == {}
    of_instances(**MACHINE)
    version = world.objects[KEY]["metadata"]["resourceVersion"]
    world.requests.clear()
    for state in ("paused", "reset", "softrebooted", "absent"):
        assert of_instances(check_mode=True, state=state)["changed"] is True
    assert of_instances(check_mode=True, state="unpaused")["changed"] is False
    assert [item.rpartition("/")[2] for item in world.sent("PUT")] == ["pause"], "the others have no dry run"
    assert world.objects[KEY]["metadata"]["resourceVersion"] == version


def test_a_missing_instance_is_not_operated(world: World, of_instances: Task) -> None:
    with pytest.raises(
        BadArgument, match=r"no such instance in .* Only a running guest can be paused; create .*start_paused=true"
    ):
        of_instances(state="paused", **MACHINE)
    assert world.objects == {}


def test_freezing_needs_an_agent(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    with pytest.raises(VirtError, match="cannot be frozen: that takes a guest agent"):
        of_instances(state="frozen")
    world.has_agents = True
    of_instances(name="second", **MACHINE)
    assert of_instances(name="second", state="frozen", wait=True)["result"]["status"]["fsFreezeStatus"] == "frozen"
    assert of_instances(name="second", state="frozen")["changed"] is False
    assert of_instances(name="second", state="unfrozen", wait=True)["changed"] is True


def test_a_guest_that_starts_paused_meets_the_state(of_instances: Task) -> None:
    result = of_instances(start_paused=True, wait=True, **MACHINE)
    assert result["result"]["spec"]["startStrategy"] == "Paused"
    assert of_instances(start_paused=True, wait=True, **MACHINE)["changed"] is False


def test_waiting_for_a_finished_run_fails(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    world.objects[KEY]["status"] = {"phase": "Failed", "conditions": []}
    with pytest.raises(VirtError, match=r"VirtualMachineInstance default/web will not be ready: its run is over"):
        of_instances(wait=True, **MACHINE)


def test_absent_reads_nothing_but_the_instance(world: World, of_instances: Task) -> None:
    """Its finalizer stays until its Pods are gone."""
    of_instances(**MACHINE)
    world.mischief = lambda _method, path: None if "/virtualmachineinstances" in path else FORBIDDEN

    assert of_instances(state="absent", wait=True)["changed"] is True


def test_an_instance_being_deleted_is_waited_for_and_created_again(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    leaving = world.objects[KEY]
    leaving["metadata"]["deletionTimestamp"] = "now"

    def ends(method: str, path: str) -> None:
        if "watch=" in path:
            world.drop(*KEY)

    world.mischief = ends
    assert of_instances(**MACHINE)["method"] == "create"
    assert world.objects[KEY]["metadata"]["uid"] != leaving["metadata"]["uid"]


def test_an_instance_recreated_by_its_vm_is_another_one(world: World, of_instances: Task) -> None:
    of_instances(**MACHINE)
    original = world.delete

    def and_again(plural: str, namespace: str, name: str, options: dict[str, Any]) -> dict[str, Any]:
        gone = original(plural, namespace, name, options)
        world.put(plural, {"metadata": {"name": name, "namespace": namespace}, "status": {"phase": "Running"}})
        return gone

    world.delete = and_again  # type: ignore[method-assign]
    assert of_instances(state="absent", wait=True)["method"] == "delete"
