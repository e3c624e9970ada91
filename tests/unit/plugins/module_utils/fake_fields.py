# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""metadata.managedFields of the fake API, by the rules of the server.

A list is one field, unless it is `keyed` (the CRD says that it is a map by name).
"""

from __future__ import annotations

import copy
import json
from typing import Any

Object = dict[str, Any]
_NOBODYS = frozenset({"f:apiVersion", "f:kind", "f:status"})
_NOBODYS_METADATA = frozenset(f"f:{item}" for item in ("name", "namespace", "uid", "resourceVersion", "generation"))


def fields_of(value: Any, *, keyed: bool) -> Object:
    """Return the field set of a value."""
    if isinstance(value, dict):
        return {f"f:{key}": fields_of(inner, keyed=keyed) for key, inner in value.items()}
    if keyed and isinstance(value, list) and value and all(isinstance(item, dict) and "name" in item for item in value):
        return {"k:" + json.dumps({"name": item["name"]}): fields_of(item, keyed=keyed) for item in value}
    return {}


def entry(manager: str, operation: str, fields: Object) -> Object:
    """Return an entry of managedFields."""
    return {"manager": manager, "operation": operation, "apiVersion": "kubevirt.io/v1", "fieldsV1": fields}


def after_update(managed: list[Object], old: Object, new: Object, manager: str, *, keyed: bool) -> list[Object]:
    """Return managedFields after an update: the writer alone owns changed fields, nobody owns removed ones."""
    changed = _changed(old, new, keyed=keyed)
    for key in _NOBODYS:
        changed.pop(key, None)
    for key in _NOBODYS_METADATA:
        changed.get("f:metadata", {}).pop(key, None)
    mine: Object = {}
    results = []
    for item in copy.deepcopy(managed):
        _lose(item["fieldsV1"], changed)
        if (item["manager"], item["operation"]) == (manager, "Update"):
            mine = item["fieldsV1"]
        elif item["fieldsV1"]:
            results.append(item)
    _gain(mine, changed)
    return [*results, entry(manager, "Update", mine)] if mine else results


def after_apply(others: list[Object], old: Object, new: Object, *, keyed: bool) -> list[Object]:
    """Return the entries of the others after a forced apply: without the fields that it changed."""
    changed = _changed(old, new, keyed=keyed)
    result = copy.deepcopy(others)
    for item in result:
        _lose(item["fieldsV1"], changed)
    return [item for item in result if item["fieldsV1"]]


def _changed(old: Any, new: Any, *, keyed: bool) -> Object:
    """Return changed fields; a value of None marks a removed one."""
    before, after = _parts(old, keyed=keyed), _parts(new, keyed=keyed)
    result: Object = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key not in before:
            result[key] = fields_of(value, keyed=keyed)
        elif _parts(value, keyed=keyed) and _parts(before[key], keyed=keyed):
            inner = _changed(before[key], value, keyed=keyed)
            if inner:
                result[key] = inner
        elif value != before[key]:
            result[key] = {}
    return result


def _parts(value: Any, *, keyed: bool) -> Object:
    if isinstance(value, dict):
        return {f"f:{key}": inner for key, inner in value.items()}
    if keyed and isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
        return {"k:" + json.dumps({"name": item["name"]}): item for item in value}
    return {}


def _lose(fields: Object, changed: Object) -> None:
    for key, inner in changed.items():
        if key in fields:
            if inner:
                _lose(fields[key], inner)
            if not inner or not fields[key]:
                del fields[key]


def _gain(fields: Object, changed: Object) -> None:
    for key, inner in changed.items():
        if inner is not None:
            _gain(fields.setdefault(key, {}), inner)


def take_away(obj: Any, before: Object, now: Object, others: list[Object]) -> None:
    """Remove fields that an applier declared before and no longer does, unless another manager owns them too."""
    for key, inner in before.items():
        kind, _unused, text = key.partition(":")
        theirs = [item[key] for item in others if key in item]
        if kind == "f" and isinstance(obj, dict) and text in obj:
            if key in now or theirs:
                take_away(obj[text], inner, now.get(key, {}), theirs)
            else:
                del obj[text]
        elif kind == "k" and isinstance(obj, list):
            named = [item for item in obj if item.get("name") == json.loads(text)["name"]]
            if key in now:
                for item in named:
                    take_away(item, inner, now[key], theirs)
            elif not theirs:
                obj[:] = [item for item in obj if item not in named]


def put_in(obj: Object, body: Object, *, keyed: bool) -> None:
    """Set declared fields."""
    for key, value in body.items():
        if isinstance(value, dict):
            put_in(obj.setdefault(key, {}), value, keyed=keyed)
        elif keyed and isinstance(value, list) and all(isinstance(item, dict) and "name" in item for item in value):
            there = {item["name"]: item for item in obj.get(key, [])}
            for item in value:
                put_in(there.setdefault(item["name"], {}), item, keyed=keyed)
            obj[key] = list(there.values())
        else:
            obj[key] = value


def merge(obj: Object, patch: Object) -> None:
    """Apply a JSON merge patch to an object."""
    for key, value in patch.items():
        if value is None:
            obj.pop(key, None)
        elif isinstance(value, dict):
            merge(obj.setdefault(key, {}), value)
        else:
            obj[key] = value
