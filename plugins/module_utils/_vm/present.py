# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what one VM needs to be as declared. Pure; a decision is a Write or None.

Options alone say what they name and nothing else (merge patch). A definition is the whole: what was applied earlier
and is missing now is taken away (server-side apply). A run strategy that nobody declares is never touched.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from .._client.api import FIELD_MANAGER
from ..kubevirt_api.predicates import run_strategy
from . import compare, ownership
from .request import VmRequest

DEFAULT_RUN_STRATEGY = "Always"
"""Of a VM that is created; like a peer's, where a VM runs unless told otherwise."""
_STRATEGY_FIELDS = ("running", "runStrategy")


@dataclass(frozen=True)
class Write:
    """One request: how is create, apply, patch or replace."""

    how: str
    body: dict[str, Any]


def for_creation(request: VmRequest) -> Write:
    """Return the write that makes the VM."""
    body = compare.without_nulls(request.declared)
    spec = body.setdefault("spec", {})
    if not any(key in spec for key in _STRATEGY_FIELDS):
        spec["runStrategy"] = "Halted" if request.state == "stopped" else DEFAULT_RUN_STRATEGY
    return Write("create" if request.name is None else "apply", body)


def for_existing(request: VmRequest, live: dict[str, Any]) -> Write | None:
    """Return the write that makes the VM be as declared, None if it is."""
    declared = _with_strategy(request, live)
    if request.force and request.has_machine:
        return _replacement(declared, live)
    keyed = ownership.has_keyed_lists(live)
    patch = compare.merge_patch(declared, live, keep_items=keyed)
    gone = _taken_away(declared, live) if request.is_whole else []
    if not patch and not gone:
        return None
    if request.is_whole and not compare.has_nulls(patch):
        return Write("apply", _to_apply(declared, live))
    for path in gone:
        _set_null(patch, path)
    return Write("patch", patch)


def _with_strategy(request: VmRequest, live: dict[str, Any]) -> dict[str, Any]:
    """Return the declaration with the strategy spelt as on the server, or with the other spelling taken away.

    Power states set the strategy aside: starting and stopping are requests of their own.
    """
    declared = copy.deepcopy(request.declared)
    spec = declared.get("spec") or {}
    given = [key for key in _STRATEGY_FIELDS if spec.get(key) is not None]
    if not given:
        return declared
    wanted = run_strategy(declared)
    for key in given:
        del spec[key]
    if _is_set_aside(request.state, wanted):
        return declared
    if wanted == run_strategy(live):
        here = live.get("spec") or {}
        spec.update({key: here[key] for key in _STRATEGY_FIELDS if here.get(key) is not None})
    else:
        spec.update({"runStrategy": wanted, "running": None})
    return declared


def _is_set_aside(state: str, wanted: str) -> bool:
    if state == "stopped":
        return wanted not in ("Manual", "RerunOnFailure", "Halted")
    return state in ("started", "restarted") and wanted == "Halted"


def _taken_away(declared: dict[str, Any], live: dict[str, Any]) -> list[tuple[str, ...]]:
    fields = ownership.applied_fields(live, FIELD_MANAGER)
    if fields is None:
        return []
    paths = ownership.dropped(fields, compare.without_nulls(declared), live)
    return [path for path in paths if path not in (("spec", "running"), ("spec", "runStrategy"))]


def _to_apply(declared: dict[str, Any], live: dict[str, Any]) -> dict[str, Any]:
    """Carry an undeclared run strategy that an earlier apply of ours owns: leaving it out would take it away.

    The resourceVersion then guards against a start or stop in between.
    """
    body = compare.without_nulls(declared)
    spec = body.get("spec") or {}
    fields = (ownership.applied_fields(live, FIELD_MANAGER) or {}).get("f:spec") or {}
    for key in _STRATEGY_FIELDS:
        here = (live.get("spec") or {}).get(key)
        if f"f:{key}" in fields and key not in spec and here is not None:
            spec[key] = here
            body["metadata"] = {**body["metadata"], "resourceVersion": live["metadata"]["resourceVersion"]}
    return body


def _replacement(declared: dict[str, Any], live: dict[str, Any]) -> Write:
    body = compare.without_nulls(declared)
    here = live.get("spec") or {}
    if not any(key in body["spec"] for key in _STRATEGY_FIELDS):
        body["spec"].update({key: here[key] for key in _STRATEGY_FIELDS if here.get(key) is not None})
    kept = {key: live["metadata"][key] for key in ("resourceVersion", "uid", "finalizers") if key in live["metadata"]}
    body["metadata"] = {**body["metadata"], **kept}
    return Write("replace", body)


def _set_null(patch: dict[str, Any], path: tuple[str, ...]) -> None:
    """Mark a path as taken away; one that leads into a list is, when the list is sent whole."""
    at = patch
    for step in path[:-1]:
        if step.startswith("{") or not isinstance(at.setdefault(step, {}), dict):
            return
        at = at[step]
    if not path[-1].startswith("{"):
        at.setdefault(path[-1], None)
