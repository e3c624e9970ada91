# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of the fake API server: numbered machines from a template, changed and restarted with it."""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fake_api import World

Object = dict[str, Any]
POOLS = "virtualmachinepools"
MACHINES, INSTANCES = "virtualmachines", "virtualmachineinstances"
REVISION = "kubevirt.io/vm-pool-revision-name"


def scale(world: World, pool: Object) -> None:
    """Create or delete machines to match the replicas of a pool."""
    meta, spec = pool["metadata"], pool["spec"]
    if spec.get("paused"):
        pool.setdefault("status", {})["conditions"] = [{"type": "ReplicaPaused", "status": "True"}]
        world.put(POOLS, pool)
        return
    namespace, wanted = meta["namespace"], spec.get("replicas", 1)
    world.put(POOLS, pool)
    machines = [f"{meta['name']}-{number}" for number in range(wanted)]
    for name in [item["metadata"]["name"] for item in owned(world, pool)]:
        if name not in machines:
            world.drop(INSTANCES, namespace, name)
            world.drop(MACHINES, namespace, name)
    for name in machines:
        if (MACHINES, namespace, name) not in world.objects:
            _make(world, pool, name)
        elif world.pools_change and "unmanaged" not in (spec.get("updateStrategy") or {}):
            change(world, pool, name)
    up = sum(bool(item["status"].get("ready")) for item in owned(world, pool))
    pool = copy.deepcopy(pool)
    pool["status"] = {"replicas": wanted, "readyReplicas": up, "labelSelector": "app=web"}
    world.put(POOLS, pool)


def owned(world: World, pool: Object) -> list[Object]:
    """Return the machines of a pool."""
    uid = pool["metadata"]["uid"]
    return [
        obj
        for (plural, _namespace, _name), obj in list(world.objects.items())
        if plural == MACHINES and any(item["uid"] == uid for item in obj["metadata"].get("ownerReferences", ()))
    ]


def collect(world: World, pool: Object) -> None:
    """Delete what a deleted pool owned, unless garbage collection is off."""
    namespace = pool["metadata"]["namespace"]
    for item in owned(world, pool) if world.pools_change else ():
        world.drop(INSTANCES, namespace, item["metadata"]["name"])
        world.drop(MACHINES, namespace, item["metadata"]["name"])


def change(world: World, pool: Object, name: str) -> None:
    """Give a machine the template of its pool; restart it when the pool says so."""
    namespace = pool["metadata"]["namespace"]
    old = world.objects[MACHINES, namespace, name]
    new = _machine(pool, name)
    if old["metadata"]["labels"][REVISION] == new["metadata"]["labels"][REVISION]:
        return
    new["metadata"]["uid"] = old["metadata"]["uid"]
    world.put(MACHINES, {**new, "status": old["status"]})
    if "opportunistic" not in (pool["spec"].get("updateStrategy") or {}):
        world.drop(INSTANCES, namespace, name)
        _run(world, pool, name)


def _make(world: World, pool: Object, name: str) -> None:
    world.put(MACHINES, {**_machine(pool, name), "status": {}})
    _run(world, pool, name)


def _run(world: World, pool: Object, name: str) -> None:
    namespace = pool["metadata"]["namespace"]
    world.reconcile(namespace, name)
    run = world.objects.get((INSTANCES, namespace, name))
    if run is not None:
        labels = world.objects[MACHINES, namespace, name]["spec"]["template"]["metadata"]["labels"]
        run["metadata"]["labels"] = labels
        world.put(INSTANCES, run)


def _machine(pool: Object, name: str) -> Object:
    meta, template = pool["metadata"], copy.deepcopy(pool["spec"]["virtualMachineTemplate"])
    revision = {REVISION: f"r{hash(json.dumps(template, sort_keys=True)):x}"}
    inside = template["spec"]["template"].setdefault("metadata", {})
    inside["labels"] = {**inside.get("labels", {}), **revision}
    labels = {**template.get("metadata", {}).get("labels", {}), **revision}
    owner = {"kind": "VirtualMachinePool", "name": meta["name"], "uid": meta["uid"], "controller": True}
    metadata = {"name": name, "namespace": meta["namespace"], "labels": labels, "ownerReferences": [owner]}
    return {"metadata": {**metadata, "generation": 1}, "spec": template["spec"]}
