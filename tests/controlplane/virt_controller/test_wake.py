# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes which key."""

from __future__ import annotations

from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.virt_controller.wake import connect
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.store import RESOURCES, Store

WEB = Key("default", "web")


def test_changes_wake_their_keys() -> None:
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in RESOURCES}
    woken: list[str] = []
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        nodes=caches[NODE],
        vmi_of=lambda _unused: None,
        wake_vm=lambda key: woken.append(f"vm {key}"),
        wake_vmi=lambda key: woken.append(f"vmi {key}"),
    )
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    other = {"kind": "ReplicaSet", "name": "x", "uid": "v", "controller": True}
    expected = []
    for resource, meta, keys in (
        (VIRTUAL_MACHINE, {}, ["vm default/web"]),
        (VIRTUAL_MACHINE_INSTANCE, {}, ["vmi default/web", "vm default/web"]),
        (POD, {"ownerReferences": [owner]}, ["vmi default/web"]),
        (POD, {"name": "foreign", "ownerReferences": [other]}, []),
    ):
        store.create(resource, "default", {"metadata": {"name": "web", **meta}, "spec": {}})
        caches[resource].advance()
        expected += keys
        assert woken == expected


def test_a_pod_that_goes_wakes_its_vmi() -> None:
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in RESOURCES}
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    store.create(POD, "default", {"metadata": {"name": "web", "ownerReferences": [owner]}, "spec": {}})
    woken: list[Key] = []
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        nodes=caches[NODE],
        vmi_of=lambda _unused: None,
        wake_vm=lambda _unused: None,
        wake_vmi=woken.append,
    )
    caches[POD].start()
    store.delete(POD, WEB)
    caches[POD].advance()
    assert woken == [WEB, WEB]


def test_only_what_proves_something_about_a_node_wakes_its_instances() -> None:
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in RESOURCES}
    here, there = ({"status": {"nodeName": name}} for name in ("node-1", "node-2"))
    for name, status in (("web", here), ("db", there)):
        store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": name}, "spec": {}})
        store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), status, subresource="status")
    node = Key("", "node-1")
    store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    woken: list[Key] = []
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        nodes=caches[NODE],
        vmi_of=lambda _unused: None,
        wake_vm=lambda _unused: None,
        wake_vmi=woken.append,
    )
    for one in caches.values():
        one.start()
    woken.clear()
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    for patch, wakes in (
        ({"metadata": {"labels": {"a": "b"}}}, []),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}}, []),
        ({"spec": {"taints": [taint]}}, [WEB]),
    ):
        store.patch(NODE, node, patch)
        caches[NODE].advance()
        assert woken == wakes
    store.delete(NODE, node)
    caches[NODE].advance()
    assert woken == [WEB, WEB]


def test_a_pod_wakes_the_vmi_for_which_it_is_looked_at_whatever_it_says_of_its_owner() -> None:
    """The garbage collector takes the owner off the Pods of an object that is deleted and leaves them behind."""
    store = Store(SimulatedClock())
    caches = {one: LaggingCache(store, one) for one in RESOURCES}
    woken: list[Key] = []
    pod = Key("default", "virt-launcher-web-1")
    connect(
        vms=caches[VIRTUAL_MACHINE],
        vmis=caches[VIRTUAL_MACHINE_INSTANCE],
        pods=caches[POD],
        nodes=caches[NODE],
        vmi_of={pod: WEB}.get,
        wake_vm=lambda _unused: None,
        wake_vmi=woken.append,
    )
    store.create(POD, "default", {"metadata": {"name": pod.name}, "spec": {}})
    store.delete(POD, pod)
    for _unused in range(2):
        caches[POD].advance()
    assert woken == [WEB, WEB]
