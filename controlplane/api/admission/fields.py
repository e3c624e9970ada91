# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check plain JSON values against our types strictly: unknown, unbuilt, missing and ill-typed fields, all at once.

Limits of a single field's value are in controlplane.api.schema.bounds. Rules over several fields are in validate/.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from msgspec import Struct

from controlplane.api.admission import known_fields
from controlplane.api.admission.problem import MAX_PROBLEMS, Problem, below, excerpt, key
from controlplane.api.objects import int_or_percent, quantity
from controlplane.api.schema.bounds import MAX_ITEMS, MAX_TEXT
from controlplane.api.schema.patterns import matches
from controlplane.api.schema.shape import Shape, shapes

_NAMES: dict[type, str] = {
    bool: "true or false",
    str: "a string",
    int: "a whole number",
    dict: "an object",
    list: "a list",
}
_GOT: dict[type, str] = {**_NAMES, bool: "a boolean", int: "a number"}
_BYTES = re.compile(
    r"\s*([0-9]{1,18}(?:\.[0-9]{1,9})?)\s*(?:([kmgtpe])i?b(?:yte)?s?|([kgtpe])i?)\s*", re.ASCII | re.IGNORECASE
)
"""How people write sizes elsewhere. A lone m is left out: 500 m may be thousandths."""
DEEPEST = 64
"""Levels of nesting in a value whose shape we do not know."""


def check(value: Any, kind: type[Struct], path: str = "") -> list[Problem]:
    """Return all problems of a value of this type, at most MAX_PROBLEMS."""
    return list(islice(_object(value, kind, path), MAX_PROBLEMS))


def _object(value: Any, kind: type[Struct], path: str) -> Iterator[Problem]:
    if not isinstance(value, dict):
        yield Problem(path, f"must be an object, got {_got(value)}")
        return
    built = shapes(kind)
    unbuilt = known_fields.UNBUILT.get(kind.__name__, frozenset())
    for name, member in value.items():
        if name in built:
            if member is not None:
                yield from _value(member, built[name][0], below(path, name))
        elif asks_for_nothing(kind, name, member):
            continue
        elif name not in unbuilt:
            yield unknown(name, path, [*built, *unbuilt])
        else:
            message = known_fields.ELSEWHERE.get((kind.__name__, name)) or _not_built(value, kind, name)
            yield Problem(below(path, name), f"known to KubeVirt, {message}", "FieldValueNotSupported")
    for name, (_unused, required) in built.items():
        if required and value.get(name) is None:
            yield Problem(below(path, name), "is required; set it", "FieldValueRequired")


def asks_for_nothing(kind: type[Struct], name: str, value: Any) -> bool:
    """Tell whether a field that the type does not have is known and has no effect with this value."""
    if name in known_fields.TOLERATED.get(kind.__name__, ()):
        return True
    if name not in known_fields.UNBUILT.get(kind.__name__, ()):
        return False
    if name in known_fields.INFERABLE.get(kind.__name__, ()) and _is_inferred_at_will(value):
        return True
    if value == {}:
        return kind.__name__ in known_fields.EMPTY_ALLOWED
    return value in (None, "", []) or (value is False and name in known_fields.OFF_WHEN_FALSE)


def _is_inferred_at_will(value: Any) -> bool:
    """Tell whether a reference is to be left out where a volume does not say what to refer to. Here none ever does."""
    if not isinstance(value, dict) or not isinstance(value.get("inferFromVolume"), str):
        return False
    is_named = bool(value.get("name") or value.get("revisionName"))
    return value.get("inferFromVolumeFailurePolicy") == "Ignore" and bool(value["inferFromVolume"]) and not is_named


def _not_built(value: dict[str, Any], kind: type[Struct], name: str) -> str:
    """Return the message for an unbuilt field: remove it, or use a built alternative where one is required."""
    prefix = "not built in this version; "
    alternatives = known_fields.ONE_OF.get(kind.__name__, frozenset())
    built = sorted(alternatives & set(shapes(kind)))
    if name not in alternatives or any(value.get(field) is not None for field in built):
        return f"{prefix}remove it"
    return f"{prefix}use {'one of ' if built[1:] else ''}{', '.join(built)} instead"


def unknown(name: str, path: str, names: list[str]) -> Problem:
    """Return the problem of an unknown field, with the most similar known name as a hint."""
    shown = name if len(name) <= 64 and name.isascii() and name.isidentifier() else excerpt(name)
    folded = {candidate.lower(): candidate for candidate in names}
    close = [folded[candidate] for candidate in difflib.get_close_matches(name[:64].lower(), folded, n=1)]
    hint = f"did you mean {close[0]}?" if close else "remove it"
    return Problem(below(path, shown), f"no such field; {hint}", "FieldValueNotSupported")


def _value(value: Any, shape: Shape, path: str) -> Iterator[Problem]:
    if shape.kind is object:
        yield from _free(value, path)
    elif shape.struct is not None:
        yield from _object(value, shape.struct, path)
    elif shape.bounds.quantity:
        yield from _quantity(value, path)
    elif shape.bounds.int_or_percent:
        yield from _int_or_percent(value, path)
    elif value.__class__ is not shape.kind:  # not isinstance: True is an int in Python
        yield Problem(path, f"must be {_NAMES[shape.kind]}, got {_got(value)}")
    elif shape.kind in _BOUNDED:
        yield from _BOUNDED[shape.kind](value, shape, path)


def _free(value: Any, path: str) -> Iterator[Problem]:
    """Limit depth and lengths of a value without a schema of ours, e.g. a DataVolume's spec."""
    todo = [(value, 0)]
    while todo:
        member, depth = todo.pop()
        if not isinstance(member, dict | list):
            continue
        if depth >= DEEPEST or len(member) > MAX_ITEMS:
            yield Problem(path, f"is too large: at most {DEEPEST} levels and {MAX_ITEMS} entries in each")
            return
        todo.extend((child, depth + 1) for child in (member.values() if isinstance(member, dict) else member))


def _list(value: list[Any], shape: Shape, path: str) -> Iterator[Problem]:
    limit = shape.bounds.max_items or MAX_ITEMS
    if len(value) > limit:
        yield Problem(path, f"has {len(value)} items, at most {limit} are allowed; remove some")
        return
    for index, item in enumerate(value):
        if shape.item is not None:
            yield from _value(item, shape.item, below(path, index))


def _map(value: dict[str, Any], shape: Shape, path: str) -> Iterator[Problem]:
    limit = shape.bounds.max_items or MAX_ITEMS
    if len(value) > limit:
        yield Problem(path, f"has {len(value)} entries, at most {limit} are allowed; remove some")
    elif shape.item is None:
        yield from _free(value, path)
    else:
        for name, member in value.items():
            yield from _value(member, shape.item, key(path, name))


def _text(value: str, shape: Shape, path: str) -> Iterator[Problem]:
    bounds = shape.bounds
    limit = bounds.max_length or MAX_TEXT
    if not value:
        if bounds.required:
            text = f"must be one of {', '.join(bounds.choices)}" if bounds.choices else "must not be empty"
            yield Problem(path, f"is required; {text}", "FieldValueRequired")
    elif len(value) > limit:
        yield Problem(path, f"has {len(value)} characters, at most {limit} are allowed")
    elif value in bounds.unbuilt:
        allowed = ", ".join(bounds.choices)
        message = f"{excerpt(value)} is known to KubeVirt, not built in this version; allowed: {allowed}"
        yield Problem(path, message, "FieldValueNotSupported")
    elif bounds.choices and value not in bounds.choices:
        message = f"{excerpt(value)} is not supported; allowed: {', '.join(bounds.choices)}"
        yield Problem(path, message, "FieldValueNotSupported")
    elif bounds.pattern and not matches(bounds.pattern, value):
        yield Problem(path, f"{excerpt(value)} is not allowed; must be {bounds.what}")


def _number(value: int, shape: Shape, path: str) -> Iterator[Problem]:
    low, high = shape.bounds.minimum, shape.bounds.maximum
    wrong = (low is not None and value < low) or (high is not None and value > high)
    if wrong:
        needed = f"at least {low}" if high is None else f"from {low or 0} to {high}"
        yield Problem(path, f"{excerpt(value)} is out of range; must be {needed}")


_BOUNDED: dict[type, Callable[[Any, Shape, str], Iterator[Problem]]] = {
    list: _list,
    dict: _map,
    str: _text,
    int: _number,
}


def _quantity(value: Any, path: str) -> Iterator[Problem]:
    if isinstance(value, float):
        yield Problem(path, f'{value!r} must be written as a string, "{value!r}"')
    elif type(value) not in (str, int):
        yield Problem(path, f"must be a quantity such as 64M, 2Gi, 2 or 100m, got {_got(value)}")
    else:
        try:
            quantity.parse(value)
        except quantity.QuantityError:
            yield Problem(path, f"{excerpt(value)} is not a quantity; write {_meant(value)}")


def _meant(value: str | int) -> str:
    """Return quantities that were probably meant: 2GB is 2G or 2Gi."""
    match = _BYTES.fullmatch(str(value))
    if match is None:
        return "e.g. 64M, 2Gi, 2 or 100m"
    number, unit = match[1], (match[2] or match[3]).upper()
    return f"{number}{unit.replace('K', 'k')} (powers of 1000) or {number}{unit}i (powers of 1024)"


def _int_or_percent(value: Any, path: str) -> Iterator[Problem]:
    try:
        int_or_percent.parse(value)
    except ValueError as error:
        yield Problem(path, f"{excerpt(value)} {error}")


def _got(value: Any) -> str:
    if isinstance(value, float):
        return repr(value)
    return _GOT.get(type(value), "null")
