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
CLAIMED = {"name": "a", "persistentVolumeClaim": {"claimName": "c"}}
SLOW = Facts(pod_uid="pod", epoch=1, is_kvm=True, report=LauncherReport(direct_io=False))
SLOW_BLOCK = Facts(pod_uid="pod", epoch=1, is_kvm=True, report=LauncherReport(direct_io=False, block_claims=("a",)))


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
        pytest.param({"name": "a", "shareable": True}, CLAIMED, SLOW, "use a Block claim", id="shared, no direct I/O"),
    ],
)
def test_the_error_for_an_unattachable_disk_names_its_field(
    disk: dict[str, Any], volume: dict[str, Any] | None, facts: Facts, message: str
) -> None:
    vmi = a_vmi(devices={"disks": [disk]}, volumes=[volume] if volume else [])
    with pytest.raises(NotBuildableError, match=message) as raised:
        build_disks(vmi, facts)
    assert raised.value.field.startswith("spec.domain.devices.disks[0]")


def test_device_names_continue_after_vdz() -> None:
    disks = [{"name": f"d{number}", "disk": {"bus": "virtio"}} for number in range(28)]
    volumes = [{"name": f"d{number}", "emptyDisk": {"capacity": "1Gi"}} for number in range(28)]
    built = build_disks(a_vmi(devices={"disks": disks}, volumes=volumes), KVM)
    assert [disk.target.device for disk in built[24:]] == ["vdy", "vdz", "vdaa", "vdab"]


@pytest.mark.parametrize("target", [{"disk": {"bus": "virtio"}}, {"cdrom": {"bus": "sata"}}], ids=["disk", "cdrom"])
def test_the_boot_order_is_passed_on(target: dict[str, Any]) -> None:
    """An installer boots from its CD."""
    (built,) = build_disks(a_vmi(devices={"disks": [{"name": "a", "bootOrder": 2, **target}]}, volumes=[EMPTY]), KVM)
    assert built.boot is not None
    assert built.boot.order == 2


@pytest.mark.parametrize(
    ("facts", "is_block"), [(KVM, False), (SLOW_BLOCK, True)], ids=["a file", "a device beside slow files"]
)
def test_a_shareable_disk_is_not_cached_by_its_host(facts: Facts, is_block: bool) -> None:
    """The host's cache would hide the writes of other machines."""
    (built,) = build_disks(a_vmi(devices={"disks": [{"name": "a", "shareable": True}]}, volumes=[CLAIMED]), facts)
    assert (built.type == "block", built.shareable, built.driver.cache) == (is_block, True, "none")
