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


SPECS = {
    "in a VM": ("spec", "template", "spec"),
    "in a VMI": ("spec",),
    "in a pool": ("spec", "virtualMachineTemplate", "spec", "template", "spec"),
}
SPEC = SPECS["in a VM"]
DISK = (*DOMAIN, "devices", "disks", ITEM)
BINDINGS = {"bridge", "masquerade", "sriov", "slirp", "macvtap", "passt", "passtBinding", "binding"}
PROBES = {"exec", "guestAgentPing", "httpGet", "tcpSocket"}
USER_DATA = {"userData", "userDataBase64", "secretRef"}
NETWORK_DATA = {"networkData", "networkDataBase64", "networkDataSecretRef"}
STRATEGIES = {"opportunistic", "proactive", "unmanaged"}
TEMPLATE = ("spec", "dataVolumeTemplates", ITEM, "spec")


@pytest.mark.parametrize(
    ("path", "rivals"),
    [
        pytest.param(DISK, {"disk", "lun", "cdrom", "floppy"}, id="targets of a disk"),
        pytest.param((*DOMAIN, "devices", "interfaces", ITEM), BINDINGS, id="bindings of an interface"),
        pytest.param((*DOMAIN, "devices", "watchdog"), {"i6300esb", "diag288"}, id="watchdogs"),
        pytest.param((*VOLUME, "cloudInitNoCloud"), USER_DATA, id="user data"),
        pytest.param((*VOLUME, "cloudInitNoCloud"), NETWORK_DATA, id="network data"),
        pytest.param((*VOLUME, "cloudInitConfigDrive"), USER_DATA, id="user data of a config drive"),
        pytest.param((*VOLUME, "cloudInitConfigDrive"), NETWORK_DATA, id="network data of a config drive"),
        pytest.param((*SPEC, "livenessProbe"), PROBES, id="liveness probes"),
        pytest.param((*SPEC, "readinessProbe"), PROBES, id="readiness probes"),
        pytest.param(TEMPLATE, {"pvc", "storage"}, id="claims of a data volume"),
        pytest.param(TEMPLATE, {"source", "sourceRef"}, id="sources of a data volume"),
        pytest.param((*TEMPLATE, "source"), {"http", "blank"}, id="kinds of source"),
        pytest.param((*SPEC, "networks", ITEM), {"pod", "multus"}, id="networks"),
        pytest.param((*SPEC, "utilityVolumes", ITEM), {"persistentVolumeClaim", "configMap"}, id="utility volumes"),
        pytest.param(("spec", "scaleInStrategy"), STRATEGIES, id="how a pool scales in"),
        pytest.param(("spec", "updateStrategy"), STRATEGIES, id="how a pool updates"),
    ],
)
def test_each_of_a_group_removes_all_others(path: Path, rivals: set[str]) -> None:
    for field in rivals:
        assert excluded(path, {field}, {*rivals, "name"}) == rivals - {field}


@pytest.mark.parametrize(
    ("path", "given", "there"),
    [
        pytest.param((*DOMAIN, "devices", "filesystems", ITEM), "disk", "lun", id="a file system is no disk"),
        pytest.param((*DOMAIN, "devices", "filesystems", ITEM), "bridge", "passt", id="nor an interface"),
        pytest.param((*DOMAIN, "devices"), "i6300esb", "diag288", id="the devices are no watchdog"),
        pytest.param((*SPEC, "metadata", "watchdog"), "i6300esb", "diag288", id="nor is anything of this name"),
        pytest.param((*VOLUME, "spec"), "pvc", "storage", id="a volume is no data volume"),
        pytest.param(("spec",), "proactive", "unmanaged", id="the spec of a pool is no strategy"),
        pytest.param(("scaleInStrategy",), "proactive", "unmanaged", id="strategies stand in a spec"),
        pytest.param(("updateStrategy",), "proactive", "unmanaged", id="both"),
        pytest.param(("bootloader",), "bios", "efi", id="a boot loader stands in the firmware"),
        pytest.param(("clock",), "utc", "timezone", id="a clock stands in a domain"),
        pytest.param((*SPEC, "networks"), "pod", "multus", id="the list itself is no network"),
        pytest.param((*SPEC, "utilityVolumes"), "pod", "multus", id="nor a utility volume"),
        pytest.param(("spec", "source"), "http", "blank", id="a source stands in an item"),
    ],
)
def test_fields_elsewhere_stand_beside_one_another(path: Path, given: str, there: str) -> None:
    assert excluded(path, {given}, {there}) == set()


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_lists_of_an_instance_are_matched_by_name(spec: Path) -> None:
    of_spec = {"volumes", "networks", "resourceClaims", "utilityVolumes"}
    of_devices = {"disks", "interfaces", "filesystems", "gpus", "hostDevices", "inputs"}

    known = {path for path in KEYS if path[: len(spec)] == spec}

    assert {(*spec, name) for name in of_spec} <= known
    assert {(*spec, "domain", "devices", name) for name in of_devices} <= known
    assert all(key_of(path, {"name": "a"}) == "a" for path in known if path[-1] != "dataVolumeTemplates")
    assert (*spec, "tolerations") not in known


@pytest.mark.parametrize("vm", [(), SPECS["in a pool"][:2]], ids=["in a VM", "in a pool"])
def test_data_volume_templates_are_matched_by_the_name_in_their_metadata(vm: Path) -> None:
    path = (*vm, "spec", "dataVolumeTemplates")
    assert key_of(path, {"metadata": {"name": "a"}, "name": "b"}) == "a"


@pytest.mark.parametrize("item", [None, "text", {}, {"name": 1}, {"name": ""}])
def test_an_item_without_a_key_is_an_error(item: object) -> None:
    assert all(key_of(path, item) is None for path in KEYS)
