# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the pool reconciler, on an API that refuses requests and loses responses."""

from __future__ import annotations

from typing import Any

from controlplane.api.objects.decode import decode
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_POOL, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.virt_controller.pool.reconciler import PoolReconciler
from controlplane.virt_controller.vm.template import stored_template
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from tests.controlplane.virt_controller.members.stand import LABELS, READY, WEB, SetProcess
from tests.support.store import WITH_POOLS, Json, Store

POOL, VM, VMI = VIRTUAL_MACHINE_POOL, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE


def template(**machine: Any) -> Json:
    inside = {"metadata": {"labels": LABELS}, "spec": {"domain": {"memory": {"guest": "64Mi"}}, **machine}}
    return {"metadata": {"labels": LABELS}, "spec": {"runStrategy": "Always", "template": inside}}


class Process(SetProcess):
    """A virt-controller with only the pool controller."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(WITH_POOLS, store)
        self.reconciler = PoolReconciler(
            pools=self.overlays[POOL], vms=self.overlays[VM], vmis=self.overlays[VMI], **self.parts
        )

    @property
    def pool(self) -> Json:
        return self.store.get(POOL, WEB)

    @property
    def vms(self) -> dict[str, Json]:
        return self.objects(VM)

    @property
    def vmis(self) -> dict[str, Json]:
        return self.objects(VMI)


class Stand(Process):
    """The pool `web`, its VMs, and a process."""

    def __init__(self, replicas: int = 1, **spec: Any) -> None:
        super().__init__()
        body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "virtualMachineTemplate": template(), **spec}
        self.store.create(POOL, "default", {"metadata": {"name": "web"}, "spec": body})
        self.start()

    def change(self, **spec: Any) -> None:
        self.store.patch(POOL, WEB, {"spec": spec})
        self.catch_up(POOL)

    def start_machines(self, *, ready: bool = True) -> None:
        """Do the work of the VM controller and the nodes."""
        for name in self.vms:
            if name not in self.vmis:
                raw = self.store.raw(VM, Key("default", name))
                self.store.create(VMI, "default", build_vmi(decode(raw, VirtualMachine), stored_template(raw)))
                if ready:
                    self.get_ready(name)

    def get_ready(self, name: str) -> None:
        for kind in (VM, VMI):
            status = {"phase": "Running", "conditions": [READY]}
            self.store.patch(kind, Key("default", name), {"status": status}, subresource="status")

    def finish(self) -> None:
        """Finish deletions."""
        for kind in (VM, VMI):
            for key, body in self.store.list(kind):
                if "deletionTimestamp" in body["metadata"]:
                    self.store.patch(kind, key, {"metadata": {"finalizers": None}})
        self.catch_up()

    def going(self, kind: Any = VM) -> list[str]:
        return [key.name for key, body in self.store.list(kind) if "deletionTimestamp" in body["metadata"]]

    async def settle(self, *, ready: bool = True) -> None:
        for _unused in range(30):
            await self.run()
            self.finish()
            self.start_machines(ready=ready)
            self.catch_up()


async def test_scaling_up_costs_two_status_writes_and_the_creates() -> None:
    stand = Stand(3)
    outcome = await stand.run()
    assert (outcome.error, list(stand.vms)) == (None, ["web-0", "web-1", "web-2"])
    status = "patch status of VirtualMachinePool [uid+version]"
    assert stand.calls == [status, *["create VirtualMachine"] * 3, status]
    assert stand.pool["status"] == {"replicas": 3, "labelSelector": "app=web", "batches": 1}
    assert stand.reasons() == ["SuccessfulCreate"] * 3


async def test_each_vm_has_its_own_identity_and_the_pool_as_owner() -> None:
    stand = Stand(2)
    await stand.run()
    first, other = stand.vms.values()
    owner = first["metadata"]["ownerReferences"][0]
    assert (owner["uid"], owner["apiVersion"], owner["controller"]) == (
        stand.pool["metadata"]["uid"],
        "pool.kubevirt.io/v1beta1",
        True,
    )
    assert first["metadata"]["labels"]["app"] == "web"
    mark = first["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"]
    assert mark.startswith("web-")
    assert first["spec"]["template"]["metadata"]["labels"]["kubevirt.io/vm-pool-revision-name"] == mark
    assert first["metadata"]["finalizers"] == ["kubevirt.io/virtualMachineControllerFinalize"], "and none of a pool"
    uuids = {vm["spec"]["template"]["spec"]["domain"]["firmware"]["uuid"] for vm in (first, other)}
    assert len(uuids) == 2


async def test_the_lowest_free_number_is_used_again() -> None:
    stand = Stand(3)
    await stand.settle()
    stand.store.delete(VM, Key("default", "web-1"))
    stand.catch_up()
    await stand.run()
    assert list(stand.vms) == ["web-0", "web-1", "web-2"], "one that is going counts while its name is not free"
    assert stand.pool["status"]["replicas"] == 3
    stand.finish()
    await stand.run()
    assert list(stand.vms) == ["web-0", "web-1", "web-2"]
    assert stand.going() == []


async def test_names_of_foreign_vms_are_skipped() -> None:
    stand = Stand(2)
    stand.store.create(VM, "default", {"metadata": {"name": "web-0"}, "spec": template()["spec"]})
    await stand.settle()  # the first attempt detects it
    assert list(stand.vms) == ["web-0", "web-1", "web-2"]
    assert "ownerReferences" not in stand.vms["web-0"]["metadata"], "it is not adopted"


async def test_a_pause_and_a_resume_are_one_event_each() -> None:
    stand = Stand(2, paused=True)
    await stand.run()
    assert stand.vms == {}
    stand.change(paused=False)
    await stand.settle()
    assert len(stand.vms) == 2
    assert [reason for reason in stand.reasons() if "Create" not in reason] == ["SuccessfulPaused", "SuccessfulResume"]


async def test_a_changed_template_updates_vms_and_restarts_guests() -> None:
    stand = Stand(3)
    await stand.settle()
    before = {name: vm["spec"]["template"]["spec"]["domain"]["firmware"] for name, vm in stand.vms.items()}
    runs = {name: run["metadata"]["uid"] for name, run in stand.vmis.items()}
    stand.change(virtualMachineTemplate=template(hostname="other"))
    await stand.settle()
    after = {name: vm["spec"]["template"]["spec"]["domain"]["firmware"] for name, vm in stand.vms.items()}
    assert after == before, "who it is for its guest stays"
    assert all(vmi["spec"]["hostname"] == "other" for vmi in stand.vmis.values())
    assert not set(runs.values()) & {vmi["metadata"]["uid"] for vmi in stand.vmis.values()}
    calls = len(stand.calls)
    await stand.run()
    assert stand.calls[calls:] == [], "then it rests"


async def test_a_vm_that_becomes_ready_meanwhile_is_decided_again() -> None:
    stand = Stand(2, maxUnavailable=1)
    await stand.settle(ready=False)
    stand.change(virtualMachineTemplate=template(hostname="other"))
    stand.direct.meanwhile["delete VirtualMachineInstance"] = lambda: stand.get_ready("web-0")
    await stand.run()
    assert stand.going(VMI) == ["web-1"]


async def test_a_change_outside_the_vmi_template_restarts_nothing() -> None:
    stand = Stand(1)
    await stand.settle()
    (run,) = (vmi["metadata"]["uid"] for vmi in stand.vmis.values())
    changed = template()
    changed["metadata"] = {"labels": {**LABELS, "tier": "a"}}
    stand.change(virtualMachineTemplate=changed)
    await stand.settle()
    assert stand.vms["web-0"]["metadata"]["labels"]["tier"] == "a"
    assert [vmi["metadata"]["uid"] for vmi in stand.vmis.values()] == [run]


async def test_changed_data_volumes_recreate_vms() -> None:
    def with_volume(size: str) -> Json:
        made = template(volumes=[{"name": "d", "dataVolume": {"name": "disk"}}])
        made["spec"]["dataVolumeTemplates"] = [{"metadata": {"name": "disk"}, "spec": {"storage": size}}]
        return made

    stand = Stand(1, virtualMachineTemplate=with_volume("1Gi"))
    await stand.settle()
    (before,) = stand.vms.values()
    assert before["spec"]["dataVolumeTemplates"][0]["metadata"]["name"] == "disk-0"
    assert before["spec"]["template"]["spec"]["volumes"][0]["dataVolume"]["name"] == "disk-0"
    stand.change(virtualMachineTemplate=with_volume("2Gi"))
    await stand.run()
    assert stand.going() == ["web-0"]
    await stand.settle()
    (after,) = stand.vms.values()
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["dataVolumeTemplates"][0]["spec"] == {"storage": "2Gi"}
