# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fields and list items an earlier task applied. They are removed when they are no longer declared. Pure.

The server records fields in metadata.managedFields, but not the items of lists that the CRD declares atomic: it forgets
who added an item as soon as another client adds one. So the items that a task declares are noted in an
annotation, as a field set in the server's format: field names and keys of items, but no values, which may be secret.
"""

from __future__ import annotations

import json
from typing import Any

from ...kubevirt_api import names
from ..field_path import Path
from ..kinds import POOL_TEMPLATE
from .keyed_lists import ITEM, KEYS, key_of

Object = dict[str, Any]
_NEVER_DROPPED: frozenset[Path] = frozenset(
    {
        ("apiVersion",), ("kind",),
        ("spec", "running"), ("spec", "runStrategy"),  # keep their value when they are not declared
        ("spec", "replicas"), ("spec", "selector"),  # likewise
        (*POOL_TEMPLATE, "spec", "running"), (*POOL_TEMPLATE, "spec", "runStrategy"),
        ("metadata", "annotations", names.DECLARED_ITEMS),
    }
)  # fmt: skip
_CONTROL_PLANE = ("virt-api", "virt-controller", "virt-handler", "virt-operator")
_SELF = "."
"""The member of a field set that means the field itself. A noted list has it even when it is empty."""


def applied_fields(live: Object, manager: str) -> Object | None:
    """Return the fields that only this manager applied, with its noted items; None if it applied nothing."""
    fields = _applied(live, manager)
    if fields is None:
        return None
    for entry in _entries(live):
        if entry.get("manager") != manager:
            fields = _without(fields, entry.get("fieldsV1") or {})
    return _joined(fields, noted(live))


def is_applied(live: Object, manager: str, path: Path) -> bool:
    """Tell whether a manager applied the field at a path. An apply without the field gives up its ownership."""
    fields = _applied(live, manager) or {}
    return f"f:{path[-1]}" in _at(fields, path[:-1])


def noted(live: Object) -> Object:
    """Return the noted items of a live object, empty without a readable note."""
    try:
        fields = json.loads(((live.get("metadata") or {}).get("annotations") or {}).get(names.DECLARED_ITEMS) or "{}")
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}


def note(declared: Object) -> Object:
    """Return the field set of a declaration's lists of objects, and of the paths to them."""
    return _lists(declared, ()) or {}


def encoded(fields: Object) -> str:
    """Return a note as the annotation's text."""
    return json.dumps(fields, sort_keys=True, separators=(",", ":"))


def is_outdated(live: Object, declared: Object) -> bool:
    """Tell whether the note has undeclared items. A later item of that name from others would look like ours."""
    return _claims_more(noted(live), note(declared))


def tracks_items(live: Object, path: Path) -> bool:
    """Tell whether the server tracks the items of this list, so that others' items survive an apply."""
    for entry in (live.get("metadata") or {}).get("managedFields") or ():
        if any(key.startswith("k:") for key in _at(entry.get("fieldsV1") or {}, path)):
            return True
    return False


def is_unrecorded(live: Object, manager: str, declared: Object) -> bool:
    """Tell whether a manager wrote declared fields by an update that no apply recorded.

    The apply that follows an update is refused if another client writes in between, and the control plane often does.
    Fields that no apply recorded would never be removed.
    """
    fields, applied = _all(declared, ()), _applied(live, manager) or {}
    return any(_lacks(applied, updated, fields, ()) for updated in _updated(live, manager))


def _lacks(applied: Object, updated: Object, declared: Object, path: Path) -> bool:
    for key, inner in updated.items():
        inner_path = (*path, key[2:])
        if key not in declared or inner_path in _NEVER_DROPPED:
            continue
        if key not in applied or _lacks(applied[key], inner, declared[key], inner_path):
            return True
    return False


def is_patched(live: Object, manager: str, patch: Object) -> bool:
    """Tell whether a merge patch removes a field that this manager wrote by a patch. An apply would not remove it."""
    return any(_removes(updated, patch) for updated in _updated(live, manager))


def _updated(live: Object, manager: str) -> list[Object]:
    """Return the fields that this manager wrote by other requests than an apply."""
    entries = [
        entry for entry in _entries(live) if (entry.get("manager"), entry.get("operation")) == (manager, "Update")
    ]
    return [entry.get("fieldsV1") or {} for entry in entries]


def _removes(fields: Object, patch: Object) -> bool:
    for key, value in patch.items():
        inner = fields.get(f"f:{key}")
        if inner is not None and (value is None or (isinstance(value, dict) and _removes(inner, value))):
            return True
    return False


def added_by_others(live: Object, manager: str) -> Object:
    """Return the fields that a replacement keeps: others' labels and annotations, and defaults of the control plane.

    Lists that the control plane wrote (a hot-plugged disk) belong to the users and are not kept.
    """
    result: Object = {"metadata": {}, "spec": {}}
    for entry in _entries(live):
        if entry.get("manager") == manager:
            continue
        fields = entry.get("fieldsV1") or {}
        chosen = {f"f:{key}": inner for key in ("labels", "annotations") if (inner := _at(fields, ("metadata", key)))}
        parts = [("metadata", chosen)]
        if entry.get("manager") in _CONTROL_PLANE:
            parts.append(("spec", _at(fields, ("spec",))))
        for part, owned in parts:
            _pick(live.get(part) or {}, owned, result[part], (part,))
    return {part: values for part, values in result.items() if values}


def _pick(live: Object, fields: Object, into: Object, path: Path) -> None:
    for key, inner in fields.items():
        name = key[2:]
        if key[:2] != "f:" or name not in live or (*path, name) in _NEVER_DROPPED or isinstance(live[name], list):
            continue
        if isinstance(live[name], dict):
            _pick(live[name], inner, into.setdefault(name, {}), (*path, name))
            if live[name] and not into[name]:
                del into[name]
        else:
            into[name] = live[name]


def without_dropped(live: Any, fields: Object, declared: Any, path: Path = ()) -> Any:
    """Return the live value without fields that were applied and are no longer declared. fields: the applied fields."""
    if isinstance(live, dict):
        return _mapping(live, fields, declared if isinstance(declared, dict) else {}, path)
    if isinstance(live, list) and isinstance(declared, list):
        return _items(live, fields, declared, path)
    return live


def _mapping(live: Object, fields: Object, declared: Object, path: Path) -> Object:
    result = live
    for key, inner in fields.items():
        kind, _unused, name = key.partition(":")
        inner_path = (*path, name)
        if kind != "f" or name not in live or inner_path in _NEVER_DROPPED:
            continue
        if declared.get(name) is None:
            value = _of_others(live[name], inner, inner_path)
        else:
            value = without_dropped(live[name], inner, declared[name], inner_path)
        if value is None:
            result = {other: value for other, value in result.items() if other != name}
        elif value is not live[name]:
            result = {**result, name: value}
    return result


def _of_others(live: Any, fields: Object, path: Path) -> Any:
    """Return others' part of a value that is no longer declared, None if all of it was ours."""
    if isinstance(live, list) and path in KEYS:
        return _keyed_items(live, fields, [], path) or None
    if isinstance(live, dict) and any(key.startswith("f:") for key in fields):
        return _mapping(live, fields, {}, path) or None
    return None


def _items(live: list[Any], fields: Object, declared: list[Any], path: Path) -> list[Any]:
    if path in KEYS:
        return _keyed_items(live, fields, declared, path)
    for key, inner in fields.items():
        kind, _unused, text = key.partition(":")
        if kind == "v" and json.loads(text) in live and json.loads(text) not in declared:
            live = [item for item in live if item != json.loads(text)]
        if kind == "i" and int(text) < min(len(live), len(declared)):
            item, declared_item = live[int(text)], declared[int(text)]
            if without_dropped(item, inner, declared_item, (*path, ITEM)) is not item:
                return declared  # such a list is atomic
    return live


def _keyed_items(live: list[Any], fields: Object, declared: list[Any], path: Path) -> list[Any]:
    declared_items = {key_of(path, item): item for item in declared}
    applied = {json.loads(key[2:]).get("name"): inner for key, inner in fields.items() if key.startswith("k:")}
    items = []
    for item in live:
        name = key_of(path, item)
        if name in declared_items:
            items.append(without_dropped(item, applied.get(name) or {}, declared_items[name], (*path, ITEM)))
        elif fields and name not in applied:  # an item of others
            items.append(item)
        # A field set without items means that the list was applied as one value and has not changed since.
    same = len(items) == len(live) and all(new is old for new, old in zip(items, live, strict=True))
    return live if same else items


def _entries(live: Object) -> list[Object]:
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    return [entry for entry in entries if not entry.get("subresource")]


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
    """Return a field set without the fields that another manager also owns: those are not ours to remove."""
    own = {}
    for key, inner in fields.items():
        if key not in others:
            own[key] = inner
        elif inner:
            own[key] = _without(inner, others[key])
    return own


def _joined(fields: Object, noted_fields: Object) -> Object:
    """Return the server's field set with the noted items of lists whose items the server does not record."""
    merged = dict(fields)
    for key, inner in noted_fields.items():
        below = fields.get(key) or {}
        has_items = any(member[:2] in ("k:", "i:") for member in below)
        merged[key] = below if has_items else inner if _SELF in inner else _joined(below, inner)
    return merged


def _lists(value: Any, path: Path) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": fields for key, inner in value.items() if (fields := _lists(inner, (*path, key)))}
    if isinstance(value, list) and (path in KEYS or any(isinstance(item, dict) for item in value)):
        return {_SELF: {}, **_all(value, path)}
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
