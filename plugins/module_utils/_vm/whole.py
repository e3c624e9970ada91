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
from .keyed_lists import KEYS, POOLED, Path
from .present import STRATEGY_FIELDS, Write, guarded, is_set_aside
from .request import VmRequest

DEFAULT_RUN_STRATEGY = run_strategies.ALWAYS
"""Of a VM that is created; like a peer's, where a VM runs unless told otherwise."""
_IDENTITY = ("resourceVersion", "uid", "finalizers", "ownerReferences")
"""Of the metadata of a VM that is replaced."""

_LEFT_ALONE: tuple[tuple[Path, tuple[str, ...]], ...] = (
    (("spec",), STRATEGY_FIELDS),
    (("spec",), ("replicas",)),
    (("spec",), ("selector",)),
    ((*POOLED, "spec"), STRATEGY_FIELDS),
)

_NO_VERSION = "1"
"""Before the first object of any cluster. Not "0": that is no version, and what follows is not said as a conflict."""

Object = dict[str, Any]


def for_creation(request: VmRequest) -> Write:
    """Return the write that makes the VM."""
    body: Object = overlay.over_live({}, request.declared.vm)
    if request.kind.vm is not None:
        body = _with_first_strategy(request, body, request.kind.vm)
    if request.kind.members:
        body["spec"] = _with_selector(request, body)
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


def _with_selector(request: VmRequest, body: Object) -> Object:
    """Return the spec of a new set or pool, which knows what it keeps by the labels that it gives."""
    spec: Object = body["spec"]
    if spec.get("selector") is not None:
        return spec
    labels = manifest.at(body, (*request.kind.templates[0], "metadata", "labels"))
    if not labels:
        raise BadArgument(
            f"{request.title}: labels are missing; it knows its {request.kind.members} by them, so give the option"
            " labels, or a selector and a template with labels that it selects"
        )
    if request.is_whole:
        raise BadArgument(
            "definition: spec.selector is missing; write matchLabels with labels of the template below it"
        )
    return {**spec, "selector": {"matchLabels": labels}}


def _with_first_strategy(request: VmRequest, body: Object, path: Path) -> Object:
    machine: Object = manifest.at(body, path) or {}
    given = machine.get("spec") or {}
    spec = {key: value for key, value in given.items() if key not in STRATEGY_FIELDS}
    spec["runStrategy"] = _first_strategy(request, machine)
    if "running" in given and run_strategy(machine) == spec["runStrategy"]:
        spec["running"] = given["running"]  # spelt as declared
        del spec["runStrategy"]
    return manifest.replaced(body, (*path, "spec"), spec)


def _first_strategy(request: VmRequest, machine: Object) -> str:
    is_given = any((machine.get("spec") or {}).get(key) is not None for key in STRATEGY_FIELDS)
    wanted = run_strategy(machine) if is_given else DEFAULT_RUN_STRATEGY
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
    for path, value in _undeclared(body, live):
        if ownership.is_applied(live, FIELD_MANAGER, path):
            body = manifest.replaced(body, path, value)
    return _noted(guarded({**body, "spec": body.get("spec") or {}}, live), noted)


def _undeclared(body: Object, live: Object) -> list[tuple[Path, Any]]:
    """Return what stays as it is where nobody declares it, and where: when a VM runs, how many a set has, and which."""
    found = []
    for holder, keys in _LEFT_ALONE:
        declared, here = manifest.at(body, holder) or {}, manifest.at(live, holder) or {}
        if not any(key in declared for key in keys):
            found += [((*holder, key), here[key]) for key in keys if here.get(key) is not None]
    return found


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
    for path, value in _undeclared(body, live):
        body = manifest.replaced(body, path, value)
    kept = {key: live["metadata"][key] for key in _IDENTITY if key in live["metadata"]}
    body["metadata"] = {**body["metadata"], **kept}
    return _noted(body, overlay.over_live({}, declared))
