# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.objects.decode import DecodeError, decode_vm, decode_vmi, drop_nulls, encode

VMI: dict[str, Any] = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "metadata": {"name": "one", "namespace": "two", "creationTimestamp": None},
    "spec": {"domain": {"devices": {"rng": {}}, "newer": {"than": "we"}}, "volumes": None},
    "status": {"guestOSInfo": {}, "currentCPUTopology": {"cores": 2}, "activePods": {"u": "n"}, "epoch": 3},
}


@pytest.mark.parametrize("source", [VMI, json.dumps(VMI).encode()], ids=["plain values", "bytes"])
def test_unknown_fields_are_skipped_and_nulls_count_as_absent(source: bytes | dict[str, Any]) -> None:
    vmi = decode_vmi(source)

    assert vmi.spec.volumes == ()
    assert vmi.spec.domain.devices.rng == {}
    assert vmi.status.epoch == 3
    assert vmi.status.current_cpu_topology is not None
    assert vmi.status.current_cpu_topology.cores == 2


def test_an_encoded_object_has_lists_and_kind_and_no_defaults() -> None:
    vmi = decode_vmi({**VMI, "spec": {"domain": {"devices": {"disks": [{"name": "a", "disk": {}}]}}}})

    assert encode(vmi) == {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": "one", "namespace": "two"},
        "spec": {"domain": {"devices": {"disks": [{"name": "a", "disk": {}}]}}},
        "status": {"guestOSInfo": {}, "currentCPUTopology": {"cores": 2}, "activePods": {"u": "n"}, "epoch": 3},
    }


@pytest.mark.parametrize(
    ("source", "where"),
    [
        pytest.param(b"{", "not JSON", id="cut short"),
        pytest.param(b'{"metadata":{"name":"\xff"}}', "not JSON", id="no UTF-8"),
        pytest.param(b'{"metadata":1,"spec":"\xff"}', "not JSON", id="no UTF-8 after a wrong type"),
        pytest.param(b'{"spec":{"template":{"spec":{"domain":[]}}}}', r"\$.spec.template.spec.domain", id="wrong type"),
        pytest.param(b'{"spec":{}}', "template", id="required field missing"),
    ],
)
def test_a_type_mismatch_is_an_error_with_the_field(source: bytes, where: str) -> None:
    with pytest.raises(DecodeError, match=where):
        decode_vm(source)


@pytest.mark.parametrize("depth", [100, 600, 900, 100_000])
def test_a_deeply_nested_type_mismatch_is_the_same_error(depth: int) -> None:
    """Admission refuses such objects; one that got past it must not end a process."""
    nested = b'{"a":' * depth + b"1" + b"}" * depth
    with pytest.raises(DecodeError, match="VirtualMachineInstance does not fit"):
        decode_vmi(b'{"metadata":{"name":7,"annotations":' + nested + b"}}")


def test_a_null_entry_of_a_list_keeps_its_place() -> None:
    """Problems name the index, and the length of the list must not change."""
    assert drop_nulls({"a": [None, {"b": None, "c": 1}, []], "d": None}) == {"a": [None, {"c": 1}, []]}
