# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From a refused field back to the option that made it."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import origin

BODY = {
    "spec": {
        "template": {
            "spec": {
                "domain": {"devices": {"disks": [{"name": "cloudinit"}]}},
                "volumes": [{"name": "own"}, {"name": "containerdisk"}, {"name": "cloudinit"}],
            }
        }
    }
}
VOLUMES = "spec.template.spec.volumes"


@pytest.mark.parametrize(
    ("field", "option"),
    [
        pytest.param(f"{VOLUMES}[2].cloudInitConfigDrive", "cloud_init", id="seed"),
        pytest.param(f"{VOLUMES}[1].containerDisk.image", "image", id="image"),
        pytest.param("spec.template.spec.domain.devices.disks[0].disk.bus", "cloud_init", id="its disk"),
        pytest.param("spec.template.spec.domain.memory.guest", "memory", id="memory"),
        pytest.param("spec.template.spec.domain.cpu.cores", None, id="an option that was not given"),
        pytest.param(f"{VOLUMES}[0].emptyDisk", None, id="a volume of the user's"),
        pytest.param(f"{VOLUMES}[9]", None, id="a volume that is not there"),
        pytest.param("?", None, id="no field"),
    ],
)
def test_a_refused_field_has_an_option(field: str, option: str | None) -> None:
    assert origin.option_of(field, frozenset({"cloud_init", "image", "memory"}), BODY) == option
