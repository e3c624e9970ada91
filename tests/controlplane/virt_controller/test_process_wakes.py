# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which change on the API server wakes which key of which controller, through virt-controller as it is wired.

No pass is made here, so nothing is woken by what a pass writes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from kubevirt_api.names import CONTROL_PLANE_IMAGE, MIGRATION_JOB, QUARANTINED, SCHEDULABLE

from controlplane.api.objects.data_volume import DEFINITION
from controlplane.api.objects.node import DRAIN, OUT_OF_SERVICE
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
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
from controlplane.engine.runner import Runner
from controlplane.kube.client import object_path
from controlplane.virt_controller import process
from controlplane.virt_controller.vmi.reconciler import VmiReconciler
from tests.controlplane.kube.fake_api import Json
from tests.controlplane.kube.late_api import LateApi
from tests.controlplane.virt_controller.data_volumes import DISK
from tests.controlplane.virt_controller.running import NAMESPACE, SERVED, WEB, running

Woken = set[tuple[str, str]]
KEY, NODE_1, DISK_KEY, PLACED = (
    Key(NAMESPACE, "kubevirt"),
    Key("", "node-1"),
    Key("default", "disk"),
    Key("default", "db"),
)
MOVING, LEAVING = Key("default", "moving"), Key("default", "leaving")
WITH_DISK: Json = {"volumes": [DISK]}


@pytest.fixture
def woken(monkeypatch: pytest.MonkeyPatch) -> Woken:
    """What has been woken since it was emptied: controller and key."""
    found: Woken = set()

    class Recording(Runner[Any, Any, Any]):
        def add(self, key: Key, *, after: float = 0.0) -> None:
            found.add((self.name, str(key)))

        async def run(self) -> None:
            await asyncio.Event().wait()

    monkeypatch.setattr(process, "Runner", Recording)
    monkeypatch.setattr(VmiReconciler, "vmi_of", lambda _self, pod: WEB if pod.name == "expected" else None)
    return found


@pytest.fixture
def api() -> LateApi:
    """A machine that waits for a node and names a disk, one that has a node, and a set."""
    made = LateApi()
    made.set(NODE, NODE_1, {})
    made.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
    made.set(VIRTUAL_MACHINE, WEB, {"spec": {"template": {"spec": WITH_DISK}}})
    made.set(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": WITH_DISK, "status": {"phase": "Pending"}})
    made.set(VIRTUAL_MACHINE_INSTANCE, PLACED, {"spec": {}, "status": {"phase": "Running", "nodeName": "node-1"}})
    made.set(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, WEB, {"spec": {}})
    made.set(VIRTUAL_MACHINE_INSTANCE, MOVING, owned_by("VirtualMachine") | {"spec": {}, "status": {"nodeName": "n"}})
    for name, phase in (("moves", "Running"), ("moved", "Succeeded")):
        body = {"spec": {"vmiName": "moving"}, "status": {"phase": phase}}
        made.set(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", name), body)
    made.set(VIRTUAL_MACHINE_INSTANCE, LEAVING, owned_by("VirtualMachine") | moving(completed=False, node="n"))
    made.set(VIRTUAL_MACHINE_POOL, WEB, {"spec": {}})
    made.set(KUBEVIRT, KEY, {"spec": {}})
    return made


def write(resource: Resource, key: Key, body: Json) -> Callable[[LateApi], object]:
    return lambda api: api.set(resource, key, body)


def owned_by(kind: str, name: str = "web") -> Json:
    return {"metadata": {"ownerReferences": [{"kind": kind, "name": name, "uid": "u", "controller": True}]}}


def with_job(body: Json) -> Json:
    return {"metadata": {**body["metadata"], "labels": {MIGRATION_JOB: "uid"}}}


def moving(*, completed: bool, node: str = "node-1") -> Json:
    state = {"migrationUid": "uid", "completed": completed}
    return {"spec": {}, "status": {"phase": "Running", "nodeName": node, "migrationState": state}}


VM_AND_INSTANCE = {("vm", "default/web"), ("vmi", "default/web")}
CHANGES: dict[str, tuple[Callable[[LateApi], object], Woken]] = {
    "a machine": (write(VIRTUAL_MACHINE, WEB, {"spec": {}}), {("vm", "default/web")}),
    "an instance": (
        write(VIRTUAL_MACHINE_INSTANCE, PLACED, {"spec": {}, "status": {"phase": "Failed", "nodeName": "node-1"}}),
        {("vmi", "default/db"), ("vm", "default/db"), ("replicaset", "default/web")},
    ),
    "a Pod": (write(POD, Key("default", "pod"), owned_by("VirtualMachineInstance")), {("vmi", "default/web")}),
    "a Pod that is nobody's": (write(POD, Key("default", "pod"), {}), set()),
    "a Pod of a name that is looked at": (write(POD, Key("default", "expected"), {}), {("vmi", "default/web")}),
    "a migration": (
        write(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", "job"), {"spec": {"vmiName": "db"}}),
        {("migration", "default/job"), ("evacuation", "default/db")},
    ),
    "a migration that ends": (
        write(
            VIRTUAL_MACHINE_INSTANCE_MIGRATION,
            Key("default", "moves"),
            {"spec": {"vmiName": "moving"}, "status": {"phase": "Failed"}},
        ),
        {("migration", "default/moves"), ("migration", "default/moved"), ("evacuation", str(MOVING))},
    ),
    "an instance that has a migration": (
        write(
            VIRTUAL_MACHINE_INSTANCE,
            MOVING,
            owned_by("VirtualMachine") | {"spec": {}, "status": {"nodeName": "n", "phase": "Running"}},
        ),
        {("vmi", str(MOVING)), ("vm", str(MOVING)), ("migration", "default/moves")},
    ),
    "a Pod of an instance that has a migration": (
        write(POD, Key("default", "pod"), owned_by("VirtualMachineInstance", "moving")),
        {("vmi", str(MOVING)), ("migration", "default/moves")},
    ),
    "an instance that has a migration goes": (
        lambda api: api.drop(object_path(VIRTUAL_MACHINE_INSTANCE, MOVING)),
        {("vmi", str(MOVING)), ("vm", str(MOVING)), ("migration", "default/moves"), ("migration", "default/moved")},
    ),
    "a migration goes": (
        lambda api: api.drop(object_path(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", "moves"))),
        {("migration", "default/moves"), ("evacuation", str(MOVING)), ("orphan", str(MOVING))},
    ),
    "a migration that is over goes": (
        lambda api: api.drop(object_path(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", "moved"))),
        {
            ("migration", "default/moved"),
            ("migration", "default/moves"),
            ("evacuation", str(MOVING)),
            ("orphan", str(MOVING)),
        },
    ),
    "an instance that moves": (
        write(VIRTUAL_MACHINE_INSTANCE, PLACED, moving(completed=False)),
        {("vmi", "default/db"), ("vm", "default/db"), ("orphan", "default/db")},
    ),
    "an instance whose migration is over": (
        write(VIRTUAL_MACHINE_INSTANCE, PLACED, moving(completed=True)),
        {("vmi", "default/db"), ("vm", "default/db")},
    ),
    "an instance whose migration ends": (
        write(VIRTUAL_MACHINE_INSTANCE, LEAVING, owned_by("VirtualMachine") | moving(completed=True, node="n")),
        {("vmi", str(LEAVING)), ("vm", str(LEAVING)), ("orphan", str(LEAVING))},
    ),
    "an instance that has moved": (
        write(VIRTUAL_MACHINE_INSTANCE, PLACED, moving(completed=True, node="node-2")),
        {("vmi", "default/db"), ("vm", "default/db"), ("orphan", "default/db")},
    ),
    "a Pod that a migration goes to": (
        write(POD, Key("default", "pod"), with_job(owned_by("VirtualMachineInstance", "moving"))),
        {("vmi", str(MOVING)), ("migration", "default/moves"), ("orphan", str(MOVING))},
    ),
    "an instance that is to leave its node": (
        write(
            VIRTUAL_MACHINE_INSTANCE,
            PLACED,
            {"spec": {}, "status": {"phase": "Running", "nodeName": "node-1", "evacuationNodeName": "node-1"}},
        ),
        {("vmi", "default/db"), ("vm", "default/db"), ("evacuation", "default/db")},
    ),
    "a node that is to be drained": (
        write(NODE, NODE_1, {"spec": {"taints": [{"key": DRAIN, "effect": "NoSchedule"}]}}),
        {("evacuation", "default/db")},
    ),
    "a set": (write(VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, WEB, {"spec": {}}), {("replicaset", "default/web")}),
    "a pool": (write(VIRTUAL_MACHINE_POOL, WEB, {"spec": {}}), {("pool", "default/web")}),
    "a pool's machine": (
        write(VIRTUAL_MACHINE, Key("default", "a"), owned_by("VirtualMachinePool")),
        {("vm", "default/a"), ("pool", "default/web")},
    ),
    "a set's instance": (
        write(VIRTUAL_MACHINE_INSTANCE, Key("default", "a"), owned_by("VirtualMachineInstanceReplicaSet")),
        {("vmi", "default/a"), ("vm", "default/a"), ("replicaset", "default/web")},
    ),
    "the configuration": (
        write(KUBEVIRT, KEY, {"spec": {"configuration": {"furtherAttempts": 1}}}),
        {("kubevirt", str(KEY)), ("vmi", "default/web"), ("quarantine", ""), ("workload-update", str(KEY))},
    ),
    "a claim": (write(PERSISTENT_VOLUME_CLAIM, DISK_KEY, {}), VM_AND_INSTANCE),
    "a DataVolume": (write(DATA_VOLUME, DISK_KEY, {"status": {"phase": "Succeeded"}}), VM_AND_INSTANCE),
    "no CDI any more": (
        lambda api: api.drop(object_path(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION))),
        VM_AND_INSTANCE,
    ),
    "a node that takes machines": (
        write(NODE, NODE_1, {"metadata": {"labels": {SCHEDULABLE: "true"}}}),
        {("node", "node-1"), ("quarantine", "")},
    ),
    "a node's Lease that is to last otherwise": (
        write(LEASE, Key(NAMESPACE, "virt-handler-node-1"), {"spec": {"leaseDurationSeconds": 5}}),
        {("node", "node-1")},
    ),
    "a node whose virt-handler is another control plane's": (
        write(NODE, NODE_1, {"metadata": {"annotations": {CONTROL_PLANE_IMAGE: "another"}}}),
        {("workload-update", str(KEY))},
    ),
    "a node that is quarantined": (
        write(NODE, NODE_1, {"metadata": {"labels": {QUARANTINED: "x"}}}),
        {("vmi", "default/web"), ("quarantine", "")},
    ),
    "a node that is off": (
        write(NODE, NODE_1, {"spec": {"taints": [{"key": OUT_OF_SERVICE, "effect": "NoExecute"}]}}),
        {("vmi", "default/db")},
    ),
}


@pytest.mark.parametrize("change", CHANGES)
async def test_a_change_wakes_whom_it_concerns(api: LateApi, woken: Woken, change: str) -> None:
    do, expected = CHANGES[change]
    async with running(api) as virt_controller:
        await virt_controller.settle()
        woken.clear()
        do(api)
        await virt_controller.until(lambda: woken >= expected)
        await virt_controller.settle()
    assert woken == expected


async def test_who_begins_to_lead_judges_the_nodes(api: LateApi, woken: Woken) -> None:
    for what in (object_path(NODE, NODE_1), object_path(KUBEVIRT, KEY)):  # whose lists wake it as well
        api.drop(what)
    async with running(api) as virt_controller:
        await virt_controller.until(lambda: ("quarantine", "") in woken)
