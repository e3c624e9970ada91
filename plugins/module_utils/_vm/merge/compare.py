# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Differences between two versions of an object, and equality of values. Quantities are compared as numbers, MAC
addresses and UUIDs without their case. Pure.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...kubevirt_api import names

if TYPE_CHECKING:
    from decimal import Decimal

_QUANTITY_KEYS = frozenset({"guest", "maxGuest", "pageSize", "capacity", "storage"})
_QUANTITY_PARENTS = frozenset({"requests", "limits"})
_HEX_KEYS = frozenset({"macAddress", "uuid"})
"""Numbers in base 16 that have several spellings. Another one must not ask for a restart."""
_SUFFIXES = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_BINARY = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_UNSTABLE = ("resourceVersion", "generation", "managedFields")


def merge_patch(live: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Return the JSON merge patch from `live` to `wanted`. Equal parts are the same Python objects in both."""
    patch: dict[str, Any] = {key: None for key in live if key not in wanted}
    for key, value in wanted.items():
        current = live.get(key)
        if value is current:
            continue
        if isinstance(value, dict) and isinstance(current, dict):
            inner = merge_patch(current, value)
            if inner:
                patch[key] = inner
        else:
            patch[key] = value
    return patch


def has_only_nulls(patch: dict[str, Any]) -> bool:
    """Tell whether a merge patch only removes fields."""
    return all(
        inner is None or (isinstance(inner, dict) and bool(inner) and has_only_nulls(inner)) for inner in patch.values()
    )


def has_nulls(patch: dict[str, Any]) -> bool:
    """Tell whether a merge patch removes a field."""
    return any(inner is None or (isinstance(inner, dict) and has_nulls(inner)) for inner in patch.values())


def has_lists(patch: dict[str, Any]) -> bool:
    """Tell whether a merge patch replaces a list. The new list depends on the items that were read."""
    return any(isinstance(inner, list) or (isinstance(inner, dict) and has_lists(inner)) for inner in patch.values())


def is_same_content(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Tell whether two versions of an object are equal except for status and bookkeeping."""
    return content(old) == content(new)


def content(obj: dict[str, Any]) -> dict[str, Any]:
    """Return the object without status, and without the bookkeeping of the server and of this collection."""
    result = {key: value for key, value in obj.items() if key != "status"}
    result["metadata"] = {key: value for key, value in (obj.get("metadata") or {}).items() if key not in _UNSTABLE}
    annotations = {
        key: value
        for key, value in (result["metadata"].pop("annotations", None) or {}).items()
        if key != names.DECLARED_ITEMS
    }
    if annotations:
        result["metadata"]["annotations"] = annotations
    return result


def is_equal(declared: Any, live: Any, path: tuple[str, ...]) -> bool:
    """Tell whether two scalars mean the same at `path`."""
    if isinstance(declared, bool) or isinstance(live, bool):
        return declared is live
    if declared == live:
        return True
    if path and (path[-1] in _QUANTITY_KEYS or (len(path) > 1 and path[-2] in _QUANTITY_PARENTS)):
        amount = quantity(declared)
        return amount is not None and amount == quantity(live)
    if path and path[-1] in _HEX_KEYS and isinstance(declared, str) and isinstance(live, str):
        return declared.lower().replace("-", ":") == live.lower().replace("-", ":")
    return False


def quantity(value: Any) -> Decimal | None:
    """Return the value of a Kubernetes quantity, None if the text is no quantity."""
    from decimal import Decimal, InvalidOperation  # not needed while texts are equal, the common case

    text = str(value)
    try:
        if text[-2:] in _BINARY:
            return Decimal(text[:-2]) * (1 << _BINARY[text[-2:]])
        if text[-1:] in _SUFFIXES:
            return Decimal(text[:-1]).scaleb(_SUFFIXES[text[-1:]])
        return Decimal(text)
    except InvalidOperation:
        return None
