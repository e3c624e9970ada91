# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VMI's claims and DataVolumes. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.claim import PersistentVolumeClaim, claim_name
from controlplane.api.objects.data_volume import FAILED, WAIT_FOR_FIRST_CONSUMER
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.pod import Failure
from controlplane.api.objects.vmi.status import MOST_VOLUMES_TOLD, PersistentVolumeClaimInfo, Storage, VolumeStatus
from controlplane.virt_controller.storage.data_volumes import filled_by
from controlplane.virt_controller.vmi.world import ClaimWriter, World

SHOWN = 3
"""Names that a message lists. The others are counted."""
PREALLOCATION = "/storage.preallocation"
"""Suffix of CDI's annotation of claims whose blocks are allocated."""


def volume_status(world: World) -> tuple[VolumeStatus, ...]:
    """Describe the volumes whose claims the cache has; other fields of volumeStatus stay."""
    by_name = {volume.name: volume for volume in world.vmi.status.volume_status}
    for volume in world.vmi.spec.volumes:
        name = claim_name(volume)
        claim = world.claims.get(name) if name is not None else None
        if name is not None and claim is not None:
            before = by_name.get(volume.name, VolumeStatus(name=volume.name))
            info = describe(name, claim)
            by_name[volume.name] = VolumeStatus(
                name=before.name, target=before.target, size=before.size, persistent_volume_claim_info=info
            )
    return tuple(by_name.values())[:MOST_VOLUMES_TOLD]


def _storage(amounts: Mapping[str, str | int | float]) -> Storage | None:
    return Storage(storage=amounts["storage"]) if "storage" in amounts else None


def describe(name: str, claim: PersistentVolumeClaim) -> PersistentVolumeClaimInfo:
    """Describe a claim."""
    return PersistentVolumeClaimInfo(
        claim_name=name,
        access_modes=claim.spec.access_modes[:4],
        volume_mode=claim.spec.volume_mode,
        capacity=_storage(claim.status.capacity),
        requests=_storage(claim.spec.resources.requests),
        preallocated=any(
            key.endswith(PREALLOCATION) and value == "true" for key, value in claim.metadata.annotations.items()
        ),
    )


def with_data_volumes(listed: conditions.Conditions, world: World, stamp: str) -> conditions.Conditions:
    """Set condition DataVolumesReady: all DataVolumes of the volumes are filled. Remove it if there are none."""
    if not any(volume.data_volume is not None for volume in world.vmi.spec.volumes) and not world.unfilled:
        return conditions.remove(listed, condition_types.DATA_VOLUMES_READY)
    missing = world.unfilled
    condition = Condition(
        type=condition_types.DATA_VOLUMES_READY,
        status="False" if missing else "True",
        reason="NotAllDVsReady" if missing else "AllDVsReady",
        message=_waiting_message(world, missing) if missing else "All of the VMI's DVs are bound and ready",
    )
    return conditions.put(listed, condition, stamp)


def failed_import(world: World) -> Failure | None:
    """Return why a disk will never be filled: its DataVolume has failed."""
    for name in world.unfilled:
        data_volume = world.data_volumes.by_name.get(name)
        if data_volume is not None and data_volume.status.phase == FAILED:
            message = (
                f"DataVolume {world.vmi.metadata.namespace}/{name} has failed: {(data_volume.trouble or '')[:256]}"
            )
            return Failure(condition_types.FAILED_DATA_VOLUME_IMPORT, message)
    return None


def missing_claim(world: World) -> Failure | None:
    """Name the claims that do not exist and that no DataVolume will create."""
    data_volume_names = set(world.data_volumes.by_name)
    missing = [name for name in world.missing_claims if name not in data_volume_names]
    if not missing:
        return None
    names = _join([f"{world.vmi.metadata.namespace}/{name}" for name in missing])
    fillers = {filled_by(volume, world.claims, world.data_volumes) for volume in world.vmi.spec.volumes}
    kind = "DataVolume or PVC" if fillers & set(missing) else "PVC"
    waits = "does not exist, waiting for it" if len(missing) == 1 else "do not exist, waiting for them"
    message = f"{kind} {names} {waits} to appear"
    return Failure(condition_types.FAILED_PVC_NOT_FOUND, message)


def written_elsewhere(world: World) -> Failure | None:
    """Name the instances whose guests write to its block devices, and the Pods of instances that are gone."""
    if not world.claim_writers:
        return None
    names = _join([f"{claim} of {_name(writer)}" for claim, writer in world.claim_writers.items()])
    message = (
        f"another instance writes to the block device of claim {names}, and two guests that write to "
        "one device destroy its file system: this one starts when the other has stopped; give it a claim of its own, "
        "make its disk read-only, or make both disks shareable if their file system is made for it"
    )
    if any(writer.orphan for writer in world.claim_writers.values()):
        message += (
            "; a guest whose instance is gone stops with its Pod: if the Pod's node is silent, see that the node is "
            "off, then delete the Pod by force"
        )
    return Failure(condition_types.CLAIM_IN_USE, message)


def _name(writer: ClaimWriter) -> str:
    return f"{writer.vmi}, which is gone (launcher Pod {writer.orphan})" if writer.orphan else str(writer.vmi)


def _join(names: list[str]) -> str:
    """Join the first names, and say how many more there are."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


def _waiting_message(world: World, missing: tuple[str, ...]) -> str:
    if not world.data_volumes.is_served:
        return f"DataVolumes {', '.join(missing[:SHOWN])}: the cluster does not serve DataVolumes; install CDI"
    phases = {name: data_volume.status.phase for name, data_volume in world.data_volumes.by_name.items()}
    shown = ", ".join(f"{name} ({phases.get(name) or 'unknown phase'})" for name in missing[:SHOWN])
    text = f"waits for DataVolumes {shown}"
    if any(phases.get(name) == WAIT_FOR_FIRST_CONSUMER for name in missing):
        text += "; to bind one that waits for its first consumer, use it in another Pod, or recreate it with the "
        text += 'annotation cdi.kubevirt.io/storage.bind.immediate.requested: "true"'
    return text
