# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules about disks and volumes."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from controlplane.api.admission.kinds import vm
from controlplane.api.admission.validate.check import check_object
from controlplane.api.admission.validate.storage import SEED_BYTES
from controlplane.api.admission.verdict import Request, review
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE
from controlplane.api.objects.vm import VirtualMachine
from tests.controlplane.api import golden
from tests.controlplane.api.admission.malformed import SETTINGS, assert_refused, each, row

SPEC = "spec/template/spec"


@pytest.mark.parametrize(
    ("target", "is_refused"),
    [
        ({}, True),
        ({"disk": {}}, True),
        ({"disk": {"bus": "sata"}}, True),
        ({"disk": {"bus": "virtio"}}, False),
        ({"cdrom": {"bus": "sata"}}, False),
    ],
    ids=["no target", "no bus", "sata", "virtio", "cdrom"],
)
def test_a_read_only_claim_cannot_back_a_writable_disk(target: dict[str, Any], is_refused: bool) -> None:
    """A disk without a bus is on the default bus, which has no read-only disks."""
    result = golden.changed(golden.load("vm-full"), f"{SPEC}/domain/devices/disks/3", {"name": "data", **target})
    result = golden.changed(result, f"{SPEC}/volumes/3/persistentVolumeClaim/readOnly", True)

    problems = check_object(result, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES)

    where = ["spec.template.spec.volumes[3].persistentVolumeClaim.readOnly"]
    assert [problem.path for problem in problems] == (where if is_refused else [])


@pytest.mark.parametrize("cache", [{}, {"cache": "none"}])
def test_a_claim_without_a_cache_may_be_shareable(cache: dict[str, str]) -> None:
    disk = {"name": "data", "disk": {"bus": "virtio"}, "shareable": True, **cache}
    good = golden.changed(golden.load("vm-full"), f"{SPEC}/domain/devices/disks/3", disk)

    assert check_object(good, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES) == []


@pytest.mark.parametrize(("size", "is_refused"), [(SEED_BYTES, False), (SEED_BYTES + 1, True)])
def test_inline_data_is_measured_decoded(size: int, is_refused: bool) -> None:
    """Base64 is a third longer than the data."""
    for seed in ({"userData": "x" * size}, {"userDataBase64": base64.b64encode(b"x" * size).decode()}):
        manifest = golden.changed(golden.load("vm-full"), f"{SPEC}/volumes/2/cloudInitNoCloud", seed)

        problems = check_object(manifest, KubeVirtConfiguration(), kind=VirtualMachine, rules=vm.RULES)

        where = [f"spec.template.spec.volumes[2].cloudInitNoCloud.{next(iter(seed))}"]
        assert [problem.path for problem in problems] == (where if is_refused else [])


CLAIM = "volumes/3/persistentVolumeClaim"
DISK = "domain/devices/disks/0"
IMAGE = "volumes/0/containerDisk"
NIC = "domain/devices/interfaces/0"
SEED = "volumes/2/cloudInitNoCloud"
ON_SCSI = {"name": "root", "disk": {"bus": "scsi"}, "serial": "s" * 37}

MALFORMED = [
    row("claim without a name", CLAIM, {"claimName": ""}, "is required", at="persistentVolumeClaim.claimName"),
    row("claim name with parent references", CLAIM, {"claimName": "../x"}, "name of a claim", at="claimName"),
    row(
        "a read-only claim as a sata disk",
        "volumes/1",
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "a", "readOnly": True}},
        "use bus virtio",
        at="volumes[1].persistentVolumeClaim.readOnly",
    ),
    row(
        "claim of two volumes",
        "volumes/1",
        {"name": "scratch", "persistentVolumeClaim": {"claimName": "data"}},
        "already used",
        at="volumes[3].persistentVolumeClaim.claimName",
    ),
    row("disk without volume", f"{DISK}/name", "other", "no volume is called"),
    row("two volumes with one name", "volumes/1/name", "root", "already the name of"),
    row("two disks with one name", "domain/devices/disks/1/name", "root", "must be unique"),
    row("volume without source", IMAGE, ..., "exactly one of containerDisk", at="volumes[0]"),
    row("volume with two sources", "volumes/0/emptyDisk", {"capacity": "1Gi"}, "has 2 sources", at="volumes[0]"),
    row("disk and cdrom", f"{DISK}/cdrom", {}, "more than one of", at="disks[0]"),
    row("a shareable image", f"{DISK}/shareable", True, "use a persistentVolumeClaim", at="disks[0].shareable"),
    row(
        "a shareable disk with a cache",
        "domain/devices/disks/3",
        {"name": "data", "disk": {"bus": "virtio"}, "shareable": True, "cache": "writeback"},
        "hide the writes",
        at="disks[3].cache",
    ),
    row("a lun", f"{DISK}/lun", {}, "not built"),
    row("bootOrder 0", f"{DISK}/bootOrder", 0, "from 1 to 1024"),
    row("bootOrder of two disks", "domain/devices/disks/1/bootOrder", 1, 'already used by disk "root"'),
    row("bootOrder of a disk and an interface", f"{NIC}/bootOrder", 1, 'already used by disk "root"'),
    row(
        "bootOrder of two interfaces",
        "domain/devices/interfaces",
        [{"name": name, "masquerade": {}, "bootOrder": 7} for name in ("default", "second")],
        'already used by interface "default"',
        at="interfaces[1].bootOrder",
    ),
    row("bus ide", f"{DISK}/disk/bus", "ide", "allowed: virtio, sata"),
    row("cdrom on virtio", DISK, {"name": "root", "cdrom": {"bus": "virtio"}}, "allowed: sata", at="[0].cdrom.bus"),
    row("read-only sata disk", f"{DISK}/disk", {"bus": "sata", "readonly": True}, "use bus virtio", at="disk.readonly"),
    row("unbuilt switch whose default is true", "domain/devices/logSerialConsole", False, "not built"),
    row("serial of 37 characters on scsi", DISK, ON_SCSI, "at most 36 are possible", at="disks[0].serial"),
    row("serial with a space", f"{DISK}/serial", "a b", "letters, digits"),
    row("unknown cache mode", f"{DISK}/cache", "writeeverything", "allowed: none, writethrough"),
    row("300 disks", "domain/devices/disks", [{"name": f"d{item}"} for item in range(300)], "at most 256"),
    row("disks is an object", "domain/devices/disks", {}, "must be a list"),
    row("a disk is text", "domain/devices/disks", ["root"], "must be an object", at="devices.disks[0]"),
    row("image path with parent references", f"{IMAGE}/path", "/disk/../../host", "without '.' or '..'"),
    row("no image", f"{IMAGE}/image", "", "is required"),
    row("image is only a tag", f"{IMAGE}/image", ":latest", "name of a container image"),
    row("image of 10 KiB", f"{IMAGE}/image", "a" * 10240, "at most 1024"),
    row("image is a number", f"{IMAGE}/image", 7, "must be a string"),
    row("unknown pull policy", f"{IMAGE}/imagePullPolicy", "Maybe", "allowed: Always"),
    row(
        "unbuilt source",
        "volumes/0",
        {"name": "root", "hostDisk": {"path": "/etc/../x"}},
        "; use one of cloudInitNoCloud, containerDisk, dataVolume, emptyDisk, persistentVolumeClaim instead",
        at="volumes[0].hostDisk",
    ),
    row(
        "misspelt source",
        "volumes/0",
        {"name": "root", "contanerDisk": {}},
        "did you mean containerDisk",
        at="volumes[0].contanerDisk",
    ),
    row("user data of 2049 bytes", f"{SEED}/userData", "x" * 2049, "set secretRef"),
    row(
        "user data of 2049 bytes in base64",
        SEED,
        {"userDataBase64": "eHh4" * 683 + "eA=="},
        "2050 bytes",
        at="cloudInitNoCloud.userDataBase64",
    ),
    row("binary user data", SEED, {"userDataBase64": "H4sIAAAA/w=="}, "set secretRef", at="userDataBase64"),
    row("not base64", SEED, {"userDataBase64": "%%%"}, "not base64", at="cloudInitNoCloud.userDataBase64"),
    row(
        "three sources of user data",
        SEED,
        {"userData": "a", "userDataBase64": "YQ==", "secretRef": {"name": "a"}},
        "keep exactly one",
    ),
    row("seed without data", SEED, {}, "set one of userData"),
    row(
        "inline data in 25 seeds",
        "volumes",
        [{"name": f"seed-{item}", "cloudInitNoCloud": {"userData": "x" * 2000}} for item in range(25)],
        "at most 49152 are allowed; put data into Secrets",
    ),
    row("Secret without name", SEED, {"secretRef": {}}, "is required", at="cloudInitNoCloud.secretRef.name"),
    row("Secret name with parent references", SEED, {"secretRef": {"name": ".."}}, "DNS subdomain", at="name"),
    row("capacity above the limit", "volumes/1/emptyDisk/capacity", "100Ti", "from 1Mi to 16Ti"),
    row("capacity of zero", "volumes/1/emptyDisk/capacity", "0", "from 1Mi to 16Ti"),
    row("volume name with parent references", "volumes/0/name", "../x", "DNS label"),
    row("volume without name", "volumes/0/name", ..., "is required"),
]


@each(MALFORMED)
def test_malformed_storage_is_refused_with_field_and_remedy(path: str, value: Any, at: str, words: str) -> None:
    assert_refused(path, value, at, words)


def test_a_read_only_claim_without_a_disk_gets_a_disk_that_cannot_be_read_only() -> None:
    """The default disk is on sata. Its instance would fail."""
    vmi = golden.machine(VIRTUAL_MACHINE_INSTANCE)
    claim = {"name": "extra", "persistentVolumeClaim": {"claimName": "extra", "readOnly": True}}
    volumes = [*vmi["spec"]["volumes"], claim]
    bad = golden.changed(vmi, "spec/volumes", volumes)

    problems = review(Request("CREATE", vmi["kind"], "u", "1", bad), SETTINGS).problems

    assert [problem.path for problem in problems] == [
        f"spec.volumes[{len(volumes) - 1}].persistentVolumeClaim.readOnly"
    ]


def test_two_volumes_of_one_name_are_reported_once() -> None:
    vmi = golden.machine(VIRTUAL_MACHINE_INSTANCE)
    twice = [{"name": "extra", "emptyDisk": {"capacity": "1Gi"}}] * 2
    bad = golden.changed(vmi, "spec/volumes", [*vmi["spec"]["volumes"], *twice])

    problems = review(Request("CREATE", vmi["kind"], "u", "1", bad), SETTINGS).problems

    assert [problem.path for problem in problems] == [f"spec.volumes[{len(vmi['spec']['volumes']) + 1}].name"]
