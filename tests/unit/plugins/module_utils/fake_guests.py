# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests of the fake API server: instances without a VM, guest requests, replica sets."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

from . import fake_pools

if TYPE_CHECKING:
    from .fake_api import World

Object = dict[str, Any]
INSTANCES = "virtualmachineinstances"
SETS = "virtualmachineinstancereplicasets"
KEEPERS = (SETS, fake_pools.POOLS)


def admit(plural: str, old: Object | None, new: Object) -> bool:
    """Set defaults and validate an object that is no VM; return whether it is none."""
    if plural == "virtualmachines":
        return False
    if plural == "services":
        new["spec"] = {"type": "ClusterIP", "clusterIP": "10.0.0.7", **new["spec"]}
        if new["spec"]["type"] != "ClusterIP":
            new["spec"]["ports"] = [{"nodePort": 30000 + item["port"], **item} for item in new["spec"]["ports"]]
    if plural == INSTANCES:
        new.setdefault("spec", {}).setdefault("domain", {}).setdefault("machine", {"type": "q35"})
        if old is not None and old.get("spec") != new["spec"]:
            raise _refused(422, "Invalid", "update of VMI object is restricted")
    return True


def begin(world: World, plural: str, obj: Object) -> None:
    """Start the work of a new object."""
    if plural == INSTANCES:
        obj["status"] = {"phase": "Running", "nodeName": "node-1", "conditions": [_true("Ready")]}
        if world.unschedulable:
            obj["status"] = {"phase": "Scheduling", "conditions": [{"type": "Ready", "status": "False"}]}
        if world.has_agents:
            obj["status"]["conditions"].append(_true("AgentConnected"))
        world.put(plural, begun(obj))
    elif plural == SETS:
        scale(world, obj)
    elif plural == fake_pools.POOLS:
        fake_pools.scale(world, obj)


def begun(vmi: Object) -> Object:
    """Return the instance, paused if it starts paused."""
    if vmi.get("spec", {}).get("startStrategy") == "Paused" and vmi["status"]["phase"] == "Running":
        _pause(vmi)
    return vmi


def scale(world: World, obj: Object) -> None:
    """Create or delete instances to match the replicas of a set."""
    wanted = obj["spec"].get("replicas", 1)
    if not obj["spec"].get("paused"):
        up = 0 if world.unschedulable else wanted
        obj["status"] = {"replicas": wanted, "readyReplicas": up, "labelSelector": "app=web"}
    else:
        obj.setdefault("status", {})["conditions"] = [_true("ReplicaPaused")]
    world.put(SETS, obj)


def operate(world: World, method: str, where: tuple[str, str], verb: str, body: Object) -> Any:
    """Respond to a guest request."""
    if verb in world.unknown:
        raise _refused(404, None, "the server could not find the requested resource")
    if verb in world.not_built:
        raise _refused(501, "NotImplemented", f"{verb} is not implemented by this control plane")
    vmi = world.objects.get((INSTANCES, *where))
    if method == "GET":
        return _tell(world, vmi, verb)
    if vmi is None:
        raise _refused(404, "NotFound", f"virtualmachineinstance {where[1]} not found", name=where[1])
    is_paused = any(item["type"] == "Paused" for item in vmi["status"]["conditions"])
    fits = is_paused if verb == "unpause" else not is_paused or verb == "reset"
    if vmi["status"]["phase"] != "Running" or not fits:
        raise _refused(409, "Conflict", f"{where[1]}: VMI is not as {verb} needs it", name=where[1])
    if verb == "freeze" and "unfreezeTimeout" not in body:
        raise _refused(500, "InternalError", "Unfreeze timeout in freeze request is not set")
    if not body.get("dryRun"):
        new = copy.deepcopy(vmi)
        if verb == "pause":
            _pause(new)
        elif verb == "unpause":
            kept = [item for item in vmi["status"]["conditions"] if item["type"] not in ("Ready", "Paused")]
            new["status"]["conditions"] = [_true("Ready"), *kept]
        elif verb in ("freeze", "unfreeze"):
            new["status"]["fsFreezeStatus"] = "frozen" if verb == "freeze" else ""
        world.put(INSTANCES, new)
    return None


def _tell(world: World, vmi: Object | None, what: str) -> Object:
    if vmi is None or not world.has_agents:
        raise _refused(500, "InternalError", "VMI does not have guest agent connected")
    user = {"userName": "root", "loginTime": 1.5}
    disk = {"diskName": "vda1", "mountPoint": "/", "fileSystemType": "ext4"}
    return {
        "guestosinfo": {"hostname": "web", "guestAgentVersion": "8.2", "userList": [user], "fsInfo": {"disks": [disk]}},
        "userlist": {"items": [user]},
        "filesystemlist": {"items": [disk]},
    }[what]


def _pause(vmi: Object) -> None:
    ready = {"type": "Ready", "status": "False", "reason": "Paused"}
    paused = {"type": "Paused", "status": "True", "reason": "PausedByUser"}
    kept = [item for item in vmi["status"]["conditions"] if item["type"] not in ("Ready", "Paused")]
    vmi["status"]["conditions"] = [*kept, ready, paused]


def _true(kind: str) -> Object:
    return {"type": kind, "status": "True"}


def _refused(code: int, reason: str | None, message: str, **details: Any) -> Exception:
    from .fake_api import Refused  # noqa: PLC0415 - which imports this

    return Refused(code, reason or "", message, **details)
