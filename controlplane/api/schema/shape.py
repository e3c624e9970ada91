# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Describe our structs as data: the JSON type and the limits of each field. Cached per type."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import Struct, inspect

from controlplane.api.decoders import inspect_type
from controlplane.api.schema.bounds import Bounds


@dataclass(frozen=True, slots=True)
class Shape:
    """What a value must be: one kind of JSON value, within bounds."""

    kind: type
    """bool, str, int, dict, list; object means anything."""
    bounds: Bounds
    struct: type[Struct] | None = None
    item: Shape | None = None
    """Of the entries of a list or map; None: anything."""


_PLAIN: dict[type[Any], type] = {inspect.StrType: str, inspect.IntType: int, inspect.BoolType: bool}


@cache
def shapes(kind: type[Struct]) -> dict[str, tuple[Shape, bool]]:
    """Return the shape of each field, by its name in JSON, and whether it is required."""
    info = inspect_type(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{kind} is not a struct")
    return {field.encode_name: (_shape(field.type, Bounds()), field.required) for field in info.fields}


def part(kind: type[Struct], name: str) -> tuple[type[Struct], bool]:
    """Return the struct of an object-valued field, e.g. spec, and whether the field is required."""
    shape, is_required = shapes(kind)[name]
    if shape.struct is None:
        raise TypeError(f"{name} of {kind.__name__} is no struct")
    return shape.struct, is_required


def _shape(info: inspect.Type, bounds: Bounds) -> Shape:
    match info:
        case inspect.Metadata(type=inner, extra=extra):
            return _shape(inner, (extra or {}).get("bounds") or bounds)
        case inspect.UnionType(types=types):
            return _shape(next(type_ for type_ in types if not isinstance(type_, inspect.NoneType)), bounds)
        case inspect.StructType(cls=cls):
            return Shape(dict, bounds, struct=cls)
        case inspect.VarTupleType(item_type=item):
            return Shape(list, bounds, item=_shape(item, Bounds()))
        case inspect.DictType(value_type=item):
            inside = None if isinstance(item, inspect.AnyType) else _shape(item, Bounds())
            return Shape(dict, bounds, item=inside)
    return Shape(_PLAIN.get(type(info), object), bounds)
