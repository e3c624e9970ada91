# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What each kind of volume contributes to the Pod, the launch plan and the domain, as a table."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any

import pytest

from controlplane.api.launch_plan import (
    ClaimDisk,
    CloudInit,
    ContainerDisk,
    DiskSource,
    EmptyDisk,
    ImageFile,
    LauncherReport,
)
from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.decode import decode
from controlplane.api.objects.vmi.volumes import Volume
from controlplane.domain.guest_identity import GuestIdentity
from controlplane.domain.volumes.kind import BackingImage, DiskImage
from controlplane.domain.volumes.registry import (
    VOLUME_KINDS,
    bytes_taken,
    reported_images,
    volume_in_domain,
    volumes_in_plan,
    volumes_in_pod,
)
from tests.controlplane.domain.builders.vmis import a_vmi

GUEST = GuestIdentity("web", "the-uuid")
REPORT = LauncherReport(container_disks=(ImageFile("a", "/img/volumes/a/disk/x.img", "raw"),))
META = json.dumps({"instance-id": "the-uuid", "local-hostname": "web"})
USER_SECRET = "userdata-ca978112ca1bbdca"
CLAIM = {
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "2Gi"}}},
    "status": {"phase": "Bound"},
}
CLAIMS = {"data": decode(CLAIM, PersistentVolumeClaim)}
IMAGE = {"name": "vol-a", "image": {"reference": "guest:1", "pullPolicy": "Never"}}


@dataclass(frozen=True)
class Row:
    source: dict[str, Any]
    domain: DiskImage
    step: DiskSource
    takes: int
    """Bytes on the node's disk; a containerDisk may take 1000."""
    pod: list[dict[str, Any]] = field(default_factory=list)
    mounts: list[str] = field(default_factory=list)
    is_read_only: bool = True
    """Whether its mounts are read-only."""
    pull_secret: str = ""
    reported: dict[str, str] = field(default_factory=dict)


ROWS = {
    "container_disk": Row(
        {
            "containerDisk": {
                "image": "guest:1",
                "path": "/disk/x.img",
                "imagePullPolicy": "Never",
                "imagePullSecret": "registry",
            }
        },
        DiskImage("/run/launcher/disks/a.qcow2", "qcow2", below=BackingImage("/img/volumes/a/disk/x.img", "raw")),
        ContainerDisk("a", "/disk/x.img"),
        takes=1000,
        pod=[IMAGE],
        mounts=["/img/volumes/a"],
        pull_secret="registry",
        reported={"a": "/img/volumes/a"},
    ),
    "empty_disk": Row(
        {"emptyDisk": {"capacity": "1Gi"}},
        DiskImage("/run/launcher/disks/a.img", "raw"),
        EmptyDisk("a", 1 << 30),
        takes=1 << 30,
    ),
    "cloud_init_no_cloud": Row(
        {
            "cloudInitNoCloud": {
                "secretRef": {"name": "users"},
                "networkDataBase64": base64.b64encode(b"version: 2\n").decode(),
            }
        },
        DiskImage("/run/launcher/disks/a.iso", "raw"),
        CloudInit(
            "a",
            META,
            user_data_file="/run/secrets/cloud-init/a/userdata/userdata",
            network_data="version: 2\n",
        ),
        takes=1 << 20,
        pod=[{"name": USER_SECRET, "secret": {"secretName": "users", "defaultMode": 0o440}}],
        mounts=["/run/secrets/cloud-init/a/userdata"],
    ),
    "persistent_volume_claim": Row(
        {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}},
        DiskImage("/img/claims/a/disk.img", "raw", is_read_only=True),
        ClaimDisk("a", is_block=False, size_bytes=2 << 30, is_read_only=True, is_shared=False),
        takes=0,
        pod=[{"name": "vol-a", "persistentVolumeClaim": {"claimName": "data", "readOnly": True}}],
        mounts=["/img/claims/a"],
    ),
    "data_volume": Row(
        {"dataVolume": {"name": "data"}},
        DiskImage("/img/claims/a/disk.img", "raw"),
        ClaimDisk("a", is_block=False, size_bytes=2 << 30, is_read_only=False, is_shared=False),
        takes=0,
        pod=[{"name": "vol-a", "persistentVolumeClaim": {"claimName": "data"}}],
        mounts=["/img/claims/a"],
        is_read_only=False,
    ),
}


def test_every_volume_source_has_a_kind_and_a_row() -> None:
    members = [name for name in Volume.__struct_fields__ if name != "name"]

    assert sorted(kind.member for kind in VOLUME_KINDS) == sorted(members) == sorted(ROWS)


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS.keys())
def test_a_volume_in_pod_plan_and_domain(row: Row) -> None:
    spec = a_vmi(volumes=[{"name": "a", **row.source}]).spec
    (needed,) = volumes_in_pod(spec, CLAIMS)

    assert [mounted.volume for mounted in needed.mounted] == row.pod
    assert [entry.mount for entry in needed.mounted] == [
        {"name": volume["name"], "mountPath": path, **({"readOnly": True} if row.is_read_only else {})}
        for volume, path in zip(row.pod, row.mounts, strict=True)
    ]
    assert needed.pull_secret == row.pull_secret
    assert volumes_in_plan(spec, GUEST, CLAIMS) == (row.step,)
    assert volume_in_domain(spec.volumes[0], REPORT) == row.domain
    assert reported_images(spec) == row.reported
    assert bytes_taken(spec, 1000) == row.takes


@pytest.mark.parametrize(
    ("capacity", "mebibytes"), [("1G", 954), ("1500M", 1431), ("1.1Gi", 1127), ("1Gi", 1024), (1 << 20, 1)]
)
def test_an_empty_disk_has_whole_mebibytes(capacity: str | int, mebibytes: int) -> None:
    """QEMU refuses others on a disk with blocks of 4 KiB."""
    spec = a_vmi(volumes=[{"name": "a", "emptyDisk": {"capacity": capacity}}]).spec

    assert volumes_in_plan(spec, GUEST, CLAIMS) == (EmptyDisk("a", mebibytes << 20),)
    assert bytes_taken(spec, 0) == mebibytes << 20


def test_a_block_claim_is_a_device() -> None:
    block = {**CLAIM, "spec": {"volumeMode": "Block", "accessModes": ["ReadWriteMany"]}}
    claims = {"data": decode(block, PersistentVolumeClaim)}
    spec = a_vmi(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]).spec
    (needed,) = volumes_in_pod(spec, claims)

    assert [mounted.volume for mounted in needed.mounted] == [
        {"name": "vol-a", "persistentVolumeClaim": {"claimName": "data"}},
    ]
    assert [entry.device for entry in needed.mounted] == [{"name": "vol-a", "devicePath": "/dev/vol-a"}]
    assert [element.mount for element in needed.mounted] == [None]
    step = ClaimDisk("a", is_block=True, size_bytes=0, is_read_only=False, is_shared=True)
    assert volumes_in_plan(spec, GUEST, claims) == (step,)
    disk = volume_in_domain(spec.volumes[0], LauncherReport(block_claims=("a",)))
    assert disk == DiskImage("/dev/vol-a", "raw", is_block=True)


def test_a_read_only_block_claim_is_a_read_only_disk() -> None:
    """A device has no read-only mount: the disk in the domain has to be read-only."""
    source = {"persistentVolumeClaim": {"claimName": "data", "readOnly": True}}
    (volume,) = a_vmi(volumes=[{"name": "a", **source}]).spec.volumes

    disk = volume_in_domain(volume, LauncherReport(block_claims=("a",)))

    assert disk == DiskImage("/dev/vol-a", "raw", is_block=True, is_read_only=True)


def test_every_image_is_reported_with_or_without_a_path() -> None:
    volumes = [{"name": name, "containerDisk": {"image": "guest:1"}} for name in ("a", "b")]

    assert reported_images(a_vmi(volumes=volumes).spec) == {"a": "/img/volumes/a", "b": "/img/volumes/b"}


def test_a_writable_claim_is_mounted_writable() -> None:
    spec = a_vmi(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "data"}}]).spec
    (needed,) = volumes_in_pod(spec, CLAIMS)

    assert [mounted.mount for mounted in needed.mounted] == [{"name": "vol-a", "mountPath": "/img/claims/a"}]


@pytest.mark.parametrize(
    "source", [{"persistentVolumeClaim": {"claimName": "other"}}, {"dataVolume": {"name": "other"}}]
)
def test_a_missing_claim_cannot_be_planned(source: dict[str, Any]) -> None:
    spec = a_vmi(volumes=[{"name": "a", **source}]).spec

    with pytest.raises(ValueError, match="volume a: PersistentVolumeClaim other does not exist"):
        volumes_in_plan(spec, GUEST, CLAIMS)


def test_encoded_data_may_have_line_breaks() -> None:
    text = "#cloud-config\n" * 9
    source = {"userDataBase64": base64.encodebytes(text.encode()).decode()}
    (step,) = volumes_in_plan(a_vmi(volumes=[{"name": "seed", "cloudInitNoCloud": source}]).spec, GUEST)

    assert isinstance(step, CloudInit)
    assert step.user_data == text


@pytest.mark.parametrize("encoded", [base64.b64encode(b"\xff\xfe").decode(), "eA==!", "eA"])
def test_the_error_for_undecodable_user_data_names_the_volume(encoded: str) -> None:
    source = {"userDataBase64": encoded}
    spec = a_vmi(volumes=[{"name": "seed", "cloudInitNoCloud": source}]).spec

    with pytest.raises(ValueError, match="volume seed: userDataBase64"):
        volumes_in_plan(spec, GUEST)


def test_a_disk_whose_image_the_launcher_did_not_find_is_refused() -> None:
    spec = a_vmi(volumes=[{"name": "other", "containerDisk": {"image": "guest:1"}}]).spec

    with pytest.raises(ValueError, match="found no image for volume 'other'"):
        volume_in_domain(spec.volumes[0], REPORT)


def test_a_volume_with_an_unsupported_source_contributes_nothing() -> None:
    """Another version may have admitted it."""
    spec = a_vmi(volumes=[{"name": "a", "configMap": {"name": "x"}}]).spec

    assert (volumes_in_pod(spec), volumes_in_plan(spec, GUEST), reported_images(spec)) == ((), (), {})
    assert bytes_taken(spec, 1000) == 0
    with pytest.raises(ValueError, match="no source that this version"):
        volume_in_domain(spec.volumes[0], REPORT)


def test_a_kernel_image_is_mounted_after_the_volumes() -> None:
    container = {"image": "kernel:1", "imagePullSecret": "registry", "kernelPath": "/vmlinuz"}
    volumes = [{"name": "a", "emptyDisk": {"capacity": "1Gi"}}]
    *_unused, kernel = volumes_in_pod(a_vmi(firmware={"kernelBoot": {"container": container}}, volumes=volumes).spec)

    assert [mounted.mount["mountPath"] for mounted in kernel.mounted] == ["/img/kernel-boot"]
    assert [entry.volume["image"] for entry in kernel.mounted] == [{"reference": "kernel:1"}]
    assert kernel.pull_secret == "registry"
