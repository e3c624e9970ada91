# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of the VM reconciler on an API that refuses requests: no write on an outdated view, every refusal reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from kubevirt_api.names import TEMPLATE_HASH, VM_FINALIZER

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.errors import ApiError, Conflict, Forbidden, Invalid, NotLeader, Throttled, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.vm.decide import ORPHAN_FINALIZER
from tests.controlplane.simulation.controller import vm_reconciler
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import Json

WEB = Key("default", "web")
VM, VMI = VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE


class VmStand(SmallWorld):
    """A VM `web`, its instance, and the reconciler."""

    def __init__(self, strategy: str = "Always", **template: Any) -> None:
        super().__init__()
        self.reconciler = vm_reconciler(overlays=self.overlays, api=self.api, clock=self.clock, events=self.told)
        self.make_vm(strategy, **template)
        self.start()

    def make_vm(self, strategy: str, **template: Any) -> None:
        spec = {"runStrategy": strategy, "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}, **template}}}
        self.store.create(VM, "default", {"metadata": {"name": "web", "finalizers": [VM_FINALIZER]}, "spec": spec})

    def make_vmi(self, *owners: Json, phase: str = "Running") -> None:
        meta = {"name": "web", "ownerReferences": list(owners), "finalizers": ["test/keep"]}
        spec = {"domain": {"memory": {"guest": "64Mi"}}}
        self.store.create(VMI, "default", {"metadata": meta, "spec": spec})
        self.store.patch(VMI, WEB, {"status": {"phase": phase}}, subresource="status")

    def owner(self, *, controls: bool = True, uid: str | None = None) -> Json:
        uid = uid or self.vm["metadata"]["uid"]
        return {
            "apiVersion": "kubevirt.io/v1",
            "kind": "VirtualMachine",
            "name": "web",
            "uid": uid,
            "controller": controls,
        }

    @property
    def vm(self) -> Json:
        return self.store.get(VM, WEB)

    @property
    def vmi(self) -> Json:
        return self.store.get(VMI, WEB)

    def condition(self, kind: str) -> Json | None:
        return next((condition for condition in self.vm["status"]["conditions"] if condition["type"] == kind), None)

    def reasons(self) -> list[str]:
        return [reason for _unused, reason, _unused in self.told.events]

    def writes(self) -> list[str]:
        return [call for call in self.calls if not call.startswith("get ")]

    async def run(self) -> Outcome:
        return await reconcile(self.reconciler, WEB)


def replace_vmi(stand: VmStand) -> None:
    """Delete the instance for good, and create another one with its name."""
    stand.store.delete(VMI, WEB)
    stand.store.patch(VMI, WEB, {"metadata": {"finalizers": None}})
    stand.make_vmi(stand.owner())


def replace_vm(stand: VmStand) -> None:
    stand.store.delete(VM, WEB)
    stand.store.patch(VM, WEB, {"metadata": {"finalizers": None}})
    stand.make_vm("Always")


@pytest.mark.parametrize("unread", [VM, VMI], ids=str)
async def test_nothing_is_decided_before_the_caches_are_synced(unread: Resource) -> None:
    """Also while a watch is refused: no change arrives then."""
    stand = VmStand()
    stand.caches[unread].synced = False
    outcome = await stand.run()
    assert (type(outcome.error), stand.calls) == (Unavailable, [])


async def test_a_concurrent_status_change_is_not_overwritten() -> None:
    stand = VmStand("Halted")
    patch = {"status": {"stateChangeRequests": [{"action": "Start"}]}}
    stand.direct.meanwhile["patch status of VirtualMachine"] = lambda: stand.store.patch(
        VM, WEB, patch, subresource="status"
    )
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.vm["status"] == patch["status"]


@pytest.mark.parametrize("strategy", ["Manual", "RerunOnFailure", "Always"])
async def test_a_withdrawn_start_is_not_carried_out(strategy: str) -> None:
    """The leader's watch of VMs is behind: the start was used up or withdrawn since."""
    stand = VmStand(strategy)
    stand.store.patch(
        VM,
        WEB,
        {"status": {"runStrategy": strategy, "stateChangeRequests": [{"action": "Start"}]}},
        subresource="status",
    )
    stand.catch_up()
    stand.store.patch(VM, WEB, {"spec": {"runStrategy": "Halted"}, "metadata": {"labels": {"a": "b"}}})
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.store.list(VMI) == []
    stand.catch_up()
    await stand.run()
    assert stand.store.list(VMI) == []


async def test_a_start_that_was_removed_from_the_queue_alone_is_not_carried_out() -> None:
    """Requests are in the status, which does not change the generation."""
    stand = VmStand("Manual")
    start = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Start"}]}}
    stand.store.patch(VM, WEB, start, subresource="status")
    stand.catch_up()
    generation = stand.vm["metadata"]["generation"]
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": None}}, subresource="status")
    outcome = await stand.run()
    assert stand.vm["metadata"]["generation"] == generation
    assert isinstance(outcome.error, Conflict)
    assert stand.store.list(VMI) == []


async def test_a_stop_of_an_unseen_instance_stays_queued() -> None:
    """Another leader created it; the watch of instances is behind the watch of VMs."""
    stand = VmStand("Manual")
    stand.make_vmi(stand.owner())
    uid = stand.vmi["metadata"]["uid"]
    stop = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Stop", "uid": uid}]}}
    stand.store.patch(VM, WEB, stop, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    assert "get VirtualMachineInstance" in stand.calls
    assert "deletionTimestamp" in stand.vmi["metadata"]


async def test_a_stop_whose_instance_the_api_server_does_not_have_is_done() -> None:
    stand = VmStand("Manual")
    stop = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Stop", "uid": "gone"}]}}
    stand.store.patch(VM, WEB, stop, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    assert stand.calls.count("get VirtualMachineInstance") == 1
    assert not stand.vm["status"].get("stateChangeRequests")


async def test_a_stop_of_a_missing_instance_is_done_without_a_request_when_the_watch_is_recent_enough() -> None:
    """The version of the VM itself is recent enough: there is nothing in between."""
    stand = VmStand("Manual")
    stop = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Stop", "uid": "gone"}]}}
    stand.store.patch(VM, WEB, stop, subresource="status")
    stand.catch_up()
    assert stand.overlays[VMI].resource_version == int(stand.vm["metadata"]["resourceVersion"])
    await stand.run()
    assert "get VirtualMachineInstance" not in stand.calls
    assert not stand.vm["status"].get("stateChangeRequests")


async def test_a_deleted_vm_is_forgotten() -> None:
    stand = VmStand("Manual")
    stop = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Stop", "uid": "gone"}]}}
    stand.store.patch(VM, WEB, stop, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    stand.store.delete(VM, WEB)
    stand.store.patch(VM, WEB, {"metadata": {"finalizers": None}})
    stand.catch_up()
    await stand.run()
    assert stand.reconciler._asked == {}


async def test_an_answer_about_a_former_instance_does_not_count_for_the_current_one() -> None:
    stand = VmStand("Manual")
    stop = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Stop", "uid": "gone"}]}}
    stand.store.patch(VM, WEB, stop, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    stand.make_vmi(stand.owner())
    again = {"status": {"stateChangeRequests": [{"action": "Stop", "uid": stand.vmi["metadata"]["uid"]}]}}
    stand.store.patch(VM, WEB, again, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    assert "deletionTimestamp" in stand.vmi["metadata"]


async def test_an_instance_that_failed_unseen_is_followed_by_the_next() -> None:
    """It has answered the start; the watch of instances is behind, and the next run must not be lost."""
    stand = VmStand("RerunOnFailure")
    stand.make_vmi(stand.owner())
    stand.catch_up()
    stand.store.patch(VMI, WEB, {"status": {"phase": "Failed"}}, subresource="status")
    start = {"status": {"runStrategy": "RerunOnFailure", "stateChangeRequests": [{"action": "Start"}]}}
    stand.store.patch(VM, WEB, start, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    stop = {"action": "Stop", "uid": stand.vmi["metadata"]["uid"]}
    assert stand.vm["status"]["stateChangeRequests"] == [stop, {"action": "Start"}]
    assert "deletionTimestamp" in stand.vmi["metadata"]


async def test_the_former_instance_does_not_complete_a_stop() -> None:
    stand = VmStand("Manual")
    stand.make_vmi(stand.owner())
    stand.catch_up()
    replace_vmi(stand)
    stop = {"action": "Stop", "uid": stand.vmi["metadata"]["uid"]}
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": [stop]}}, subresource="status")
    stand.catch_up(VM)
    await stand.run()
    assert "deletionTimestamp" in stand.vmi["metadata"]


async def test_a_start_that_a_newer_instance_has_answered_is_done_without_a_request() -> None:
    """Whatever the watch has read: the instance is newer than the VM's request."""
    stand = VmStand("Manual")
    start = {"status": {"runStrategy": "Manual", "stateChangeRequests": [{"action": "Start"}]}}
    stand.store.patch(VM, WEB, start, subresource="status")
    stand.make_vmi(stand.owner())
    stand.catch_up()
    await stand.run()
    assert not stand.vm["status"].get("stateChangeRequests")
    assert "get VirtualMachineInstance" not in stand.calls


async def test_dropping_a_request_removes_no_newer_one() -> None:
    stand = VmStand("Halted")
    old, new = ({"status": {"stateChangeRequests": [{"action": name}]}} for name in ("Start", "Stop"))
    stand.store.patch(VM, WEB, old, subresource="status")
    stand.catch_up()
    stand.direct.meanwhile["patch status of VirtualMachine"] = lambda: stand.store.patch(
        VM, WEB, new, subresource="status"
    )
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.vm["status"] == new["status"]
    assert stand.reasons() == []


async def test_an_unsupported_request_is_dropped_and_reported() -> None:
    stand = VmStand("Manual")
    requests = [{"action": "Start", "data": {"onTheMoon": "yes"}}, {"action": "Start"}]
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": requests}}, subresource="status")
    stand.catch_up()
    assert (await stand.run()).error is None
    assert stand.told.events[0] == (
        "default/web",
        "RequestDropped",
        "Dropped the request to start default/web: starting with onTheMoon=yes is not built in this version",
    )
    assert stand.reasons() == ["RequestDropped", "SuccessfulCreate"]
    assert "stateChangeRequests" not in stand.vm["status"] or not stand.vm["status"]["stateChangeRequests"]


async def test_a_paused_start_of_a_halted_machine_sets_always_and_creates_a_paused_instance() -> None:
    stand = VmStand("Halted")
    request = {"action": "Start", "data": {"paused": "true", "generation": str(stand.vm["metadata"]["generation"])}}
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": [request]}}, subresource="status")
    stand.catch_up()
    assert (await stand.run()).error is None
    assert stand.vm["spec"]["runStrategy"] == "Always"

    stand.catch_up()
    assert (await stand.run()).error is None

    vmi = stand.store.get(VMI, WEB)
    assert vmi is not None
    assert vmi["spec"]["startStrategy"] == "Paused"


async def test_a_halted_machine_that_changes_meanwhile_is_not_started() -> None:
    stand = VmStand("Halted")
    request = {"action": "Start", "data": {"paused": "true", "generation": str(stand.vm["metadata"]["generation"])}}
    stand.store.patch(VM, WEB, {"status": {"stateChangeRequests": [request]}}, subresource="status")
    stand.catch_up()
    stand.direct.meanwhile["patch VirtualMachine"] = lambda: stand.store.patch(
        VM, WEB, {"spec": {"template": {"spec": {"terminationGracePeriodSeconds": 7}}}}
    )
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.vm["spec"]["runStrategy"] == "Halted"


GONE_MEANWHILE: dict[str, Callable[[VmStand], object]] = {
    "replaced": replace_vm,
    "deleted": lambda stand: stand.store.delete(VM, WEB),
}


@pytest.mark.parametrize("meanwhile", GONE_MEANWHILE.values(), ids=GONE_MEANWHILE.keys())
async def test_nothing_is_adopted_for_a_deleted_vm(meanwhile: Callable[[VmStand], object]) -> None:
    """The cache still shows the VM; the API server does not have it."""
    stand = VmStand()
    stand.make_vmi()
    stand.catch_up()
    meanwhile(stand)
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.vmi["metadata"]["ownerReferences"] == []


async def test_an_orphan_that_another_owner_adopted_meanwhile_is_not_taken() -> None:
    stand = VmStand()
    stand.make_vmi()
    stand.catch_up()
    theirs = {"metadata": {"ownerReferences": [stand.owner(uid="somebody")]}}
    stand.direct.meanwhile["patch VirtualMachineInstance"] = lambda: stand.store.patch(VMI, WEB, theirs)
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert [owner["uid"] for owner in stand.vmi["metadata"]["ownerReferences"]] == ["somebody"]


async def test_an_instance_that_lists_the_vm_as_plain_owner_is_adopted_once() -> None:
    stand = VmStand()
    stand.make_vmi(stand.owner(controls=False), {"kind": "Other", "name": "x", "uid": "x"})
    stand.catch_up()
    assert (await stand.run()).error is None
    owners = stand.vmi["metadata"]["ownerReferences"]
    assert [(owner["uid"], owner.get("controller", False)) for owner in owners] == [
        ("x", False),
        (stand.vm["metadata"]["uid"], True),
    ]


async def test_the_finalizer_stays_while_the_api_server_has_the_instance() -> None:
    """The cache does not show the instance yet: absence in a cache proves nothing."""
    stand = VmStand()
    stand.make_vmi(stand.owner())
    stand.store.delete(VM, WEB)
    stand.catch_up(VM)
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert stand.vm["metadata"]["finalizers"] == [VM_FINALIZER]


@pytest.mark.parametrize("is_listed", [False, True], ids=["foreign", "it lists the VM"])
async def test_the_finalizer_is_removed_when_the_instance_belongs_to_another(is_listed: bool) -> None:
    stand = VmStand()
    listed = [stand.owner(controls=False)] if is_listed else []
    stand.make_vmi(stand.owner(uid="somebody"), *listed)
    stand.store.delete(VM, WEB)
    stand.catch_up(VM)
    assert (await stand.run()).error is None
    assert stand.store.find(VM, WEB) is None
    assert "deletionTimestamp" not in stand.vmi["metadata"]


async def test_a_foreign_finalizer_stays() -> None:
    stand = VmStand()
    stand.store.patch(VM, WEB, {"metadata": {"finalizers": ["backup/first", VM_FINALIZER]}})
    stand.store.delete(VM, WEB)
    stand.catch_up()
    assert (await stand.run()).error is None
    assert stand.vm["metadata"]["finalizers"] == ["backup/first"]


CHANGED_MEANWHILE: dict[str, Callable[[VmStand], object]] = {
    "replaced": replace_vmi,
    "released": lambda stand: stand.store.patch(VMI, WEB, {"metadata": {"ownerReferences": None}}),
    "running again": lambda stand: stand.store.patch(VMI, WEB, {"status": {"phase": "Running"}}, subresource="status"),
}


@pytest.mark.parametrize("meanwhile", CHANGED_MEANWHILE.values(), ids=CHANGED_MEANWHILE.keys())
async def test_an_instance_that_changed_meanwhile_is_not_deleted(meanwhile: Callable[[VmStand], object]) -> None:
    stand = VmStand("Halted")
    stand.make_vmi(stand.owner(), phase="Scheduled")
    stand.catch_up()
    stand.direct.meanwhile["delete VirtualMachineInstance"] = lambda: meanwhile(stand)
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert "deletionTimestamp" not in stand.vmi["metadata"]
    assert "SuccessfulDelete" not in stand.reasons()


async def test_every_write_to_an_existing_object_has_both_preconditions() -> None:
    """The version alone suffices today; the UID shows in the audit log, and no restore repeats it."""
    stand = VmStand("Manual")
    stand.make_vmi()
    uid = stand.vmi["metadata"]["uid"]
    requests = {"status": {"stateChangeRequests": [{"action": "Stop", "uid": uid}, {"action": "Dance"}]}}
    stand.store.patch(VM, WEB, requests, subresource="status")
    stand.catch_up()
    for _unused in range(4):
        await stand.run()
        if stand.store.find(VMI, WEB) is not None:
            stand.store.patch(VMI, WEB, {"metadata": {"finalizers": None}})
        stand.catch_up()
    stand.store.delete(VM, WEB)
    stand.catch_up()
    await stand.run()
    assert set(stand.writes()) == {
        "patch VirtualMachineInstance [uid+version]",
        "delete VirtualMachineInstance [uid+version]",
        "patch status of VirtualMachine [uid+version]",
        "patch VirtualMachine [uid+version]",
    }


async def test_an_orphaned_instance_keeps_an_owner_that_it_got_meanwhile() -> None:
    """The list of owners is written as a whole: an outdated list would remove the new owner."""
    stand = VmStand()
    ours = stand.owner()
    stand.make_vmi(ours)
    stand.store.patch(VM, WEB, {"metadata": {"finalizers": [VM_FINALIZER, ORPHAN_FINALIZER]}})
    stand.store.delete(VM, WEB)
    stand.catch_up()
    both = {"metadata": {"ownerReferences": [ours, {"kind": "Fleet", "name": "x", "uid": "x"}]}}
    stand.direct.meanwhile["patch VirtualMachineInstance"] = lambda: stand.store.patch(VMI, WEB, both)

    outcome = await stand.run()

    assert isinstance(outcome.error, Conflict)
    stand.catch_up()
    assert (await stand.run()).error is None
    assert [owner["uid"] for owner in stand.vmi["metadata"]["ownerReferences"]] == ["x"]


async def test_a_foreign_instance_of_the_name_is_reported() -> None:
    """The cache does not show it yet: the API server answers the create with AlreadyExists."""
    stand = VmStand()
    stand.make_vmi(stand.owner(uid="somebody"))
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert (await stand.run()).error is None, "what was met is remembered"
    assert stand.condition("Failure") is not None
    assert stand.vm["status"].get("created", False) is False
    assert "deletionTimestamp" not in stand.vmi["metadata"]
    assert "SuccessfulCreate" not in stand.reasons()


async def test_an_own_instance_whose_create_response_was_lost_is_recognized() -> None:
    stand = VmStand()
    stand.make_vmi(stand.owner(), phase="Scheduling")
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert (await stand.run()).error is None
    assert stand.vm["status"]["printableStatus"] == "Starting"


async def test_the_instance_has_the_template_as_stored() -> None:
    stand = VmStand(warpFactor={"nested": [1, 2]})
    assert (await stand.run()).error is None
    assert stand.vmi["spec"]["warpFactor"] == {"nested": [1, 2]}
    assert TEMPLATE_HASH in stand.vmi["metadata"]["annotations"]


async def test_a_changed_template_requires_a_restart_in_one_write() -> None:
    """The machine runs on; changing the template back removes the condition."""
    stand = VmStand()
    await stand.run()
    for guest, is_required in (("65Mi", True), ("64Mi", False)):
        change = {"spec": {"template": {"spec": {"domain": {"memory": {"guest": guest}}}}}}
        stand.store.patch(VM, WEB, change)
        stand.catch_up()
        stand.calls.clear()
        assert (await stand.run()).error is None
        assert stand.calls == ["patch status of VirtualMachine [uid+version]"]
        assert (stand.condition("RestartRequired") is not None) is is_required
        assert stand.vm["status"]["desiredGeneration"] == stand.vm["metadata"]["generation"]


async def test_an_unreadable_instance_stays_unchanged() -> None:
    """Its owner is unknown: the controller creates no other, and keeps the VM's finalizer."""
    for is_deleting in (False, True):
        stand = VmStand()
        stand.make_vmi(stand.owner())
        stand.store.patch(VMI, WEB, {"spec": {"domain": "nonsense"}})
        if is_deleting:
            stand.store.delete(VM, WEB)
        stand.catch_up()
        assert (await stand.run()).error is None
        assert stand.writes() == []
        assert stand.vm["metadata"]["finalizers"] == [VM_FINALIZER]


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
    stand = VmStand(strategy)
    if call.startswith("delete"):
        stand.make_vmi(stand.owner())
        stand.catch_up()
    stand.direct.refusals[call] = refusal
    outcome = await stand.run()
    assert outcome.error is refusal
    assert stand.reasons() == [event]
    assert "cannot: " in stand.told.events[0][2]
    assert "; " in stand.told.events[0][2], "a remedy"
    if condition is not None:
        failure = stand.condition("Failure")
        assert failure is not None
        assert (failure["status"], failure["reason"]) == ("True", condition)


async def test_a_former_leader_reports_nothing() -> None:
    stand = VmStand()
    stand.direct.refusals["create VirtualMachineInstance"] = NotLeader("another one leads")
    outcome = await stand.run()
    assert isinstance(outcome.error, NotLeader)
    assert stand.reasons() == []
    assert stand.writes() == ["create VirtualMachineInstance"], "no status after it"


async def test_two_starts_are_two_events() -> None:
    """One occurrence is recorded once in ten minutes; each start is its own occurrence."""
    stand = VmStand()
    for _unused in range(2):
        await stand.run()
        stand.store.delete(VMI, WEB)
        stand.store.patch(VMI, WEB, {"metadata": {"finalizers": None}})
        stand.catch_up()
    assert stand.reasons() == ["SuccessfulCreate"] * 2
    assert len(set(stand.told.occurrences)) == 2


async def test_an_instances_trouble_is_an_event_of_its_vm() -> None:
    """Users look at the VM that they created."""
    stand = VmStand()
    stand.make_vmi(stand.owner(), phase="Scheduling")
    unplaced = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes"}
    stand.store.patch(VMI, WEB, {"status": {"conditions": [unplaced]}}, subresource="status")
    stand.catch_up()
    await stand.run()
    stand.catch_up()
    await stand.run()
    assert [event for event in stand.told.events if event[1] == "Unschedulable"] == [
        ("default/web", "Unschedulable", "0/3 nodes")
    ]


async def a_stand_with_a_changed_place() -> VmStand:
    stand = VmStand()
    await stand.run()
    stand.catch_up()
    stand.store.patch(VMI, WEB, {"status": {"phase": "Running"}}, subresource="status")
    stand.store.patch(VM, WEB, {"spec": {"template": {"spec": {"nodeSelector": {"zone": "b"}}}}})
    stand.catch_up()
    stand.calls.clear()
    return stand


async def test_a_changed_placement_is_written_into_the_running_instance() -> None:
    stand = await a_stand_with_a_changed_place()
    await stand.run()
    assert stand.vmi["spec"]["nodeSelector"] == {"zone": "b"}
    stand.catch_up()
    await stand.run()
    assert stand.condition("RestartRequired") is None
    assert stand.vm["status"]["observedGeneration"] == stand.vm["metadata"]["generation"]
    assert stand.writes().count("patch VirtualMachineInstance [uid+version]") == 1


async def test_a_template_that_was_changed_back_meanwhile_is_not_written() -> None:
    """The leader lags: it would add sockets that the template no longer has, and they cannot be removed live."""
    stand = await a_stand_with_a_changed_place()
    stand.store.patch(VM, WEB, {"spec": {"template": {"spec": {"nodeSelector": None}}}})
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert "nodeSelector" not in stand.vmi["spec"]


async def test_an_instance_that_changed_meanwhile_is_not_written() -> None:
    """Its migration may have been handed over: the target Pod has the former spec."""
    stand = await a_stand_with_a_changed_place()
    stand.store.patch(VMI, WEB, {"metadata": {"labels": {"a": "b"}}})
    outcome = await stand.run()
    assert isinstance(outcome.error, Conflict)
    assert "nodeSelector" not in stand.vmi["spec"]
