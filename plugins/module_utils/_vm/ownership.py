# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier task declared, and takes back by not declaring it any more. Pure.

The server remembers it in metadata.managedFields, but for the items of its lists: they are atomic to it, so it forgets
whose an item is as soon as somebody adds one. What was declared of lists is therefore noted in an annotation, as a
field set in the server's own format (names of fields and keys of items, no values: there may be secrets among them).
"""

from __future__ import annotations

import json
from typing import Any

from ..kubevirt_api import names
from .keyed_lists import ITEM, KEYS, POOLED, Path, key_of

Object = dict[str, Any]
_LEFT_ALONE: frozenset[Path] = frozenset(
    {
        ("apiVersion",), ("kind",),
        ("spec", "running"), ("spec", "runStrategy"),  # who declares none leaves it as it is
        ("spec", "replicas"), ("spec", "selector"),  # as well
        (*POOLED, "spec", "running"), (*POOLED, "spec", "runStrategy"),
        ("metadata", "annotations", names.DECLARED_ITEMS),
    }
)  # fmt: skip
_CONTROL_PLANE = ("virt-api", "virt-controller", "virt-handler", "virt-operator")
_WHOLE = "."
"""Marks what is itself in a field set; a noted list has it even when nothing is in it."""


def applied_fields(live: Object, manager: str) -> Object | None:
    """Return what a manager alone applied, with what it noted of lists; None if it never applied anything."""
    fields = _applied(live, manager)
    if fields is None:
        return None
    for entry in _entries(live):
        if entry.get("manager") != manager:
            fields = _without(fields, entry.get("fieldsV1") or {})
    return _joined(fields, noted(live))


def is_applied(live: Object, manager: str, path: Path) -> bool:
    """Tell whether a manager applied the field at a path, alone or with others: an apply without it gives it up."""
    fields = _applied(live, manager) or {}
    return f"f:{path[-1]}" in _at(fields, path[:-1])


def noted(live: Object) -> Object:
    """Return the note about lists, empty if there is none that can be read."""
    try:
        found = json.loads(((live.get("metadata") or {}).get("annotations") or {}).get(names.DECLARED_ITEMS) or "{}")
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def note(declared: Object) -> Object:
    """Return what is to be noted of a declaration: its lists of objects, and the way to them."""
    return _lists(declared, ()) or {}


def written(fields: Object) -> str:
    """Return a note as the annotation's text."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def is_outdated(live: Object, declared: Object) -> bool:
    """Tell whether the note claims items that are not declared any more: others' of that name would pass for them."""
    return _claims_more(noted(live), note(declared))


def tracks_items(live: Object, path: Path) -> bool:
    """Tell whether the server itself keeps the items of this list apart, so that others' survive an apply."""
    for entry in (live.get("metadata") or {}).get("managedFields") or ():
        if any(key.startswith("k:") for key in _at(entry.get("fieldsV1") or {}, path)):
            return True
    return False


def is_unrecorded(live: Object, manager: str, declared: Object) -> bool:
    """Tell whether a manager wrote fields that it declares by an update, and the apply that was to follow never came.

    It is refused when somebody else writes in between, as the control plane does at once. Nobody would take them back.
    """
    fields, applied = _all(declared, ()), _applied(live, manager) or {}
    return any(_lacks(applied, updated, fields, ()) for updated in _updated(live, manager))


def _lacks(applied: Object, updated: Object, declared: Object, path: Path) -> bool:
    for key, inner in updated.items():
        here = (*path, key[2:])
        if key not in declared or here in _LEFT_ALONE:
            continue
        if key not in applied or _lacks(applied[key], inner, declared[key], here):
            return True
    return False


def is_patched(live: Object, manager: str, patch: Object) -> bool:
    """Tell whether a merge patch takes away what this manager wrote by a patch: an apply of it would not."""
    return any(_takes_from(updated, patch) for updated in _updated(live, manager))


def _updated(live: Object, manager: str) -> list[Object]:
    """Return the fields that this manager wrote otherwise than by an apply."""
    ours = [one for one in _entries(live) if (one.get("manager"), one.get("operation")) == (manager, "Update")]
    return [one.get("fieldsV1") or {} for one in ours]


def _takes_from(fields: Object, patch: Object) -> bool:
    for key, value in patch.items():
        inner = fields.get(f"f:{key}")
        if inner is not None and (value is None or (isinstance(value, dict) and _takes_from(inner, value))):
            return True
    return False


def added_by_others(live: Object, manager: str) -> Object:
    """Return what a replacement leaves: labels and annotations of other managers, and what the control plane filled in.

    Lists that the control plane wrote (a disk that was plugged in) are the users' all the same.
    """
    kept: Object = {"metadata": {}, "spec": {}}
    for entry in _entries(live):
        if entry.get("manager") == manager:
            continue
        fields = entry.get("fieldsV1") or {}
        chosen = {f"f:{one}": inner for one in ("labels", "annotations") if (inner := _at(fields, ("metadata", one)))}
        parts = [("metadata", chosen)]
        if entry.get("manager") in _CONTROL_PLANE:
            parts.append(("spec", _at(fields, ("spec",))))
        for part, owned in parts:
            _pick(live.get(part) or {}, owned, kept[part], (part,))
    return {part: found for part, found in kept.items() if found}


def _pick(there: Object, fields: Object, into: Object, path: Path) -> None:
    for key, inner in fields.items():
        name = key[2:]
        if key[:2] != "f:" or name not in there or (*path, name) in _LEFT_ALONE or isinstance(there[name], list):
            continue
        if isinstance(there[name], dict):
            _pick(there[name], inner, into.setdefault(name, {}), (*path, name))
            if there[name] and not into[name]:
                del into[name]
        else:
            into[name] = there[name]


def without_dropped(there: Any, fields: Object, declared: Any, path: Path = ()) -> Any:
    """Return what is there without what was applied and is not declared any more; itself, if that is nothing."""
    if isinstance(there, dict):
        return _mapping(there, fields, declared if isinstance(declared, dict) else {}, path)
    if isinstance(there, list) and isinstance(declared, list):
        return _items(there, fields, declared, path)
    return there


def _mapping(there: Object, fields: Object, declared: Object, path: Path) -> Object:
    kept = there
    for key, inner in fields.items():
        kind, _unused, name = key.partition(":")
        here = (*path, name)
        if kind != "f" or name not in there or here in _LEFT_ALONE:
            continue
        below = declared.get(name)
        value = _others(there[name], inner, here) if below is None else without_dropped(there[name], inner, below, here)
        if value is None:
            kept = {one: value for one, value in kept.items() if one != name}
        elif value is not there[name]:
            kept = {**kept, name: value}
    return kept


def _others(there: Any, fields: Object, path: Path) -> Any:
    """Return what others have in something that is not declared any more, None if it was all ours."""
    if isinstance(there, list) and path in KEYS:
        return _keyed_items(there, fields, [], path) or None
    if isinstance(there, dict) and any(key.startswith("f:") for key in fields):
        return _mapping(there, fields, {}, path) or None
    return None


def _items(there: list[Any], fields: Object, declared: list[Any], path: Path) -> list[Any]:
    if path in KEYS:
        return _keyed_items(there, fields, declared, path)
    for key, inner in fields.items():
        kind, _unused, text = key.partition(":")
        if kind == "v" and json.loads(text) in there and json.loads(text) not in declared:
            there = [one for one in there if one != json.loads(text)]
        if kind == "i" and int(text) < min(len(there), len(declared)):
            one, wanted = there[int(text)], declared[int(text)]
            if without_dropped(one, inner, wanted, (*path, ITEM)) is not one:
                return declared  # a list of this kind is a whole
    return there


def _keyed_items(there: list[Any], fields: Object, declared: list[Any], path: Path) -> list[Any]:
    wanted = {key_of(path, item): item for item in declared}
    ours = {json.loads(key[2:]).get("name"): inner for key, inner in fields.items() if key.startswith("k:")}
    kept = []
    for item in there:
        name = key_of(path, item)
        if name in wanted:
            kept.append(without_dropped(item, ours.get(name) or {}, wanted[name], (*path, ITEM)))
        elif fields and name not in ours:
            kept.append(item)
        # with no word about items the list was applied as a whole, and nobody has changed it since
    same = len(kept) == len(there) and all(one is other for one, other in zip(kept, there, strict=True))
    return there if same else kept


def _entries(live: Object) -> list[Object]:
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    return [one for one in entries if not one.get("subresource")]


def _applied(live: Object, manager: str) -> Object | None:
    for entry in _entries(live):
        if entry.get("manager") == manager and entry.get("operation") == "Apply":
            return entry.get("fieldsV1") or {}
    return None


def _at(fields: Object, path: Path) -> Object:
    for step in path:
        fields = fields.get(f"f:{step}") or {}
    return fields


def _without(fields: Object, others: Object) -> Object:
    """Return a field set without the fields that another has as well: those stay there when we take ours back."""
    found = {}
    for key, inner in fields.items():
        if key not in others:
            found[key] = inner
        elif inner:
            found[key] = _without(inner, others[key])
    return found


def _joined(fields: Object, noted_fields: Object) -> Object:
    """Return the server's field set with the note where the server says nothing more than that there is a list."""
    merged = dict(fields)
    for key, inner in noted_fields.items():
        below = fields.get(key) or {}
        tells_items = any(one[:2] in ("k:", "i:") for one in below)
        merged[key] = below if tells_items else inner if _WHOLE in inner else _joined(below, inner)
    return merged


def _lists(value: Any, path: Path) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": found for key, inner in value.items() if (found := _lists(inner, (*path, key)))}
    if isinstance(value, list) and (path in KEYS or any(isinstance(item, dict) for item in value)):
        return {_WHOLE: {}, **_all(value, path)}
    return {}


def _all(value: Any, path: Path) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": _all(inner, (*path, key)) for key, inner in value.items()}
    if not isinstance(value, list):
        return {}
    inside = (*path, ITEM)
    if path in KEYS:
        return {f"k:{json.dumps({'name': key_of(path, item)})}": _all(item, inside) for item in value}
    return {f"i:{index}": _all(item, inside) for index, item in enumerate(value) if isinstance(item, dict)}


def _claims_more(old: Object, new: Object) -> bool:
    for key, inner in old.items():
        if key.startswith("k:"):
            if key not in new:
                return True
        elif _claims_more(inner, new.get(key) or {}):
            return True
    return False
