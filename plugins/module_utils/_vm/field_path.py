# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Paths into an object: read, replace and remove the value at a path, parse the paths of hidden_fields. Pure."""

from __future__ import annotations

from typing import Any

from .._client.errors import BadArgument

Object = dict[str, Any]
Path = tuple[str, ...]


def value_at(obj: Any, path: Path) -> Any:
    """Return the value at a path, None if it does not exist."""
    for step in path:
        obj = obj.get(step) if isinstance(obj, dict) else None
    return obj


def with_value(obj: Object, path: Path, value: Any) -> Object:
    """Return a copy with another value at a path. Missing parents are created."""
    return {**obj, path[0]: with_value(obj.get(path[0]) or {}, path[1:], value) if len(path) > 1 else value}


def nested(path: Path, value: Any) -> Any:
    """Return an object that has nothing but a value at a path."""
    for step in reversed(path):
        value = {step: value}
    return value


def without(obj: Object, paths: list[list[str]]) -> Object:
    """Return a copy without the values at these paths. A path that does not exist is ignored."""
    for path in paths:
        obj = _without(obj, path)
    return obj


def _without(obj: Any, path: list[str]) -> Any:
    if isinstance(obj, list):
        return [_without(item, path) for item in obj]
    if not isinstance(obj, dict) or path[0] not in obj:
        return obj
    if len(path) == 1:
        return {key: value for key, value in obj.items() if key != path[0]}
    return {**obj, path[0]: _without(obj[path[0]], path[1:])}


def parse(text: str) -> list[str]:
    """Split a path such as metadata.annotations[example.org/note] into its keys; BadArgument names the wrong column."""
    keys: list[str] = []
    start = 0
    while start < len(text):
        if text[start] == "[":
            end = text.find("]", start)
            if end < 0:
                raise _syntax_error(text, start, "this bracket is not closed")
            keys.append(text[start + 1 : end])
            start = end + 1
        else:
            if keys:
                if text[start] != ".":
                    raise _syntax_error(text, start, "'.' or '[' is expected")
                start += 1
            end = min((i for i in (text.find(".", start), text.find("[", start)) if i >= 0), default=len(text))
            keys.append(text[start:end])
            start = end
        if not keys[-1]:
            raise _syntax_error(text, start, "a name is expected")
    if not keys:
        raise _syntax_error(text, 0, "it is empty")
    return keys


def _syntax_error(text: str, index: int, reason: str) -> BadArgument:
    return BadArgument(f"hidden_fields: {text[:64]!r} is not a field path, error at column {index + 1}: {reason}")
