# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Convert quantities that are written as fractional numbers (cpu: 2.2) to strings, as the schema requires. Pure.

Upstream's admission accepts both forms, and manifests rely on it.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from controlplane.api.admission.rules import Json
from controlplane.api.schema.shape import Shape, part, shapes


def spell(obj: Json, root: type[Struct]) -> Json:
    """Return the object with all quantities of its spec as strings; the same object when nothing changes."""
    spec = obj.get("spec")
    spelt = _object(spec, part(root, "spec")[0])
    return obj if spelt is spec else {**obj, "spec": spelt}


def _object(value: Any, kind: type[Struct]) -> Any:
    if not isinstance(value, dict):
        return value
    fields = shapes(kind)
    return _same(
        value, {name: _value(member, fields[name][0]) if name in fields else member for name, member in value.items()}
    )


def _value(value: Any, shape: Shape) -> Any:
    if isinstance(value, float) and shape.bounds.quantity:
        return repr(value)
    if shape.struct is not None:
        return _object(value, shape.struct)
    if shape.item is not None and isinstance(value, dict):
        return _same(value, {name: _value(member, shape.item) for name, member in value.items()})
    if shape.item is not None and isinstance(value, list):
        spelt = [_value(member, shape.item) for member in value]
        return value if all(new is old for new, old in zip(spelt, value, strict=True)) else spelt
    return value


def _same(old: Json, new: Json) -> Json:
    return old if all(new[name] is member for name, member in old.items()) else new
