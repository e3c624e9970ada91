# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a migration stands: its phases with their times, where it goes to, and why it does not get on or failed.

What was told last counts; all but `explain` is pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._client.api import Api
from .._client.errors import cut
from .._vm import kinds
from .._vm.wait import diagnose
from ..kubevirt_api import names

SUCCEEDED = "Succeeded"
FINAL = frozenset({SUCCEEDED, "Failed"})
_HANDED_OVER = frozenset({"PreparingTarget", "TargetReady", "Running"})
_HINDRANCES = ("migrationRejectedByResourceQuota",)
"""Conditions of a migration that say what keeps it from getting on."""

Object = dict[str, Any]


def phase(migration: Object | None) -> str:
    """Return the phase; "" before virt-controller has seen it."""
    return str(((migration or {}).get("status") or {}).get("phase") or "")


def told(migration: Object | None) -> str:
    """Return the phase in words."""
    return phase(migration) or "not yet seen by virt-controller"


def nothing_but_phase(migration: Object | None) -> str:
    """Return what stands for a reason where nothing tells one."""
    return f"it is {told(migration)}"


def is_over(migration: Object) -> bool:
    """Tell whether a migration has come to its end, well or not."""
    return phase(migration) in FINAL


def phases(migration: Object | None) -> list[dict[str, str]]:
    """Return the phases that were entered, in their order, each with the time."""
    listed = ((migration or {}).get("status") or {}).get("phaseTransitionTimestamps") or ()
    return [
        {"phase": str(one["phase"]), "time": str(one.get("phaseTransitionTimestamp") or "")}
        for one in listed
        if isinstance(one, dict) and one.get("phase")
    ]


def state_of(migration: Object, vmi: Object | None) -> Object:
    """Return what its instance tells of the migration, or what was kept of that; {} when nothing is known."""
    uid = migration["metadata"].get("uid")
    told_by_instance = ((vmi or {}).get("status") or {}).get("migrationState") or {}
    if uid and told_by_instance.get("migrationUid") == uid:
        return dict(told_by_instance)
    return dict((migration.get("status") or {}).get("migrationState") or {})


def target_of(migration: Object, vmi: Object | None) -> str:
    """Return the node that it goes to; "" while nobody knows."""
    return str(state_of(migration, vmi).get("targetNode") or "")


def has_moved(migration: Object, vmi: Object | None) -> bool:
    """Tell whether the instance says that this migration brought it to its end well."""
    state = state_of(migration, vmi)
    return bool(state.get("completed")) and not state.get("failed")


def explain(api: Api, namespace: str, migration: Object, vmi: Object | None) -> dict[str, Any]:
    """Return what is known of a migration: its name, and as reason one sentence, the most telling."""
    label = f"{names.MIGRATION_JOB}={migration['metadata'].get('uid')}"
    pods = diagnose.list_or_nothing(api, kinds.pods(namespace), labels=label)
    about = [migration["metadata"]["name"], *(pod["metadata"]["name"] for pod in pods)]
    events = diagnose.warnings(api, namespace, about)
    last = [] if phase(migration) in _HANDED_OVER else events[-1:]  # those are of its Pod's way, which is over
    found = [*_reasons(migration, vmi), *(text for pod in pods for text in diagnose.pod_troubles(pod)), *last]
    return {
        "migration": migration["metadata"]["name"],
        "reason": cut(found[0], diagnose.MESSAGE_LIMIT) if found else nothing_but_phase(migration),
        "phase": phase(migration),
        "phases": phases(migration),
        "conditions": [diagnose.short(one) for one in (migration.get("status") or {}).get("conditions") or ()],
        "events": events,
        "node": str(((vmi or {}).get("status") or {}).get("nodeName") or ""),
        "target_node": target_of(migration, vmi),
    }


def _reasons(migration: Object, vmi: Object | None) -> Iterator[str]:
    state = state_of(migration, vmi)
    if state.get("failureReason"):
        yield str(state["failureReason"])
    if (migration.get("status") or {}).get("failureReason"):
        yield str(migration["status"]["failureReason"])
    for one in (migration.get("status") or {}).get("conditions") or ():
        if one.get("type") in _HINDRANCES and one.get("status") == "True":
            yield f"{one['type']}: {one.get('message') or one.get('reason') or ''}"
