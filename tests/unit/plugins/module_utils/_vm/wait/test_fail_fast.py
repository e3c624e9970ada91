# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A wait for a machine that is stuck ends early, and says why; with fail_fast=false it goes on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import TimedOut, VirtError
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.read import info
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import stuck
from ansible_collections.virtops.kubevirt.tests.unit.plugins.module_utils.fake_api import FORBIDDEN, World

Task = Callable[..., dict[str, Any]]
MACHINE = {"memory": "900Gi", "image": "registry/guest:1"}
INSTANCE = ("virtualmachineinstances", "default", "web")


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stuck, "SECONDS", 0.0)


@pytest.fixture
def crowded(world: World) -> World:
    """A cluster whose only node is small."""
    world.unschedulable = "0/1 nodes are available: 1 Insufficient memory."
    labels = {"kubevirt.io/schedulable": "true"}
    world.put("nodes", {"metadata": {"name": "n1", "labels": labels}, "status": {"allocatable": {"memory": "16Gi"}}})
    return world


def in_state(world: World, reason: str, message: str) -> None:
    """Let every new instance of a VM wait for something."""
    original = world._start

    def start(vm: dict[str, Any], namespace: str, name: str) -> dict[str, Any]:
        made = original(vm, namespace, name)
        condition = {"type": "Synchronized", "status": "False", "reason": reason, "message": message}
        made["status"] = {"phase": "Scheduling", "conditions": [condition]}
        return world.put("virtualmachineinstances", made)

    world._start = start  # type: ignore[method-assign]


TOO_LARGE = (
    "VirtualMachine default/web will not be running: it asks for 900Gi of memory, and no node has more than 16Gi of"
    " memory; ask for less, or add a node (fail_fast=false waits all the same)"
)


def test_memory_that_no_node_has(crowded: World, task: Task) -> None:
    with pytest.raises(VirtError) as caught:
        task(wait=True, wait_timeout=60, **MACHINE)

    assert caught.value.message == TOO_LARGE
    assert not isinstance(caught.value, TimedOut)
    assert caught.value.facts["changed"] is True
    assert caught.value.facts["reason"] in TOO_LARGE


def test_a_pod_that_can_be_read_says_exactly_what_is_asked_for(crowded: World, task: Task) -> None:
    task(**MACHINE)
    uid = crowded.objects[INSTANCE]["metadata"]["uid"]
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    metadata = {"name": "launcher", "namespace": "default", "labels": {"kubevirt.io/created-by": uid}}
    containers = [{"resources": {"requests": {"memory": "17Gi"}}}]
    crowded.put("pods", {"metadata": metadata, "spec": {"containers": containers}, "status": {"conditions": [why]}})
    with pytest.raises(VirtError, match="it asks for 17Gi of memory, and no node has more than 16Gi"):
        task(wait=True, wait_timeout=60, **MACHINE)


@pytest.mark.parametrize(
    ("options", "unreadable"),
    [
        pytest.param({"fail_fast": False, "memory": "900Gi"}, "nowhere", id="on demand"),
        pytest.param({"memory": "8Gi"}, "nowhere", id="another machine may stop"),
        pytest.param({"memory": "900Gi"}, "/nodes", id="nodes cannot be read"),
    ],
)
def test_a_wait_that_goes_on(crowded: World, task: Task, options: dict[str, Any], unreadable: str) -> None:
    crowded.mischief = lambda _method, path: FORBIDDEN if unreadable in path else None
    with pytest.raises(TimedOut, match="not running after 1 s: Unschedulable: 0/1 nodes are available"):
        task(wait=True, wait_timeout=1, **options)


@pytest.mark.parametrize(
    ("reason", "message"),
    [("FailedPvcNotFound", "PersistentVolumeClaim default/data not found"), ("ImagePullBackOff", "x: not found")],
)
def test_a_missing_claim_or_image(world: World, task: Task, api: Api, reason: str, message: str) -> None:
    in_state(world, reason, message)
    with pytest.raises(VirtError, match=f"default/web will not be running: {reason}: {message}; .*waits all the same"):
        task(wait=True, wait_timeout=60, **MACHINE)
    options = {"name": "web", "namespace": "default", "wait": True, "wait_timeout": 60}
    with pytest.raises(VirtError, match=f"will not be running: {reason}"):
        info.virtual_machines(options, api)
    with pytest.raises(VirtError, match=f"will not be ready: {reason}"):
        info.instances(options, api)
    with pytest.raises(TimedOut):
        info.instances({**options, "fail_fast": False, "wait_timeout": 1}, api)


def test_one_of_several_machines(world: World, task: Task) -> None:
    task(name="good", memory="1Gi")
    in_state(world, "FailedPvcNotFound", "no claim")
    with pytest.raises(VirtError, match=r"1 of 2 VMs failed: .*default/bad will not be running") as caught:
        task(vms=[{"name": "good"}, {"name": "bad"}], wait=True, wait_timeout=60, memory="1Gi")

    assert [item.get("failed", False) for item in caught.value.facts["results"]] == [False, True]


def test_a_stopped_or_deleted_machine_is_waited_for(world: World, task: Task) -> None:
    in_state(world, "FailedPvcNotFound", "no claim")
    task(**MACHINE)
    assert task(state="stopped", wait=True)["changed"] is True
    assert task(state="absent", wait=True)["changed"] is True


def test_an_instance_of_its_own(crowded: World, of_instances: Task) -> None:
    why = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    of_instances(**MACHINE)
    crowded.objects[INSTANCE]["status"] = {"phase": "Scheduling", "conditions": [why]}
    with pytest.raises(VirtError, match="VirtualMachineInstance default/web will not be ready: it asks for 900Gi"):
        of_instances(wait=True, wait_timeout=60, **MACHINE)


def test_a_member_of_a_set(crowded: World, of_sets: Task, of_pools: Task) -> None:
    labels = {"labels": {"app": "web"}, "replicas": 1}
    of_sets(**labels, **MACHINE)
    owner = {"uid": crowded.objects["virtualmachineinstancereplicasets", "default", "web"]["metadata"]["uid"]}
    metadata = {"name": "web1", "namespace": "default", "labels": {"app": "web"}, "ownerReferences": [owner]}
    why = {"type": "Synchronized", "status": "False", "reason": "ErrImagePull", "message": "not found"}
    crowded.put("virtualmachineinstances", {"metadata": metadata, "status": {"conditions": [why]}})
    with pytest.raises(VirtError, match="Set default/web will not be ready: web1: ErrImagePull: not found; correct"):
        of_sets(wait=True, wait_timeout=60, **labels, **MACHINE)
    with pytest.raises(VirtError, match="Pool default/web will not be ready: web-0: it asks for 900Gi of memory"):
        of_pools(wait=True, wait_timeout=60, **labels, **MACHINE)


def test_a_machine_that_keeps_a_pool_from_changing_the_others(world: World, of_pools: Task) -> None:
    options = {"labels": {"app": "web"}, "replicas": 2, "image": "registry/guest:1", "wait": True}
    of_pools(memory="1Gi", **options)
    world.pools_change = False
    why = {"type": "Synchronized", "status": "False", "reason": "ErrImagePull", "message": "not found"}
    world.vm("web-1")["status"]["conditions"] = [why]
    with pytest.raises(VirtError, match="Pool default/web will not be ready: web-1: ErrImagePull: not found") as caught:
        of_pools(memory="2Gi", wait_timeout=60, **options)

    assert caught.value.facts["changed"] is True
    with pytest.raises(TimedOut):
        of_pools(memory="3Gi", wait_timeout=1, fail_fast=False, **options)
