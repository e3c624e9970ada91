# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may change while a machine runs: each field of the table is one of ours, or known and unbuilt."""

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
    """Say whether the last field of a path is built, or known and unbuilt."""
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
def test_what_upstream_changes_live_is_a_field_of_ours(path: str) -> None:
    assert find(VirtualMachineInstanceSpec, path) == "built"


@pytest.mark.parametrize(("path", "row"), [(need, row) for row in ROWS for need in row.needs], ids=str)
def test_what_a_live_change_needs_is_built_with_it(path: str, row: Live) -> None:
    """Whoever builds the field reads here what it is for."""
    assert find(VirtualMachineInstanceSpec, path) == ("built" if row.how in BUILT else "unbuilt")


@pytest.mark.parametrize("path", sorted(NEEDS_OF_VM))
def test_what_a_live_change_needs_of_the_vm_is_known_and_not_built(path: str) -> None:
    assert find(VirtualMachineSpec, path) == "unbuilt"


def test_every_way_has_a_field() -> None:
    assert {row.how for rows in LIVE.values() for row in rows} == set(How)


@pytest.mark.parametrize("path", LIVE)
def test_what_is_changed_live_is_no_part_of_what_asks_for_a_restart(path: str) -> None:
    """The instance's hash of the rest leaves out just that."""
    value: object = 2
    for name in reversed(path.split(".")):
        value = {name: value}
    is_left_out = fixed_hash(msgspec.json.encode(value)) == fixed_hash(b"{}")
    assert is_left_out is any(row.how in BUILT for row in LIVE[path])


def test_every_place_is_in_the_table() -> None:
    assert set(PLACEMENT) == {path for path, rows in LIVE.items() if rows[0].how is How.NEXT_MIGRATION}
