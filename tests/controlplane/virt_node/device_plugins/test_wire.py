# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages of the device plugin API, compared with the output of protobuf's own encoder."""

from __future__ import annotations

import pytest

from controlplane.virt_node.device_plugins import wire


def test_a_registration_is_encoded_as_protobuf_does() -> None:
    assert wire.register_request("kvm.sock", "devices.kubevirt.io/kvm") == (
        b"\n\x07v1beta1\x12\x08kvm.sock\x1a\x17devices.kubevirt.io/kvm"
    )


@pytest.mark.parametrize(("is_healthy", "word"), [(True, b"\x12\x07Healthy"), (False, b"\x12\x09Unhealthy")])
def test_devices_are_listed_with_their_health(is_healthy: bool, word: bytes) -> None:
    inner = b"\n\x04kvm0" + word
    assert wire.device_list(["kvm0"], is_healthy=is_healthy) == b"\n" + bytes([len(inner)]) + inner


def test_an_allocation_names_the_device_once_per_container() -> None:
    device = b"\n\x08/dev/kvm\x12\x06/d/kvm\x1a\x02rw"
    container = b"\x1a" + bytes([len(device)]) + device
    expected = (b"\n" + bytes([len(container)]) + container) * 2
    assert wire.allocate_response(2, "/dev/kvm", "/d/kvm", "rw") == expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", 0),
        (b"\n\x06\n\x04kvm7", 1),
        (b"\n\x06\n\x04kvm7\n\x00", 2),
        (b"\x10\x96\x01\n\x00", 1),
        (b"\x11" + b"\0" * 8 + b"\x1d" + b"\0" * 4 + b"\n\x00", 1),
    ],
    ids=["nothing", "one", "two", "after an unknown number", "after unknown fixed numbers"],
)
def test_the_containers_of_an_allocation_are_counted(data: bytes, expected: int) -> None:
    assert wire.containers_of_allocate_request(data) == expected


@pytest.mark.parametrize("data", [b"\n\x06\n", b"\n", b"\x80", b"\x0b"], ids=["short", "no length", "no key", "group"])
def test_malformed_bytes_are_a_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="a message of the kubelet"):
        wire.containers_of_allocate_request(data)
