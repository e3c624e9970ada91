# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How far an upgrade is: the version of each component, and the machines in another launcher. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..kubevirt_api.condition_types import LIVE_MIGRATABLE
from ..kubevirt_api.phases import RUNNING, UNKNOWN
from ..kubevirt_api.predicates import condition, is_condition_true, is_final, phase
from .installed import VERSION
from .readiness import missing

Object = Mapping[str, Any]
_COMPONENTS = ("Deployment", "DaemonSet")
_INSTANCE = "VirtualMachineInstance"


def components(ours: Sequence[Object]) -> list[dict[str, Any]]:
    """Return for each component its version and what it still waits for."""
    results = [
        {
            "kind": obj["kind"],
            "name": obj["metadata"]["name"],
            "version": (obj["metadata"].get("labels") or {}).get(VERSION) or "",
            "missing": missing(obj) or "",
        }
        for obj in ours
        if obj["kind"] in _COMPONENTS
    ]
    return sorted(results, key=lambda component: component["name"])


def in_other_launchers(objects: Sequence[Object], image: str) -> list[dict[str, Any]]:
    """Return the instances whose launcher has another image. An instance whose run is over has no launcher."""
    results = [
        _machine(obj, launcher)
        for obj in objects
        if obj["kind"] == _INSTANCE and not is_final(obj) and (launcher := _launcher(obj)) not in ("", image)
    ]
    return sorted(results, key=lambda machine: (machine["namespace"], machine["name"]))


def _launcher(vmi: Object) -> str:
    return (vmi.get("status") or {}).get("launcherContainerImageVersion") or ""


def _machine(vmi: Object, launcher: str) -> dict[str, Any]:
    can_move = phase(vmi) == RUNNING and is_condition_true(vmi, LIVE_MIGRATABLE)
    return {
        "namespace": vmi["metadata"]["namespace"],
        "name": vmi["metadata"]["name"],
        "node": (vmi.get("status") or {}).get("nodeName") or "",
        "launcher": launcher,
        "can_move": can_move,
        "undecided": not can_move and _is_undecided(vmi),
        "reason": "" if can_move else _reason(vmi),
    }


def _is_undecided(vmi: Object) -> bool:
    """Tell whether LiveMigratable is not set yet: the instance is starting, or its node has not reported it."""
    if phase(vmi) != RUNNING:
        return phase(vmi) != UNKNOWN
    return condition(vmi, LIVE_MIGRATABLE) is None


def _reason(vmi: Object) -> str:
    if phase(vmi) != RUNNING:
        return f"it is {phase(vmi) or 'not yet seen by virt-controller'}"
    movable = condition(vmi, LIVE_MIGRATABLE) or {}
    return movable.get("message") or movable.get("reason") or "its condition LiveMigratable is not reported"
