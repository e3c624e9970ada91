# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Compare what is declared with what is there. Pure: a merge patch says what differs, an empty one that nothing does.

What is there may have more than was declared (defaults of the server, other owners' fields); that is no difference.
Lists of named items are matched by name. Quantities are compared as numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from decimal import Decimal

_SAME: Any = object()
_QUANTITY_KEYS = frozenset({"guest", "maxGuest", "pageSize", "capacity", "storage"})
_QUANTITY_PARENTS = frozenset({"requests", "limits"})
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_UNSTABLE = ("resourceVersion", "generation", "managedFields")


def merge_patch(declared: dict[str, Any], live: dict[str, Any], *, keep_items: bool) -> dict[str, Any]:
    """Return the JSON merge patch that makes `live` be as declared; None in `declared` means absent.

    keep_items: items of named lists that are not declared belong to others and stay; else they are a difference.
    """
    patch = _compare(declared, live, (), keep_items)
    return {} if patch is _SAME else patch


def is_same_content(one: dict[str, Any], other: dict[str, Any]) -> bool:
    """Tell whether two versions of an object differ in what a user declares (not status, not bookkeeping)."""
    return content(one) == content(other)


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without status and bookkeeping of the server."""
    kept = {key: value for key, value in obj.items() if key != "status"}
    kept["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _UNSTABLE}
    return kept


def without_nulls(value: Any) -> Any:
    """Return a copy without the keys whose value is None."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [without_nulls(inner) for inner in value]
    return value


def has_nulls(value: Any) -> bool:
    """Tell whether a merge patch takes something away."""
    return isinstance(value, dict) and any(inner is None or has_nulls(inner) for inner in value.values())


def _compare(declared: Any, live: Any, path: tuple[str, ...], keep_items: bool) -> Any:
    if isinstance(declared, dict) and isinstance(live, dict):
        patch = {}
        for key, value in declared.items():
            if value is None:
                if live.get(key) is not None:
                    patch[key] = None
            elif key not in live:
                patch[key] = without_nulls(value)
            else:
                inner = _compare(value, live[key], (*path, key), keep_items)
                if inner is not _SAME:
                    patch[key] = inner
        return patch or _SAME
    if isinstance(declared, list) and isinstance(live, list):
        return _compare_lists(declared, live, path, keep_items)
    return _SAME if _is_equal(declared, live, path) else without_nulls(declared)


def _compare_lists(declared: list[Any], live: list[Any], path: tuple[str, ...], keep_items: bool) -> Any:
    if not (_is_named(declared) and _is_named(live)):
        same = len(declared) == len(live) and all(
            _compare(one, other, path, keep_items) is _SAME for one, other in zip(declared, live, strict=True)
        )
        return _SAME if same else without_nulls(declared)
    there = {item["name"]: item for item in live}
    names = {item["name"] for item in declared}
    extra = [item for item in live if item["name"] not in names]
    same = all(
        item["name"] in there and _compare(item, there[item["name"]], path, keep_items) is _SAME for item in declared
    )
    if same and (keep_items or not extra):
        return _SAME
    merged = [merged_over(there.get(item["name"], {}), item) for item in declared]
    return merged + (extra if keep_items else [])


def merged_over(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    """Return `below` with the keys of `above` laid over it, level by level; None takes a key away."""
    merged = dict(below)
    for key, value in above.items():
        if value is None:
            merged.pop(key, None)
        elif isinstance(value, dict) and isinstance(merged.get(key), dict):
            merged[key] = merged_over(merged[key], value)
        else:
            merged[key] = without_nulls(value)
    return merged


def _is_named(items: list[Any]) -> bool:
    names = [item.get("name") if isinstance(item, dict) else None for item in items]
    return all(isinstance(name, str) for name in names) and len(set(names)) == len(names)


def _is_equal(declared: Any, live: Any, path: tuple[str, ...]) -> bool:
    if isinstance(declared, bool) or isinstance(live, bool):
        return declared is live
    if declared == live:
        return True
    if path and (path[-1] in _QUANTITY_KEYS or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)):
        amount = quantity(declared)
        return amount is not None and amount == quantity(live)
    return False


def quantity(value: Any) -> Decimal | None:
    """Return the number that a Kubernetes quantity means, None if it is none."""
    from decimal import Decimal, InvalidOperation  # equal texts, the common case, never come here

    text = str(value)
    try:
        if text[-2:] in _BINARY:
            return Decimal(text[:-2]) * (1 << _BINARY[text[-2:]])
        if text[-1:] in _SUFFIXES:
            return Decimal(text[:-1]).scaleb(_SUFFIXES[text[-1:]])
        return Decimal(text)
    except InvalidOperation:
        return None
