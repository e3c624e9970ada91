# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change of which object enqueues which keys of which controllers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubevirt_api.names import (
    CONTROL_PLANE_IMAGE,
    FURTHER_ATTEMPTS,
    MIGRATION_JOB,
    OUTDATED_LAUNCHER,
    POOL_TEMPLATE,
    QUARANTINED,
    SCHEDULABLE,
)

from controlplane.api.objects.node import DRAIN, OUT_OF_SERVICE
from controlplane.api.objects.resources import (
    DATA_VOLUME,
    KUBEVIRT,
    LEASE,
    NODE,
    PERSISTENT_VOLUME_CLAIM,
    POD,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    VIRTUAL_MACHINE_INSTANCE_REPLICA_SET,
    VIRTUAL_MACHINE_POOL,
    Key,
    Resource,
)
from controlplane.virt_controller.node.decide import USUAL_SECONDS
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.virt_controller.data_volumes import BY_CDI, DISK
from tests.controlplane.virt_controller.watched_cluster import Enqueued, Json, WatchedCluster

VM, VMI, MIGRATION = VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_MIGRATION
SET, POOL, CLAIM = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_POOL, PERSISTENT_VOLUME_CLAIM
WEB, PLACED, MOVING = Key("default", "web"), Key("default", "db"), Key("default", "moving")
LEAVING, POD_KEY, DISK_KEY = Key("default", "leaving"), Key("default", "pod"), Key("default", "disk")
KUBEVIRT_KEY, NODE_1, LEASE_1 = Key("kubevirt", "kubevirt"), Key("", "node-1"), Key("kubevirt", "virt-handler-node-1")
WITH_DISK: Json = {"volumes": [DISK]}
BY_DISK = {("vm", "default/web"), ("vmi", "default/web")}
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


def owned_by(kind: str, name: str = "web", **more: Any) -> Json:
    return {"metadata": {"ownerReferences": [{"kind": kind, "name": name, "uid": "u", "controller": True}]}, **more}


def migrating(*, completed: bool, node: str = "node-1") -> Json:
    state = {"migrationUid": "uid", "completed": completed}
    return {"spec": {}, "status": {"phase": "Running", "nodeName": node, "migrationState": state}}


def placed(**status: Any) -> Json:
    return {"spec": {}, "status": {"phase": "Running", "nodeName": "node-1", **status}}


def readable(**more: Any) -> Json:
    return {**placed(), "spec": {"domain": {}}, **more}


def on_disk(phase: str, **status: Any) -> Json:
    return {**placed(phase=phase, **status), "spec": WITH_DISK}


def pod_on_disk(vmi: str, phase: str = "Running", claim: str = "disk") -> Json:
    spec = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}
    return owned_by("VirtualMachineInstance", vmi, spec=spec, status={"phase": phase})


def migration(phase: str, vmi: str = "moving") -> Json:
    return {"spec": {"vmiName": vmi}, "status": {"phase": phase}}


def keys(controllers: str, key: Key) -> Enqueued:
    return {(controller, str(key)) for controller in controllers.split()}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> WatchedCluster:
    """A VM and VMI without a node that name a disk, VMIs on nodes, migrations, a replica set and a pool."""
    monkeypatch.setattr(VmiReconciler, "vmi_of", lambda _self, pod: WEB if pod.name == "granted" else None)
    return filled_cluster()


def filled_cluster() -> WatchedCluster:
    cluster = WatchedCluster()
    for resource, key, body in (
        (NODE, NODE_1, {}),
        (VM, WEB, {"spec": {"template": {"spec": WITH_DISK}}}),
        (VMI, WEB, {"spec": WITH_DISK, "status": {"phase": "Pending"}}),
        (VMI, PLACED, placed()),
        (SET, WEB, {"spec": {}}),
        (VMI, MOVING, owned_by("VirtualMachine", status={"nodeName": "n"})),
        (MIGRATION, Key("default", "moves"), migration("Running")),
        (MIGRATION, Key("default", "moved"), migration("Succeeded")),
        (VMI, LEAVING, owned_by("VirtualMachine") | migrating(completed=False, node="n")),
        (POOL, WEB, {"spec": {}}),
        (KUBEVIRT, KUBEVIRT_KEY, {"spec": {}}),
    ):
        cluster.put(resource, key, body)
    return cluster


Change = Callable[[WatchedCluster], Enqueued]


def put(resource: Resource, key: Key, body: Json) -> Change:
    return lambda cluster: cluster.put(resource, key, body)


def remove(resource: Resource, key: Key) -> Change:
    return lambda cluster: cluster.remove(resource, key)


def in_order(*changes: Change) -> Change:
    """Make all changes; return what the last one enqueues."""
    return lambda cluster: [change(cluster) for change in changes][-1]


OF_MOVING = owned_by("VirtualMachineInstance", "moving")
OTHER_TAINT = {"spec": {"taints": [{"key": "example.com/out", "effect": "NoSchedule"}]}}
BOTH_MIGRATIONS = {("migration", "default/moves"), ("migration", "default/moved")}
CHANGES: dict[str, tuple[Change, Enqueued]] = {
    "a VM": (put(VM, WEB, {"spec": {}}), keys("vm", WEB)),
    "a VMI": (put(VMI, PLACED, placed(phase="Failed")), keys("vm vmi", PLACED) | keys("replicaset", WEB)),
    "a VMI with the same disk ends": (
        in_order(put(VMI, PLACED, on_disk("Running")), put(VMI, PLACED, on_disk("Failed"))),
        keys("vm vmi", PLACED) | keys("vmi replicaset", WEB),
    ),
    "a VMI with the same disk is deleted": (
        in_order(put(VMI, PLACED, on_disk("Running")), remove(VMI, PLACED)),
        keys("vm vmi", PLACED) | keys("vmi replicaset", WEB),
    ),
    "a VMI with the same disk is replaced under its name while a watch is broken": (
        in_order(
            put(VMI, PLACED, on_disk("Running")),
            lambda cluster: cluster.put(VMI, PLACED, on_disk("Running"), uid="new"),
        ),
        keys("vm vmi", PLACED) | keys("vmi replicaset", WEB),
    ),
    "a VMI with the same disk is final": (
        in_order(put(VMI, PLACED, on_disk("Failed")), remove(VMI, PLACED)),
        keys("vm vmi", PLACED) | keys("replicaset", WEB),
    ),
    "a VMI with the same disk as a Pod is granted the start": (
        in_order(
            put(POD, POD_KEY, pod_on_disk("moving")),
            put(VMI, PLACED, on_disk("Scheduling")),
            put(VMI, PLACED, on_disk("Scheduled")),
        ),
        keys("vm vmi", PLACED) | keys("vmi", MOVING),
    ),
    "a VMI with the same disk as a Pod gives up its own": (
        in_order(
            put(POD, POD_KEY, pod_on_disk("moving")),
            put(VMI, PLACED, on_disk("Scheduling", attempt=1)),
            put(VMI, PLACED, on_disk("Scheduling", attempt=2)),
        ),
        keys("vm vmi", PLACED) | keys("vmi", MOVING),
    ),
    "another field of a VMI with the same disk as a Pod": (
        in_order(
            put(POD, POD_KEY, pod_on_disk("moving")),
            put(VMI, PLACED, on_disk("Running")),
            put(VMI, PLACED, on_disk("Running", qosClass="Burstable")),
        ),
        keys("vm vmi", PLACED),
    ),
    "a second Pod with the same disk": (
        in_order(put(POD, POD_KEY, pod_on_disk("moving")), put(POD, Key("default", "p"), pod_on_disk("db"))),
        keys("vmi", MOVING) | keys("vmi", PLACED),
    ),
    "a Pod with the same disk is over": (
        in_order(put(POD, POD_KEY, pod_on_disk("db")), put(POD, POD_KEY, pod_on_disk("db", "Succeeded"))),
        keys("vmi", PLACED) | keys("vmi", WEB),
    ),
    "a Pod with the same disk is deleted": (
        in_order(put(POD, POD_KEY, pod_on_disk("db")), remove(POD, POD_KEY)),
        keys("vmi", PLACED) | keys("vmi", WEB),
    ),
    "a Pod with the same disk changes": (
        in_order(put(POD, POD_KEY, pod_on_disk("db", "Pending")), put(POD, POD_KEY, pod_on_disk("db"))),
        keys("vmi", PLACED),
    ),
    "a Pod with the same disk that is over is deleted": (
        in_order(put(POD, POD_KEY, pod_on_disk("db", "Failed")), remove(POD, POD_KEY)),
        keys("vmi", PLACED),
    ),
    "a Pod with another disk is deleted": (
        in_order(put(POD, POD_KEY, pod_on_disk("db", claim="x")), remove(POD, POD_KEY)),
        keys("vmi", PLACED),
    ),
    "a Pod": (put(POD, POD_KEY, owned_by("VirtualMachineInstance")), keys("vmi", WEB)),
    "a Pod without an owner": (put(POD, POD_KEY, {}), set()),
    "a Pod with a foreign controller": (put(POD, POD_KEY, owned_by("ReplicaSet")), set()),
    "an orphaned Pod with the name of a granted one": (put(POD, Key("default", "granted"), {}), keys("vmi", WEB)),
    "a migration": (
        put(MIGRATION, Key("default", "job"), migration("", "db")),
        {("migration", "default/job"), ("evacuation", "default/db")},
    ),
    "a migration becomes final": (
        put(MIGRATION, Key("default", "moves"), migration("Failed")),
        BOTH_MIGRATIONS | keys("evacuation", MOVING),
    ),
    "a VMI with a migration": (
        put(VMI, MOVING, owned_by("VirtualMachine", status={"nodeName": "n", "phase": "Running"})),
        keys("vm vmi", MOVING) | {("migration", "default/moves")},
    ),
    "a Pod of a VMI with a migration": (
        put(POD, POD_KEY, OF_MOVING),
        keys("vmi", MOVING) | {("migration", "default/moves")},
    ),
    "a VMI with migrations is deleted": (remove(VMI, MOVING), keys("vm vmi", MOVING) | BOTH_MIGRATIONS),
    "a migration is deleted": (
        remove(MIGRATION, Key("default", "moves")),
        keys("evacuation orphan", MOVING) | {("migration", "default/moves")},
    ),
    "a final migration is deleted": (
        remove(MIGRATION, Key("default", "moved")),
        keys("evacuation orphan", MOVING) | BOTH_MIGRATIONS,
    ),
    "a migration is replaced under its name while a watch is broken": (
        lambda cluster: cluster.put(MIGRATION, Key("default", "moves"), migration("Running", "db"), uid="new"),
        {("migration", "default/moves"), *keys("evacuation orphan", MOVING), ("evacuation", "default/db")},
    ),
    "a VMI begins to migrate": (put(VMI, PLACED, migrating(completed=False)), keys("vm vmi orphan", PLACED)),
    "a VMI with a completed migration": (put(VMI, PLACED, migrating(completed=True)), keys("vm vmi", PLACED)),
    "a VMI is first seen with a completed migration": (
        put(VMI, Key("default", "new"), owned_by("VirtualMachine") | migrating(completed=True)),
        keys("vm vmi orphan", Key("default", "new")),
    ),
    "the migration of a VMI completes": (
        put(VMI, LEAVING, owned_by("VirtualMachine") | migrating(completed=True, node="n")),
        keys("vm vmi orphan", LEAVING),
    ),
    "a VMI has moved": (put(VMI, PLACED, migrating(completed=True, node="node-2")), keys("vm vmi orphan", PLACED)),
    "the target Pod of a migration": (
        put(POD, POD_KEY, {"metadata": {**OF_MOVING["metadata"], "labels": {MIGRATION_JOB: "uid"}}}),
        keys("vmi orphan", MOVING) | {("migration", "default/moves")},
    ),
    "an eviction of a VMI": (put(VMI, PLACED, placed(evacuationNodeName="node-1")), keys("vm vmi evacuation", PLACED)),
    "the eviction of a VMI is called off": (
        in_order(put(VMI, PLACED, placed(evacuationNodeName="node-1")), put(VMI, PLACED, placed())),
        keys("vm vmi evacuation", PLACED),
    ),
    "a node is drained": (
        put(NODE, NODE_1, {"spec": {"taints": [{"key": DRAIN, "effect": "NoSchedule"}]}}),
        keys("evacuation", PLACED),
    ),
    "the configuration, which names the taint of a node as the one that drains": (
        in_order(
            put(NODE, NODE_1, OTHER_TAINT),
            put(
                KUBEVIRT,
                KUBEVIRT_KEY,
                {"spec": {"configuration": {"migrations": {"nodeDrainTaintKey": "example.com/out"}}}},
            ),
        ),
        keys("kubevirt workload-update", KUBEVIRT_KEY)
        | keys("vmi", WEB)
        | keys("evacuation", PLACED)
        | {("quarantine", "")},
    ),
    "a replica set": (put(SET, WEB, {"spec": {}}), keys("replicaset", WEB)),
    "a member of a replica set": (
        put(VMI, Key("default", "a"), owned_by("VirtualMachineInstanceReplicaSet")),
        keys("vm vmi", Key("default", "a")) | keys("replicaset", WEB),
    ),
    "a pool": (put(POOL, WEB, {"spec": {}}), keys("pool", WEB)),
    "a member of a pool": (
        put(VM, Key("default", "a"), owned_by("VirtualMachinePool")),
        keys("vm", Key("default", "a")) | keys("pool", WEB),
    ),
    "the VMI of a member of a pool": (
        in_order(put(VM, PLACED, owned_by("VirtualMachinePool")), put(VMI, PLACED, placed(phase="Failed"))),
        keys("vm vmi", PLACED) | keys("pool replicaset", WEB),
    ),
    "a claim": (put(CLAIM, DISK_KEY, {}), BY_DISK),
    "a DataVolume": (put(DATA_VOLUME, DISK_KEY, {}), BY_DISK),
    "a Lease with another duration": (put(LEASE, LEASE_1, {"spec": {"leaseDurationSeconds": 5}}), {("node", "node-1")}),
    "a migration while a launcher is outdated": (
        in_order(
            put(VMI, PLACED, readable(metadata={"labels": {OUTDATED_LAUNCHER: ""}})),
            put(MIGRATION, Key("default", "job"), migration("", "db")),
        ),
        {("migration", "default/job"), *keys("evacuation", PLACED), *keys("workload-update", KUBEVIRT_KEY)},
    ),
    "the configuration while a migration waits": (
        in_order(
            put(VMI, PLACED, readable()),
            put(MIGRATION, Key("default", "waits"), migration("Pending", "db")),
            put(KUBEVIRT, KUBEVIRT_KEY, {"spec": {"configuration": {}}}),
        ),
        keys("kubevirt workload-update", KUBEVIRT_KEY)
        | keys("vmi", WEB)
        | {("quarantine", ""), ("migration", "default/waits")},
    ),
    "the configuration": (
        put(KUBEVIRT, KUBEVIRT_KEY, {"spec": {"configuration": {"furtherAttempts": 1}}}),
        keys("kubevirt workload-update", KUBEVIRT_KEY) | keys("vmi", WEB) | {("quarantine", "")},
    ),
    "a setting in an annotation of KubeVirt": (
        put(KUBEVIRT, KUBEVIRT_KEY, {"metadata": {"annotations": {FURTHER_ATTEMPTS: "1"}}, "spec": {}}),
        keys("kubevirt workload-update", KUBEVIRT_KEY) | keys("vmi", WEB) | {("quarantine", "")},
    ),
    "the status of KubeVirt": (
        put(KUBEVIRT, KUBEVIRT_KEY, {"spec": {}, "status": {"phase": "Deployed"}}),
        keys("kubevirt workload-update", KUBEVIRT_KEY) | {("quarantine", "")},
    ),
    "the status of KubeVirt while a node has a taint": (
        in_order(
            put(NODE, NODE_1, OTHER_TAINT),
            put(KUBEVIRT, KUBEVIRT_KEY, {"spec": {}, "status": {"phase": "Deployed"}}),
        ),
        keys("kubevirt workload-update", KUBEVIRT_KEY) | {("quarantine", "")},
    ),
    "the configuration is deleted": (
        remove(KUBEVIRT, KUBEVIRT_KEY),
        keys("kubevirt workload-update", KUBEVIRT_KEY) | keys("vmi", WEB) | {("quarantine", "")},
    ),
    "a node becomes schedulable": (
        put(NODE, NODE_1, {"metadata": {"labels": {SCHEDULABLE: "true"}}}),
        {("node", "node-1"), ("quarantine", "")},
    ),
    "another label of a node": (put(NODE, NODE_1, {"metadata": {"labels": {"zone": "a"}}}), set()),
    "a node is unreachable": (
        put(NODE, NODE_1, {"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}}),
        set(),
    ),
    "a node with another virt-handler": (
        put(NODE, NODE_1, {"metadata": {"annotations": {CONTROL_PLANE_IMAGE: "another"}}}),
        keys("workload-update", KUBEVIRT_KEY),
    ),
    "a node is quarantined": (
        put(NODE, NODE_1, {"metadata": {"labels": {QUARANTINED: "x"}}}),
        keys("vmi", WEB) | {("quarantine", "")},
    ),
    "a node is out of service": (
        put(NODE, NODE_1, {"spec": {"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}}),
        keys("vmi", PLACED),
    ),
    "a node is deleted": (remove(NODE, NODE_1), keys("vmi", PLACED) | {("node", "node-1"), ("quarantine", "")}),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_enqueues(cluster: WatchedCluster, change: str) -> None:
    apply, expected = CHANGES[change]
    assert apply(cluster) == expected


@pytest.mark.usefixtures("cluster")
def test_each_watch_enqueues_after_one_of_these_changes() -> None:
    missing = set(WatchedCluster().watches)
    for apply, _expected in CHANGES.values():
        cluster = filled_cluster()
        apply(cluster)
        missing -= cluster.effective
    assert not missing, "add a row to CHANGES for each"


def test_a_removed_quarantine_enqueues_vmis_without_a_node(cluster: WatchedCluster) -> None:
    cluster.put(NODE, NODE_1, {"metadata": {"labels": {QUARANTINED: "x"}}})
    assert ("vmi", "default/web") in cluster.put(NODE, NODE_1, {})


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_schedulable_node_enqueues_only_the_vmis_that_wait_for_virt_handler(
    cluster: WatchedCluster, value: str
) -> None:
    waiting = Key("default", "waiting")
    cluster.put(VMI, waiting, owned_by("VirtualMachine") | placed(phase="Scheduled"))
    enqueued = cluster.put(NODE, NODE_1, {"metadata": {"labels": {SCHEDULABLE: value}}})
    assert {key for name, key in enqueued if name == "vmi"} == {str(waiting)}


def test_a_deleted_pod_enqueues_its_vmi(cluster: WatchedCluster) -> None:
    cluster.put(POD, POD_KEY, owned_by("VirtualMachineInstance"))
    assert cluster.remove(POD, POD_KEY) == keys("vmi", WEB)


def test_a_lease_enqueues_its_node_only_when_its_duration_changes(cluster: WatchedCluster) -> None:
    def lease(key: Key = LEASE_1, **spec: object) -> Enqueued:
        return cluster.put(LEASE, key, {"spec": spec})

    assert lease(leaseDurationSeconds=USUAL_SECONDS) == set()
    assert lease(leaseDurationSeconds=USUAL_SECONDS, renewTime="2026-01-01T00:00:00.000000Z") == set()
    assert lease(leaseDurationSeconds=5) == {("node", "node-1")}
    assert lease(leaseDurationSeconds=5, renewTime="2026-01-01T00:00:10.000000Z") == set()
    assert lease(leaseDurationSeconds="five") == {("node", "node-1")}, "a malformed Lease has the usual duration"
    other = Key("kubevirt", "virt-controller")
    lease(other, leaseDurationSeconds=15)
    assert lease(other, leaseDurationSeconds=5) == set(), "not the Lease of a node"


def test_a_claim_enqueues_the_objects_that_name_it_when_its_state_changes(cluster: WatchedCluster) -> None:
    bound = {"spec": {"volumeMode": "Block"}, "status": {"phase": "Bound"}}
    for body, expected in (
        ({}, BY_DISK),
        ({"metadata": {"annotations": {"a": "b"}}}, set()),
        (bound, BY_DISK),
        (bound | {"metadata": {"ownerReferences": [BY_CDI]}}, BY_DISK),
        (bound | {"metadata": DELETED}, BY_DISK),
    ):
        assert cluster.put(CLAIM, DISK_KEY, body) == expected, body
    assert cluster.remove(CLAIM, DISK_KEY) == BY_DISK
    assert cluster.put(CLAIM, Key("elsewhere", "disk"), {}) == set(), "another namespace"


def test_a_data_volume_enqueues_the_objects_that_name_it_when_its_state_changes(cluster: WatchedCluster) -> None:
    claimed = {"volumes": [{"name": "a", "persistentVolumeClaim": {"claimName": "disk"}}]}
    cluster.put(VM, Key("default", "by-claim"), {"spec": {"template": {"spec": claimed}}})
    expected = BY_DISK | {("vm", "default/by-claim")}
    filled, owner = {"status": {"phase": "Succeeded"}}, owned_by("VirtualMachine")["metadata"]
    for body, enqueued in (
        ({}, expected),
        ({"status": {"progress": "7%"}}, set()),
        (filled, expected),
        (filled | {"metadata": owner}, expected),
        (filled | {"metadata": owner | DELETED}, expected),
    ):
        assert cluster.put(DATA_VOLUME, DISK_KEY, body) == enqueued, body
    assert cluster.remove(DATA_VOLUME, DISK_KEY) == expected


def test_a_change_of_data_volume_support_enqueues_every_object_with_data_volumes(cluster: WatchedCluster) -> None:
    cluster.put(VM, Key("default", "template"), {"spec": {"dataVolumeTemplates": [{}], "template": {"spec": {}}}})
    cluster.enqueued.clear()
    cluster.stores[DATA_VOLUME].move(99)
    assert cluster.enqueued == set()
    cluster.deps.data_volume_support()
    assert cluster.enqueued == BY_DISK | {("vm", "default/template")}


def test_a_warning_about_a_pod_enqueues_its_vmi(cluster: WatchedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster.reconcilers["vmi"], "note_event", {b"event": WEB}.get)
    for raw, expected in ((b"other", set()), (b"event", keys("vmi", WEB))):
        cluster.enqueued.clear()
        cluster.deps.pod_warnings(raw)
        assert cluster.enqueued == expected


def test_a_replica_set_is_enqueued_only_for_changes_that_it_decides_by(cluster: WatchedCluster) -> None:
    """A VMI changes about ten times while it starts, and a set may have thousands of them."""
    member = Key("default", "a")
    for namespace, name in (("default", "db"), ("shop", "web")):
        cluster.put(SET, Key(namespace, name), {"spec": {}})

    def sets(key: Key = member, **body: Any) -> set[str]:
        return {name for controller, name in cluster.put(VMI, key, body) if controller == "replicaset"}

    meta = owned_by("VirtualMachineInstanceReplicaSet")["metadata"]
    ready = [{"type": "Ready", "status": "True"}]
    both = {"default/web", "default/db"}
    assert sets(metadata=meta) == {"default/web"}
    assert sets(metadata=meta, status={"phase": "Scheduling"}) == set()
    assert sets(metadata=meta, status={"phase": "Running", "nodeName": "n"}) == set()
    assert sets(metadata=meta, status={"conditions": ready}) == {"default/web"}
    assert sets(metadata=meta, status={"conditions": ready, "phase": "Failed"}) == {"default/web"}
    assert sets(status={"conditions": ready, "phase": "Failed"}) == both, "the old owner, and those that may adopt it"
    assert sets(metadata={"annotations": {"a": "b"}}, status={"conditions": ready, "phase": "Failed"}) == set()
    assert sets(metadata={"labels": {"a": "b"}}, status={"conditions": ready, "phase": "Failed"}) == both
    assert sets(metadata=meta) == both
    assert {name for controller, name in cluster.remove(VMI, member) if controller == "replicaset"} == {"default/web"}
    assert sets(Key("default", "of-a-vm"), **owned_by("VirtualMachine")) == set()
    assert sets(Key("kube", "elsewhere")) == set()


def test_a_pool_is_enqueued_only_for_changes_that_it_decides_by(cluster: WatchedCluster) -> None:
    member = Key("default", "web-0")

    def pools(resource: Resource, **body: Any) -> set[str]:
        return {name for controller, name in cluster.put(resource, member, body) if controller == "pool"}

    meta, ready = owned_by("VirtualMachinePool")["metadata"], [{"type": "Ready", "status": "True"}]
    assert pools(VM, metadata=meta) == {"default/web"}
    assert pools(VM, metadata=meta, status={"printableStatus": "Starting"}) == set()
    assert pools(VMI, **owned_by("VirtualMachine")) == {"default/web"}
    assert pools(VMI, **owned_by("VirtualMachine", status={"phase": "Scheduled"})) == set()
    assert pools(VMI, **owned_by("VirtualMachine", status={"phase": "Running", "conditions": ready})) == {"default/web"}
    assert pools(VM, metadata=meta, status={"conditions": ready}) == {"default/web"}
    assert pools(VM, metadata=meta | {"annotations": {"a": "b"}}, status={"conditions": ready}) == set()
    assert pools(VM, metadata=meta | {"labels": {"a": "b"}}, status={"conditions": ready}) == {"default/web"}
    template = {"template": {"metadata": {"annotations": {POOL_TEMPLATE: "a.b"}}}}
    assert pools(VM, metadata=meta | {"labels": {"a": "b"}}, status={"conditions": ready}, spec=template) == {
        "default/web"
    }
    for resource in (VMI, VM):
        assert ("pool", "default/web") in cluster.remove(resource, member)


def test_without_pools_no_member_is_read(cluster: WatchedCluster) -> None:
    cluster.remove(POOL, WEB)
    assert cluster.put(VM, Key("default", "a"), owned_by("VirtualMachinePool")) == keys("vm", Key("default", "a"))
