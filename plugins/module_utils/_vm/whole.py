# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide what a VM needs that is declared as a whole: one that is created, one with a definition, one that is replaced.

Pure. It is apart from present.py because most tasks find a VM as their options say, and never come here.
"""

from __future__ import annotations

from typing import Any

from .._client.api import FIELD_MANAGER
from .._client.errors import BadArgument
from ..kubevirt_api import names, run_strategies
from ..kubevirt_api.asked import run_strategy
from . import compare, manifest, overlay, ownership
from .cluster import REPLICA_SET, VM
from .keyed_lists import KEYS
from .present import STRATEGY_FIELDS, Write, guarded, is_set_aside
from .request import VmRequest

DEFAULT_RUN_STRATEGY = run_strategies.ALWAYS
"""Of a VM that is created; like a peer's, where a VM runs unless told otherwise."""
_IDENTITY = ("resourceVersion", "uid", "finalizers", "ownerReferences")
"""Of the metadata of a VM that is replaced."""

_NO_VERSION = "1"
"""Before the first object of any cluster. Not "0": that is no version, and what follows is not said as a conflict."""

Object = dict[str, Any]


def for_creation(request: VmRequest) -> Write:
    """Return the write that makes the VM."""
    body: Object = overlay.over_live({}, request.declared.vm)
    if request.kind is VM:
        body["spec"] = _with_first_strategy(request, body)
    if request.kind is REPLICA_SET:
        body["spec"] = _with_selector(request, body["spec"])
    if request.name is None:
        return Write("create", body)
    return Write("apply", _noted(body, body))


def only_new(write: Write) -> Write:
    """Return a creation that the server refuses, as a conflict, when somebody made the object meanwhile.

    A version that no object has: an apply that creates does not look at it, and one that finds an object does. A
    creation by POST would do as well, but what it declares is not remembered as applied.
    """
    if write.how != "apply":
        return write
    return write._replace(body={**write.body, "metadata": {**write.body["metadata"], "resourceVersion": _NO_VERSION}})


def _with_selector(request: VmRequest, spec: Object) -> Object:
    """Return a new set's spec, which knows its instances by the labels that they are given."""
    if spec.get("selector") is not None:
        return spec
    labels = manifest.at(spec, ("template", "metadata", "labels"))
    if not labels:
        raise BadArgument(
            f"{request.title}: labels are missing; a set knows its instances by them, so give the option labels, or a"
            " selector and a template with labels that it selects"
        )
    if request.is_whole:
        raise BadArgument(
            "definition: spec.selector is missing; write matchLabels with labels of the template below it"
        )
    return {**spec, "selector": {"matchLabels": labels}}


def _with_first_strategy(request: VmRequest, body: Object) -> Object:
    spec = {key: value for key, value in (body.get("spec") or {}).items() if key not in STRATEGY_FIELDS}
    spec["runStrategy"] = _first_strategy(request)
    if "running" in (body.get("spec") or {}) and run_strategy(body) == spec["runStrategy"]:
        spec["running"] = body["spec"]["running"]  # spelt as declared
        del spec["runStrategy"]
    return spec


def _first_strategy(request: VmRequest) -> str:
    spec = request.declared.vm.get("spec") or {}
    is_given = any(spec.get(key) is not None for key in STRATEGY_FIELDS)
    wanted = run_strategy(request.declared.vm) if is_given else DEFAULT_RUN_STRATEGY
    if request.start_paused and wanted in (run_strategies.ALWAYS, run_strategies.HALTED):
        return run_strategies.HALTED  # a start of its own follows
    if not is_set_aside(request.state, wanted):
        return wanted
    return run_strategies.HALTED if request.state == "stopped" else DEFAULT_RUN_STRATEGY


def for_definition(declared: Object, live: Object) -> Write | None:
    """Return the write that makes the VM be as a definition says, None if it is."""
    laid: Object = overlay.over_live(live, declared)
    fields = ownership.applied_fields(live, FIELD_MANAGER)
    clean = overlay.over_live({}, declared)
    wanted = laid if fields is None else ownership.without_dropped(laid, fields, clean)
    patch = compare.merge_patch(live, wanted)
    is_known = not ownership.is_outdated(live, clean) and not ownership.is_unrecorded(live, FIELD_MANAGER, clean)
    if not patch and is_known:
        return None
    apply = Write("apply", _to_apply(declared, live, wanted))
    if not compare.has_nulls(compare.merge_patch(live, laid)) and not ownership.is_patched(live, FIELD_MANAGER, patch):
        return apply
    # an apply takes away what it alone made; what a null or another kind of source takes away may have other owners
    is_enough = compare.has_only_nulls(patch)
    return Write("patch", guarded(patch, live), None if is_enough else apply)


def for_replacement(declared: Object, live: Object, *, is_whole: bool) -> Write:
    """Return the write that puts what is declared in the place of the VM."""
    record = Write("apply", _to_apply(declared, live, overlay.over_live({}, declared)))
    return Write("replace", _replacement(declared, live), record if is_whole else None)


def _to_apply(declared: Object, live: Object, wanted: Object) -> Object:
    """Return what is declared, with others' items in the lists that the server takes for wholes.

    Carries what stays undeclared and an earlier apply of ours owns: leaving it out would take it away.
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
    spec = body.get("spec") or {}
    kept = _undeclared(spec, live)
    carried = {key: kept[key] for key in kept if ownership.is_applied(live, FIELD_MANAGER, ("spec", key))}
    spec = {**spec, **carried}
    return _noted(guarded({**body, "spec": spec}, live), noted)


def _undeclared(spec: Object, live: Object) -> Object:
    """Return what stays as it is where nobody declares it: when a VM runs, how many instances a set has, and which."""
    here = live.get("spec") or {}
    return {
        key: here[key]
        for keys in (STRATEGY_FIELDS, ("replicas",), ("selector",))
        if not any(key in spec for key in keys)
        for key in keys
        if here.get(key) is not None
    }


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
    body["spec"].update(_undeclared(body["spec"], live))
    kept = {key: live["metadata"][key] for key in _IDENTITY if key in live["metadata"]}
    body["metadata"] = {**body["metadata"], **kept}
    return _noted(body, overlay.over_live({}, declared))
