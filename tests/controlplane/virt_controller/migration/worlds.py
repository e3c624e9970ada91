# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The inputs of a decision about a migration: its instance, its Pods, and the API server's confirmations."""

from __future__ import annotations

from typing import Any

from kubevirt_api.names import LAUNCHER_ROLE, MIGRATION_FINALIZER, ROLE

from controlplane.api.objects.decode import decode
from controlplane.api.objects.migration import PHASES, VirtualMachineInstanceMigration
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.world import World
from tests.controlplane.virt_controller.builders import (
    NOW,
    POD_UID,
    STAMP,
    UP,
    VMI_UID,
    Json,
    a_running_pod,
    a_vmi,
)

UID, TARGET_UID, TARGET_POD = "dddddddd-0000", "eeeeeeee-0000", "virt-launcher-web-bbbbbbbb-mdddddddd"
HANDED_OVER: Json = {
    "migrationUid": UID,
    "sourceNode": "node-1",
    "targetNode": "node-2",
    "sourcePod": "virt-launcher-web-bbbbbbbb-1",
    "targetPod": TARGET_POD,
    "sourcePodUID": POD_UID,
    "targetPodUID": TARGET_UID,
}
DOOR_OPEN = {**HANDED_OVER, "targetNodeAddress": "10.0.0.2"}
BEGUN = {**DOOR_OPEN, "startTimestamp": STAMP}
ARRIVED = {**BEGUN, "targetNodeDomainReadyTimestamp": STAMP}
LEFT = {**ARRIVED, "completed": True, "endTimestamp": STAMP}
FAILED_BEFORE = {**HANDED_OVER, "failed": True, "completed": True, "failureReason": "why"}
FAILED_SENT = {**BEGUN, "failed": True, "completed": True, "failureReason": "why"}
OTHERS = {**HANDED_OVER, "migrationUid": "another", "targetPodUID": "another"}
HERE = {POD_UID: "node-1"}
THERE = {TARGET_UID: "node-2"}


def a_migration(
    phase: str = "",
    *,
    deleting: bool = False,
    uid: str = UID,
    name: str = "job",
    created: str = STAMP,
    finalizers: tuple[str, ...] = (MIGRATION_FINALIZER,),
    annotations: Json | None = None,
    entered: str = STAMP,
    spec: Json | None = None,
    **status: Any,
) -> VirtualMachineInstanceMigration:
    meta: Json = {"name": name, "namespace": "default", "uid": uid, "resourceVersion": "30", "finalizers": finalizers}
    meta |= {"creationTimestamp": created, "annotations": annotations or {}}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    if phase:
        passed = PHASES[1 : PHASES.index(phase) + 1] if phase in PHASES else ()
        times = [{"phase": migration, "phaseTransitionTimestamp": entered} for migration in passed]
        status |= {"phase": phase, "phaseTransitionTimestamps": times}
    body = {"metadata": meta, "spec": {"vmiName": "web", **(spec or {})}, "status": status}
    return decode(body, VirtualMachineInstanceMigration)


def an_instance(moving: Json | None = None, phase: str = "Running", **options: Any) -> VirtualMachineInstance:
    status: Json = {"attempt": 1, "epoch": 1, "activePods": HERE, "nodeName": "node-1"}
    if moving is not None:
        status["migrationState"] = moving
    return a_vmi(phase, **{**status, **options})


def a_target(phase: str = "Running", *, node: str = "node-2", deleting: bool = False) -> Pod:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": VMI_UID}
    meta: Json = {"name": TARGET_POD, "namespace": "default", "uid": TARGET_UID}
    meta |= {"ownerReferences": [{**owner, "controller": True}], "labels": {ROLE: LAUNCHER_ROLE}}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    status: Json = {"phase": phase}
    if phase == "Running":
        status["containerStatuses"] = [{"name": "compute", "state": UP}]
    return decode({"metadata": meta, "spec": {"nodeName": node}, "status": status}, Pod)


def a_world(migration: VirtualMachineInstanceMigration, vmi: VirtualMachineInstance | None, **facts: Any) -> World:
    launchers = (a_running_pod(),)
    return World(migration=migration, vmi=vmi, **{"now": NOW, "launchers": launchers, "may_begin": True, **facts})


TOLD: Json = {"is_vmi_confirmed": True}
SOURCE = {"source": a_running_pod()}
STATES: dict[str, tuple[VirtualMachineInstance | None, Json]] = {
    "no Pod": (an_instance(), {}),
    "no Pod, said": (an_instance(), {"absent": frozenset({TARGET_POD})}),
    "not its turn": (an_instance(), {"may_begin": False}),
    "Pod waits": (an_instance(), {"target": a_target("Pending", node="")}),
    "Pod up": (an_instance(), {"target": a_target()}),
    "Pod going": (an_instance(), {"target": a_target(deleting=True)}),
    "Pod ended": (an_instance(), {"target": a_target("Failed")}),
    "handed over": (an_instance(HANDED_OVER), {"target": a_target()}),
    "handed over, no Pod": (an_instance(HANDED_OVER), {"absent": frozenset({TARGET_POD})}),
    "handed over, Pod ended": (an_instance(HANDED_OVER), {"target": a_target("Failed")}),
    "door open": (an_instance(DOOR_OPEN), {"target": a_target()}),
    "begun": (an_instance(BEGUN), {"target": a_target()}),
    "begun, to end": (an_instance({**BEGUN, "abortRequested": True}), {"target": a_target()}),
    "begun, no Pod": (an_instance(BEGUN), {"absent": frozenset({TARGET_POD})}),
    "begun, Pod ended": (an_instance(BEGUN), {"target": a_target("Failed")}),
    "arrived": (an_instance(ARRIVED), {"target": a_target()}),
    "left": (an_instance(LEFT), {"target": a_target()}),
    "given": (an_instance(LEFT, activePods=THERE, nodeName="node-2"), {"target": a_target(), **SOURCE}),
    "given, source going": (
        an_instance(LEFT, activePods=THERE, nodeName="node-2"),
        {"target": a_target(), "source": a_running_pod(deleting=True)},
    ),
    "failed unsent": (an_instance(FAILED_BEFORE), {"target": a_target()}),
    "failed": (an_instance(FAILED_SENT), {"target": a_target()}),
    "another": (an_instance(OTHERS), {"target": a_target()}),
    "another, said": (an_instance(OTHERS), {"target": a_target(), **TOLD}),
    "VMI going": (an_instance(deleting=True), {"target": a_target(), **TOLD}),
    "VMI over": (an_instance(phase="Failed"), {"target": a_target()}),
    "VMI over, said": (an_instance(phase="Failed"), {"target": a_target(), **TOLD}),
    "no VMI": (None, {}),
    "no VMI, said": (None, TOLD),
}
ROWS = (*PHASES, "WaitingForSync")


def a_state(phase: str, state: str, *, is_cancelled: bool) -> World:
    vmi, facts = STATES[state]
    status = {"migrationState": LEFT} if phase == "Succeeded" else {}
    return a_world(a_migration(phase, deleting=is_cancelled, **status), vmi, **facts)
