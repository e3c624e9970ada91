# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations of the fake API server: complete at once, or as far as the world says."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .fake_api import World

Object = dict[str, Any]
MIGRATIONS = "virtualmachineinstancemigrations"
SUCCEED, FAIL, STAY = "succeed", "fail", "stay"
"""stay: nothing happens until a test calls `end`."""
HOSTNAME = "kubernetes.io/hostname"
OVER = ("Succeeded", "Failed")


def admit(world: World, new: Object) -> None:
    """Refuse a migration of an instance with another one in progress."""
    for (plural, _namespace, name), other in world.objects.items():
        is_other = plural == MIGRATIONS and other["spec"]["vmiName"] == new["spec"]["vmiName"]
        if is_other and other.get("status", {}).get("phase") not in OVER:
            from .fake_api import Refused  # noqa: PLC0415 - which imports this

            raise Refused(409, "Conflict", f"in-flight migration detected: {name}", name=name)


def begin(world: World, migration: Object) -> None:
    """Start the work of a new migration."""
    if world.migrations != STAY:
        metadata = migration["metadata"]
        end(world, metadata["name"], metadata["namespace"], fails=world.migrations == FAIL)


def end(world: World, name: str, namespace: str = "default", *, fails: bool = False, to: str = "node-2") -> None:
    """End a migration; its instance is then on the node that it selects, or on another one."""
    migration = copy.deepcopy(world.objects[MIGRATIONS, namespace, name])
    vmi = copy.deepcopy(world.objects["virtualmachineinstances", namespace, migration["spec"]["vmiName"]])
    node = migration["spec"].get("addedNodeSelector", {}).get(HOSTNAME) or to
    state = {"migrationUid": migration["metadata"]["uid"], "targetNode": node, "completed": True, "failed": fails}
    if fails:
        state["failureReason"] = "the tunnel broke"
    vmi["status"]["migrationState"] = state
    vmi["status"]["nodeName"] = vmi["status"]["nodeName"] if fails else node
    world.put("virtualmachineinstances", vmi)
    move(world, name, "Scheduling", namespace)
    move(world, name, "Failed" if fails else "Succeeded", namespace)


def move(world: World, name: str, phase: str, namespace: str = "default") -> None:
    """Set the phase of a migration."""
    migration = copy.deepcopy(world.objects[MIGRATIONS, namespace, name])
    status = migration.setdefault("status", {})
    status["phase"] = phase
    entered = {"phase": phase, "phaseTransitionTimestamp": f"2026-01-31T12:00:0{len(status)}Z"}
    status["phaseTransitionTimestamps"] = [*status.get("phaseTransitionTimestamps", []), entered]
    world.put(MIGRATIONS, migration)
