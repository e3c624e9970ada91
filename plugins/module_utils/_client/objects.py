# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decode responses, and check the fields that every object of the API has.

A response that fails the check does not come from an API server. It is not used, and the task fails.
"""

from __future__ import annotations

import json
from typing import Any

_TEXTS = ("name", "namespace", "uid", "resourceVersion", "generateName", "deletionTimestamp")
_MAPPINGS = ("labels", "annotations")
_LISTS = ("ownerReferences", "managedFields")


def json_of(raw: bytes) -> Any:
    """Decode JSON; raises ValueError for other text and for excessive nesting."""
    try:
        return _DECODER.decode(raw.decode())
    except RecursionError as error:
        raise ValueError("too deep") from error


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is not JSON")  # Python reads NaN and Infinity as numbers


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def flaw(obj: Any, *, is_named: bool = True) -> str | None:
    """Return what is wrong with an object, or None. is_named: it must have a name."""
    if not isinstance(obj, dict):
        return "it is not a mapping"
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict):
        return "metadata is not a mapping"
    if is_named and not metadata.get("name"):
        return "metadata.name is missing"
    return _in_metadata(metadata) or _in_rest(obj)


def _in_metadata(metadata: dict[str, Any]) -> str | None:
    for key in _TEXTS:
        if not isinstance(metadata.get(key) or "", str):
            return f"metadata.{key} is not a text"
    for key in ("name", "namespace", "resourceVersion"):  # they become parts of a URL
        if not (metadata.get(key) or "").isascii():
            return f"metadata.{key} has characters that none has"
    for key in _MAPPINGS:
        if not isinstance(metadata.get(key) or {}, dict):
            return f"metadata.{key} is not a mapping"
    return next(
        (f"metadata.{key} is not a list of mappings" for key in _LISTS if not _is_list(metadata.get(key))), None
    )


def _in_rest(obj: dict[str, Any]) -> str | None:
    for key in ("spec", "status"):
        if not isinstance(obj.get(key) or {}, dict):
            return f"{key} is not a mapping"
    if not _is_list((obj.get("status") or {}).get("conditions")):
        return "status.conditions is not a list of mappings"
    return None


def _is_list(value: Any) -> bool:
    return value is None or (isinstance(value, list) and all(isinstance(item, dict) for item in value))
