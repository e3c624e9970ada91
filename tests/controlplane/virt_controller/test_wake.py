# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change wakes which key."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from kubevirt_api.names import POOL_TEMPLATE

from controlplane.api.objects.resources import (
    KUBEVIRT,
    LEASE,
    NODE,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
    Resource,
)
from controlplane.kube.cache import Store as CacheStore
from controlplane.virt_controller.node.decide import USUAL_SECONDS
from controlplane.virt_controller.wake import (
    connect,
    connect_configuration,
    connect_nodes,
    connect_pools,
    connect_replica_sets,
)
from tests.controlplane.simulation.cache import LaggingCache
from tests.controlplane.simulation.clock import SimulatedClock
from tests.controlplane.simulation.store import RESOURCES, WITH_POOLS, WITH_SETS, Store

WEB = Key("default", "web")


class Stage:
    """Caches of a store, connected; what they wake."""

    def __init__(self, vmi_of: Callable[[Key], Key | None] = lambda _unused: None) -> None:
        self.store = Store(SimulatedClock())
        self.caches = {one: LaggingCache(self.store, one) for one in RESOURCES}
        self.woken: list[str] = []
        connect(
            vms=self.caches[VIRTUAL_MACHINE],
            vmis=self.caches[VIRTUAL_MACHINE_INSTANCE],
            pods=self.caches[POD],
            nodes=self.caches[NODE],
            vmi_of=vmi_of,
            wake_vm=lambda key: self.woken.append(f"vm {key}"),
            wake_vmi=lambda key: self.woken.append(f"vmi {key}"),
        )


def a_configuration(version: int, *, emulates: bool, phase: str = "") -> bytes:
    meta = {"name": "kubevirt", "namespace": "kubevirt", "uid": "k", "resourceVersion": str(version)}
    spec = {"configuration": {"developerConfiguration": {"useEmulation": emulates}}}
    return msgspec.json.encode({"metadata": meta, "spec": spec, "status": {"phase": phase}})


def test_a_configuration_wakes_what_has_no_node_yet() -> None:
    """A Pod that was made by the former one may wait for ever; whoever has a node keeps what it was made with."""
    stage, kubevirts, woken = Stage(), CacheStore(KUBEVIRT), []
    for name, status in (("web", {"nodeName": "node-1"}), ("db", {"phase": "Scheduling"})):
        stage.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": name}, "spec": {}})
        stage.store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), {"status": status}, subresource="status")
    stage.caches[VIRTUAL_MACHINE_INSTANCE].start()
    connect_configuration(kubevirts, stage.caches[VIRTUAL_MACHINE_INSTANCE], lambda key: woken.append(str(key)))
    for emulates, phase, wakes in (
        (False, "", ["default/db"]),
        (False, "Deployed", []),
        (True, "Deployed", ["default/db"]),
    ):
        woken.clear()
        kubevirts.put(a_configuration(len(phase) + emulates + 1, emulates=emulates, phase=phase))
        assert woken == wakes, (emulates, phase)
    woken.clear()
    kubevirts.remove(Key("kubevirt", "kubevirt"))
    assert woken == ["default/db"]


def test_changes_wake_their_keys() -> None:
    stage = Stage()
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    other = {"kind": "ReplicaSet", "name": "x", "uid": "v", "controller": True}
    expected = []
    for resource, meta, keys in (
        (VIRTUAL_MACHINE, {}, ["vm default/web"]),
        (VIRTUAL_MACHINE_INSTANCE, {}, ["vmi default/web", "vm default/web"]),
        (POD, {"ownerReferences": [owner]}, ["vmi default/web"]),
        (POD, {"name": "listed", "ownerReferences": [{"kind": "Job", "name": "y"}, owner]}, ["vmi default/web"]),
        (POD, {"name": "foreign", "ownerReferences": [other]}, []),
    ):
        stage.store.create(resource, "default", {"metadata": {"name": "web", **meta}, "spec": {}})
        stage.caches[resource].advance()
        expected += keys
        assert stage.woken == expected


def test_a_pod_that_goes_wakes_its_vmi() -> None:
    stage = Stage()
    owner = {"kind": "VirtualMachineInstance", "name": "web", "uid": "u", "controller": True}
    stage.store.create(POD, "default", {"metadata": {"name": "web", "ownerReferences": [owner]}, "spec": {}})
    stage.caches[POD].start()
    stage.store.delete(POD, WEB)
    stage.caches[POD].advance()
    assert stage.woken == ["vmi default/web"] * 2


def test_a_pod_wakes_the_vmi_for_which_it_is_looked_at_whatever_it_says_of_its_owner() -> None:
    """The garbage collector takes the owner off the Pods of an object that is deleted and leaves them behind."""
    pod = Key("default", "virt-launcher-web-1")
    stage = Stage({pod: WEB}.get)
    stage.store.create(POD, "default", {"metadata": {"name": pod.name}, "spec": {}})
    stage.store.delete(POD, pod)
    for _unused in range(2):
        stage.caches[POD].advance()
    assert stage.woken == ["vmi default/web"] * 2


def test_only_what_proves_something_about_a_node_wakes_its_instances() -> None:
    stage = Stage()
    store, nodes, node = stage.store, stage.caches[NODE], Key("", "node-1")
    for name, where in (("web", "node-1"), ("db", "node-2")):
        store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": name}, "spec": {}})
        status = {"status": {"nodeName": where}}
        store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), status, subresource="status")
    store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    for one in stage.caches.values():
        one.start()
    stage.woken.clear()
    taint = {"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}
    for patch, wakes in (
        ({"metadata": {"labels": {"a": "b"}}}, []),
        ({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}}, []),
        ({"spec": {"taints": [taint]}}, ["vmi default/web"]),
    ):
        store.patch(NODE, node, patch)
        nodes.advance()
        assert stage.woken == wakes
    store.delete(NODE, node)
    nodes.advance()
    assert stage.woken == ["vmi default/web"] * 2


def test_a_quarantine_wakes_what_has_no_node_yet() -> None:
    stage = Stage()
    for name, status in (("web", {"nodeName": "node-2"}), ("db", {"phase": "Scheduling"})):
        stage.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": name}, "spec": {}})
        stage.store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), {"status": status}, subresource="status")
    stage.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    for one in stage.caches.values():
        one.start()
    stage.woken.clear()
    for value in ("20260101T000000Z", None):
        patch = {"metadata": {"labels": {"virtops.kubevirt/quarantined": value}}}
        stage.store.patch(NODE, Key("", "node-1"), patch)
        stage.caches[NODE].advance()
    assert stage.woken == ["vmi default/db"] * 2


def test_a_node_that_is_deleted_while_it_serves_wakes_its_instances() -> None:
    stage = Stage()
    stage.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": "web"}, "spec": {}})
    status = {"status": {"nodeName": "node-1"}}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", "web"), status, subresource="status")
    stage.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    for one in stage.caches.values():
        one.start()
    stage.woken.clear()
    stage.store.delete(NODE, Key("", "node-1"))
    stage.caches[NODE].advance()
    assert stage.woken == ["vmi default/web"]


def test_whether_a_node_takes_machines_wakes_the_instances_that_its_virt_handler_is_to_start() -> None:
    """One that runs waits for nobody, and there may be a hundred on a node."""
    stage = Stage()
    store, node = stage.store, Key("", "node-1")
    for name, where, phase in (
        ("web", "node-1", "Scheduled"),
        ("up", "node-1", "Running"),
        ("db", "node-2", "Scheduled"),
    ):
        store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": name}, "spec": {}})
        status = {"status": {"nodeName": where, "phase": phase}}
        store.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), status, subresource="status")
    store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    for one in stage.caches.values():
        one.start()
    for value in ("true", "false"):
        stage.woken.clear()
        store.patch(NODE, node, {"metadata": {"labels": {"kubevirt.io/schedulable": value}}})
        stage.caches[NODE].advance()
        assert stage.woken == ["vmi default/web"], value


def test_a_node_is_looked_at_when_it_comes_goes_or_says_otherwise_whether_it_takes_machines() -> None:
    woken: list[str] = []
    store = Store(SimulatedClock())
    nodes, leases = LaggingCache(store, NODE), LaggingCache(store, LEASE)
    connect_nodes(nodes, leases, lambda key: woken.append(key.name))
    key = Key("", "node-1")

    def happens(write: Callable[[], object]) -> int:
        woken.clear()
        write()
        nodes.advance()
        leases.advance()
        return len(woken)

    assert happens(lambda: store.create(NODE, "", {"metadata": {"name": "node-1"}})) == 1
    label = {"metadata": {"labels": {"kubevirt.io/schedulable": "true"}}}
    assert happens(lambda: store.patch(NODE, key, label)) == 1
    assert happens(lambda: store.patch(NODE, key, {"metadata": {"labels": {"zone": "a"}}})) == 0
    assert happens(lambda: store.delete(NODE, key)) == 1


def test_a_lease_that_is_to_last_otherwise_has_its_node_looked_at_and_one_that_is_renewed_does_not() -> None:
    """Who looks again when the former duration is over would take forty seconds for the five that are said."""
    woken: list[Key] = []
    store = Store(SimulatedClock())
    nodes, leases = LaggingCache(store, NODE), LaggingCache(store, LEASE)
    connect_nodes(nodes, leases, woken.append)
    key = Key("kubevirt", "virt-handler-node-1")

    def happens(write: Callable[[], object]) -> list[Key]:
        woken.clear()
        write()
        leases.advance()
        return list(woken)

    def says(key: Key, **spec: object) -> Callable[[], object]:
        return lambda: store.patch(LEASE, key, {"spec": spec})

    lease = {"metadata": {"name": key.name}, "spec": {"leaseDurationSeconds": USUAL_SECONDS}}
    assert happens(lambda: store.create(LEASE, key.namespace, lease)) == []
    assert happens(says(key, renewTime="2026-01-01T00:00:00.000000Z")) == []
    assert happens(says(key, leaseDurationSeconds=5)) == [Key("", "node-1")]
    assert happens(says(key, renewTime="2026-01-01T00:00:10.000000Z")) == []
    assert happens(says(key, leaseDurationSeconds="five")) == [Key("", "node-1")], "what cannot be read lasts as usual"
    other = Key("kubevirt", "virt-controller")
    store.create(LEASE, other.namespace, {"metadata": {"name": other.name}, "spec": {"leaseDurationSeconds": 15}})
    assert happens(says(other, leaseDurationSeconds=5)) == [], "that is not a node's"


def test_what_a_set_decides_by_wakes_it_and_nothing_else_does() -> None:
    """It may have thousands of instances, each of which is written ten times while it starts."""
    store, woken = Store(SimulatedClock(), WITH_SETS), []
    sets, vmis = (LaggingCache(store, one) for one in (VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE))
    connect_replica_sets(replica_sets=sets, vmis=vmis, wake=lambda key: woken.append(str(key)))

    def happens(write: Callable[[], object]) -> list[str]:
        woken.clear()
        write()
        for cache in (sets, vmis):
            cache.advance()
        return sorted(woken)

    def make(name: str, namespace: str = "default", *owners: dict[str, object]) -> Callable[[], object]:
        body = {"metadata": {"name": name, "ownerReferences": list(owners)}, "spec": {}}
        return lambda: store.create(VIRTUAL_MACHINE_INSTANCE, namespace, body)

    def write(name: str, **patch: object) -> Callable[[], object]:
        key, where = Key("default", name), "status" if "status" in patch else ""
        return lambda: store.patch(VIRTUAL_MACHINE_INSTANCE, key, patch, subresource=where)

    for namespace, name in (("default", "web"), ("default", "db"), ("shop", "web")):
        body = {"metadata": {"name": name}, "spec": {}}
        made = happens(lambda at=namespace, what=body: store.create(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, at, what))
        assert made == [f"{namespace}/{name}"]
    owner = {"kind": "VirtualMachineInstanceReplicaSet", "name": "web", "uid": "u", "controller": True}
    ready = [{"type": "Ready", "status": "True"}]
    assert happens(make("a", "default", owner)) == ["default/web"]
    assert happens(write("a", status={"phase": "Scheduling"})) == []
    assert happens(write("a", status={"phase": "Running", "nodeName": "n"})) == []
    assert happens(write("a", status={"conditions": ready})) == ["default/web"]
    assert happens(write("a", status={"phase": "Failed"})) == ["default/web"]
    assert happens(write("a", metadata={"ownerReferences": None})) == ["default/db", "default/web"], (
        "who lost and may win"
    )
    assert happens(write("a", metadata={"annotations": {"a": "b"}})) == []
    assert happens(write("a", metadata={"labels": {"a": "b"}})) == ["default/db", "default/web"]
    assert happens(make("of a machine", "default", {**owner, "kind": "VirtualMachine"})) == []
    assert happens(make("in another namespace", "kube")) == []
    assert happens(write("a", metadata={"ownerReferences": [owner]})) == ["default/db", "default/web"]
    assert happens(lambda: store.delete(VIRTUAL_MACHINE_INSTANCE, Key("default", "a"))) == ["default/web"]


def test_what_a_pool_decides_by_wakes_it_and_nothing_else_does() -> None:
    store, woken = Store(SimulatedClock(), WITH_POOLS), []
    kinds = (VIRTUAL_MACHINE_POOL, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
    pools, vms, vmis = caches = [LaggingCache(store, one) for one in kinds]
    connect_pools(pools=pools, vms=vms, vmis=vmis, wake=lambda key: woken.append(str(key)))

    def happens(write: Callable[[], object]) -> list[str]:
        woken.clear()
        write()
        for cache in caches:
            cache.advance()
        return sorted(woken)

    def write(resource: Resource, **patch: object) -> Callable[[], object]:
        where = "status" if "status" in patch else ""
        return lambda: store.patch(resource, Key("default", "web-0"), patch, subresource=where)

    def make(resource: Resource, kind: str) -> Callable[[], object]:
        owner = {"kind": kind, "name": "web", "uid": "u", "controller": True}
        meta = {"name": "web-0", "ownerReferences": [owner]}
        return lambda: store.create(resource, "default", {"metadata": meta, "spec": {}})

    pool = {"metadata": {"name": "web"}, "spec": {}}
    ready = {"conditions": [{"type": "Ready", "status": "True"}], "phase": "Running"}
    assert happens(lambda: store.create(VIRTUAL_MACHINE_POOL, "default", pool)) == ["default/web"]
    assert happens(make(VIRTUAL_MACHINE, "VirtualMachinePool")) == ["default/web"]
    assert happens(write(VIRTUAL_MACHINE, status={"printableStatus": "Starting"})) == []
    assert happens(make(VIRTUAL_MACHINE_INSTANCE, "VirtualMachine")) == ["default/web"]
    assert happens(write(VIRTUAL_MACHINE_INSTANCE, status={"phase": "Scheduled"})) == []
    assert happens(write(VIRTUAL_MACHINE_INSTANCE, status=ready)) == ["default/web"]
    assert happens(write(VIRTUAL_MACHINE, status=ready)) == ["default/web"]
    assert happens(write(VIRTUAL_MACHINE, metadata={"annotations": {"a": "b"}})) == []
    assert happens(write(VIRTUAL_MACHINE, metadata={"labels": {"a": "b"}})) == ["default/web"]
    made_of = {"template": {"metadata": {"annotations": {POOL_TEMPLATE: "a.b"}}}}
    assert happens(write(VIRTUAL_MACHINE, spec=made_of)) == ["default/web"]
    assert happens(lambda: store.delete(VIRTUAL_MACHINE_INSTANCE, Key("default", "web-0"))) == ["default/web"]
    assert happens(lambda: store.delete(VIRTUAL_MACHINE, Key("default", "web-0"))) == ["default/web"]
