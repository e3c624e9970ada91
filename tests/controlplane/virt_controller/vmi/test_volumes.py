# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An instance and the DataVolumes of its disks: it waits, reports this, and never starts with a partial image."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.vmi.status import MOST_VOLUMES_TOLD, Storage, VolumeStatus
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.status import derive_status, grant
from controlplane.virt_controller.vmi.volumes import describe, volume_status
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.virt_controller.builders import a_condition, a_running_pod, a_vmi, vmi_world
from tests.controlplane.virt_controller.data_volumes import BY_CDI, CLAIMED, DISK, a_claim, a_data_volume, looked_up

MINE, NOBODYS = {"disk": a_claim(BY_CDI)}, {"disk": a_claim()}
ANOTHER_KIND = {**BY_CDI, "apiVersion": "storage.example/v1"}
PENDING: dict[str, Any] = {"disk": a_claim(BY_CDI, phase="Pending")}


def a_world(volume: Any, claims: Any, volumes: DataVolumeLookup, **status: Any) -> World:
    vmi = a_vmi("Scheduling", spec={"volumes": [volume]}, **{"attempt": 1, **status})
    return vmi_world(vmi, claims=claims, data_volumes=volumes)


def of(phase: str) -> DataVolumeLookup:
    return looked_up(a_data_volume(phase))


NO_CDI = DataVolumeLookup()
OTHER_KIND = {"disk": a_claim(ANOTHER_KIND)}
TABLE: dict[str, tuple[Any, Any, DataVolumeLookup, bool]] = {
    # volume, claims, DataVolumes, whether the Pod is created
    "filled": (DISK, MINE, of("Succeeded"), True),
    "to be populated for its Pod": (DISK, PENDING, of("PendingPopulation"), True),
    "would be filled while the guest runs": (DISK, PENDING, of("WaitForFirstConsumer"), False),
    "being filled": (DISK, MINE, of("ImportInProgress"), False),
    "filled, claim unseen": (DISK, {}, of("Succeeded"), False),
    "both unseen": (DISK, {}, looked_up(), False),
    "gone, its claim has no controller": (DISK, NOBODYS, looked_up(), True),
    "gone, its claim is still a DataVolume's": (DISK, MINE, looked_up(), False),
    "no CDI": (DISK, MINE, NO_CDI, False),
    "exists, its claim has no controller yet": (DISK, NOBODYS, of("Pending"), False),
    "a claim, filled": (CLAIMED, MINE, of("Succeeded"), True),
    "a claim, being filled": (CLAIMED, MINE, of("ImportInProgress"), False),
    "a claim of another kind with that name": (CLAIMED, OTHER_KIND, looked_up(), True),
    "a claim without a DataVolume": (CLAIMED, NOBODYS, looked_up(), True),
    "a claim without a DataVolume, no CDI": (CLAIMED, NOBODYS, NO_CDI, True),
}


@pytest.mark.parametrize(("volume", "claims", "volumes", "starts"), TABLE.values(), ids=TABLE.keys())
def test_its_pod_is_created_when_its_disks_are_filled(
    volume: Any, claims: Any, volumes: DataVolumeLookup, starts: bool
) -> None:
    steps = decide(a_world(volume, claims, volumes)).steps

    assert [type(step).__name__ for step in steps] == (["CreatePod"] if starts else ["WriteStatus"])


@pytest.mark.parametrize(
    ("volume", "claims", "volumes", "status", "words"),
    [
        (DISK, MINE, of("Succeeded"), "True", "bound and ready"),
        (DISK, MINE, of("ImportInProgress"), "False", "waits for DataVolumes disk (ImportInProgress)"),
        (DISK, PENDING, of("WaitForFirstConsumer"), "False", "storage.bind.immediate.requested"),
        (DISK, {}, looked_up(), "False", "disk (unknown phase)"),
        (DISK, {}, DataVolumeLookup(), "False", "the cluster does not serve DataVolumes; install CDI"),
        (CLAIMED, MINE, of("ImportInProgress"), "False", "waits for DataVolumes disk"),
        (CLAIMED, NOBODYS, looked_up(), "", ""),
    ],
)
def test_its_condition_reports_whether_its_disks_are_filled(
    volume: Any, claims: Any, volumes: DataVolumeLookup, status: str, words: str
) -> None:
    new = derive_status(a_world(volume, claims, volumes), None)

    assert new is not None
    condition = conditions.find(new.conditions, condition_types.DATA_VOLUMES_READY)
    assert (condition.status if condition is not None else "") == status
    assert words in (condition.message if condition is not None else "")


def test_a_missing_claim_without_a_data_volume_is_reported() -> None:
    new = derive_status(a_world(DISK, {}, looked_up()), None)
    assert new is not None
    condition = conditions.find(new.conditions, condition_types.SYNCHRONIZED)
    assert condition is not None
    assert condition.reason == condition_types.FAILED_PVC_NOT_FOUND
    assert "DataVolume or PVC default/disk does not exist" in condition.message

    new = derive_status(a_world(DISK, {}, of("Pending")), None)
    assert new is not None
    assert conditions.find(new.conditions, condition_types.SYNCHRONIZED) is None


def test_a_failed_data_volume_ends_the_run_only_before_it_has_a_pod() -> None:
    new = derive_status(a_world(DISK, {}, of("Failed")), None)
    assert new is not None
    assert (new.phase, new.reason) == ("Failed", "FailedDataVolumeImport")

    trying = looked_up(
        a_data_volume("ImportInProgress", conditions=[a_condition("Running", "False", "Error", "no host")])
    )
    new = derive_status(a_world(DISK, {}, trying), None)
    assert new is None or new.phase == "Scheduling", "CDI tries again by itself"

    world = a_world(DISK, {}, of("Failed"))
    with_pod = vmi_world(world.vmi, a_running_pod(), claims=MINE, data_volumes=of("Failed"))
    for volume in (with_pod, replace(world, was_begun=True)):
        new = derive_status(volume, None)
        assert new is None or new.phase == "Scheduling", "its Pod is there, or only not seen"


def test_the_volume_status_describes_the_claim() -> None:
    claim = a_claim(**{"cdi.kubevirt.io/storage.preallocation": "true"})
    info = describe("disk", claim)

    assert (info.claim_name, info.access_modes, info.volume_mode) == ("disk", ("ReadWriteOnce",), "Filesystem")
    assert (info.capacity, info.requests) == (Storage(storage="2Gi"), Storage(storage="1Gi"))
    assert info.preallocated
    assert not describe("disk", a_claim()).preallocated


def test_the_volume_status_is_written_with_the_first_phase_and_the_grant() -> None:
    fresh = vmi_world(a_vmi(spec={"volumes": [DISK]}), claims=PENDING, data_volumes=of("PendingPopulation"))
    first = derive_status(fresh, None)
    assert first is not None
    assert [(volume.name, volume.persistent_volume_claim_info) for volume in first.volume_status] == [
        ("root", describe("disk", PENDING["disk"]))
    ]
    reported = {"volumeStatus": [{"name": "root", "target": "vda", "size": 7}, {"name": "other", "target": "vdb"}]}
    world = a_world(DISK, MINE, of("Succeeded"), **reported)
    granted = grant(world, a_running_pod())
    info = describe("disk", MINE["disk"])
    assert granted.volume_status == (
        VolumeStatus(name="root", target="vda", size=7, persistent_volume_claim_info=info),
        VolumeStatus(name="other", target="vdb"),
    )


def test_the_status_describes_a_limited_number_of_disks() -> None:
    """The schema would refuse more, and the run would wait forever."""
    names = [f"disk-{number}" for number in range(MOST_VOLUMES_TOLD + 9)]
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    world = vmi_world(a_vmi(spec={"volumes": volumes}), claims={name: a_claim() for name in names})

    assert [volume.name for volume in volume_status(world)] == names[:MOST_VOLUMES_TOLD]
