# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes DataVolumes of a VM and records Events about them. It decides nothing."""

from __future__ import annotations

from kubevirt_api import printable_statuses
from kubevirt_api.condition_types import FAILED_DATA_VOLUME_IMPORT

from controlplane.api.objects.data_volume import DataVolume
from controlplane.api.objects.decode import decode_vm, encode
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.resources import DATA_VOLUME, VIRTUAL_MACHINE, Key
from controlplane.api.objects.vm import VirtualMachine, VirtualMachineStatus
from controlplane.engine.errors import AlreadyExists, Conflict
from controlplane.engine.ports import Api
from controlplane.virt_controller.reporting.events import Events, Regarding
from controlplane.virt_controller.vm.data_volumes import build_data_volume, import_failure_of
from controlplane.virt_controller.vm.world import World


async def create_data_volume(api: Api, events: Events, world: World, name: str) -> None:
    """Create the DataVolume of a template. Conflict: the VM has changed, or the DataVolume exists."""
    vm = world.vm
    await _confirm_vm(api, vm, is_unchanged=True)
    template = next(template for template in vm.spec.data_volume_templates if template.metadata.name == name)
    try:
        created = await api.create(DATA_VOLUME, vm.metadata.namespace, build_data_volume(vm, template))
    except AlreadyExists as error:
        # The DataVolume is ours, from a write whose response was lost, or a foreign one: observe it, then decide again.
        await api.get(DATA_VOLUME, Key(vm.metadata.namespace, name))
        raise Conflict(str(error)) from error
    message = f"Created DataVolume {name}"
    events.record(
        Regarding.of(vm), "Normal", "SuccessfulDataVolumeCreate", message, occurrence=created["metadata"]["uid"]
    )


async def adopt_data_volume(api: Api, world: World, name: str) -> None:
    """Adopt a DataVolume that had no controller when it was observed."""
    data_volume: DataVolume = world.data_volumes.by_name[name]
    await _confirm_vm(api, world.vm)
    owners = [encode(owner) for owner in data_volume.metadata.owner_references if owner.uid != world.vm.metadata.uid]
    await api.patch(
        DATA_VOLUME,
        Key(world.vm.metadata.namespace, name),
        {"metadata": {"ownerReferences": [*owners, owner_reference(world.vm)]}},
        resource_version=data_volume.metadata.resource_version,
        uid=data_volume.metadata.uid,
    )


def record_import_failure(events: Events, world: World, status: VirtualMachineStatus) -> None:
    """Record why CDI cannot fill a DataVolume, when the VM's printable status changes to that."""
    is_error = status.printable_status == printable_statuses.DATA_VOLUME_ERROR
    failure = import_failure_of(world)
    if is_error and failure is not None and world.vm.status.printable_status != status.printable_status:
        name, cause = failure
        message = f"DataVolume {name} cannot be filled: {cause[:512]}"
        events.record(Regarding.of(world.vm), "Warning", FAILED_DATA_VOLUME_IMPORT, message)


async def _confirm_vm(api: Api, vm: VirtualMachine, *, is_unchanged: bool = False) -> None:
    """Confirm that the VM can own a DataVolume and (is_unchanged) has the observed template. Raises Conflict."""
    key = Key(vm.metadata.namespace, vm.metadata.name)
    fresh = decode_vm(await api.get(VIRTUAL_MACHINE, key)).metadata
    can_own = fresh.uid == vm.metadata.uid and fresh.deletion_timestamp is None
    if not can_own or (is_unchanged and fresh.generation != vm.metadata.generation):
        raise Conflict(f"cannot give VirtualMachine {key} a DataVolume: the VM was deleted or changed meanwhile")
