# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generate the OpenAPI schema of a CRD from our structs: shapes, bounds, descriptions.

Objects in a spec keep unknown fields, because the API server would drop them before admission could report them.
Objects in a status do not. Descriptions are the string literals under the fields in the source.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from functools import cache
from typing import Any

from msgspec import Struct

from controlplane.api.schema.bounds import MAX_ITEMS, MAX_TEXT
from controlplane.api.schema.shape import Shape, shapes

Schema = dict[str, Any]

_TYPES: dict[type, str] = {bool: "boolean", str: "string", int: "integer", dict: "object", list: "array"}
_QUANTITY: Schema = {
    "x-kubernetes-int-or-string": True,
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "maxLength": 64,
}
_OPAQUE: Schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def object_schema(kind: type[Struct], *, keep_unknown: bool) -> Schema:
    """Return the schema of a struct. keep_unknown: for objects in a spec."""
    if kind.__name__ == "ObjectMeta":
        return dict(_OPAQUE)
    notes = field_notes(kind)
    properties: Schema = {}
    for name, (shape, _unused) in shapes(kind).items():
        description = {"description": notes[name]} if name in notes else {}
        properties[name] = {**description, **_schema(shape, keep_unknown=keep_unknown)}
    required = sorted(name for name, (_unused, needed) in shapes(kind).items() if needed)
    return {
        "type": "object",
        **({"required": required} if required else {}),
        **({"x-kubernetes-preserve-unknown-fields": True} if keep_unknown else {}),
        **({"x-kubernetes-map-type": "atomic"} if getattr(kind, "is_applied_whole", False) else {}),
        "properties": properties,
    }


def _schema(shape: Shape, *, keep_unknown: bool) -> Schema:
    if shape.struct is not None:
        return object_schema(shape.struct, keep_unknown=keep_unknown)
    if shape.bounds.quantity or shape.bounds.int_or_percent:
        return dict(_QUANTITY)
    if shape.kind is list and shape.item is not None:
        items = _schema(shape.item, keep_unknown=keep_unknown)
        return {"type": "array", "maxItems": shape.bounds.max_items or MAX_ITEMS, "items": items}
    if shape.kind is dict:
        return _map(shape, keep_unknown=keep_unknown)
    return {"type": _TYPES[shape.kind], **_limits(shape)}


def _map(shape: Shape, *, keep_unknown: bool) -> Schema:
    if shape.item is None:
        return dict(_OPAQUE)
    limit = shape.bounds.max_items or MAX_ITEMS
    values = _schema(shape.item, keep_unknown=keep_unknown)
    return {"type": "object", "maxProperties": limit, "additionalProperties": values}


def _limits(shape: Shape) -> Schema:
    bounds = shape.bounds
    if shape.kind is str and bounds.choices:
        return {"enum": [*bounds.choices, *([] if bounds.required else [""])]}
    if shape.kind is str:
        pattern = {"pattern": f"^({bounds.pattern})?$"} if bounds.pattern else {}
        return {"maxLength": bounds.max_length or MAX_TEXT, **pattern}
    numbers = {"minimum": bounds.minimum, "maximum": bounds.maximum}
    return {name: number for name, number in numbers.items() if number is not None}


@cache
def field_notes(kind: type[Struct]) -> dict[str, str]:
    """Return the string literal under each field of a struct, by the field's name in JSON."""
    tree = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
    if not isinstance(tree, ast.ClassDef):
        return {}
    names = dict(zip(kind.__struct_fields__, kind.__struct_encode_fields__, strict=True))
    notes: dict[str, str] = {}
    for field, note in zip(tree.body, tree.body[1:], strict=False):
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        if isinstance(note, ast.Expr) and isinstance(note.value, ast.Constant) and isinstance(note.value.value, str):
            notes[names[field.target.id]] = " ".join(note.value.value.split())
    return notes
