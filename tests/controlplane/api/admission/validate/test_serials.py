# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Serial numbers of disks that QEMU refuses or cuts."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.api.admission.verdict import Request, Settings, Verdict, review
from tests.controlplane.api import golden

UUID = "5d307ca9-b3ef-428c-8861-06e72d69f223"
PATHS = {
    "vmi-masquerade": "spec",
    "vm-cirros": "spec.template.spec",
    "vmi-replicaset-cirros": "spec.template.spec",
    "pool-cirros": "spec.virtualMachineTemplate.spec.template.spec",
}


def with_serial(name: str, serial: str, **target: Any) -> Verdict:
    obj = copy.deepcopy(golden.load(name))
    devices = f"{PATHS[name].replace('.', '/')}/domain/devices/disks/0"
    disk = {"name": "containerdisk", "serial": serial, **(target or {"disk": {}})}
    changed = golden.changed(obj, devices, disk)
    return review(Request("CREATE", changed["kind"], "somebody", "u", changed), Settings(serves_data_volumes=False))


@pytest.mark.parametrize(
    ("target", "length", "problem"),
    [
        ({"disk": {"bus": "scsi"}}, 36, ""),
        ({"disk": {"bus": "scsi"}}, 37, "at most 36 are possible on bus scsi"),
        ({"disk": {"bus": "usb"}}, 37, "at most 36 are possible on bus usb"),
        ({"cdrom": {"bus": "scsi"}}, 40, "at most 36 are possible on bus scsi"),
        ({"disk": {"bus": "virtio"}}, 37, ""),
        ({"disk": {}}, 256, ""),
    ],
)
def test_a_serial_with_which_qemu_does_not_start_is_refused(target: Any, length: int, problem: str) -> None:
    problems = [(found.path, found.message) for found in with_serial("vm-cirros", "s" * length, **target).problems]
    if not problem:
        assert problems == []
        return
    ((path, message),) = problems
    assert path == "spec.template.spec.domain.devices.disks[0].serial"
    assert problem in message


@pytest.mark.parametrize("name", PATHS)
def test_a_serial_that_a_guest_sees_cut_is_warned_of(name: str) -> None:
    where = f"{PATHS[name]}.domain.devices.disks[0].serial"
    warning = f"{where}: a guest sees only the first 20 of its 36 characters on bus virtio; shorten it, or use bus scsi"
    warnings = with_serial(name, UUID, disk={"bus": "virtio"}).warnings
    assert [text for text in warnings if text.startswith(where)] == [f"{warning}, with at most 36"]
    assert not [text for text in with_serial(name, "s" * 20, disk={"bus": "virtio"}).warnings if "serial" in text]
    assert not [text for text in with_serial(name, UUID, disk={"bus": "scsi"}).warnings if "serial" in text]
    assert [text for text in with_serial(name, UUID).warnings if "on bus sata" in text], "the default bus"
