# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bytes that a migration sends. Whether a guest can migrate: virt_handler/vmi/test_status.py."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.migratable import LARGEST_IMAGE_BYTES, most_to_send
from tests.controlplane.virt_handler.builders import a_vmi

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
