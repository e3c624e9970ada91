# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the VM reconciler on an API that refuses requests: no write on an outdated view, every refusal reported."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from kubevirt_api.names import TEMPLATE_HASH, VM_FINALIZER

from controlplane.api.objects.resources import Resource
from controlplane.engine.errors import ApiError, Conflict, Forbidden, Invalid, NotLeader, Throttled, Unavailable
from controlplane.virt_controller.vm.decide import ORPHAN_FINALIZER
from tests.controlplane.virt_controller.vm.stage import OLD_STOP, START, VM, VMI, WEB, Stage
from tests.support.store import Json


@pytest.mark.parametrize("unread", [VM, VMI], ids=str)
async def test_nothing_is_decided_before_the_caches_are_synced(unread: Resource) -> None:
    """Also while a watch is refused: no change arrives then."""
    stage = Stage()
    stage.caches[unread].synced = False
    outcome = await stage.run()
    assert (type(outcome.error), stage.calls) == (Unavailable, [])


# an outdated view


async def conflicts(stage: Stage) -> bool:
    return isinstance((await stage.run()).error, Conflict)


@pytest.mark.parametrize("requests", [[], [START]], ids=["the status", "dropping a request"])
async def test_a_concurrent_change_of_the_queue_is_not_overwritten(requests: list[Json]) -> None:
    stage = Stage("Halted", *requests)
    stage.direct.meanwhile["patch status of VirtualMachine"] = lambda: stage.queue(START, OLD_STOP)
    assert await conflicts(stage)
    assert stage.requests == [START, OLD_STOP]
    assert stage.reasons() == []


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure", "Always"])
async def test_a_start_is_not_carried_out_after_the_machine_was_halted(strategy: str) -> None:
    """The leader's watch of VMs is behind."""
    stage = Stage(strategy, START)
    stage.store.patch(VM, WEB, {"spec": {"runStrategy": "Halted"}})
    assert await conflicts(stage)
    assert stage.store.list(VMI) == []
    stage.catch_up()
    await stage.run()
    assert stage.store.list(VMI) == []


async def test_a_start_that_was_removed_from_the_queue_is_not_carried_out() -> None:
    """Requests are in the status, which does not change the generation."""
    stage = Stage("Manual", START)
    stage.queue()
    assert await conflicts(stage)
    assert stage.store.list(VMI) == []


def change_template(stage: Stage) -> None:
    stage.store.patch(VM, WEB, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}})


async def test_a_halted_machine_that_changes_meanwhile_is_not_started() -> None:
    stage = Stage("Halted")
    generation = str(stage.vm["metadata"]["generation"])
    stage.queue({"action": "Start", "data": {"paused": "true", "generation": generation}})
    stage.catch_up()
    stage.direct.meanwhile["patch VirtualMachine"] = lambda: change_template(stage)
    assert await conflicts(stage)
    assert stage.vm["spec"]["runStrategy"] == "Halted"


def recreate_vm(stage: Stage) -> None:
    stage.drop_vm()
    stage.make_vm()


@pytest.mark.parametrize(
    "meanwhile", [recreate_vm, lambda stage: stage.store.delete(VM, WEB)], ids=["replaced", "deleted"]
)
async def test_nothing_is_adopted_for_a_deleted_vm(meanwhile: Callable[[Stage], object]) -> None:
    """The cache still shows the VM; the API server does not have it."""
    stage = Stage()
    stage.make_vmi()
    stage.catch_up()
    meanwhile(stage)
    assert await conflicts(stage)
    assert stage.vmi["metadata"]["ownerReferences"] == []


async def test_an_orphan_that_another_owner_adopted_meanwhile_is_not_taken() -> None:
    stage = Stage()
    stage.make_vmi()
    stage.catch_up()
    theirs = {"metadata": {"ownerReferences": [stage.owner(uid="somebody")]}}
    stage.direct.meanwhile["patch VirtualMachineInstance"] = lambda: stage.store.patch(VMI, WEB, theirs)
    assert await conflicts(stage)
    assert [owner["uid"] for owner in stage.vmi["metadata"]["ownerReferences"]] == ["somebody"]


CHANGED_MEANWHILE: dict[str, Callable[[Stage], object]] = {
    "replaced": Stage.replace_vmi,
    "released": lambda stage: stage.store.patch(VMI, WEB, {"metadata": {"ownerReferences": None}}),
    "running again": lambda stage: stage.patch_vmi({"phase": "Running"}),
}


@pytest.mark.parametrize("meanwhile", CHANGED_MEANWHILE.values(), ids=CHANGED_MEANWHILE.keys())
async def test_an_instance_that_changed_meanwhile_is_not_deleted(meanwhile: Callable[[Stage], object]) -> None:
    stage = Stage("Halted")
    stage.make_own_vmi("Scheduled")
    stage.catch_up()
    stage.direct.meanwhile["delete VirtualMachineInstance"] = lambda: meanwhile(stage)
    assert await conflicts(stage)
    assert not stage.is_vmi_deleting
    assert "SuccessfulDelete" not in stage.reasons()


async def test_every_write_to_an_existing_object_has_both_preconditions() -> None:
    """The version alone suffices today; the UID shows in the audit log, and no restore repeats it."""
    stage = Stage("Manual")
    uid = stage.make_vmi()
    stage.queue({"action": "Stop", "uid": uid}, {"action": "Dance"})
    await stage.come_to_rest()
    stage.store.delete(VM, WEB)
    stage.catch_up()
    await stage.run()
    assert set(stage.writes()) == {
        "patch VirtualMachineInstance [uid+version]",
        "delete VirtualMachineInstance [uid+version]",
        "patch status of VirtualMachine [uid+version]",
        "patch VirtualMachine [uid+version]",
    }


# requests about instances that the cache may not show


def stop_of(uid: str) -> Json:
    return {"action": "Stop", "uid": uid}


async def test_a_stop_of_an_unseen_instance_stays_queued() -> None:
    """Another leader created it; the watch of instances is behind the watch of VMs."""
    stage = Stage("Manual")
    stage.queue(stop_of(stage.make_own_vmi()))
    stage.catch_up(VM)
    await stage.run()
    assert "get VirtualMachineInstance" in stage.calls
    assert stage.is_vmi_deleting


async def test_a_former_instance_in_the_cache_does_not_complete_a_stop() -> None:
    stage = Stage("Manual")
    stage.make_own_vmi()
    stage.catch_up()
    stage.replace_vmi()
    stage.queue(stop_of(stage.vmi["metadata"]["uid"]))
    stage.catch_up(VM)
    await stage.run()
    assert stage.is_vmi_deleting


@pytest.mark.parametrize(("caught_up", "reads"), [((VM,), 1), ((), 0)], ids=["the watch is behind", "it is recent"])
async def test_a_stop_whose_instance_does_not_exist_is_done(caught_up: tuple[Resource, ...], reads: int) -> None:
    """A request confirms that, unless the watch of instances has read as far as the VM. Then the VM is forgotten."""
    stage = Stage("Manual")
    stage.queue(OLD_STOP)
    stage.catch_up(*caught_up)
    await stage.run()
    assert stage.calls.count("get VirtualMachineInstance") == reads
    assert stage.requests == []
    stage.drop_vm()
    stage.catch_up()
    await stage.run()
    assert stage.reconciler._confirmed == {}


async def test_an_answer_about_a_former_instance_does_not_count_for_the_current_one() -> None:
    stage = Stage("Manual")
    stage.queue(OLD_STOP)
    stage.catch_up(VM)
    await stage.run()
    stage.queue(stop_of(stage.make_own_vmi()))
    stage.catch_up(VM)
    await stage.run()
    assert stage.is_vmi_deleting


async def test_an_instance_that_failed_unseen_is_followed_by_the_next() -> None:
    """It has answered the start; the watch of instances is behind, and the next run must not be lost."""
    stage = Stage("RerunOnFailure")
    uid = stage.make_own_vmi()
    stage.catch_up()
    stage.patch_vmi({"phase": "Failed"})
    stage.queue(START)
    stage.catch_up(VM)
    await stage.run()
    assert stage.requests == [stop_of(uid), START]
    assert stage.is_vmi_deleting


async def test_a_start_that_a_newer_instance_has_answered_is_done_without_a_request() -> None:
    """Whatever the watch has read: the instance is newer than the VM's request."""
    stage = Stage("Manual", START)
    stage.make_own_vmi()
    stage.catch_up()
    await stage.run()
    assert stage.requests == []
    assert "get VirtualMachineInstance" not in stage.calls


async def test_an_unsupported_request_is_dropped_and_reported() -> None:
    stage = Stage("Manual", {"action": "Start", "data": {"onTheMoon": "yes"}}, START)
    assert (await stage.run()).error is None
    text = "Dropped the request to start default/web: a start with onTheMoon=yes is not implemented in this version"
    assert stage.recorder.events[0] == ("default/web", "RequestDropped", text)
    assert stage.reasons() == ["RequestDropped", "SuccessfulCreate"]
    assert stage.requests == []


async def test_a_paused_start_of_a_halted_machine_sets_always_and_creates_a_paused_instance() -> None:
    stage = Stage("Halted")
    generation = str(stage.vm["metadata"]["generation"])
    stage.queue({"action": "Start", "data": {"paused": "true", "generation": generation}})
    for _unused in range(2):
        stage.catch_up()
        assert (await stage.run()).error is None
    assert stage.vm["spec"]["runStrategy"] == "Always"
    assert stage.vmi["spec"]["startStrategy"] == "Paused"


# ownership and finalizers


async def test_an_instance_that_lists_the_vm_as_plain_owner_is_adopted_once() -> None:
    stage = Stage()
    stage.make_vmi(stage.owner(controls=False), {"kind": "Other", "name": "x", "uid": "x"})
    stage.catch_up()
    assert (await stage.run()).error is None
    owners = stage.vmi["metadata"]["ownerReferences"]
    assert [(owner["uid"], owner.get("controller", False)) for owner in owners] == [
        ("x", False),
        (stage.vm["metadata"]["uid"], True),
    ]


async def test_the_finalizer_stays_while_the_api_server_has_the_instance() -> None:
    """The cache does not show the instance yet: absence in a cache proves nothing."""
    stage = Stage()
    stage.make_own_vmi()
    stage.store.delete(VM, WEB)
    stage.catch_up(VM)
    assert await conflicts(stage)
    assert stage.vm["metadata"]["finalizers"] == [VM_FINALIZER]


@pytest.mark.parametrize("is_listed", [False, True], ids=["foreign", "it lists the VM"])
async def test_the_finalizer_is_removed_when_the_instance_belongs_to_another(is_listed: bool) -> None:
    stage = Stage()
    listed = [stage.owner(controls=False)] if is_listed else []
    stage.make_vmi(stage.owner(uid="somebody"), *listed)
    stage.store.delete(VM, WEB)
    stage.catch_up(VM)
    assert (await stage.run()).error is None
    assert stage.store.find(VM, WEB) is None
    assert not stage.is_vmi_deleting


async def test_a_foreign_finalizer_stays() -> None:
    stage = Stage()
    stage.store.patch(VM, WEB, {"metadata": {"finalizers": ["backup/first", VM_FINALIZER]}})
    stage.store.delete(VM, WEB)
    stage.catch_up()
    assert (await stage.run()).error is None
    assert stage.vm["metadata"]["finalizers"] == ["backup/first"]


async def test_an_orphaned_instance_keeps_an_owner_that_it_got_meanwhile() -> None:
    """The list of owners is written as a whole: an outdated list would remove the new owner."""
    stage = Stage()
    stage.make_own_vmi()
    stage.store.patch(VM, WEB, {"metadata": {"finalizers": [VM_FINALIZER, ORPHAN_FINALIZER]}})
    stage.store.delete(VM, WEB)
    stage.catch_up()
    both = {"metadata": {"ownerReferences": [stage.owner(), {"kind": "Fleet", "name": "x", "uid": "x"}]}}
    stage.direct.meanwhile["patch VirtualMachineInstance"] = lambda: stage.store.patch(VMI, WEB, both)
    assert await conflicts(stage)
    stage.catch_up()
    assert (await stage.run()).error is None
    assert [owner["uid"] for owner in stage.vmi["metadata"]["ownerReferences"]] == ["x"]


async def test_a_foreign_instance_of_the_name_is_reported() -> None:
    """The cache does not show it yet: the API server answers the create with AlreadyExists."""
    stage = Stage()
    stage.make_vmi(stage.owner(uid="somebody"))
    assert await conflicts(stage)
    assert (await stage.run()).error is None, "the instance was read"
    assert stage.condition("Failure") is not None
    assert stage.vm["status"].get("created", False) is False
    assert not stage.is_vmi_deleting
    assert "SuccessfulCreate" not in stage.reasons()


async def test_an_own_instance_whose_create_response_was_lost_is_recognized() -> None:
    stage = Stage()
    stage.make_own_vmi("Scheduling")
    assert await conflicts(stage)
    assert (await stage.run()).error is None
    assert stage.vm["status"]["printableStatus"] == "Starting"


@pytest.mark.parametrize("is_deleting", [False, True], ids=["wanted", "deleted"])
async def test_an_unreadable_instance_stays_unchanged(is_deleting: bool) -> None:
    """Its owner is unknown: the controller creates no other, and keeps the VM's finalizer."""
    stage = Stage()
    stage.make_own_vmi()
    stage.store.patch(VMI, WEB, {"spec": {"domain": "nonsense"}})
    if is_deleting:
        stage.store.delete(VM, WEB)
    stage.catch_up()
    assert (await stage.run()).error is None
    assert stage.writes() == []
    assert stage.vm["metadata"]["finalizers"] == [VM_FINALIZER]


# the template


async def test_the_instance_has_the_template_as_stored() -> None:
    stage = Stage(warpFactor={"nested": [1, 2]})
    assert (await stage.run()).error is None
    assert stage.vmi["spec"]["warpFactor"] == {"nested": [1, 2]}
    assert TEMPLATE_HASH in stage.vmi["metadata"]["annotations"]


async def test_a_changed_template_requires_a_restart_in_one_write() -> None:
    """The machine runs on; changing the template back removes the condition."""
    stage = Stage()
    await stage.run()
    for guest, is_required in (("65Mi", True), ("64Mi", False)):
        stage.store.patch(VM, WEB, {"spec": {"template": {"spec": {"domain": {"memory": {"guest": guest}}}}}})
        stage.catch_up()
        stage.calls.clear()
        assert (await stage.run()).error is None
        assert stage.calls == ["patch status of VirtualMachine [uid+version]"]
        assert (stage.condition("RestartRequired") is not None) is is_required
        assert stage.vm["status"]["desiredGeneration"] == stage.vm["metadata"]["generation"]


async def with_changed_placement() -> Stage:
    stage = Stage()
    await stage.run()
    stage.catch_up()
    stage.patch_vmi({"phase": "Running"})
    stage.store.patch(VM, WEB, {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}})
    stage.catch_up()
    stage.calls.clear()
    return stage


async def test_a_changed_placement_is_written_into_the_running_instance() -> None:
    stage = await with_changed_placement()
    await stage.run()
    assert stage.vmi["spec"]["nodeSelector"] == {"zone": "b"}
    stage.catch_up()
    await stage.run()
    assert stage.condition("RestartRequired") is None
    assert stage.vm["status"]["observedGeneration"] == stage.vm["metadata"]["generation"]
    assert stage.writes().count("patch VirtualMachineInstance [uid+version]") == 1


OUTDATED: dict[str, tuple[Resource, Json]] = {
    "its template was changed back": (VM, {"spec": {"template": {"spec": {"nodeSelector": None}}}}),
    "it changed, e.g. was handed over by a migration": (VMI, {"metadata": {"labels": {"a": "b"}}}),
}


@pytest.mark.parametrize(("resource", "patch"), OUTDATED.values(), ids=OUTDATED)
async def test_an_outdated_change_is_not_written_into_the_instance(resource: Resource, patch: Json) -> None:
    stage = await with_changed_placement()
    stage.store.patch(resource, WEB, patch)
    assert await conflicts(stage)
    assert "nodeSelector" not in stage.vmi["spec"]


# refusals and Events

REFUSALS = (Forbidden("cannot: exceeded quota"), Invalid("cannot: no such field"), Throttled("cannot: too many"))
CALLS: dict[str, tuple[str, str, str | None]] = {
    "create VirtualMachineInstance": ("Always", "FailedCreate", "FailedCreate"),
    "delete VirtualMachineInstance": ("Halted", "FailedDelete", "FailedDelete"),
    "patch status of VirtualMachine": ("Manual", "FailedUpdate", None),
}


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("call", CALLS)
async def test_a_refused_write_is_reported(call: str, refusal: ApiError) -> None:
    """As condition Failure and as an Event with a remedy; for a refused status, as an Event only."""
    strategy, event, condition = CALLS[call]
    stage = Stage(strategy)
    if call.startswith("delete"):
        stage.make_own_vmi()
        stage.catch_up()
    stage.direct.refusals[call] = refusal
    outcome = await stage.run()
    assert outcome.error is refusal
    assert stage.reasons() == [event]
    assert "cannot: " in stage.recorder.events[0][2]
    assert "; " in stage.recorder.events[0][2], "a remedy"
    if condition is not None:
        failure = stage.condition("Failure")
        assert failure is not None
        assert (failure["status"], failure["reason"]) == ("True", condition)


async def test_a_former_leader_reports_nothing() -> None:
    stage = Stage()
    stage.direct.refusals["create VirtualMachineInstance"] = NotLeader("another one leads")
    outcome = await stage.run()
    assert isinstance(outcome.error, NotLeader)
    assert stage.reasons() == []
    assert stage.writes() == ["create ControllerRevision", "create VirtualMachineInstance"], "no status after it"


async def test_two_starts_are_two_events() -> None:
    """One occurrence is recorded once in ten minutes; each start is its own occurrence."""
    stage = Stage()
    for _unused in range(2):
        await stage.run()
        stage.store.delete(VMI, WEB)
        stage.finalize_vmi()
        stage.catch_up()
    assert stage.reasons() == ["SuccessfulCreate"] * 2
    assert len(set(stage.recorder.occurrences)) == 2


async def test_an_obstacle_of_the_instance_is_an_event_of_its_vm() -> None:
    """Users look at the VM that they created."""
    stage = Stage()
    stage.make_own_vmi("Scheduling")
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    stage.patch_vmi({"conditions": [unplaced]})
    for _unused in range(2):
        stage.catch_up()
        await stage.run()
    events = [event for event in stage.recorder.events if event[1] == "Unschedulable"]
    assert events == [("default/web", "Unschedulable", "0/3 nodes")]
