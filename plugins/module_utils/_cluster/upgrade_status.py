# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say where an upgrade stands: of which version each component is, and which machines are in another launcher. Pure."""

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
    """Return of each component its version, and what it still waits for."""
    found = [
        {
            "kind": one["kind"],
            "name": one["metadata"]["name"],
            "version": (one["metadata"].get("labels") or {}).get(VERSION) or "",
            "missing": missing(one) or "",
        }
        for one in ours
        if one["kind"] in _COMPONENTS
    ]
    return sorted(found, key=lambda one: one["name"])


def in_other_launchers(objects: Sequence[Object], image: str) -> list[dict[str, Any]]:
    """Return the instances whose launcher has another image than this one. Whose run is over has none any more."""
    found = [
        _machine(one, launcher)
        for one in objects
        if one["kind"] == _INSTANCE and not is_final(one) and (launcher := _launcher(one)) not in ("", image)
    ]
    return sorted(found, key=lambda one: (one["namespace"], one["name"]))


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
        "reason": "" if can_move else _why_not(vmi),
    }


def _is_undecided(vmi: Object) -> bool:
    """Return whether it will be said yet whether it can move: it is being started, or its node has not come to that."""
    if phase(vmi) != RUNNING:
        return phase(vmi) != UNKNOWN
    return condition(vmi, LIVE_MIGRATABLE) is None


def _why_not(vmi: Object) -> str:
    if phase(vmi) != RUNNING:
        return f"it is {phase(vmi) or 'not yet seen by virt-controller'}"
    said = condition(vmi, LIVE_MIGRATABLE) or {}
    return said.get("message") or said.get("reason") or "its control plane does not say that it can move"
