# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Normalize an object, to compare it with the stored one: two that ask for the same are equal afterwards. Pure.

Typed Go clients write every field that is no pointer, whether or not anybody set it (`resources: {}`, `type: ""`,
`creationTimestamp: null`), and a quantity in their own spelling (1Gi for 1024Mi). Where the presence of an empty object
counts (`masquerade: {}`), our type has None as default, and it stays.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import msgspec
from msgspec import Struct, inspect

from controlplane.api.admission.fields import asks_for_nothing
from controlplane.api.admission.paths import value_at, with_value
from controlplane.api.admission.rules import Json
from controlplane.api.decoders import inspect_type
from controlplane.api.objects import quantity
from controlplane.api.objects.meta import Object
from controlplane.api.schema.shape import Shape, part, shapes

STATUS = "status"
"""Has a subresource of its own: the API server takes none from a write of the object."""
_NO_DEFAULT = object()


def normalize(obj: Json, root: type[Object]) -> Json:
    """Return the object without status, and without the values of its spec that ask for nothing."""
    reduced = {name: member for name, member in obj.items() if name != STATUS}
    if "spec" in obj:
        reduced["spec"] = _object(obj["spec"], part(root, "spec")[0])
    return reduced


def keep_stored(obj: Json, old: Json, root: type[Object], *path: str) -> Json:
    """Return the object with the stored value at this path of its spec, if it asks for the same.

    Controllers compare templates as they are stored: another spelling would ask for a restart.
    """
    here = ("spec", *path)
    stored, given = (value_at(version, *here) for version in (old, obj))
    if given == stored or not isinstance(stored, dict) or not isinstance(given, dict):
        return obj
    is_same = value_at(normalize(obj, root), *here) == value_at(normalize(old, root), *here)
    return with_value(obj, here, stored) if is_same else obj


def _object(value: Any, kind: type[Struct]) -> Any:
    if not isinstance(value, dict):
        return value
    fields, defaults = shapes(kind), _defaults(kind)
    reduced = {}
    for name, member in value.items():
        if name not in fields:
            if not asks_for_nothing(kind, name, member):
                reduced[name] = member
        elif member is not None:
            shape = fields[name][0]
            meant = _value(member, shape)
            if not _is_default(meant, defaults[name], shape):
                reduced[name] = meant
    return reduced


def _value(value: Any, shape: Shape) -> Any:
    if shape.bounds.quantity:
        return _amount(value)
    if shape.struct is not None:
        return _object(value, shape.struct)
    if shape.item is not None and isinstance(value, dict):
        return {name: _value(member, shape.item) for name, member in value.items()}
    if shape.item is not None and isinstance(value, list):
        return [_value(member, shape.item) for member in value]
    return value


def _amount(value: Any) -> Any:
    try:
        return str(quantity.parse(value))
    except quantity.QuantityError:
        return value


def _is_default(value: Any, default: Any, shape: Shape) -> bool:
    if value == "" and default is None:
        return not (shape.bounds.quantity or shape.bounds.int_or_percent)  # "" is no amount
    return value.__class__ is default.__class__ and bool(value == default)  # False == 0 in Python


@cache
def _defaults(kind: type[Struct]) -> dict[str, Any]:
    """Return the default of each field, reduced; _NO_DEFAULT for a required one."""
    info = inspect_type(kind)
    if not isinstance(info, inspect.StructType):
        raise TypeError(f"{kind} is not a struct")
    return {field.encode_name: _default(field, shapes(kind)[field.encode_name][0]) for field in info.fields}


def _default(field: inspect.Field, shape: Shape) -> Any:
    if field.required:
        return _NO_DEFAULT
    default = field.default_factory() if field.default is msgspec.NODEFAULT else field.default
    return _value(msgspec.json.decode(msgspec.json.encode(default)), shape)
