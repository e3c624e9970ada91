# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which claims two machines must not have at once."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.decode import decode
from controlplane.virt_controller.storage.written_claims import excludes, exclusive_claims, written_claims
from tests.controlplane.virt_controller.builders import a_vmi

CLAIM = {"persistentVolumeClaim": {"claimName": "c"}}
READ_ONLY = {"persistentVolumeClaim": {"claimName": "c", "readOnly": True}}
FILLED = {"dataVolume": {"name": "c"}}


@pytest.mark.parametrize(
    ("volume", "disk", "is_written"),
    [
        (CLAIM, None, True),
        (CLAIM, {}, True),
        (CLAIM, {"disk": {"bus": "virtio"}}, True),
        (CLAIM, {"disk": {"bus": "virtio", "readonly": True}}, False),
        (CLAIM, {"cdrom": {}}, False),
        (CLAIM, {"cdrom": {"readonly": False}}, True),
        (READ_ONLY, {"disk": {"bus": "virtio"}}, False),
        (FILLED, {"disk": {"bus": "virtio"}}, True),
        ({"emptyDisk": {"capacity": "1Gi"}}, None, False),
    ],
    ids=[
        "no disk of its own", "a plain disk", "a disk", "a read-only disk", "a CD-ROM", "a writable CD-ROM",
        "a read-only claim", "a DataVolume", "no claim",
    ],
)  # fmt: skip
def test_who_writes_to_a_claim(volume: Any, disk: Any, is_written: bool) -> None:
    disks = [] if disk is None else [{"name": "v", **disk}]
    spec = a_vmi(
        spec={
            "domain": {"memory": {"guest": "64Mi"}, "devices": {"disks": disks}},
            "volumes": [{"name": "v", **volume}],
        }
    ).spec
    assert written_claims(spec) == ({"c": False} if is_written else {})


def of(**disk: Any) -> Any:
    devices = {"disks": [{"name": "v", "disk": {"bus": "virtio"}, **disk}]}
    domain = {"memory": {"guest": "64Mi"}, "devices": devices}
    return a_vmi(spec={"domain": domain, "volumes": [{"name": "v", **CLAIM}]}).spec


SHARED, ALONE, READER = of(shareable=True), of(), of(disk={"bus": "virtio", "readonly": True})


@pytest.mark.parametrize(
    ("first", "second", "is_excluded"),
    [(ALONE, ALONE, True), (SHARED, ALONE, True), (SHARED, SHARED, False), (READER, ALONE, False)],
    ids=["both alone", "one shares", "both share", "one reads"],
)
def test_two_machines_share_a_claim_if_both_say_so(first: Any, second: Any, is_excluded: bool) -> None:
    assert excludes(first, second, "c") is is_excluded
    assert excludes(second, first, "c") is is_excluded
    assert not excludes(first, second, "another")


@pytest.mark.parametrize("mode", ["ReadWriteOnce", "ReadWriteMany", "ReadWriteOncePod"])
@pytest.mark.parametrize(("volume_mode", "is_exclusive"), [("Block", True), ("Filesystem", False), ("", False)])
def test_block_devices_are_exclusive_whatever_their_access_mode(
    mode: str, volume_mode: str, is_exclusive: bool
) -> None:
    """ReadWriteOnce limits nodes: two Pods on one node share the device. QEMU locks files."""
    claim = decode({"spec": {"accessModes": [mode], "volumeMode": volume_mode}}, PersistentVolumeClaim)
    spec = a_vmi(spec={"volumes": [{"name": "v", **CLAIM}]}).spec
    assert exclusive_claims(spec, {"c": claim}) == (("c",) if is_exclusive else ())


def test_a_claim_that_is_not_known_may_be_a_block_device() -> None:
    """It may be going, and its device is still there."""
    spec = a_vmi(spec={"volumes": [{"name": "v", **CLAIM}]}).spec
    assert exclusive_claims(spec, {}) == ("c",)
    assert exclusive_claims(a_vmi(spec={"volumes": [{"name": "v", **READ_ONLY}]}).spec, {}) == ()
