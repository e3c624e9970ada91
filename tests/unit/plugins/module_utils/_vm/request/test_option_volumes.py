# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Volumes generated from options, and their disks."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import BadArgument
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.request import manifest

NAMED = {"name": "web", "namespace": "default"}


def test_a_declared_disk_for_a_generated_volume_stays() -> None:
    built = manifest.build({**NAMED, "image": "x", "disks": [{"name": "containerdisk", "cdrom": {"bus": "sata"}}]})
    assert built.obj["spec"]["template"]["spec"]["domain"]["devices"]["disks"] == [
        {"name": "containerdisk", "cdrom": {"bus": "sata"}}
    ]
    assert built.default_disks == frozenset()


def test_a_generated_volume_has_a_disk_by_default() -> None:
    built = manifest.build({**NAMED, "image": "x", "cloud_init": {"user_data_secret": "first", "type": "config_drive"}})
    machine = built.obj["spec"]["template"]["spec"]
    assert machine["volumes"] == [
        {"name": "containerdisk", "containerDisk": {"image": "x"}},
        {"name": "cloudinit", "cloudInitConfigDrive": {"secretRef": {"name": "first"}}},
    ]
    assert built.default_disks == {"containerdisk", "cloudinit"}


def test_empty_cloud_init_is_refused() -> None:
    with pytest.raises(BadArgument, match="cloud_init: it is empty"):
        manifest.build({**NAMED, "cloud_init": {"type": "no_cloud"}})
