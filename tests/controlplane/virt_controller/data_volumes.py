# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small builders around DataVolumes: a machine that uses one, the DataVolume in a phase, its claim."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.claim import PersistentVolumeClaim
from controlplane.api.objects.data_volume import DataVolume
from controlplane.api.objects.decode import decode, decode_vm, encode
from controlplane.api.objects.vm import VirtualMachine
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup
from tests.controlplane.virt_controller.builders import VM_UID, a_vm
from tests.support.store import merged

Json = dict[str, Any]
SPEC: Json = {"source": {"blank": {}}, "storage": {"resources": {"requests": {"storage": "1Gi"}}}}
DISK: Json = {"name": "root", "dataVolume": {"name": "disk"}}
CLAIMED: Json = {"name": "root", "persistentVolumeClaim": {"claimName": "disk"}}
OWN: Json = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": VM_UID, "controller": True}
BY_CDI: Json = {
    "apiVersion": "cdi.kubevirt.io/v1beta1",
    "kind": "DataVolume",
    "name": "disk",
    "uid": "d",
    "controller": True,
}


def a_vm_with_disk(strategy: str = "Always", *, annotations: Json | None = None, **status: Any) -> VirtualMachine:
    spec = {
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": SPEC}],
        "template": {"spec": {"volumes": [DISK]}},
    }
    patch = {"metadata": {"annotations": annotations or {}}, "spec": spec}
    return decode_vm(merged(encode(a_vm(strategy, **status)), patch))


def a_data_volume(phase: str = "Succeeded", *owners: Json, conditions: Any = (), **meta: Any) -> DataVolume:
    whole = {"name": "disk", "namespace": "default", "uid": "d", "resourceVersion": "7", "ownerReferences": owners}
    return decode({"metadata": {**whole, **meta}, "status": {"phase": phase, "conditions": conditions}}, DataVolume)


def looked_up(*volumes: DataVolume, is_complete: bool = True) -> DataVolumeLookup:
    return DataVolumeLookup(
        is_served=True, is_complete=is_complete, by_name={volume.metadata.name: volume for volume in volumes}
    )


def a_claim(*owners: Json, phase: str = "Bound", **annotations: str) -> PersistentVolumeClaim:
    meta = {"name": "disk", "ownerReferences": owners, "annotations": annotations}
    spec = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}}
    status = {"phase": phase, "capacity": {"storage": "2Gi"}}
    return decode({"metadata": meta, "spec": spec, "status": status}, PersistentVolumeClaim)
