# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM reconciler and a small CDI: a DataVolume is created once, and the machine starts when it is filled."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import VM_FINALIZER

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import (
    DATA_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from controlplane.engine.errors import Forbidden
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.storage.claims import claim_reader as claims_of
from controlplane.virt_controller.storage.data_volumes import data_volume_reader
from controlplane.virt_controller.vm.reconciler import VmReconciler
from tests.controlplane.virt_controller.data_volumes import BY_CDI, DISK, OWN, SPEC
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import RESOURCES

WEB, DV = Key("default", "web"), Key("default", "disk")
CREATE = "create DataVolume"


class Stage(SmallWorld):
    """A VM `web` with a template of a DataVolume `disk`, its reconciler, and a CDI that a test controls."""

    def __init__(self, strategy: str = "Always") -> None:
        super().__init__((*RESOURCES, DATA_VOLUME, PERSISTENT_VOLUME_CLAIM))
        self.is_served = True
        self.reconciler = VmReconciler(
            vms=self.overlays[VIRTUAL_MACHINE],
            vmis=self.overlays[VIRTUAL_MACHINE_INSTANCE],
            api=self.api,
            clock=self.clock,
            events=self.recorder,
            configuration=KubeVirtConfiguration,
            claims=claims_of(self.caches[PERSISTENT_VOLUME_CLAIM]),
            data_volumes=data_volume_reader(self.overlays[DATA_VOLUME], lambda: self.is_served),
        )
        machine = {"domain": {"memory": {"guest": "64Mi"}}, "volumes": [DISK]}
        templates = [{"metadata": {"name": "disk"}, "spec": SPEC}]
        spec = {"runStrategy": strategy, "dataVolumeTemplates": templates, "template": {"spec": machine}}
        meta = {"name": "web", "finalizers": [VM_FINALIZER]}
        self.store.create(VIRTUAL_MACHINE, "default", {"metadata": meta, "spec": spec})
        self.start()

    async def run(self, times: int = 4) -> None:
        for _unused in range(times):
            await reconcile(self.reconciler, WEB)
            self.catch_up()

    def cdi_fills(self, phase: str, **more: Any) -> None:
        """Create the claim, and report the phase."""
        if self.store.find(PERSISTENT_VOLUME_CLAIM, DV) is None:
            meta = {"name": "disk", "ownerReferences": [{**BY_CDI, "uid": self.data_volume["metadata"]["uid"]}]}
            self.store.create(PERSISTENT_VOLUME_CLAIM, "default", {"metadata": meta, "status": {"phase": "Bound"}})
        self.store.patch(DATA_VOLUME, DV, {"status": {"phase": phase, **more}})
        self.catch_up()

    @property
    def data_volume(self) -> dict[str, Any]:
        return self.store.get(DATA_VOLUME, DV)

    @property
    def failures(self) -> list[str]:
        """Reasons of the VM's condition Failure."""
        listed = self.vm["status"]["conditions"]
        return [condition["reason"] for condition in listed if condition["type"] == "Failure"]

    @property
    def vm(self) -> dict[str, Any]:
        return self.store.get(VIRTUAL_MACHINE, WEB)

    @property
    def word(self) -> str:
        return str(self.vm["status"]["printableStatus"])

    @property
    def runs(self) -> bool:
        return self.store.find(VIRTUAL_MACHINE_INSTANCE, WEB) is not None

    def reasons(self) -> list[str]:
        return self.recorder.reasons


async def test_a_machine_starts_when_its_data_volume_is_filled() -> None:
    stage = Stage()
    await stage.run()
    assert (stage.word, stage.runs, stage.calls.count(CREATE)) == ("Provisioning", False, 1)
    stage.cdi_fills("ImportInProgress")
    await stage.run()
    assert (stage.word, stage.runs) == ("Provisioning", False)
    error = {"type": "Running", "status": "False", "reason": "Error", "message": "no such host"}
    stage.cdi_fills("ImportInProgress", conditions=[error])
    await stage.run()
    assert (stage.word, stage.runs) == ("DataVolumeError", False)
    stage.store.patch(VIRTUAL_MACHINE, WEB, {"spec": {"template": {"spec": {"hostname": "web"}}}})
    await stage.run()
    stage.cdi_fills("Succeeded", conditions=[])
    await stage.run()
    assert (stage.word, stage.runs, stage.calls.count(CREATE)) == ("Starting", True, 1)
    assert stage.reasons() == ["SuccessfulDataVolumeCreate", "FailedDataVolumeImport", "SuccessfulCreate"]


async def test_a_data_volume_is_created_once_cdi_is_installed() -> None:
    stage = Stage()
    stage.is_served = False
    await stage.run()
    assert CREATE not in stage.calls
    assert stage.failures == ["FailedDataVolumeCreate"]
    stage.is_served = True
    await stage.run()
    assert stage.calls.count(CREATE) == 1


async def test_a_data_volume_whose_create_response_was_lost_is_not_created_again() -> None:
    stage = Stage()
    owner = {**OWN, "uid": stage.vm["metadata"]["uid"]}
    body = {"metadata": {"name": "disk", "ownerReferences": [owner]}, "spec": SPEC}
    stage.direct.meanwhile[CREATE] = lambda: stage.store.create(DATA_VOLUME, "default", body)
    await reconcile(stage.reconciler, WEB)  # the cache does not show its first create
    uid = stage.data_volume["metadata"]["uid"]
    await stage.run()
    assert stage.calls.count(CREATE) == 1
    assert stage.data_volume["metadata"]["uid"] == uid
    assert stage.reasons() == []


@pytest.mark.parametrize("change", ["its template", "it goes"])
async def test_no_data_volume_is_created_for_a_vm_that_changed_meanwhile(change: str) -> None:
    stage = Stage()

    def meanwhile() -> None:
        if change == "it goes":
            stage.store.delete(VIRTUAL_MACHINE, WEB)
        else:
            stage.store.patch(VIRTUAL_MACHINE, WEB, {"spec": {"dataVolumeTemplates": None}})

    stage.direct.meanwhile["get VirtualMachine"] = meanwhile
    await reconcile(stage.reconciler, WEB)
    assert stage.store.find(DATA_VOLUME, DV) is None


async def test_a_refusal_is_reported_in_the_condition_and_an_event() -> None:
    stage = Stage()
    stage.direct.refusals[CREATE] = Forbidden("exceeded quota")
    await stage.run(1)
    assert stage.reasons() == ["FailedDataVolumeCreate"]
    assert stage.failures == ["FailedDataVolumeCreate"]


async def test_a_data_volume_without_a_controller_is_adopted_unchanged() -> None:
    stage = Stage("Halted")
    stage.store.create(DATA_VOLUME, "default", {"metadata": {"name": "disk"}, "spec": {"mine": True}})
    stage.catch_up()
    await stage.run()
    (owner,) = stage.data_volume["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("VirtualMachine", stage.vm["metadata"]["uid"], True)
    assert stage.data_volume["spec"] == {"mine": True}
    assert "patch DataVolume [uid+version]" in stage.calls


async def test_a_deleting_vm_adopts_nothing() -> None:
    stage = Stage("Halted")
    stage.store.create(DATA_VOLUME, "default", {"metadata": {"name": "disk"}, "spec": {}})
    stage.catch_up()
    stage.direct.meanwhile["get VirtualMachine"] = lambda: stage.store.delete(VIRTUAL_MACHINE, WEB)
    await reconcile(stage.reconciler, WEB)
    assert not stage.data_volume["metadata"].get("ownerReferences")
