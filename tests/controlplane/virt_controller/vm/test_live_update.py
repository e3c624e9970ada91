# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fields that may change while a machine runs: each field of the table is implemented, or known as not
implemented.
"""

from __future__ import annotations

import msgspec
import pytest
from msgspec import Struct

from controlplane.api.admission.known_fields import UNBUILT
from controlplane.api.objects.vm import VirtualMachineSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceSpec
from controlplane.api.schema.shape import shapes
from controlplane.virt_controller.vm.live_update import BUILT, LIVE, How, Live
from controlplane.virt_controller.vm.template import PLACEMENT, fixed_hash

ROWS = [row for rows in LIVE.values() for row in rows]
NEEDS_OF_VM = {need for rows in LIVE.values() for row in rows for need in row.needs_of_vm}


def find(kind: type[Struct], path: str) -> str:
    """Return whether the last field of a path is implemented, or known as not implemented."""
    name, _unused, rest = path.partition(".")
    name, is_list = name.removesuffix("[]"), name.endswith("[]")
    if name in UNBUILT.get(kind.__name__, ()):
        assert not rest, f"{name} of {kind.__name__} is not built, and something in it is named"
        return "unbuilt"
    shape, _unused_too = shapes(kind)[name]
    if not rest:
        return "built"
    inside = shape.item.struct if is_list and shape.item is not None else shape.struct
    assert inside is not None, f"{name} of {kind.__name__} has no fields of ours"
    return find(inside, rest)


@pytest.mark.parametrize("path", LIVE)
def test_every_field_that_upstream_changes_live_is_implemented(path: str) -> None:
    assert find(VirtualMachineInstanceSpec, path) == "built"


@pytest.mark.parametrize(("path", "row"), [(need, row) for row in ROWS for need in row.needs], ids=str)
def test_the_instance_fields_of_a_live_change_are_implemented_with_it(path: str, row: Live) -> None:
    """Whoever implements the change finds here which fields it needs."""
    assert find(VirtualMachineInstanceSpec, path) == ("built" if row.how in BUILT else "unbuilt")


@pytest.mark.parametrize("path", sorted(NEEDS_OF_VM))
def test_the_vm_fields_of_a_live_change_are_known_as_not_implemented(path: str) -> None:
    assert find(VirtualMachineSpec, path) == "unbuilt"


def test_every_way_of_a_live_change_has_a_field() -> None:
    assert {row.how for rows in LIVE.values() for row in rows} == set(How)


@pytest.mark.parametrize("path", LIVE)
def test_live_fields_are_not_in_the_hash_of_the_fixed_fields(path: str) -> None:
    """The hash leaves out exactly the fields that need no restart."""
    value: object = 2
    for name in reversed(path.split(".")):
        value = {name: value}
    is_left_out = fixed_hash(msgspec.json.encode(value)) == fixed_hash(b"{}")
    assert is_left_out is any(row.how in BUILT for row in LIVE[path])


def test_every_placement_field_is_in_the_table() -> None:
    assert set(PLACEMENT) == {path for path, rows in LIVE.items() if rows[0].how is How.NEXT_MIGRATION}
