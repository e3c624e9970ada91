# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide about objects with a complete declaration: to create, with a definition, or to replace. Pure.

A separate file, because most tasks find an object as their options say and never load it.
"""

from __future__ import annotations

from typing import Any

from ..._client.api import FIELD_MANAGER
from ..._client.errors import BadArgument
from ...kubevirt_api import names, run_strategies
from ...kubevirt_api.desired import run_strategy
from ..field_path import Path, value_at, with_value
from ..kinds import POOL_TEMPLATE
from ..merge import compare, overlay, ownership
from ..merge.keyed_lists import KEYS
from ..request import manifest
from ..request.vm_request import VmRequest
from .update import STRATEGY_FIELDS, Write, guarded, is_overridden

DEFAULT_RUN_STRATEGY = run_strategies.ALWAYS
"""The run strategy of a new VM, as in the modules of kubevirt.core."""
_IDENTITY = ("resourceVersion", "uid", "finalizers", "ownerReferences")
"""Metadata that a replaced object keeps."""

_UNDECLARED_STAYS: tuple[tuple[Path, tuple[str, ...]], ...] = (
    (("spec",), STRATEGY_FIELDS),
    (("spec",), ("replicas",)),
    (("spec",), ("selector",)),
    ((*POOL_TEMPLATE, "spec"), STRATEGY_FIELDS),
)
"""Fields that keep their value when they are not declared, by their parent. An autoscaler may set replicas."""

_NO_VERSION = "1"
"""A resourceVersion that no object has. "0" means any version: the server would not report a conflict."""

Object = dict[str, Any]


def for_creation(request: VmRequest) -> Write:
    """Return the write that creates the object."""
    body: Object = overlay.over_live({}, request.declaration.obj)
    if request.kind.vm is not None:
        body = _with_first_strategy(request, body, request.kind.vm)
    if request.kind.members:
        body["spec"] = _with_selector(request, body)
    if request.name is None:
        return Write("create", body)
    return Write("apply", _with_note(body, body))


def only_new(write: Write) -> Write:
    """Return a creation that the server refuses with a conflict if the object exists meanwhile.

    An apply ignores the resourceVersion when it creates an object and checks it when it changes one. A POST would also
    fail, but the server would not record its fields as applied.
    """
    if write.method != "apply":
        return write
    return write._replace(body={**write.body, "metadata": {**write.body["metadata"], "resourceVersion": _NO_VERSION}})


def _with_selector(request: VmRequest, body: Object) -> Object:
    """Return the spec of a new set with a selector: the labels of its template, unless one is declared."""
    spec: Object = body["spec"]
    if spec.get("selector") is not None:
        return spec
    labels = value_at(body, (*request.kind.templates[0], "metadata", "labels"))
    if not labels:
        raise BadArgument(
            f"{request.title}: labels are missing; they select its {request.kind.members}, so give the option"
            " labels, or a selector and a template with labels that it selects"
        )
    if request.is_complete:
        raise BadArgument(
            "definition: spec.selector is missing; write matchLabels with labels of the template below it"
        )
    return {**spec, "selector": {"matchLabels": labels}}


def _with_first_strategy(request: VmRequest, body: Object, path: Path) -> Object:
    machine: Object = value_at(body, path) or {}
    declared = machine.get("spec") or {}
    spec = {key: value for key, value in declared.items() if key not in STRATEGY_FIELDS}
    spec["runStrategy"] = _first_strategy(request, machine)
    if "running" in declared and run_strategy(machine) == spec["runStrategy"]:
        spec["running"] = declared["running"]  # keep the field that the user chose
        del spec["runStrategy"]
    return with_value(body, (*path, "spec"), spec)


def _first_strategy(request: VmRequest, machine: Object) -> str:
    is_declared = any((machine.get("spec") or {}).get(key) is not None for key in STRATEGY_FIELDS)
    strategy = run_strategy(machine) if is_declared else DEFAULT_RUN_STRATEGY
    if request.start_paused and strategy in (run_strategies.ALWAYS, run_strategies.HALTED):
        return run_strategies.HALTED  # a paused start follows as a request of its own
    if not is_overridden(request.state, strategy):
        return strategy
    return run_strategies.HALTED if request.state == "stopped" else DEFAULT_RUN_STRATEGY


def for_definition(request: VmRequest, declared: Object, live: Object) -> Write | None:
    """Return the write that makes the object match a definition, None if it matches."""
    laid = manifest.over_live(request.declaration, declared, live, request.kind)
    fields = ownership.applied_fields(live, FIELD_MANAGER)
    clean = overlay.over_live({}, declared)
    target = laid if fields is None else ownership.without_dropped(laid, fields, clean)
    patch = compare.merge_patch(live, target)
    is_recorded = not ownership.is_outdated(live, clean) and not ownership.is_unrecorded(live, FIELD_MANAGER, clean)
    if not patch and is_recorded:
        return None
    apply = Write("apply", _apply_body(declared, live, target))
    if not compare.has_nulls(compare.merge_patch(live, laid)) and not ownership.is_patched(live, FIELD_MANAGER, patch):
        return apply
    # An apply removes only fields that it owns alone. A null, or another kind of source, may remove others' fields.
    is_enough = compare.has_only_nulls(patch)
    return Write("patch", guarded(patch, live), None if is_enough else apply)


def for_replacement(declared: Object, live: Object, *, is_complete: bool) -> Write:
    """Return the write that replaces the live object by the declared one."""
    record = Write("apply", _apply_body(declared, live, overlay.over_live({}, declared)))
    return Write("replace", _replacement(declared, live), record if is_complete else None)


def _apply_body(declared: Object, live: Object, wanted: Object) -> Object:
    """Return the declaration, with others' items in the lists that the server treats as atomic.

    It also carries fields that stay undeclared and that an earlier apply of ours owns: without them the server would
    remove them.
    """
    body: Object = overlay.over_live({}, declared)
    noted = body
    for path in KEYS:
        items = value_at(wanted, path)
        is_declared = value_at(body, path) is not None
        if not items or ownership.tracks_items(live, path):
            continue
        if is_declared or ownership.is_applied(live, FIELD_MANAGER, path):
            body = with_value(body, path, items)
        if not is_declared:
            noted = with_value(noted, path, [])  # none of the items is ours
    for path, value in _undeclared(body, live):
        if ownership.is_applied(live, FIELD_MANAGER, path):
            body = with_value(body, path, value)
    return _with_note(guarded({**body, "spec": body.get("spec") or {}}, live), noted)


def _undeclared(body: Object, live: Object) -> list[tuple[Path, Any]]:
    """Return path and value of the live fields that stay because they are not declared."""
    fields = []
    for parent, keys in _UNDECLARED_STAYS:
        declared, current = value_at(body, parent) or {}, value_at(live, parent) or {}
        if not any(key in declared for key in keys):
            fields += [((*parent, key), current[key]) for key in keys if current.get(key) is not None]
    return fields


def _with_note(body: Object, declared: Object) -> Object:
    """Return the body of an apply with a note of the list items that it declares."""
    note = ownership.note(declared)
    if not note:
        return body
    annotations = {**(body["metadata"].get("annotations") or {}), names.DECLARED_ITEMS: ownership.encoded(note)}
    return {**body, "metadata": {**body["metadata"], "annotations": annotations}}


def _replacement(declared: Object, live: Object) -> Object:
    """Return the declared object with the identity of the live one and the fields that belong to others."""
    body: Object = overlay.over_live(ownership.added_by_others(live, FIELD_MANAGER), declared)
    for path, value in _undeclared(body, live):
        body = with_value(body, path, value)
    identity = {key: live["metadata"][key] for key in _IDENTITY if key in live["metadata"]}
    body["metadata"] = {**body["metadata"], **identity}
    return _with_note(body, overlay.over_live({}, declared))
