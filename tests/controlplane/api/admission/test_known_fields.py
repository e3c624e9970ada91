# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from msgspec import Struct

from controlplane.api.admission import known_fields
from controlplane.api.registry import KINDS
from controlplane.api.schema.shape import Shape, shapes


def structs(kind: type[Struct]) -> dict[str, type[Struct]]:
    found = {kind.__name__: kind}
    for shape, _unused in shapes(kind).values():
        inside: Shape | None = shape
        while inside is not None:
            if inside.struct is not None and inside.struct.__name__ not in found:
                found.update(structs(inside.struct))
            inside = inside.item
    return found


STRUCTS = {name: struct for kind in KINDS for name, struct in structs(kind.spec).items()}


def test_the_table_names_our_types() -> None:
    assert set(known_fields.UNBUILT) <= set(STRUCTS)


def test_no_field_is_both_built_and_unbuilt() -> None:
    both = {
        name: set(shapes(kind)) & known_fields.UNBUILT[name]
        for name, kind in STRUCTS.items()
        if name in known_fields.UNBUILT and set(shapes(kind)) & known_fields.UNBUILT[name]
    }

    assert both == {}


def test_only_unbuilt_switches_are_excused() -> None:
    assert set().union(*known_fields.UNBUILT.values()) >= known_fields.OFF_WHEN_FALSE
