# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an earlier task declared, from metadata.managedFields: this is how a removed key is noticed. Pure."""

from __future__ import annotations

import json
from typing import Any

_IDENTITY = frozenset({"f:apiVersion", "f:kind"})


def applied_fields(live: dict[str, Any], manager: str) -> dict[str, Any] | None:
    """Return the field set that a manager applied, None if it never did."""
    for entry in (live.get("metadata") or {}).get("managedFields") or ():
        if entry.get("manager") == manager and entry.get("operation") == "Apply" and not entry.get("subresource"):
            return entry.get("fieldsV1") or {}
    return None


def has_keyed_lists(live: dict[str, Any]) -> bool:
    """Tell whether the server tracks the items of named lists one by one, so that others' items survive an apply."""
    entries = (live.get("metadata") or {}).get("managedFields") or ()
    return any(_has_named_items((entry.get("fieldsV1") or {}).get("f:spec")) for entry in entries)


def _has_named_items(fields: Any) -> bool:
    return isinstance(fields, dict) and any(
        key.startswith('k:{"name"') or _has_named_items(inner) for key, inner in fields.items()
    )


def dropped(fields: dict[str, Any], declared: Any, live: Any, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    """Return the paths that were applied, are still there, and are not declared any more."""
    found: list[tuple[str, ...]] = []
    for key, inner in fields.items():
        if key in _IDENTITY or key == ".":
            continue
        kind, _unused, text = key.partition(":")
        step, below, there = _follow(kind, text, declared, live)
        if there is None:
            continue
        if below is None:
            found.append((*path, step))
        elif inner:
            found += dropped(inner, below, there, (*path, step))
    return found


def _follow(kind: str, text: str, declared: Any, live: Any) -> tuple[str, Any, Any]:
    """Take one step into both: f: a field, k: an item by its keys, v: a value of a set."""
    if kind == "f":
        return text, _field(declared, text), _field(live, text)
    wanted = json.loads(text)
    if kind == "k":
        return json.dumps(wanted), _item(declared, wanted), _item(live, wanted)
    if kind == "v":
        return text, _value(declared, wanted), _value(live, wanted)
    return text, None, None


def _field(value: Any, key: str) -> Any:
    return value.get(key) if isinstance(value, dict) else None


def _item(value: Any, keys: dict[str, Any]) -> Any:
    for item in value if isinstance(value, list) else ():
        if isinstance(item, dict) and all(item.get(key) == wanted for key, wanted in keys.items()):
            return item
    return None


def _value(value: Any, wanted: Any) -> Any:
    return wanted if isinstance(value, list) and wanted in value else None
