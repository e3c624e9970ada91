# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The DataVolumes of a VM: which to create or adopt, whether the VM can start, and what the status reports. Pure.

The VM owns the DataVolumes of its templates: it creates each once, under the template's name, and adopts one of that
name that has no controller. It only reads other DataVolumes that the volumes name.
"""

from __future__ import annotations

from typing import Any

from kubevirt_api import printable_statuses
from kubevirt_api.names import CREATED_BY

from controlplane.api.objects.claim import claim_names
from controlplane.api.objects.data_volume import (
    ADOPT_CLAIM,
    BIND_NOW,
    FILLED,
    STARTABLE,
    WAIT_FOR_FIRST_CONSUMER,
    DataVolume,
)
from controlplane.api.objects.owner import controller_of, owner_reference
from controlplane.api.objects.resources import DATA_VOLUME
from controlplane.api.objects.vm import DataVolumeTemplate, VirtualMachine
from controlplane.virt_controller.vm.world import AdoptDataVolume, CreateDataVolume, World

WHEN_STARTED = "kubevirt.io/immediate-data-volume-creation"
"""Annotation of a VM: "false" creates its DataVolumes at the start, not before."""


def names_of(vm: VirtualMachine) -> tuple[str, ...]:
    """Return the DataVolumes that a VM creates, and those that its volumes may name."""
    template_names = (template.metadata.name for template in vm.spec.data_volume_templates)
    return tuple(dict.fromkeys((*template_names, *claim_names(vm.spec.template.spec.volumes))))


def next_data_volume_action(world: World, *, is_to_run: bool) -> CreateDataVolume | AdoptDataVolume | None:
    """Choose the next action for a DataVolume; None if none is needed or possible."""
    if not world.data_volumes.is_complete:
        return None  # a DataVolume that the cache lacks may exist
    if not is_to_run and world.vm.metadata.annotations.get(WHEN_STARTED) == "false":
        return None
    for name in _template_names(world):
        data_volume = world.data_volumes.by_name.get(name)
        if data_volume is None:
            return CreateDataVolume(name, because="the VM has a template for it and none exists")
        if controller_of(data_volume.metadata) is None and data_volume.metadata.deletion_timestamp is None:
            return AdoptDataVolume(name, because="a DataVolume of its name has no owner")
    return None


def is_ready(world: World) -> bool:
    """Tell whether the DataVolumes of the VM's templates allow creating the VMI."""
    return all(_is_startable(world, name) for name in _template_names(world))


def _is_startable(world: World, name: str) -> bool:
    data_volume = world.data_volumes.by_name.get(name)
    return data_volume is not None and _is_own(world, data_volume) and data_volume.status.phase in STARTABLE


def why_unusable(world: World) -> str | None:
    """Return why DataVolumes of the VM's templates cannot be created or used; None if they can."""
    names = _template_names(world)
    if names and not world.data_volumes.is_served:
        return "the cluster does not serve DataVolumes (cdi.kubevirt.io/v1beta1); install CDI"
    for name in names:
        data_volume = world.data_volumes.by_name.get(name)
        if (
            data_volume is not None
            and controller_of(data_volume.metadata) is not None
            and not _is_own(world, data_volume)
        ):
            return f"DataVolume {name} exists and belongs to another object; delete it, or use another name"
    return None


def status_word(world: World, *, is_error: bool) -> str:
    """Return DataVolumeError (is_error) or Provisioning if a DataVolume of a volume is in that state, else ""."""
    names = claim_names(world.vm.spec.template.spec.volumes)
    existing = [(name, world.data_volumes.by_name[name]) for name in names if name in world.data_volumes.by_name]
    if is_error:
        return (
            printable_statuses.DATA_VOLUME_ERROR
            if any(volume.trouble is not None for _name, volume in existing)
            else ""
        )
    return printable_statuses.PROVISIONING if any(_is_filling(world, *data_volume) for data_volume in existing) else ""


def import_failure_of(world: World) -> tuple[str, str] | None:
    """Return the first DataVolume of a volume that CDI cannot fill, and why."""
    for name in claim_names(world.vm.spec.template.spec.volumes):
        data_volume = world.data_volumes.by_name.get(name)
        if data_volume is not None and data_volume.trouble is not None:
            return name, data_volume.trouble
    return None


def build_data_volume(vm: VirtualMachine, template: DataVolumeTemplate) -> dict[str, Any]:
    """Build a DataVolume's manifest. CDI binds its claim at once: no Pod of ours would be its first consumer."""
    spec, metadata = dict(template.spec), template.metadata
    priority = vm.spec.template.spec.priority_class_name
    if priority and not spec.get("priorityClassName"):
        spec["priorityClassName"] = priority
    return {
        "apiVersion": DATA_VOLUME.api_version,
        "kind": DATA_VOLUME.kind,
        "metadata": {
            "name": metadata.name,
            "namespace": vm.metadata.namespace,
            "labels": {**metadata.labels, CREATED_BY: vm.metadata.uid},
            "annotations": {BIND_NOW: "true", ADOPT_CLAIM: "true", **metadata.annotations},
            "ownerReferences": [owner_reference(vm)],
        },
        "spec": spec,
    }


def _template_names(world: World) -> tuple[str, ...]:
    return tuple(template.metadata.name for template in world.vm.spec.data_volume_templates)


def _is_own(world: World, data_volume: DataVolume) -> bool:
    owner = controller_of(data_volume.metadata)
    return owner is not None and owner.uid == world.vm.metadata.uid


def _is_filling(world: World, name: str, data_volume: DataVolume) -> bool:
    if data_volume.status.phase == WAIT_FOR_FIRST_CONSUMER:
        return name in world.bound_claims
    return data_volume.status.phase not in FILLED
