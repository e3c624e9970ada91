# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.launch_plan import LauncherReport
from controlplane.domain.builders.disk import build_disks
from controlplane.domain.builders.facts import Facts, NotBuildableError
from tests.controlplane.domain.builders.vmis import KVM, a_vmi

EMPTY = {"name": "a", "emptyDisk": {"capacity": "1Gi"}}
SLOW = Facts(pod_uid="pod", epoch=1, is_kvm=True, report=LauncherReport(direct_io=False))


@pytest.mark.parametrize(
    ("disk", "volume", "facts", "message"),
    [
        pytest.param({"name": "a"}, None, KVM, "no volume has the name 'a'", id="disk without volume"),
        pytest.param(
            {"name": "a"}, {"name": "a", "containerDisk": {"image": "i"}}, KVM, "found no image", id="not reported"
        ),
        pytest.param({"name": "a"}, {"name": "a"}, KVM, "no source that this version", id="unknown source"),
        pytest.param({"name": "a", "disk": {"bus": "ide"}}, EMPTY, KVM, "bus 'ide' is not one of", id="bus"),
        pytest.param({"name": "a", "cache": "none"}, EMPTY, SLOW, "cannot do direct I/O", id="no direct I/O"),
    ],
)
def test_a_disk_that_cannot_be_attached_is_named(
    disk: dict[str, Any], volume: dict[str, Any] | None, facts: Facts, message: str
) -> None:
    vmi = a_vmi(devices={"disks": [disk]}, volumes=[volume] if volume else [])
    with pytest.raises(NotBuildableError, match=message) as raised:
        build_disks(vmi, facts)
    assert raised.value.field.startswith("spec.domain.devices.disks[0]")


def test_names_go_on_after_z() -> None:
    disks = [{"name": f"d{number}", "disk": {"bus": "virtio"}} for number in range(28)]
    volumes = [{"name": f"d{number}", "emptyDisk": {"capacity": "1Gi"}} for number in range(28)]
    made = build_disks(a_vmi(devices={"disks": disks}, volumes=volumes), KVM)
    assert [disk.target.device for disk in made[24:]] == ["vdy", "vdz", "vdaa", "vdab"]


@pytest.mark.parametrize("target", [{"disk": {"bus": "virtio"}}, {"cdrom": {"bus": "sata"}}], ids=["disk", "cdrom"])
def test_the_machine_boots_in_the_order_that_is_asked_for(target: dict[str, Any]) -> None:
    """An installer is booted from its CD."""
    (made,) = build_disks(a_vmi(devices={"disks": [{"name": "a", "bootOrder": 2, **target}]}, volumes=[EMPTY]), KVM)
    assert made.boot is not None
    assert made.boot.order == 2
