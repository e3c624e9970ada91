# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small builders of sets, members and worlds: a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import decode
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.virt_controller.replicaset.member import Member
from controlplane.virt_controller.replicaset.world import World
from tests.controlplane.virt_controller.builders import NOW, STAMP
from tests.controlplane.virt_controller.members.stand import LABELS

Json = dict[str, Any]
SET_UID = "5e75e75e-0000"
POD_GOES = {"type": "Ready", "status": "False", "reason": "PodTerminating"}


def a_set(wanted: int | None = None, *, deleting: bool = False, **parts: Any) -> VirtualMachineInstanceReplicaSet:
    """Build a set. parts: paused, selector and template of the spec; all others are fields of the status."""
    meta: Json = {"name": "web", "namespace": "default", "uid": SET_UID, "resourceVersion": "10"}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    template = {"metadata": {"labels": LABELS}, "spec": {"domain": {}}, **parts.pop("template", {})}
    spec: Json = {"selector": parts.pop("selector", {"matchLabels": LABELS}), "template": template}
    spec |= {"paused": parts.pop("paused", False)} | ({} if wanted is None else {"replicas": wanted})
    return decode({"metadata": meta, "spec": spec, "status": parts}, VirtualMachineInstanceReplicaSet)


def a_member(
    name: str, phase: str = "Running", *, deleting: bool = False, ready: Json | None = None, **labels: str
) -> Member:
    """Build a VMI; ready: its condition Ready."""
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels or LABELS}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    return decode({"metadata": meta, "status": {"phase": phase, "conditions": [ready] if ready else []}}, Member)


def a_world(replica_set: VirtualMachineInstanceReplicaSet, *members: Member, **parts: Any) -> World:
    return World(owner=replica_set, members=members, now=NOW, **parts)
