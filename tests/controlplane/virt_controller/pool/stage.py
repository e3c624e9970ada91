# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small builders of pools, members and worlds: a test shows only what matters to it."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.virt_controller.pool.member import Member, Run
from controlplane.virt_controller.pool.world import World
from tests.controlplane.virt_controller.builders import NOW, STAMP
from tests.controlplane.virt_controller.members.stand import LABELS, READY

Json = dict[str, Any]
MARK = "virtops.kubevirt/pool-template-hash"
REVISION = "kubevirt.io/vm-pool-revision-name"


def a_pool(replicas: int = 1, *, deleting: bool = False, **spec: Any) -> VirtualMachinePool:
    meta: Json = {"name": "web", "namespace": "default", "uid": "pool", "resourceVersion": "10"}
    if deleting:
        meta["deletionTimestamp"] = STAMP
    template = {"metadata": {"labels": LABELS}, "spec": {"template": {"spec": {"domain": {}}}}}
    body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": template, **spec}
    return decode({"metadata": meta, "spec": body}, VirtualMachinePool)


def a_member(name: str, *, deleting: bool = False, made: str = STAMP, **parts: Any) -> Member:
    """parts: labels; mark (template hash), inside (labels) and selector of its template; strategy; revision."""
    labels = {**parts.get("labels", LABELS), REVISION: parts.get("revision", "now")}
    meta: Json = {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": labels}
    meta |= {"creationTimestamp": made, **({"deletionTimestamp": STAMP} if deleting else {})}
    template = {
        "metadata": {"annotations": {MARK: parts.get("mark", "a.a")}, "labels": parts.get("inside", {})},
        "spec": {"nodeSelector": parts.get("selector", {})},
    }
    spec = {"runStrategy": parts.get("strategy", "Always"), "template": template}
    return decode({"metadata": meta, "spec": spec}, Member)


def a_run(of: Member, *, ready: bool = True, mark: str = "a.a", deleting: bool = False) -> Run:
    meta: Json = {"name": of.metadata.name, "uid": f"run-{of.metadata.name}", "annotations": {MARK: mark}}
    meta |= {"deletionTimestamp": STAMP} if deleting else {}
    return decode({"metadata": meta, "status": {"phase": "Running", "conditions": [READY] if ready else []}}, Run)


def a_world(pool: VirtualMachinePool, *members: Member, runs: tuple[Run, ...] = (), **parts: Any) -> World:
    by_uid = {f"uid-{run.metadata.name}": run for run in runs}
    return World(owner=pool, members=members, runs=by_uid, revision="now", now=NOW, **parts)
