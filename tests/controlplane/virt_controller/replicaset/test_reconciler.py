# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the replica set reconciler, on an API that refuses requests and loses responses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, Key
from controlplane.engine.errors import Conflict, Forbidden, Invalid, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.virt_controller.replicaset.reconciler import ReplicaSetReconciler
from tests.controlplane.virt_controller.members.stand import LABELS, READY, WEB, SetProcess
from tests.support.store import WITH_SETS, Json, Store

SET, VMI = VIRTUAL_MACHINE_INSTANCE_REPLICA_SET, VIRTUAL_MACHINE_INSTANCE


class Process(SetProcess):
    """A virt-controller with only the replica set controller."""

    def __init__(self, store: Store | None = None) -> None:
        super().__init__(WITH_SETS, store)
        self.reconciler = ReplicaSetReconciler(replica_sets=self.overlays[SET], vmis=self.overlays[VMI], **self.parts)


class Stand(Process):
    """The replica set `web`, its VMIs, and a process."""

    def __init__(self, replicas: int = 1, **spec: Any) -> None:
        super().__init__()
        self.make_set(replicas, **spec)
        self.start()

    async def until_made(self, replicas: int) -> None:
        for _unused in range(10):
            if len(self.staying) == replicas:
                return
            await self.run()
        raise AssertionError(f"{self.staying} are there, {replicas} wanted")

    def make_set(self, replicas: int, **spec: Any) -> None:
        template = {"metadata": {"labels": LABELS}, "spec": {"domain": {"memory": {"guest": "64Mi"}}}}
        body = {"replicas": replicas, "selector": {"matchLabels": LABELS}, "template": template, **spec}
        self.store.create(SET, "default", {"metadata": {"name": "web"}, "spec": body})

    def make_vmi(self, name: str, *owners: Json, **meta: Any) -> None:
        meta = {"name": name, "labels": LABELS, "ownerReferences": list(owners), "finalizers": ["test/keep"], **meta}
        self.store.create(VMI, "default", {"metadata": meta, "spec": {"domain": {}}})
        self.report(name, phase="Running")

    def report(self, name: str, **status: Any) -> None:
        self.store.patch(VMI, Key("default", name), {"status": status}, subresource="status")

    def change(self, **spec: Any) -> None:
        self.store.patch(SET, WEB, {"spec": spec})

    def owner(self, **changed: Any) -> Json:
        uid, kind = self.set["metadata"]["uid"], "VirtualMachineInstanceReplicaSet"
        return {"kind": kind, "name": "web", "uid": uid, "controller": True, **changed}

    @property
    def set(self) -> Json:
        return self.store.get(SET, WEB)

    @property
    def vmis(self) -> dict[str, Json]:
        return self.objects(VMI)

    @property
    def staying(self) -> list[str]:
        return [name for name, vmi in self.vmis.items() if "deletionTimestamp" not in vmi["metadata"]]

    def owners_of(self, name: str) -> list[str]:
        return [owner["name"] for owner in self.vmis[name]["metadata"].get("ownerReferences", [])]


async def test_scaling_up_costs_two_status_writes_and_the_creates() -> None:
    stand = Stand(3)
    outcome = await stand.run()
    assert (outcome.error, len(stand.vmis)) == (None, 3)
    status = "patch status of VirtualMachineInstanceReplicaSet [uid+version]"
    assert stand.calls == [status, *["create VirtualMachineInstance"] * 3, status]
    assert stand.set["status"] == {"replicas": 3, "labelSelector": "app=web", "batches": 1}
    assert stand.reasons() == ["SuccessfulCreate"] * 3


async def test_each_vmi_has_its_own_identity() -> None:
    stand = Stand(2)
    await stand.run()
    first, other = stand.vmis.values()
    assert first["metadata"]["labels"] == LABELS
    assert first["metadata"]["ownerReferences"][0]["uid"] == stand.set["metadata"]["uid"]
    uuids = {vmi["spec"]["domain"]["firmware"]["uuid"] for vmi in (first, other)}
    assert len(uuids) == 2, "defaults are filled in, and no two guests are the same"


async def test_scaling_down_deletes_by_state() -> None:
    stand = Stand(3)
    await stand.run()
    for name in stand.vmis:
        stand.report(name, phase="Running", conditions=[READY])
    stand.change(replicas=1)
    stand.catch_up()
    first = sorted(stand.vmis)
    stand.calls.clear()
    await stand.run()
    assert stand.staying == first[2:]
    assert stand.calls[:3] == [
        "get VirtualMachineInstanceReplicaSet",
        *["delete VirtualMachineInstance [uid+version]"] * 2,
    ]
    assert (stand.set["status"]["replicas"], stand.set["status"]["readyReplicas"]) == (1, 1)
    assert stand.reasons()[-2:] == ["SuccessfulDelete"] * 2


async def test_an_unchanged_set_costs_no_requests() -> None:
    stand = Stand(2)
    await stand.run()
    stand.calls.clear()
    assert await stand.run() == Outcome()
    assert stand.calls == []


async def test_a_refused_create_does_not_block_the_others() -> None:
    stand = Stand(3)
    refused = iter([None, Forbidden("exceeded quota"), None])
    create = stand.store.create

    def limited(*args: Any) -> Json:
        error = next(refused, None)
        if error is not None:
            raise error
        return create(*args)

    stand.store.create = limited  # type: ignore[method-assign]
    outcome = await stand.run()
    assert isinstance(outcome.error, Forbidden)
    assert len(stand.vmis) == stand.set["status"]["replicas"] == 2
    (failure,) = stand.set["status"]["conditions"]
    assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
    assert stand.reasons().count("FailedCreate") == 1
    await stand.run()
    assert len(stand.vmis) == 3
    assert stand.set["status"] == {"replicas": 3, "labelSelector": "app=web", "batches": 1}


async def test_a_create_with_a_lost_response_is_not_repeated_under_another_name() -> None:
    stand = Stand(2)
    await stand.run()
    stand.change(replicas=4)
    stand.catch_up()
    stand.lose_response("create")
    outcome = await stand.run(catch_up=False)
    assert isinstance(outcome.error, Unavailable)
    for _unused in range(3):
        await stand.run(catch_up=False)
    assert len(stand.vmis) == 4


async def test_only_a_create_without_a_response_is_unconfirmed() -> None:
    stand = Stand(2)
    done, names = stand.store.create, []

    def create(*args: Any, **options: Any) -> Json:
        stored = done(*args, **options)
        names.append(stored["metadata"]["name"])
        if len(names) == 2:
            raise Unavailable("connection reset")
        return stored

    stand.store.create = create  # type: ignore[method-assign]
    await stand.run(catch_up=False)
    assert stand.observe().unconfirmed == {names[1]}


async def test_a_new_leader_begins_no_batch_before_it_has_read_the_earlier_ones() -> None:
    """Its watch of VMIs is behind; the open names are created again and exist."""
    stand = Stand(2)
    successor = Process(stand.store)
    successor.start()
    await stand.run()
    successor.catch_up(SET)
    outcome = await successor.run(catch_up=False)
    assert (outcome, len(stand.vmis)) == (Outcome(requeue_after=1.0), 2)
    successor.catch_up()
    assert (await successor.run(), len(stand.vmis)) == (Outcome(), 2)


async def test_an_unseen_vmi_counts_when_the_set_is_scaled_down() -> None:
    """One of the two names of the batch exists, and its response was lost."""
    stand = Stand(2)
    stand.lose_response("create")
    await stand.run(catch_up=False)
    stand.change(replicas=1)
    stand.catch_up(SET)
    await stand.run(catch_up=False)
    assert len(stand.vmis) == 1
    assert stand.calls.count("get VirtualMachineInstance") == 2


@pytest.mark.parametrize("what", ["fewer", "deleted", "another"])
async def test_a_changed_set_is_read_before_creating_or_deleting(what: str) -> None:
    """A leader whose watch of sets is behind: the set was scaled, paused or replaced."""
    stand = Stand(2)
    await stand.run()
    stand.change(replicas=1)
    stand.catch_up()
    changes: dict[str, Callable[[], object]] = {
        "fewer": lambda: stand.change(replicas=2),
        "deleted": lambda: stand.store.delete(SET, WEB),
        "another": lambda: (stand.store.delete(SET, WEB), stand.make_set(0)),
    }
    changes[what]()
    outcome = await stand.run(catch_up=False)
    assert outcome.error is not None
    assert len(stand.staying) == 2


async def test_a_set_is_read_again_after_a_lost_status_response() -> None:
    """Nothing is created or deleted before the set is read."""
    stand = Stand(1)
    await stand.run()
    await stand.run()
    assert stand.observe().is_current
    stand.report(stand.staying[0], phase="Running", conditions=[READY])
    stand.catch_up(VMI)
    stand.lose_response("patch")
    assert isinstance((await stand.run(catch_up=False)).error, Unavailable)
    assert not stand.observe().is_current


async def test_a_batch_is_not_begun_with_an_old_version_of_the_set() -> None:
    stand = Stand(5)
    stand.change(replicas=1)
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    await stand.run()
    assert len(stand.vmis) == 1


async def test_a_vmi_that_was_released_meanwhile_is_not_deleted() -> None:
    stand = Stand(0)
    stand.make_vmi("a", stand.owner())
    stand.catch_up()
    free = {"metadata": {"ownerReferences": None, "labels": {"app": None}}}
    call = "delete VirtualMachineInstance"
    stand.direct.meanwhile[call] = lambda: stand.store.patch(VMI, Key("default", "a"), free)
    assert isinstance((await stand.run()).error, Conflict)
    assert stand.staying == ["a"]


async def test_deleting_a_missing_vmi_succeeds() -> None:
    stand = Stand(0)
    stand.make_vmi("a", stand.owner(), finalizers=[])
    stand.catch_up()
    stand.direct.meanwhile["delete VirtualMachineInstance"] = lambda: stand.store.delete(VMI, Key("default", "a"))
    assert (await stand.run()).error is None
    assert "SuccessfulDelete" not in stand.reasons()


async def test_a_vmi_without_a_controller_is_adopted_and_counts() -> None:
    stand = Stand(2)
    stand.make_vmi("a", {"kind": "Team", "name": "shop", "uid": "t"})
    stand.make_vmi("b", labels={"app": "other"})
    stand.make_vmi("c", {"kind": "VirtualMachine", "name": "c", "uid": "v", "controller": True})
    stand.catch_up()
    await stand.run()
    assert {name: stand.owners_of(name) for name in "abc"} == {"a": ["shop", "web"], "b": [], "c": ["c"]}
    assert len(stand.vmis) == 4, "one was made beside the adopted one"


async def test_a_vmi_that_another_controller_adopted_meanwhile_is_not_adopted() -> None:
    stand = Stand(1)
    stand.make_vmi("a")
    stand.catch_up()
    other = {"kind": "VirtualMachine", "name": "a", "uid": "v", "controller": True}
    take = {"metadata": {"ownerReferences": [other]}}
    call = "patch VirtualMachineInstance"
    stand.direct.meanwhile[call] = lambda: stand.store.patch(VMI, Key("default", "a"), take)
    assert isinstance((await stand.run()).error, Conflict)
    assert stand.owners_of("a") == ["a"]


async def test_an_unselected_vmi_is_released_and_replaced() -> None:
    stand = Stand(1)
    stand.make_vmi("a", {"kind": "Team", "name": "shop", "uid": "t"}, stand.owner())
    stand.store.patch(VMI, Key("default", "a"), {"metadata": {"labels": {"app": "db"}}})
    stand.catch_up()
    await stand.run()
    assert stand.owners_of("a") == ["shop"]
    assert len(stand.staying) == 2


@pytest.mark.parametrize("owner", [{"uid": "another"}, {"controller": False}, {"kind": "ReplicaSet"}], ids=str)
async def test_membership_depends_on_uid_kind_and_controller(owner: Json) -> None:
    stand = Stand(0)
    stand.make_vmi("a", stand.owner(**owner), labels={"app": "other"})
    stand.catch_up()
    await stand.run()
    assert stand.staying == ["a"]
    assert len(stand.owners_of("a")) == 1


async def test_a_name_of_a_foreign_vmi_is_not_used() -> None:
    stand = Stand(2)
    stand.direct.refusals["create VirtualMachineInstance"] = Invalid("not now")
    await stand.run()
    stand.make_vmi(stand.observe().unmade[0], {"kind": "VirtualMachine", "name": "x", "uid": "v", "controller": True})
    stand.direct.refusals.clear()
    for _unused in range(3):
        await stand.run(catch_up=False)
    assert len(stand.vmis) == 3
    assert stand.set["status"]["batches"] == 2


async def test_pause_and_resume_are_one_event_each() -> None:
    stand = Stand(1, paused=True)
    for _unused in range(2):
        await stand.run()
    assert stand.reasons() == ["SuccessfulPaused"]
    assert stand.vmis == {}
    stand.change(paused=False)
    stand.catch_up()
    await stand.run()
    assert stand.reasons() == ["SuccessfulPaused", "SuccessfulResumed", "SuccessfulCreate"]
    assert "conditions" not in stand.set["status"]


async def test_an_invalid_selector_creates_nothing_and_is_reported() -> None:
    stand = Stand(1, selector={})
    stand.make_vmi("a")
    stand.catch_up()
    await stand.run()
    (failure,) = stand.set["status"]["conditions"]
    assert "would select everything" in failure["message"]
    assert stand.owners_of("a") == []


async def test_a_malformed_set_is_skipped() -> None:
    stand = Stand(1)
    stand.make_vmi("a", stand.owner())
    stand.report("a", phase=["Running"])
    stand.catch_up()
    assert await stand.run() == Outcome()
    assert stand.calls == []


async def test_nothing_is_decided_before_the_caches_are_synced() -> None:
    stand = Stand(1)
    stand.caches[VMI].synced = False
    assert isinstance((await stand.run()).error, Unavailable)
    assert stand.calls == []


async def test_a_deleted_set_costs_no_requests() -> None:
    stand = Stand(1)
    stand.store.delete(SET, WEB)
    stand.catch_up()
    assert await stand.run() == Outcome()


async def test_vmis_that_end_before_they_run_are_replaced_after_a_growing_delay() -> None:
    """Otherwise a set with an unreadable disk would start and end launchers without pause."""
    stand, waits = Stand(replicas=2), []
    for _unused in range(3):
        await stand.until_made(2)
        for name in stand.staying:
            stand.report(name, phase="Failed")
        stand.catch_up()
        began = stand.clock.monotonic()
        while not (outcome := await stand.run()).error and len(stand.staying) < 2:
            assert len(stand.staying) == 0
            stand.clock.advance(outcome.requeue_after or 1.0)
        waits.append(stand.clock.monotonic() - began)
    assert [10 <= waits[0] <= 15, 40 <= waits[1] <= 60, 90 <= waits[2] <= 135] == [True] * 3, waits


async def test_a_vmi_that_has_run_is_replaced_at_once_during_a_back_off() -> None:
    stand = Stand(replicas=2)
    await stand.until_made(2)
    failed, ran = stand.staying
    stand.report(failed, phase="Failed")
    stand.catch_up()
    await stand.run()
    stand.report(ran, phase="Running")
    stand.report(ran, phase="Failed", phaseTransitionTimestamps=[{"phase": "Running"}])
    stand.catch_up()
    await stand.until_made(2)
    assert not {failed, ran} & set(stand.staying), "that it came to run ends the wait of the other, too"


async def test_a_change_of_the_set_ends_the_back_off() -> None:
    stand = Stand(replicas=1)
    await stand.until_made(1)
    stand.report(*stand.staying, phase="Failed")
    stand.catch_up()
    await stand.run()
    assert stand.staying == []
    stand.change(template={"spec": {"domain": {"memory": {"guest": "128Mi"}}}})
    stand.catch_up()
    await stand.until_made(1)
