# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths into an object, as the option hidden_fields writes them: metadata.annotations[example.org/note]."""

from __future__ import annotations

from typing import Any

from .._client.errors import BadArgument


def parse(text: str) -> list[str]:
    """Split a path into its keys; BadArgument names the column of what is wrong."""
    keys: list[str] = []
    at = 0
    while at < len(text):
        if text[at] == "[":
            end = text.find("]", at)
            if end < 0:
                raise _wrong(text, at, "this bracket is not closed")
            keys.append(text[at + 1 : end])
            at = end + 1
        else:
            if keys:
                if text[at] != ".":
                    raise _wrong(text, at, "'.' or '[' is expected")
                at += 1
            end = min((i for i in (text.find(".", at), text.find("[", at)) if i >= 0), default=len(text))
            keys.append(text[at:end])
            at = end
        if not keys[-1]:
            raise _wrong(text, at, "a name is expected")
    if not keys:
        raise _wrong(text, 0, "it is empty")
    return keys


def without(obj: dict[str, Any], paths: list[list[str]]) -> dict[str, Any]:
    """Return a copy that lacks these paths; those that are not there do not matter."""
    for path in paths:
        obj = _without(obj, path)
    return obj


def _without(obj: Any, path: list[str]) -> Any:
    if isinstance(obj, list):
        return [_without(one, path) for one in obj]
    if not isinstance(obj, dict) or path[0] not in obj:
        return obj
    if len(path) == 1:
        return {key: value for key, value in obj.items() if key != path[0]}
    return {**obj, path[0]: _without(obj[path[0]], path[1:])}


def _wrong(text: str, at: int, why: str) -> BadArgument:
    return BadArgument(f"hidden_fields: {text[:64]!r} is not a field path, error at column {at + 1}: {why}")
