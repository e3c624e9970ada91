# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutually exclusive fields, at any path."""

from __future__ import annotations

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.merge.keyed_lists import (
    ITEM,
    KEYS,
    Path,
    excluded,
    key_of,
)

DOMAIN = ("spec", "template", "spec", "domain")
VOLUME = ("spec", "template", "spec", "volumes", ITEM)


@pytest.mark.parametrize(
    ("path", "given", "there", "goes"),
    [
        pytest.param(VOLUME, {"emptyDisk"}, {"name", "containerDisk"}, {"containerDisk"}, id="volume"),
        pytest.param(VOLUME, {"name"}, {"name", "containerDisk"}, set(), id="a name alone excludes nothing"),
        pytest.param(
            (*DOMAIN, "devices", "disks", ITEM), {"cdrom", "cache"}, {"disk", "serial"}, {"disk"}, id="disk target"
        ),
        pytest.param(
            (*DOMAIN, "devices", "interfaces", ITEM), {"bridge"}, {"masquerade", "ports"}, {"masquerade"}, id="binding"
        ),
        pytest.param(
            (*VOLUME, "cloudInitNoCloud"), {"secretRef"}, {"userData", "networkData"}, {"userData"}, id="seed"
        ),
        pytest.param((*DOMAIN, "firmware", "bootloader"), {"efi"}, {"bios"}, {"bios"}, id="boot loader"),
        pytest.param((*DOMAIN, "clock"), {"timezone"}, {"utc", "timer"}, {"utc"}, id="clock"),
        pytest.param(("spec", "template", "spec", "readinessProbe"), {"exec"}, {"httpGet"}, {"httpGet"}, id="probe"),
        pytest.param((*DOMAIN, "cpu"), {"cores"}, {"sockets", "model"}, set(), id="others stand beside one another"),
    ],
)
def test_setting_one_removes_its_rivals(path: Path, given: set[str], there: set[str], goes: set[str]) -> None:
    assert excluded(path, given, there) == goes


@pytest.mark.parametrize("item", [None, "text", {}, {"name": 1}, {"name": ""}])
def test_an_item_without_a_key_is_an_error(item: object) -> None:
    assert all(key_of(path, item) is None for path in KEYS)
