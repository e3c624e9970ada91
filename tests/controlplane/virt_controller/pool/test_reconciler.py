# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the pool reconciler, on an API that refuses requests and loses responses."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_POOL, Key
from controlplane.api.objects.vm import VirtualMachine
from controlplane.engine.errors import Forbidden, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.pool.reconciler import PoolReconciler
from controlplane.virt_controller.vm.template import stored_template
from controlplane.virt_controller.vm.vmi_manifest import build_vmi
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import WITH_POOLS, Json, Store

WEB = Key("default", "web")
POOL, VM, VMI = VIRTUAL_MACHINE_POOL, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE
LABELS = {"app": "web"}
READY: Json = {"type": "Ready", "status": "True"}


class Process(SmallWorld):
    """A virt-controller with only the pool controller."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(WITH_POOLS, store)
        self.reconciler = PoolReconciler(
            pools=self.overlays[POOL],
            vms=self.overlays[VM],
            vmis=self.overlays[VMI],
            api=self.api,
            clock=self.clock,
            events=self.told,
            configuration=KubeVirtConfiguration,
        )

    async def run(self, *, catch_up: bool = True) -> Outcome:
        outcome = await reconcile(self.reconciler, WEB)
        if catch_up:
            self.catch_up()
        return outcome

    @property
    def pool(self) -> Json:
        return self.store.get(POOL, WEB)

    @property
    def vms(self) -> dict[str, Json]:
        return {key.name: body for key, body in self.store.list(VM)}

    @property
    def vmis(self) -> dict[str, Json]:
        return {key.name: body for key, body in self.store.list(VMI)}

    def reasons(self) -> list[str]:
        return [reason for _unused, reason, _unused in self.told.events]


def template(**machine: Any) -> Json:
    inside = {"metadata": {"labels": LABELS}, "spec": {"domain": {"memory": {"guest": "64Mi"}}, **machine}}
    return {"metadata": {"labels": LABELS}, "spec": {"runStrategy": "Always", "template": inside}}


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
        for name, vm in self.vms.items():
            if name not in self.vmis:
                raw = self.store.raw(VM, Key("default", name))
                self.store.create(VMI, "default", build_vmi(decode(raw, VirtualMachine), stored_template(raw)))
                if ready:
                    self.get_ready(name)
            assert vm

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


def lose_answer(process: Process, verb: str) -> None:
    """Carry out the next request with this verb, and lose its response."""
    done = getattr(process.store, verb)

    def lost(*args: Any, **options: Any) -> Json:
        setattr(process.store, verb, done)
        done(*args, **options)
        raise Unavailable("connection reset")

    setattr(process.store, verb, lost)


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


async def test_a_foreign_name_is_skipped_before_the_cache_shows_it() -> None:
    stand = Stand()
    stand.store.create(VM, "default", {"metadata": {"name": "web-0"}, "spec": template()["spec"]})
    for _unused in range(3):
        await stand.run(catch_up=False)
    assert list(stand.vms) == ["web-0", "web-1"]


@pytest.mark.parametrize(
    ("policy", "left"),
    [
        ({"sortPolicy": "AscendingOrder"}, ["web-2", "web-3"]),
        ({"sortPolicy": "DescendingOrder"}, ["web-0", "web-1"]),
        ({"sortPolicy": "Newest"}, ["web-0", "web-1"]),
        ({"sortPolicy": "Oldest"}, ["web-2", "web-3"]),
    ],
)
async def test_scale_in_follows_the_selection_policy(policy: Json, left: list[str]) -> None:
    stand = Stand(4, scaleInStrategy={"proactive": {"selectionPolicy": policy}})
    await stand.settle()
    stand.change(replicas=2)
    await stand.settle()
    assert list(stand.vms) == left
    assert stand.pool["status"]["replicas"] == 2


@pytest.mark.parametrize("strategy", [{"unmanaged": {}}, {"opportunistic": {}}])
async def test_a_strategy_without_scale_in_deletes_nothing_and_still_updates(strategy: Json) -> None:
    stand = Stand(3, scaleInStrategy=strategy)
    await stand.settle()
    stand.change(replicas=1, virtualMachineTemplate=template(hostname="other"))
    await stand.settle()
    assert len(stand.vms) == 3
    assert all(vm["spec"]["template"]["spec"]["hostname"] == "other" for vm in stand.vms.values())


async def test_selectors_limit_which_vms_are_deleted() -> None:
    selectors = {"labelSelector": {"matchLabels": {"spare": "true"}}}
    stand = Stand(3, scaleInStrategy={"proactive": {"selectionPolicy": {"selectors": selectors}}})
    await stand.settle()
    labels = {"spec": {"template": {"metadata": {"labels": {"spare": "true"}}}}}
    stand.store.patch(VM, Key("default", "web-1"), labels)
    stand.change(replicas=0)
    await stand.settle()
    assert list(stand.vms) == ["web-0", "web-2"]


async def test_a_create_with_a_lost_response_is_not_repeated() -> None:
    stand = Stand(2)
    lose_answer(stand, "create")
    assert isinstance((await stand.run(catch_up=False)).error, Unavailable)
    await stand.run(catch_up=False)
    await stand.run()
    await stand.run()
    assert list(stand.vms) == ["web-0", "web-1"]


async def test_a_new_leader_with_an_old_cache_creates_no_surplus() -> None:
    """It would create web-1 in place of a VM that its cache does not have."""
    stand = Stand(3)
    await stand.run()
    behind = Process(stand.store)
    behind.start()
    stand.store.delete(VM, Key("default", "web-0"))
    stand.finish()
    await stand.run()
    assert len(stand.vms) == 3
    await behind.run()
    await behind.run()
    assert list(stand.vms) == ["web-0", "web-1", "web-2"]


async def test_two_leaders_create_the_same_vms() -> None:
    stand = Stand(3)
    other = Process(stand.store)
    other.start()
    stand.direct.meanwhile["create VirtualMachine"] = lambda: None
    await stand.run(catch_up=False)
    for _unused in range(4):
        await other.run()
        await stand.run()
    assert len(stand.vms) == 3


async def test_two_leaders_delete_the_same_vms() -> None:
    stand = Stand(5)
    await stand.settle()
    other = Process(stand.store)
    other.start()
    stand.change(replicas=3)
    stand.catch_up(POOL)
    other.catch_up(POOL)
    await stand.run(catch_up=False)
    await other.run(catch_up=False)
    await stand.settle()
    assert len(stand.vms) == 3


async def test_a_refusal_is_in_the_status_and_an_event() -> None:
    stand = Stand(2)
    stand.direct.refusals["create VirtualMachine"] = Forbidden("exceeded quota")
    await stand.run()
    (condition,) = stand.pool["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaFailure", "FailedScaleOut")
    assert "ResourceQuota" in condition["message"]
    del stand.direct.refusals["create VirtualMachine"]
    await stand.run()
    assert "conditions" not in stand.pool["status"]
    assert len(stand.vms) == 2


async def test_a_paused_pool_does_nothing_and_reports_it() -> None:
    stand = Stand(2, paused=True)
    await stand.run()
    assert stand.vms == {}
    (condition,) = stand.pool["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("ReplicaPaused", "SuccessfulPaused")
    stand.change(paused=False)
    await stand.settle()
    assert len(stand.vms) == 2
    assert [reason for reason in stand.reasons() if "Create" not in reason] == ["SuccessfulPaused", "SuccessfulResume"]


async def test_a_deleting_pool_does_nothing() -> None:
    stand = Stand(1)
    await stand.settle()
    stand.store.patch(POOL, WEB, {"metadata": {"finalizers": ["foregroundDeletion"]}})
    stand.store.delete(POOL, WEB)
    stand.store.delete(VM, Key("default", "web-0"))
    stand.finish()
    calls = len(stand.calls)
    await stand.run()
    assert stand.vms == {}
    assert all(call.startswith("patch status") for call in stand.calls[calls:])


async def test_an_unselected_vm_is_released() -> None:
    stand = Stand(1)
    await stand.settle()
    stand.store.patch(VM, Key("default", "web-0"), {"metadata": {"labels": {"app": "other"}}})
    await stand.settle()
    assert list(stand.vms) == ["web-0", "web-1"]
    assert "ownerReferences" not in stand.vms["web-0"]["metadata"]


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


@pytest.mark.parametrize(("most", "at_once"), [(1, 1), (2, 2), ("50%", 2), ("1%", 1), (None, 4)])
async def test_restarts_are_limited_by_max_unavailable(most: Any, at_once: int) -> None:
    stand = Stand(4, **({} if most is None else {"maxUnavailable": most}))
    await stand.settle()
    stand.change(virtualMachineTemplate=template(hostname="other"))
    await stand.run()
    await stand.run()
    gone = stand.going(VMI)
    assert len(gone) == at_once
    stand.finish()
    await stand.run()
    assert len(stand.vmis) == 4 - at_once, "those that are not there yet are not available either"
    stand.start_machines(ready=False)
    stand.catch_up()
    await stand.run()
    assert stand.going(VMI) == []
    for name in gone:
        stand.get_ready(name)
    stand.catch_up()
    await stand.run()
    assert len(stand.going(VMI)) == min(at_once, 4 - at_once)


async def test_a_vm_that_is_not_ready_is_restarted_at_once() -> None:
    stand = Stand(3, maxUnavailable=1)
    await stand.settle(ready=False)
    stand.change(virtualMachineTemplate=template(hostname="other"))
    await stand.run()
    assert len(stand.going(VMI)) == 3


async def test_a_vm_that_becomes_ready_meanwhile_is_decided_again() -> None:
    stand = Stand(2, maxUnavailable=1)
    await stand.settle(ready=False)
    stand.change(virtualMachineTemplate=template(hostname="other"))
    stand.direct.meanwhile["delete VirtualMachineInstance"] = lambda: stand.get_ready("web-0")
    await stand.run()
    assert stand.going(VMI) == ["web-1"]


async def test_a_new_leader_with_an_old_cache_keeps_max_unavailable() -> None:
    """It chooses the same VMs, and gets a conflict because they have changed."""
    stand = Stand(4, maxUnavailable=1)
    await stand.settle()
    stand.change(virtualMachineTemplate=template(hostname="other"))
    await stand.run()
    other = Process(stand.store)
    other.caches[VMI].start()
    first = stand.going(VMI)
    await stand.run()
    assert len(stand.going(VMI)) == 1
    other.start()
    await other.run(catch_up=False)
    await other.run()
    assert stand.going(VMI) == first or len(stand.going(VMI)) == 1


@pytest.mark.parametrize("strategy", [{"opportunistic": {}}, {"unmanaged": {}}])
async def test_update_strategies_without_restarts(strategy: Json) -> None:
    stand = Stand(2, updateStrategy=strategy)
    await stand.settle()
    runs = {vmi["metadata"]["uid"] for vmi in stand.vmis.values()}
    stand.change(virtualMachineTemplate=template(hostname="other"))
    await stand.settle()
    assert {vmi["metadata"]["uid"] for vmi in stand.vmis.values()} == runs
    hosts = {vm["spec"]["template"]["spec"].get("hostname") for vm in stand.vms.values()}
    assert hosts == ({"other"} if "opportunistic" in strategy else {None})


async def test_a_vm_with_manual_run_strategy_is_not_restarted() -> None:
    manual = template()
    manual["spec"]["runStrategy"] = "Manual"
    stand = Stand(1, virtualMachineTemplate=manual)
    await stand.settle()
    changed = template(hostname="other")
    changed["spec"]["runStrategy"] = "Manual"
    stand.change(virtualMachineTemplate=changed)
    await stand.settle()
    assert stand.vms["web-0"]["spec"]["template"]["spec"]["hostname"] == "other"
    assert stand.vmis["web-0"]["spec"].get("hostname") is None


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
