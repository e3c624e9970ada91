# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The limit of a launcher Pod on its node's disk."""

from __future__ import annotations

from typing import Any

import pytest
from seed_image.iso9660 import write_iso
from seed_image.no_cloud import PART_LIMIT_BYTES

from controlplane.api.objects.decode import decode_kubevirt
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.domain.volumes.cloud_init_no_cloud import SEED_BYTES
from controlplane.virt_controller.vmi.disk_space import LOG_BYTES, MIB, SHARED_BYTES, derive_disk_space
from controlplane.virt_controller.vmi.launch import derive_launch
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from tests.controlplane.virt_controller.builders import a_vmi

GIB = 1024 * MIB
IMAGE = {"name": "root", "containerDisk": {"image": "guest:1"}}
EMPTY = {"name": "scratch", "emptyDisk": {"capacity": "10Gi"}}
SEED = {"name": "seed", "cloudInitNoCloud": {"userData": "x"}}

TABLE: dict[str, tuple[list[dict[str, Any]], dict[str, Any], int]] = {
    "no disk": ([], {}, 0),
    "an image, as large as images may be": ([IMAGE], {}, 64 * GIB),
    "an image, where the administrator allows less": ([IMAGE], {"containerDiskLimit": "8Gi"}, 8 * GIB),
    "an empty disk, exactly": ([EMPTY], {"containerDiskLimit": "1Gi"}, 10 * GIB),
    "a seed": ([SEED], {}, MIB),
    "all of them": ([IMAGE, EMPTY, SEED], {}, 74 * GIB + MIB),
}


def configured(fields: dict[str, Any]) -> KubeVirtConfiguration:
    return decode_kubevirt({"spec": {"configuration": fields}}).spec.configuration


@pytest.mark.parametrize(("volumes", "fields", "disks"), TABLE.values(), ids=TABLE.keys())
def test_the_limit_is_the_size_of_all_disks_plus_a_fixed_share(
    volumes: list[dict[str, Any]], fields: dict[str, Any], disks: int
) -> None:
    space = derive_disk_space(a_vmi(spec={"volumes": volumes}).spec, configured(fields))

    assert space.run == disks + disks // 256 + SHARED_BYTES
    assert space.pod == space.run + LOG_BYTES


def test_every_writable_directory_of_the_pod_is_limited() -> None:
    vmi = a_vmi(spec={"volumes": [IMAGE, EMPTY, SEED]})
    spec = build_launcher_pod(vmi, attempt=1, image="x", configuration=KubeVirtConfiguration())["spec"]
    space = derive_disk_space(vmi.spec, KubeVirtConfiguration())

    assert [volume["emptyDir"] for volume in spec["volumes"] if "emptyDir" in volume] == [{"sizeLimit": str(space.run)}]
    for container in spec["containers"]:
        assert container["resources"]["limits"]["ephemeral-storage"] == str(space.pod)
        assert int(container["resources"]["requests"]["ephemeral-storage"]) == 64 * MIB


def test_the_launch_plan_has_the_limit_that_the_pods_disk_space_is_for() -> None:
    vmi = a_vmi(spec={"volumes": [IMAGE]})
    launch = derive_launch(vmi, attempt=1, image="x", configuration=configured({"containerDiskLimit": "1G"}))

    assert launch.plan.container_disk_limit_bytes == 10**9
    assert launch.run_bytes == 10**9 + 10**9 // 256 + SHARED_BYTES


def test_the_largest_seed_fits_its_share() -> None:
    part = b"x" * PART_LIMIT_BYTES
    assert len(write_iso("cidata", {"meta-data": part, "user-data": part, "network-config": part})) <= SEED_BYTES
