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


class Stand(SmallWorld):
    """A VM `web` with a template of a DataVolume `disk`, its reconciler, and a CDI that a test controls."""

    def __init__(self, strategy: str = "Always") -> None:
        super().__init__((*RESOURCES, DATA_VOLUME, PERSISTENT_VOLUME_CLAIM))
        self.is_served = True
        self.reconciler = VmReconciler(
            vms=self.overlays[VIRTUAL_MACHINE],
            vmis=self.overlays[VIRTUAL_MACHINE_INSTANCE],
            api=self.api,
            clock=self.clock,
            events=self.told,
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
    def word(self) -> str:
        return str(self.store.get(VIRTUAL_MACHINE, WEB)["status"]["printableStatus"])

    @property
    def runs(self) -> bool:
        return self.store.find(VIRTUAL_MACHINE_INSTANCE, WEB) is not None

    def reasons(self) -> list[str]:
        return [reason for _regarding, reason, _message in self.told.events]


async def test_a_machine_starts_when_its_data_volume_is_filled() -> None:
    stand = Stand()
    await stand.run()
    assert (stand.word, stand.runs, stand.calls.count(CREATE)) == ("Provisioning", False, 1)
    stand.cdi_fills("ImportInProgress")
    await stand.run()
    assert (stand.word, stand.runs) == ("Provisioning", False)
    error = {"type": "Running", "status": "False", "reason": "Error", "message": "no such host"}
    stand.cdi_fills("ImportInProgress", conditions=[error])
    await stand.run()
    assert (stand.word, stand.runs) == ("DataVolumeError", False)
    stand.store.patch(VIRTUAL_MACHINE, WEB, {"spec": {"template": {"spec": {"hostname": "web"}}}})
    await stand.run()
    stand.cdi_fills("Succeeded", conditions=[])
    await stand.run()
    assert (stand.word, stand.runs, stand.calls.count(CREATE)) == ("Starting", True, 1)
    assert stand.reasons() == ["SuccessfulDataVolumeCreate", "FailedDataVolumeImport", "SuccessfulCreate"]


async def test_a_data_volume_is_created_once_cdi_is_installed() -> None:
    stand = Stand()
    stand.is_served = False
    await stand.run()
    assert CREATE not in stand.calls
    conditions = stand.store.get(VIRTUAL_MACHINE, WEB)["status"]["conditions"]
    assert [condition["reason"] for condition in conditions if condition["type"] == "Failure"] == [
        "FailedDataVolumeCreate"
    ]
    stand.is_served = True
    await stand.run()
    assert stand.calls.count(CREATE) == 1


async def test_a_data_volume_whose_create_response_was_lost_is_not_created_again() -> None:
    stand = Stand()
    owner = {**OWN, "uid": stand.store.get(VIRTUAL_MACHINE, WEB)["metadata"]["uid"]}
    body = {"metadata": {"name": "disk", "ownerReferences": [owner]}, "spec": SPEC}
    stand.direct.meanwhile[CREATE] = lambda: stand.store.create(DATA_VOLUME, "default", body)
    await reconcile(stand.reconciler, WEB)  # the cache does not show its first create
    uid = stand.data_volume["metadata"]["uid"]
    await stand.run()
    assert stand.calls.count(CREATE) == 1
    assert stand.data_volume["metadata"]["uid"] == uid
    assert stand.reasons() == []


@pytest.mark.parametrize("change", ["its template", "it goes"])
async def test_no_data_volume_is_created_for_a_vm_that_changed_meanwhile(change: str) -> None:
    stand = Stand()

    def meanwhile() -> None:
        if change == "it goes":
            stand.store.delete(VIRTUAL_MACHINE, WEB)
        else:
            stand.store.patch(VIRTUAL_MACHINE, WEB, {"spec": {"dataVolumeTemplates": None}})

    stand.direct.meanwhile["get VirtualMachine"] = meanwhile
    await reconcile(stand.reconciler, WEB)
    assert stand.store.find(DATA_VOLUME, DV) is None


async def test_a_refusal_is_reported_in_the_condition_and_an_event() -> None:
    stand = Stand()
    stand.direct.refusals[CREATE] = Forbidden("exceeded quota")
    await stand.run(1)
    assert stand.reasons() == ["FailedDataVolumeCreate"]
    failure = stand.store.get(VIRTUAL_MACHINE, WEB)["status"]["conditions"]
    assert [condition["reason"] for condition in failure if condition["type"] == "Failure"] == [
        "FailedDataVolumeCreate"
    ]


async def test_a_data_volume_without_a_controller_is_adopted_unchanged() -> None:
    stand = Stand("Halted")
    stand.store.create(DATA_VOLUME, "default", {"metadata": {"name": "disk"}, "spec": {"mine": True}})
    stand.catch_up()
    await stand.run()
    owner = stand.data_volume["metadata"]["ownerReferences"]
    uid = stand.store.get(VIRTUAL_MACHINE, WEB)["metadata"]["uid"]
    assert [(owner["kind"], owner["uid"], owner["controller"]) for owner in owner] == [("VirtualMachine", uid, True)]
    assert stand.data_volume["spec"] == {"mine": True}
    assert "patch DataVolume [uid+version]" in stand.calls


async def test_a_deleting_vm_adopts_nothing() -> None:
    stand = Stand("Halted")
    stand.store.create(DATA_VOLUME, "default", {"metadata": {"name": "disk"}, "spec": {}})
    stand.catch_up()
    stand.direct.meanwhile["get VirtualMachine"] = lambda: stand.store.delete(VIRTUAL_MACHINE, WEB)
    await reconcile(stand.reconciler, WEB)
    assert not stand.data_volume["metadata"].get("ownerReferences")
