# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whom a DataVolume wakes, and what is read of those that are there."""

from __future__ import annotations

import json
from typing import Any

from controlplane.api.objects.resources import DATA_VOLUME, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.kube.cache import Store
from controlplane.virt_controller.storage.claims import BY_CLAIM, claims_of_vm, claims_of_vmi
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup, data_volume_reader, no_data_volumes
from controlplane.virt_controller.wake import connect_data_volumes

DISK = {"name": "a", "dataVolume": {"name": "disk"}}
CLAIMED = {"name": "a", "persistentVolumeClaim": {"claimName": "disk"}}
BOTH = ["vm default/by-claim", "vm default/web", "vmi default/web"]
ALL = ["vm default/template", "vm default/web", "vmi default/web"]


def an_object(name: str, version: int = 1, **parts: Any) -> bytes:
    meta = {"name": name, "namespace": "default", "uid": name, "resourceVersion": str(version)}
    return json.dumps({"metadata": {**meta, **parts.pop("meta", {})}, **parts}).encode()


class Stage:
    def __init__(self) -> None:
        self.woken: list[str] = []
        self.data_volumes = Store(DATA_VOLUME)
        vms = Store(VIRTUAL_MACHINE, {BY_CLAIM: claims_of_vm})
        vmis = Store(VIRTUAL_MACHINE_INSTANCE, {BY_CLAIM: claims_of_vmi})
        vms.put(an_object("web", spec={"template": {"spec": {"volumes": [DISK]}}}))
        vms.put(an_object("by-claim", spec={"template": {"spec": {"volumes": [CLAIMED]}}}))
        vms.put(an_object("template", spec={"dataVolumeTemplates": [{}], "template": {"spec": {}}}))
        vms.put(an_object("other", spec={"template": {"spec": {}}}))
        vmis.put(an_object("web", spec={"volumes": [DISK]}))
        self.changed = connect_data_volumes(
            data_volumes=self.data_volumes,
            vms=vms,
            vmis=vmis,
            wake_vm=lambda key: self.woken.append(f"vm {key}"),
            wake_vmi=lambda key: self.woken.append(f"vmi {key}"),
        )

    def take(self) -> list[str]:
        woken, self.woken = sorted(self.woken), []
        return woken


def test_it_wakes_those_that_name_it_or_its_claim_when_something_changes_for_them() -> None:
    stage = Stage()
    stage.data_volumes.put(an_object("disk", 1))
    assert stage.take() == BOTH
    stage.data_volumes.put(an_object("disk", 2, status={"progress": "7%"}))
    assert stage.take() == []
    stage.data_volumes.put(an_object("disk", 3, status={"phase": "Succeeded"}))
    assert stage.take() == BOTH
    owner = {"kind": "VirtualMachine", "uid": "x", "controller": True}
    stage.data_volumes.put(an_object("disk", 4, status={"phase": "Succeeded"}, meta={"ownerReferences": [owner]}))
    assert stage.take() == BOTH
    going = {"ownerReferences": [owner], "deletionTimestamp": "2026-01-01T00:00:00Z"}
    stage.data_volumes.put(an_object("disk", 5, status={"phase": "Succeeded"}, meta=going))
    assert stage.take() == BOTH
    stage.data_volumes.remove(Key("default", "disk"))
    assert stage.take() == BOTH


def test_that_something_else_is_known_of_the_kind_wakes_all_that_name_data_volumes() -> None:
    stage = Stage()
    stage.data_volumes.move(1)
    assert stage.take() == []
    stage.changed()
    assert stage.take() == ALL


def test_absence_means_something_only_when_the_cluster_serves_them_and_all_are_read() -> None:
    cache = Store(DATA_VOLUME)
    served, not_served = data_volume_reader(cache, lambda: True), data_volume_reader(cache, lambda: False)
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=False)
    cache.synced = True
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=True)
    assert not_served("default", ["disk"]) == DataVolumeLookup() == no_data_volumes("default", ["disk"])
    cache.put(an_object("disk", status={"phase": "Succeeded"}))
    assert [one.status.phase for one in served("default", ["disk"]).by_name.values()] == ["Succeeded"]
    assert served("elsewhere", ["disk"]).by_name == {}
    cache.put(an_object("disk", 2, status=7))
    assert served("default", ["disk"]) == DataVolumeLookup(is_served=True, is_complete=False)
