# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what one VM needs to be as declared. Pure; a decision is a Write or None.

Options alone say what they name and nothing else (merge patch). A definition is the whole: what was applied earlier
and is missing now is taken away (server-side apply). A run strategy that nobody declares is never touched. What rests
on a list that was read carries its resourceVersion, so that nobody's item is lost who was faster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .._client.api import FIELD_MANAGER
from ..kubevirt_api import names, run_strategies
from ..kubevirt_api.predicates import run_strategy
from . import compare, manifest, overlay, ownership
from .keyed_lists import KEYS
from .request import VmRequest

DEFAULT_RUN_STRATEGY = "Always"
"""Of a VM that is created; like a peer's, where a VM runs unless told otherwise."""
_STRATEGY_FIELDS = ("running", "runStrategy")
_IDENTITY = ("resourceVersion", "uid", "finalizers", "ownerReferences")
"""Of the metadata of a VM that is replaced."""

Object = dict[str, Any]


@dataclass(frozen=True)
class Write:
    """A request: how is create, apply, patch or replace."""

    how: str
    body: Object
    then: Write | None = None
    """What follows, with the resourceVersion that the first one made: an apply that changes nothing but the record of
    whose the fields are."""


def for_creation(request: VmRequest) -> Write:
    """Return the write that makes the VM."""
    body: Object = overlay.over_live({}, request.declared.vm)
    spec = {key: value for key, value in (body.get("spec") or {}).items() if key not in _STRATEGY_FIELDS}
    spec["runStrategy"] = _first_strategy(request)
    if "running" in (body.get("spec") or {}) and run_strategy(body) == spec["runStrategy"]:
        spec["running"] = body["spec"]["running"]  # spelt as declared
        del spec["runStrategy"]
    body["spec"] = spec
    if request.name is None:
        return Write("create", body)
    return Write("apply", _noted(body, body))


def _first_strategy(request: VmRequest) -> str:
    spec = request.declared.vm.get("spec") or {}
    is_given = any(spec.get(key) is not None for key in _STRATEGY_FIELDS)
    wanted = run_strategy(request.declared.vm) if is_given else DEFAULT_RUN_STRATEGY
    if not _is_set_aside(request.state, wanted):
        return wanted
    return run_strategies.HALTED if request.state == "stopped" else DEFAULT_RUN_STRATEGY


def for_existing(request: VmRequest, live: Object) -> Write | None:
    """Return the write that makes the VM be as declared, None if it is."""
    if request.force and request.has_machine:
        declared = _with_strategy(request, request.declared.vm, live)
        record = Write("apply", _to_apply(declared, live, overlay.over_live({}, declared)))
        return Write("replace", _replacement(declared, live), record if request.is_whole else None)
    if request.is_whole:
        return _of_the_whole(_with_strategy(request, request.declared.vm, live), live)
    declared = _with_strategy(request, manifest.without_defaults(request.declared, live), live)
    patch = compare.merge_patch(live, overlay.over_live(live, declared))
    return Write("patch", _guarded(patch, live) if compare.has_lists(patch) else patch) if patch else None


def _of_the_whole(declared: Object, live: Object) -> Write | None:
    laid: Object = overlay.over_live(live, declared)
    fields = ownership.applied_fields(live, FIELD_MANAGER)
    clean = overlay.over_live({}, declared)
    wanted = laid if fields is None else ownership.without_dropped(laid, fields, clean)
    patch = compare.merge_patch(live, wanted)
    if not patch and not ownership.is_outdated(live, clean):
        return None
    apply = Write("apply", _to_apply(declared, live, wanted))
    if not compare.has_nulls(compare.merge_patch(live, laid)) and not ownership.is_patched(live, FIELD_MANAGER, patch):
        return apply
    # an apply takes away what it alone made; what a null or another kind of source takes away may have other owners
    is_enough = compare.has_only_nulls(patch)
    return Write("patch", _guarded(patch, live), None if is_enough else apply)


def _guarded(patch: Object, live: Object) -> Object:
    metadata = {**(patch.get("metadata") or {}), "resourceVersion": live["metadata"]["resourceVersion"]}
    return {**patch, "metadata": metadata}


def _with_strategy(request: VmRequest, declared: Object, live: Object) -> Object:
    """Return the declaration with the strategy spelt as on the server, or with the other spelling taken away.

    Power states set the strategy aside: starting and stopping are requests of their own.
    """
    spec = declared.get("spec") or {}
    if all(spec.get(key) is None for key in _STRATEGY_FIELDS):
        return declared
    wanted, here = run_strategy(declared), run_strategy(live)
    there = live.get("spec") or {}
    spec = {key: value for key, value in spec.items() if key not in _STRATEGY_FIELDS}
    if wanted == here:
        spec.update({key: there[key] for key in _STRATEGY_FIELDS if there.get(key) is not None})
    elif not _is_set_aside(request.state, wanted):
        spec.update({"runStrategy": wanted, "running": None})
    return {**declared, "spec": spec}


def _is_set_aside(state: str, wanted: str) -> bool:
    """Tell whether a strategy would at once undo the power state that is asked for."""
    if state == "stopped":
        return wanted not in (run_strategies.MANUAL, run_strategies.HALTED)
    return state in ("started", "restarted") and wanted == run_strategies.HALTED


def _to_apply(declared: Object, live: Object, wanted: Object) -> Object:
    """Return what is declared, with others' items in the lists that the server takes for wholes.

    Carries an undeclared run strategy that an earlier apply of ours owns: leaving it out would take it away.
    """
    body: Object = overlay.over_live({}, declared)
    noted = body
    for path in KEYS:
        left = manifest.at(wanted, path)
        is_declared = manifest.at(body, path) is not None
        if not left or ownership.tracks_items(live, path):
            continue
        if is_declared or ownership.is_applied(live, FIELD_MANAGER, path):
            body = manifest.replaced(body, path, left)
        if not is_declared:
            noted = manifest.replaced(noted, path, [])  # none of the items is ours
    spec = dict(body.get("spec") or {})
    if not any(key in spec for key in _STRATEGY_FIELDS):
        for key in _STRATEGY_FIELDS:
            here = (live.get("spec") or {}).get(key)
            if here is not None and ownership.is_applied(live, FIELD_MANAGER, ("spec", key)):
                spec[key] = here
    return _noted(_guarded({**body, "spec": spec}, live), noted)


def _noted(body: Object, declared: Object) -> Object:
    """Return the body of an apply with a note of what lists it declares."""
    note = ownership.note(declared)
    if not note:
        return body
    notes = {**(body["metadata"].get("annotations") or {}), names.DECLARED_ITEMS: ownership.written(note)}
    return {**body, "metadata": {**body["metadata"], "annotations": notes}}


def _replacement(declared: Object, live: Object) -> Object:
    """Return the VM as declared, with nothing left but what it is known by, and what is not its users' to say."""
    body: Object = overlay.over_live(ownership.added_by_others(live, FIELD_MANAGER), declared)
    here = live.get("spec") or {}
    if not any(key in body["spec"] for key in _STRATEGY_FIELDS):
        body["spec"].update({key: here[key] for key in _STRATEGY_FIELDS if here.get(key) is not None})
    kept = {key: live["metadata"][key] for key in _IDENTITY if key in live["metadata"]}
    body["metadata"] = {**body["metadata"], **kept}
    return _noted(body, overlay.over_live({}, declared))
