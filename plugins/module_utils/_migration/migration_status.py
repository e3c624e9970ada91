# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a migration: phases with their times, target, and why it waits or failed. Pure but `explain`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._client.api import Api
from .._client.errors import REASON_LIMIT, cut
from .._vm import kinds
from .._vm.wait import diagnose
from ..kubevirt_api import names

SUCCEEDED = "Succeeded"
FINAL = frozenset({SUCCEEDED, "Failed"})
_HANDED_OVER = frozenset({"PreparingTarget", "TargetReady", "Running"})
_WAIT_CONDITIONS = ("migrationRejectedByResourceQuota",)
"""Conditions of a migration that name what it waits for."""

Object = dict[str, Any]


def phase(migration: Object | None) -> str:
    """Return the phase, "" before virt-controller has set one."""
    return str(((migration or {}).get("status") or {}).get("phase") or "")


def phase_text(migration: Object | None) -> str:
    """Return the phase in words."""
    return phase(migration) or "not yet seen by virt-controller"


def nothing_but_phase(migration: Object | None) -> str:
    """Return the reason when no cause is known."""
    return f"it is {phase_text(migration)}"


def is_over(migration: Object) -> bool:
    """Tell whether a migration has succeeded or failed."""
    return phase(migration) in FINAL


def phases(migration: Object | None) -> list[dict[str, str]]:
    """Return the phases until now in their order, each with its time."""
    listed = ((migration or {}).get("status") or {}).get("phaseTransitionTimestamps") or ()
    return [
        {"phase": str(transition["phase"]), "time": str(transition.get("phaseTransitionTimestamp") or "")}
        for transition in listed
        if isinstance(transition, dict) and transition.get("phase")
    ]


def state_of(migration: Object, vmi: Object | None) -> Object:
    """Return the migration state of its instance, else the copy in the migration; {} without one."""
    uid = migration["metadata"].get("uid")
    state = ((vmi or {}).get("status") or {}).get("migrationState") or {}
    # Without a UID the state may be another migration's.
    if uid and state.get("migrationUid") == uid:
        return dict(state)
    return dict((migration.get("status") or {}).get("migrationState") or {})


def target_of(migration: Object, vmi: Object | None) -> str:
    """Return the target node, "" while it is not known."""
    return str(state_of(migration, vmi).get("targetNode") or "")


def has_moved(migration: Object, vmi: Object | None) -> bool:
    """Tell whether the instance reports that this migration succeeded."""
    state = state_of(migration, vmi)
    return bool(state.get("completed")) and not state.get("failed")


def target_pods(api: Api, namespace: str, migration: Object) -> list[Object]:
    """Return the target Pods of a migration, none if they cannot be read."""
    label = f"{names.MIGRATION_JOB}={migration['metadata'].get('uid')}"
    return diagnose.list_or_nothing(api, kinds.pods(namespace), labels=label)


def explain(api: Api, namespace: str, migration: Object, vmi: Object | None) -> dict[str, Any]:
    """Return the facts about a migration; reason is one sentence, the most specific cause."""
    pods = target_pods(api, namespace, migration)
    object_names = [migration["metadata"]["name"], *(pod["metadata"]["name"] for pod in pods)]
    events = diagnose.warnings(api, namespace, object_names)
    last = [] if phase(migration) in _HANDED_OVER else events[-1:]  # Events of its Pod no longer matter
    reasons = [*_reasons(migration, vmi), *(text for pod in pods for text in diagnose.pod_troubles(pod)), *last]
    return {
        "migration": migration["metadata"]["name"],
        "reason": cut(diagnose.scheduler_cause(reasons[0]), REASON_LIMIT) if reasons else nothing_but_phase(migration),
        "phase": phase(migration),
        "phases": phases(migration),
        "conditions": [
            diagnose.short(condition) for condition in (migration.get("status") or {}).get("conditions") or ()
        ],
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
    for condition in (migration.get("status") or {}).get("conditions") or ():
        if condition.get("type") in _WAIT_CONDITIONS and condition.get("status") == "True":
            yield f"{condition['type']}: {condition.get('message') or condition.get('reason') or ''}"
