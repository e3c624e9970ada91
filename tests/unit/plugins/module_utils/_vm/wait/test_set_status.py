# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Replica sets on a fake API server: create, scale, pause, wait, delete."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument, TimedOut
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import set_status
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "1Gi", "image": "registry/guest:1", "labels": {"app": "web"}}
KEY = ("virtualmachineinstancereplicasets", "default", "web")
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"domain": {"devices": {}}}}


def a_set(replicas: int | None = 2, has: int = 2, ready: int = 2, **spec: Any) -> dict[str, Any]:
    wanted = {} if replicas is None else {"replicas": replicas}
    return {"metadata": {"uid": "u"}, "spec": {**wanted, **spec}, "status": {"replicas": has, "readyReplicas": ready}}


@pytest.mark.parametrize(
    ("obj", "outcome"),
    [
        pytest.param(a_set(), "done", id="all are ready"),
        pytest.param(a_set(None, 1, 1), "done", id="one by default"),
        pytest.param({"metadata": {}, "spec": {"replicas": 0}}, "done", id="none, and nobody looked"),
        pytest.param(a_set(ready=1), "waiting", id="one is not ready"),
        pytest.param(a_set(has=3), "waiting", id="one too many"),
        pytest.param(a_set(3), "waiting", id="not scaled yet"),
        pytest.param(a_set(3, paused=True), "hopeless", id="paused"),
        pytest.param({**a_set(3), "metadata": {"deletionTimestamp": "t"}}, "hopeless", id="being deleted"),
    ],
)
def test_verdict(obj: dict[str, Any], outcome: str) -> None:
    verdict = set_status.judge(obj)
    assert ("done" if verdict.done else "hopeless" if verdict.hopeless else "waiting") == outcome


def test_first_run_creates_and_the_second_sends_one_request(world: World, of_sets: Task) -> None:
    assert of_sets(replicas=2, wait=True, **MACHINE)["method"] == "create"
    spec = world.objects[KEY]["spec"]
    assert (spec["replicas"], spec["selector"]) == (2, {"matchLabels": {"app": "web"}})
    assert spec["template"]["metadata"]["labels"] == {"app": "web"}
    assert "runStrategy" not in spec
    world.requests.clear()
    assert of_sets(replicas=2, wait=True, **MACHINE)["changed"] is False
    assert len(world.requests) == 1


def test_scaling_is_one_write_and_is_waited_for(world: World, of_sets: Task) -> None:
    of_sets(replicas=2, **MACHINE)
    foreseen = of_sets(replicas=3, check_mode=True, diff=True)
    assert (foreseen["changed"], foreseen["diff"]["after"]["spec"]["replicas"]) == (True, 3)
    assert world.objects[KEY]["spec"]["replicas"] == 2
    world.requests.clear()
    result = of_sets(replicas=3, wait=True)
    assert (result["method"], result["result"]["status"]["readyReplicas"]) == ("patch", 3)
    assert [method for method, _path in world.requests if method != "GET"] == ["PATCH"]
    assert of_sets(replicas=0, wait=True)["result"]["status"]["replicas"] == 0


def test_undeclared_replicas_stay_where_an_autoscaler_set_them(world: World, of_sets: Task) -> None:
    whole = {"spec": {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": TEMPLATE}}
    of_sets(definition=whole)
    world.objects[KEY]["spec"]["replicas"] = 5
    del whole["spec"]["replicas"]
    world.requests.clear()
    assert of_sets(definition=whole)["changed"] is False
    assert len(world.requests) == 1, "nothing is written"
    template = {**TEMPLATE, "spec": {"hostname": "h", "domain": {"devices": {}}}}
    assert of_sets(definition={"spec": {**whole["spec"], "template": template}})["method"] == "apply"
    assert world.objects[KEY]["spec"]["replicas"] == 5
    assert of_sets(force=True, memory="1Gi", labels={"app": "web"})["method"] == "replace"
    spec = world.objects[KEY]["spec"]
    assert (spec["replicas"], spec["selector"]) == (5, {"matchLabels": {"app": "web"}})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        pytest.param({"memory": "1Gi"}, "labels are missing; they select its instances", id="no labels"),
        pytest.param({"definition": {"spec": {"template": TEMPLATE}}}, "spec.selector is missing", id="no selector"),
        pytest.param({"replicas": -1, **MACHINE}, "replicas is -1: it must not be negative", id="negative"),
        pytest.param({"definition": {"kind": "VirtualMachine"}}, "this module is for VirtualMachineIn", id="kind"),
    ],
)
def test_invalid_options_are_refused_before_any_request(
    world: World, of_sets: Task, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(BadArgument, match=words):
        of_sets(**options)
    assert world.objects == {}


def test_a_paused_set_is_not_waited_for(of_sets: Task) -> None:
    assert of_sets(paused=True, replicas=2, wait=True, **MACHINE)["changed"] is True
    assert of_sets(paused=True, wait=True)["changed"] is False


def an_instance(world: World, **status: Any) -> dict[str, Any]:
    owner = {"uid": world.objects[KEY]["metadata"]["uid"]}
    metadata = {"name": "web1", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    return world.put("virtualmachineinstances", {"metadata": metadata, "status": status})


def test_a_timeout_reports_the_problem_of_an_instance(world: World, of_sets: Task) -> None:
    world.unschedulable = "no node"
    of_sets(replicas=2, **MACHINE)
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/1 nodes are available"}
    an_instance(world, phase="Scheduling", conditions=[why])
    with pytest.raises(TimedOut) as caught:
        of_sets(wait=True, wait_timeout=1, **MACHINE)
    assert caught.value.message == (
        "VirtualMachineInstanceReplicaSet default/web is not ready after 1 s: 0 of 2 instances are ready, 2 exist;"
        " web1: Unschedulable: 0/1 nodes are available"
    )


def test_a_failure_of_the_set_is_reported_first(world: World, api: Api, of_sets: Task) -> None:
    of_sets(**MACHINE)
    condition = {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota"}
    world.objects[KEY]["status"]["conditions"] = [condition]
    facts = set_status.explain(api, world.objects[KEY], "default")
    assert (facts["reason"], facts["conditions"]) == ("FailedCreate: exceeded quota", [condition])


def test_deletion_waits_only_for_its_own_instances(world: World, of_sets: Task) -> None:
    of_sets(**MACHINE)
    an_instance(world, phase="Running")
    foreign = {"name": "foreign", "namespace": "default", "labels": {"app": "web"}}
    world.put("virtualmachineinstances", {"metadata": foreign})
    with pytest.raises(TimedOut, match="is gone, but its instance still exists after 1 s"):
        of_sets(state="absent", wait=True, wait_timeout=1)
    of_sets(**MACHINE)
    assert of_sets(state="absent", wait=True)["method"] == "delete", "that of the former set is none of this one"


def test_sets_are_read_and_waited_for(of_sets: Task, api: Api) -> None:
    of_sets(replicas=2, **MACHINE)
    options = {"label_selectors": [], "field_selectors": [], "name": "web", "namespace": "default", "wait": True}
    result = info.replica_sets({**options, "wait_timeout": 2}, api)
    assert [item["status"]["readyReplicas"] for item in result["resources"]] == [2]


def test_the_reason_of_a_blocked_deletion_is_reported(world: World, of_sets: Task) -> None:
    of_sets(replicas=0, **MACHINE)
    world.objects[KEY]["metadata"].update(deletionTimestamp="2026-11-24T08:00:00Z", finalizers=["example.com/backup"])
    with pytest.raises(TimedOut, match=r"is not gone after 1 s: it is being deleted .*finalizers: example.com/backup"):
        of_sets(state="absent", wait=True, wait_timeout=1)
