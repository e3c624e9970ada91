# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a guest can migrate, and the bytes that its migration sends."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode_vmi
from controlplane.domain.migratable import LARGEST_IMAGE_BYTES, find_obstacle, most_to_send
from tests.controlplane.virt_handler.builders import a_vmi, vmi_object

MEMORY = {"memory": {"guest": "1Gi"}}


@pytest.mark.parametrize(
    ("domain", "volumes", "bytes_at_most"),
    [
        pytest.param(MEMORY, [], 1 << 30, id="memory"),
        pytest.param(
            {"memory": {"guest": "1Gi", "maxGuest": "4Gi"}}, [], 4 << 30, id="memory that it can come to have"
        ),
        pytest.param(
            MEMORY, [{"name": "a", "emptyDisk": {"capacity": "2Gi"}}], 3 << 30, id="a disk whose size is declared"
        ),
        pytest.param(
            MEMORY,
            [{"name": "a", "containerDisk": {"image": "i"}}, {"name": "b", "containerDisk": {"image": "i"}}],
            (1 << 30) + 2 * LARGEST_IMAGE_BYTES,
            id="disks from images, whose launcher alone knows their size",
        ),
        pytest.param(
            MEMORY,
            [
                {"name": "a", "persistentVolumeClaim": {"claimName": "c"}},
                {"name": "b", "cloudInitNoCloud": {"userData": "#!/bin/sh"}},
            ],
            1 << 30,
            id="a disk that both nodes have, and a seed, which is made again",
        ),
    ],
)
def test_the_most_bytes_that_a_migration_sends(
    domain: dict[str, Any], volumes: list[dict[str, Any]], bytes_at_most: int
) -> None:
    disks = [{"name": volume["name"], "disk": {"bus": "virtio"}} for volume in volumes]
    vmi = a_vmi("Running", domain={**domain, "devices": {"disks": disks}}, volumes=volumes)
    assert most_to_send(vmi) == bytes_at_most


@pytest.mark.parametrize(
    ("modes", "can_migrate"),
    [
        pytest.param(["ReadWriteMany"], True, id="several nodes can mount it"),
        pytest.param(["ReadWriteOnce", "ReadWriteMany"], True, id="among others"),
        pytest.param(["ReadWriteOnce"], False, id="one node at a time"),
        pytest.param([], False, id="not known yet"),
    ],
)
@pytest.mark.parametrize(
    "source",
    [{"persistentVolumeClaim": {"claimName": "shop-data"}}, {"dataVolume": {"name": "shop-data"}}],
    ids=["claim", "DataVolume"],
)
def test_a_claim_that_one_node_mounts_keeps_its_guest_there(
    modes: list[str], can_migrate: bool, source: dict[str, Any]
) -> None:
    """The message is upstream's, and names the volume."""
    body = vmi_object("Running", volumes=[{"name": "data", **source}])
    body["status"]["volumeStatus"] = [
        {"name": "data", "persistentVolumeClaimInfo": {"claimName": "shop-data", "accessModes": modes}}
    ]
    obstacle = find_obstacle(decode_vmi(body))
    assert (obstacle is None) is can_migrate
    if obstacle is not None:
        assert obstacle.reason == "DisksNotLiveMigratable"
        assert "PVC shop-data is not shared" in obstacle.message
        assert obstacle.message.endswith("it is the claim of volume data")
