# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI reconciler on a store with the API server's rules: reads, writes with preconditions, controller state."""

from __future__ import annotations

import msgspec
import pytest
from kubevirt_api.condition_types import UNPAUSED
from kubevirt_api.names import LAUNCHER_ROLE, NODE_NAME, ROLE, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
from controlplane.api.objects.pod import MESSAGE_LIMIT
from controlplane.api.objects.resources import NODE, POD, VIRTUAL_MACHINE_INSTANCE, Key, Resource
from controlplane.engine.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.vmi.controller_state import EVENT_HOLD_SECONDS
from controlplane.virt_controller.vmi.node_affinity import PREFERRED, REQUIRED
from controlplane.virt_controller.vmi.world import ConfirmPodsAbsent, DeletePod, SetUnpausedCondition, pod_name
from tests.controlplane.virt_controller.small_world import StoreApi
from tests.controlplane.virt_controller.vmi.stage import WEB, Stage
from tests.support.store import Json

NODE_1 = Key("", "node-1")
FAILED = {"containerStatuses": [{"name": "compute", "state": {"terminated": {"exitCode": 1, "message": "no disk"}}}]}

OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web"}
FORMER = {**OWNER, "uid": "of another life", "controller": True}
"""The owner reference of a deleted VMI with the same name."""


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_start_takes_four_writes_each_on_the_observed_version(stage: Stage) -> None:
    key = await stage.until_begun()
    assert stage.calls == ["patch status of VirtualMachineInstance [uid+version]", "create Pod"]
    uid = stage.pod(key)["metadata"]["uid"]
    stage.store.set_pod(key, uid, node="node-1")
    stage.catch_up()
    await stage.work()
    assert stage.calls == ["patch VirtualMachineInstance [uid+version]"]
    stage.place(key)
    await stage.work()
    assert stage.calls == ["patch status of VirtualMachineInstance [uid+version]"]
    assert (stage.status["activePods"], stage.status["epoch"]) == ({uid: "node-1"}, 1)


async def test_a_pod_that_waits_for_kvm_is_replaced_once_emulation_is_allowed(stage: Stage) -> None:
    """One Pod at a time: the attempt is recorded, the unplaced Pod is deleted, then the next one is created."""
    first = await stage.until_begun()
    assert stage.pod(first)["spec"]["containers"][0]["resources"]["limits"]["devices.kubevirt.io/kvm"] == "1"
    stage.configuration = KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True))
    calls = []
    for _unused in range(4):
        await stage.work()
        calls += stage.calls
    ((second, body),) = stage.store.list(POD)
    assert (first.name[-2:], second.name[-2:]) == ("-1", "-2")
    assert "devices.kubevirt.io/kvm" not in body["spec"]["containers"][0]["resources"]["limits"]
    assert [call for call in calls if "Pod" in call] == ["delete Pod [uid]", "get Pod", "get Pod", "create Pod"]
    assert calls[0] == "patch status of VirtualMachineInstance [uid+version]"
    stage.place(second)
    await stage.work()
    assert (stage.status["phase"], stage.status["attempt"], stage.status["epoch"]) == ("Scheduled", 2, 1)


async def test_a_deleted_pod_ends_a_further_attempt(stage: Stage) -> None:
    """The confirmation about the former attempt does not count for this one."""
    await stage.until_begun()
    stage.configuration = KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True))
    for _unused in range(4):
        await stage.work()
    ((second, _body),) = stage.store.list(POD)
    stage.lose(second)
    for _unused in range(3):
        await stage.work()
    assert (stage.status["phase"], stage.status["reason"], stage.store.list(POD)) == ("Failed", "PodDeleted", [])


async def test_a_process_without_state_continues_a_further_attempt(stage: Stage) -> None:
    await stage.until_begun()
    stage.configuration = KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True))
    await stage.work()
    assert stage.status["attempt"] == 2
    stage.reconciler = stage.another()
    for _unused in range(3):
        await stage.work()
    ((key, _body),) = stage.store.list(POD)
    assert key.name.endswith("-2")


async def test_a_failed_run_is_retried_on_another_node_and_reported(stage: Stage) -> None:
    """One Pod at a time; after the success only the record of the failure remains."""
    first = await stage.until_begun()
    stage.place(first, {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no kvm"})
    calls = []
    for _unused in range(4):
        await stage.work()
        calls += stage.calls
    assert [call for call in calls if "Pod" in call] == ["delete Pod [uid]", "get Pod", "get Pod", "create Pod"]
    ((second, body),) = stage.store.list(POD)
    assert second.name.endswith("-2")
    ((avoided,),) = (term["preference"]["matchFields"] for term in body["spec"]["affinity"]["nodeAffinity"][PREFERRED])
    assert avoided == {"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}
    assert stage.said[0] == "FurtherAttempt"
    messages = [message for _unused, reason, message in stage.told.events if reason == "FurtherAttempt"]
    assert len(messages) == 1
    assert "attempt 1 failed on node node-1: UnexpectedAdmissionError: no kvm" in messages[0]
    stage.place(second)
    await stage.work()
    assert (stage.status["phase"], stage.status["attempt"], stage.said) == ("Scheduled", 2, ("", ""))
    assert "reason" not in stage.status
    assert [term["nodeName"] for term in stage.status["failedAttempts"]] == ["node-1"]


async def test_the_vm_gets_an_event_about_the_attempt(stage: Stage) -> None:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "web", "uid": "vm", "controller": True}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"ownerReferences": [owner]}})
    stage.catch_up()
    stage.place(await stage.until_begun(), {"phase": "Failed", "reason": "OutOfcpu", "message": "full"})
    await stage.work()
    assert len([event for event in stage.told.events if event[1] == "FurtherAttempt"]) == 2


async def test_an_owner_that_is_not_a_vm_gets_no_event(stage: Stage) -> None:
    """A VM with that name may exist, and would get the Event of a foreign run."""
    kind = "VirtualMachineInstanceReplicaSet"
    owner = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "webs", "uid": "set", "controller": True}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"ownerReferences": [owner]}})
    stage.catch_up()
    stage.place(await stage.until_begun(), {"phase": "Failed", "reason": "OutOfcpu", "message": "full"})
    await stage.work()
    assert [event[0] for event in stage.told.events if event[1] == "FurtherAttempt"] == ["default/web"]


async def test_a_launcher_that_does_not_come_up_times_out_with_any_clock(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending", "conditions": []})
    outcome = await stage.work()
    assert outcome.requeue_after == pytest.approx(600)
    stage.clock.advance(599)
    stage.machines_clock.offset = 86400.0
    await stage.work()
    assert stage.status["attempt"] == 1
    stage.clock.advance(1)
    stage.machines_clock.offset = -86400.0
    await stage.work()
    assert (stage.status["attempt"], stage.status["failedAttempts"][0]["reason"]) == (2, "RunTimedOut")


async def test_a_new_process_gives_a_launcher_the_whole_timeout(stage: Stage) -> None:
    stage.place(await stage.until_begun(), {"phase": "Pending", "conditions": []})
    await stage.work()
    stage.clock.advance(599)
    stage.reconciler = stage.another()
    outcome = await stage.work()
    assert outcome.requeue_after == pytest.approx(600)


async def test_a_pod_avoids_quarantined_nodes_and_is_replaced_when_one_is_released(stage: Stage) -> None:
    quarantined = {"node-1"}
    stage.reconciler = stage.another(kept_from=lambda: frozenset(quarantined))
    first = await stage.until_begun()
    assert stage.pod(first)["metadata"]["annotations"]["kubevirt.io/kept-from-nodes"] == "node-1"
    assert REQUIRED in stage.pod(first)["spec"]["affinity"]["nodeAffinity"]
    await stage.work()
    assert stage.status["attempt"] == 1
    quarantined.clear()
    for _unused in range(4):
        await stage.work()
    ((second, body),) = stage.store.list(POD)
    assert (second.name[-2:], body["spec"].get("affinity")) == ("-2", None)
    assert "kubevirt.io/kept-from-nodes" not in body["metadata"]["annotations"]
    assert "failedAttempts" not in stage.status


async def test_a_pod_that_has_a_node_stays_when_another_is_released(stage: Stage) -> None:
    quarantined = {"node-2"}
    stage.reconciler = stage.another(kept_from=lambda: frozenset(quarantined))
    stage.place(await stage.until_begun(), {"phase": "Pending", "conditions": []})
    quarantined.clear()
    await stage.work()
    assert stage.status["attempt"] == 1


@pytest.mark.parametrize("unread", [POD, NODE, VIRTUAL_MACHINE_INSTANCE], ids=str)
async def test_nothing_is_decided_before_the_caches_are_synced(stage: Stage, unread: Resource) -> None:
    stage.caches[unread].synced = False
    outcome = await stage.work()
    assert (type(outcome.error), stage.calls) == (Unavailable, [])


async def test_a_grant_conflicts_with_a_concurrent_write(stage: Stage) -> None:
    """The VMI was deleted after it was read: the start is not granted any more."""
    key = await stage.until_begun()
    stage.place(key)
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    await reconcile(stage.reconciler, WEB)
    assert "activePods" not in stage.status


async def test_a_pod_deleted_before_the_grant_is_not_created_again(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.lose(key)
    for _unused in range(51):
        await stage.work()
    assert stage.store.list(POD) == []
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "PodDeleted")


async def test_a_node_label_that_users_can_write_proves_no_pod(stage: Stage) -> None:
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"labels": {NODE_NAME: "node-1"}}})
    stage.catch_up()
    await stage.until_begun()
    assert len(stage.store.list(POD)) == 1


async def test_a_lost_response_causes_no_second_pod(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.reconciler = stage.another()
    stage.caches[POD].forget()
    await reconcile(stage.reconciler, WEB)
    assert [pod_key for pod_key, _unused in stage.store.list(POD)] == [key]


@pytest.mark.parametrize("owners", [[], [FORMER]], ids=["nobody's", "a former VMI's of this name"])
async def test_a_taken_name_is_reported_as_the_objects_problem(stage: Stage, owners: list[Json]) -> None:
    key = await stage.until_begun()
    stage.store.delete(POD, key)
    stage.store.create(POD, "default", {"metadata": {"name": key.name, "ownerReferences": owners}, "spec": {}})
    stage.patch_status({"phase": "Pending", "attempt": 1})
    stage.reconciler = stage.another()
    stage.catch_up()
    outcome = await stage.work()
    assert isinstance(outcome.error, Invalid)
    reason, message = stage.said
    assert reason == "FailedCreate"
    assert key.name in message
    assert "delete it" in message


async def test_an_owner_that_does_not_control_creates_no_launcher(stage: Stage) -> None:
    """Users may list the VMI among a Pod's owners; only its controller counts."""
    reference = {**OWNER, "uid": stage.vmi["metadata"]["uid"]}
    labels = {ROLE: LAUNCHER_ROLE}
    meta = {"name": "foreign", "labels": labels, "ownerReferences": [reference]}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {}})
    stage.catch_up()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    assert world.pods == ()


@pytest.mark.parametrize(
    "kind", [{"apiVersion": "apps/v1", "kind": "ReplicaSet"}, {"apiVersion": "kubevirt.io.evil.example/v1"}], ids=str
)
async def test_a_controller_of_another_kind_with_the_vmis_uid_creates_no_launcher(stage: Stage, kind: Json) -> None:
    """Admission keeps users from naming a VMI as a Pod's controller, but not from naming an unknown kind."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "controller": True}
    reference = {**owner, "uid": stage.vmi["metadata"]["uid"], **kind}
    labels = {ROLE: LAUNCHER_ROLE}
    meta = {"name": "foreign", "labels": labels, "ownerReferences": [reference]}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {}})
    stage.catch_up()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    assert world.pods == ()


async def test_a_lost_pod_is_no_dead_guest(stage: Stage) -> None:
    """A 404 from the API server was once taken for proof, and a second guest started."""
    stage.lose(await stage.until_running())
    await stage.work()
    assert "get Pod" in stage.calls
    assert (stage.status["phase"], stage.said[0]) == ("Unknown", "LauncherLost")
    await stage.work()
    assert stage.calls == []


async def test_a_lost_pod_keeps_a_deleted_vmi_until_there_is_proof(stage: Stage) -> None:
    stage.lose(await stage.until_running())
    stage.delete()
    await stage.work()
    assert stage.vmi["metadata"]["finalizers"] == [VMI_FINALIZER]
    stage.patch_status({"phase": "Failed", "reason": "LauncherGone"})  # virt-handler has checked the node
    stage.catch_up()
    await stage.work()
    with pytest.raises(NotFound):
        stage.store.get(VIRTUAL_MACHINE_INSTANCE, WEB)


async def test_the_deletion_of_its_pod_is_recorded_once(stage: Stage) -> None:
    key = await stage.until_running()
    stage.told.events.clear()
    stage.delete()
    for _unused in range(2):
        await stage.work()
    text = f"Deleted virtual machine pod {key.name}: its VMI is deleted"
    assert stage.told.events == [("default/web", "SuccessfulDelete", text)]


async def test_a_pod_that_was_already_gone_is_not_recorded(stage: Stage) -> None:
    key = await stage.until_running()
    stage.told.events.clear()
    stage.store.delete(POD, key, grace_period_seconds=0)  # not observed yet
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE)
    await stage.work()
    assert "delete Pod [uid]" in stage.calls
    assert "SuccessfulDelete" not in [reason for _unused, reason, _unused2 in stage.told.events]


async def test_the_last_state_counts_for_a_launcher_that_ended_beside_a_sidecar(stage: Stage) -> None:
    key = await stage.until_running()
    uid = stage.pod(key)["metadata"]["uid"]
    stage.store.set_pod(key, uid, status={"phase": "Running", **FAILED})
    stage.store.finish_pod(key, uid)
    stage.catch_up()
    await stage.work()
    assert stage.status["reason"] == "LauncherFailed"


async def test_foreign_finalizers_stay(stage: Stage) -> None:
    finalizers = [VMI_FINALIZER, VM_FINALIZER, "backup.example/hold"]
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": finalizers}})
    stage.delete()
    await stage.work()
    await stage.work()
    assert stage.vmi["metadata"]["finalizers"] == ["backup.example/hold"]


async def test_a_vmi_is_enqueued_for_every_pod_that_it_reads(stage: Stage) -> None:
    """After `kubectl delete vmi --cascade=orphan` its Pod has no owner, and the Pod's end would enqueue nothing."""
    key = await stage.until_running()
    assert stage.reconciler.vmi_of(key) == WEB
    stage.store.patch(POD, key, {"metadata": {"ownerReferences": None}})
    stage.catch_up()
    await stage.work()
    assert stage.reconciler.vmi_of(key) == WEB
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    stage.patch_status({"phase": "Succeeded"})
    stage.store.finish_pod(key, stage.pod(key)["metadata"]["uid"])
    stage.catch_up()
    await stage.work()
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
    await stage.work()
    assert stage.reconciler.vmi_of(key) is None


async def test_a_pod_without_its_owner_gets_it_back(stage: Stage) -> None:
    key = await stage.until_running()
    stage.store.patch(POD, key, {"metadata": {"ownerReferences": None}})
    stage.catch_up()
    await stage.work()
    assert stage.pod(key)["metadata"]["ownerReferences"][0]["uid"] == stage.vmi["metadata"]["uid"]


async def test_only_the_granted_pods_last_state_is_kept(stage: Stage) -> None:
    """Otherwise a hundred Pods that name the VMI as their owner would be kept for the whole run."""
    await stage.until_running()
    meta = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "controller": True}
    owner = {**meta, "uid": stage.vmi["metadata"]["uid"]}
    for number in range(3):
        body = {"metadata": {"name": f"forged-{number}", "ownerReferences": [owner]}, "spec": {}}
        uid = stage.store.create(POD, "default", body)["metadata"]["uid"]
        stage.store.set_pod(Key("default", f"forged-{number}"), uid, status={"phase": "Failed", **FAILED})
        stage.catch_up()
        await stage.work()
        stage.store.finish_pod(Key("default", f"forged-{number}"), uid)
        stage.catch_up()
        await stage.work()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    assert world.last_words == ()


async def test_a_users_label_on_a_pending_pod_starts_no_search(stage: Stage) -> None:
    """Such a Pod was once requested 267 times a second."""
    key = await stage.until_begun()
    stage.store.patch(POD, key, {"metadata": {"labels": {"kubevirt.io/migrationJobUID": "x"}}})
    stage.catch_up()
    await stage.work()
    assert stage.calls == []
    stage.place(key)
    await stage.work()
    assert stage.status["phase"] == "Scheduled"


async def test_a_pod_is_confirmed_again_each_time_the_cache_lacks_it(stage: Stage) -> None:
    """A confirmed presence proves no later absence, however often the cache loses the Pod."""
    await stage.until_begun()
    for number in range(3):
        stage.caches[POD].forget()
        stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"annotations": {"note": str(number)}}})
        stage.catch_up()
        await stage.work()
        assert "get Pod" in stage.calls
    assert stage.status["phase"] == "Scheduling"


async def test_a_node_that_was_gone_once_is_confirmed_again(stage: Stage) -> None:
    stage.lose(await stage.until_running())
    stage.store.delete(NODE, NODE_1)
    stage.catch_up()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    stage.reconciler._state.of(world.vmi).gone_nodes.add("node-1")
    stage.store.create(NODE, "", {"metadata": {"name": "node-1"}, "spec": {}})
    stage.catch_up()
    again = stage.reconciler.observe(WEB)
    stage.store.delete(NODE, NODE_1)
    stage.catch_up()
    gone = stage.reconciler.observe(WEB)
    assert again is not None
    assert gone is not None
    assert [name.node and name.node.is_gone for name in (again, gone)] == [False, False]


@pytest.mark.parametrize("deleted", [False, True], ids=["wanted", "deleted"])
@pytest.mark.parametrize("proof", ["node gone", "out of service"])
async def test_the_end_of_a_node_is_proof(stage: Stage, proof: str, deleted: bool) -> None:
    stage.lose(await stage.until_running())
    if deleted:
        stage.delete()
    await stage.work()
    if proof == "node gone":
        stage.store.delete(NODE, NODE_1)
    else:
        stage.store.patch(NODE, NODE_1, {"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service"}]}})
    stage.catch_up()
    await stage.work()
    if deleted:
        assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
    else:
        assert (stage.status["phase"], stage.status["reason"][:4]) == ("Failed", "Node")


async def test_a_node_that_the_cache_lost_is_confirmed(stage: Stage) -> None:
    """Absence of a Node in the cache proves nothing either."""
    stage.lose(await stage.until_running())
    stage.caches[NODE].forget()
    await stage.work()
    assert "get Node" in stage.calls
    assert stage.status["phase"] == "Unknown"


OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service"}


async def lose_a_run_of_a_node_that_was_off(stage: Stage) -> None:
    """The node came back before it got the run; the watch of Nodes does not show that yet."""
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    key = await stage.until_running()
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": None}})
    stage.store.delete(POD, key, grace_period_seconds=0)
    stage.catch_up(POD, VIRTUAL_MACHINE_INSTANCE)


async def test_a_former_taint_is_no_proof(stage: Stage) -> None:
    """The node was off, came back, and got this run; this replica's watch of Nodes stands still since."""
    await lose_a_run_of_a_node_that_was_off(stage)
    stage.calls.clear()
    await reconcile(stage.reconciler, WEB)
    assert stage.calls.count("get Node") == 1
    assert stage.status["phase"] == "Unknown"
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    await stage.work()
    assert stage.status["reason"] == "NodeOutOfService"


async def test_each_node_version_that_would_be_proof_is_confirmed(stage: Stage) -> None:
    """The node was confirmed once, then taken out of service and brought back; the watch shows only the former."""
    await lose_a_run_of_a_node_that_was_off(stage)
    await stage.work()
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": None}})
    stage.calls.clear()
    await reconcile(stage.reconciler, WEB)
    assert stage.calls.count("get Node") == 1
    assert stage.status["phase"] == "Unknown"


async def test_an_unreachable_api_server_does_not_confirm_that_a_node_is_gone(stage: Stage) -> None:
    stage.lose(await stage.until_running())
    stage.caches[NODE].forget()
    stage.direct.refusals["get Node"] = Unavailable("no answer")
    for _unused in range(3):
        await stage.work()
    assert stage.status["phase"] == "Running"


async def test_the_pods_last_state_is_kept(stage: Stage) -> None:
    """A Pod that failed and was removed before a pass has failed nevertheless."""
    key = await stage.until_running()
    uid = stage.pod(key)["metadata"]["uid"]
    stage.store.set_pod(key, uid, status={"phase": "Failed", **FAILED})
    stage.store.finish_pod(key, uid)
    stage.catch_up()
    await stage.work()
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "LauncherFailed")
    assert stage.calls == ["patch status of VirtualMachineInstance [uid+version]"]


async def test_the_last_state_of_a_former_vmis_pod_does_not_count(stage: Stage) -> None:
    await stage.until_running()
    meta = {"name": "theirs", "labels": {ROLE: LAUNCHER_ROLE}, "ownerReferences": [FORMER]}
    body = stage.store.create(POD, "default", {"metadata": meta, "spec": {}})
    theirs, uid = Key("default", "theirs"), body["metadata"]["uid"]
    stage.store.set_pod(theirs, uid, status={"phase": "Failed", **FAILED})
    stage.store.finish_pod(theirs, uid)
    stage.catch_up()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    assert world.last_words == ()


async def test_a_vmi_inherits_no_state_from_its_namesake(stage: Stage) -> None:
    """The former VMI had a Pod; the new one has had none yet."""
    stage.lose(await stage.until_begun())
    former = stage.vmi
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": None}})
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    meta = {"name": "web", "finalizers": [VMI_FINALIZER]}
    stage.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": meta, "spec": former["spec"]})
    stage.catch_up()
    await stage.work()
    assert (stage.status["phase"], len(stage.store.list(POD))) == ("Scheduling", 1)


async def test_absence_is_confirmed_again_for_every_grant_and_for_the_end(stage: Stage) -> None:
    """A confirmation for a VMI before its deletion, or with another grant, does not count."""
    stage.lose(await stage.until_running())
    await stage.work()
    stage.patch_status({"activePods": {"another": "node-1"}})
    stage.catch_up()
    await stage.work()
    assert stage.calls.count("get Pod") == 1
    stage.delete()
    await stage.work()
    assert stage.calls.count("get Pod") == 1


async def test_absence_is_confirmed_again_for_a_further_attempt(stage: Stage) -> None:
    """Another leader has begun it, and its Pod has lost our label since: its absence is not confirmed."""
    first = await stage.until_begun()
    body = stage.pod(first)
    stage.lose(first)
    world = stage.reconciler.observe(WEB)
    assert world is not None
    await stage.reconciler.apply(world, ConfirmPodsAbsent(because="its Pod is not in the cache"))
    meta = {owner: body["metadata"][owner] for owner in ("labels", "ownerReferences")}
    second = {"name": first.name.removesuffix("1") + "2", **meta}
    stage.store.create(POD, "default", {"metadata": second, "spec": {}})
    stage.patch_status({"attempt": 2})
    stage.catch_up()
    stage.reconciler.observe(WEB)
    stage.caches[POD].forget()  # as a watch with a label selector shows it
    await stage.work()
    assert "get Pod" in stage.calls
    assert stage.status["phase"] == "Scheduling"


async def test_the_unseen_pod_of_a_former_attempt_is_deleted_before_the_next_is_created(stage: Stage) -> None:
    """The delete request was lost, and the Pod has lost our label since."""
    first = await stage.until_begun()
    stage.patch_status({"attempt": 2})
    stage.store.patch(POD, first, {"metadata": {"labels": None}})
    stage.catch_up()
    stage.caches[POD].forget()  # as a watch with a label selector shows it
    await stage.work()
    assert "create Pod" not in stage.calls
    for _unused in range(4):
        await stage.work()
    ((second, _body),) = stage.store.list(POD)
    assert (first.name[-2:], second.name[-2:]) == ("-1", "-2")


async def test_the_absence_before_a_pod_was_created_is_no_proof_of_its_death(stage: Stage) -> None:
    first = await stage.until_begun()
    stage.lose(first)
    stage.patch_status({"attempt": 2})
    stage.catch_up()
    for _unused in range(3):
        await stage.work()
    ((second, _body),) = stage.store.list(POD)
    stage.store.patch(POD, second, {"metadata": {"labels": None}})
    stage.catch_up()
    stage.caches[POD].forget()
    await stage.work()
    assert "get Pod" in stage.calls
    assert stage.status["phase"] == "Scheduling"


async def test_a_granted_pod_without_owner_still_exists(stage: Stage) -> None:
    """Users who may patch Pods can remove its label and its owner: it is found by name and UID, and adopted again."""
    key = await stage.until_running()
    stage.store.patch(POD, key, {"metadata": {"labels": None, "ownerReferences": None}})
    stage.caches[POD].forget()  # as a watch with a label selector shows it
    await stage.work()
    assert "patch Pod [uid+version]" in stage.calls
    meta = stage.pod(key)["metadata"]
    assert meta["labels"][ROLE] == LAUNCHER_ROLE
    assert meta["ownerReferences"][0]["uid"] == stage.vmi["metadata"]["uid"]
    assert stage.status["phase"] == "Running"


async def test_a_granted_pod_without_an_owner_is_not_absent(stage: Stage) -> None:
    """Even if the adoption fails and the cache does not show it: it exists, and its guest runs."""
    key = await stage.until_running()
    stage.store.patch(POD, key, {"metadata": {"labels": None, "ownerReferences": None}})
    stage.caches[POD].forget()
    stage.direct.refusals["patch Pod"] = Forbidden("a policy of somebody's")

    await stage.work()

    world = stage.reconciler.observe(WEB)
    assert world is not None
    assert not world.is_absence_confirmed


async def test_the_readiness_gate_is_set_once_and_other_conditions_stay(stage: Stage) -> None:
    key = await until_moved(stage)
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 1
    assert [
        (condition["type"], condition["status"], condition["reason"])
        for condition in stage.pod(key)["status"]["conditions"]
    ] == [
        ("Ready", "False", "ReadinessGatesNotReady"),
        (UNPAUSED, "True", "NotPaused"),
    ]
    assert stage.pod(key)["status"]["conditions"][0]["observedGeneration"] == 7, "what nobody here knows"
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 0


async def test_the_readiness_gate_is_set_on_the_observed_pod_only(stage: Stage) -> None:
    key = await until_moved(stage)
    world = stage.reconciler.observe(WEB)
    assert world is not None
    stage.lose(key)
    await stage.reconciler.apply(world, SetUnpausedCondition(key.name, "uid", because=""))
    stage.store.create(POD, key.namespace, {"metadata": {"name": key.name}, "spec": {}})
    stage.catch_up()
    with pytest.raises(Conflict):
        await stage.reconciler.apply(world, SetUnpausedCondition(key.name, "uid", because=""))
    assert "conditions" not in stage.pod(key)["status"]


async def test_a_concurrent_status_of_the_kubelet_is_kept(stage: Stage) -> None:
    key = await until_moved(stage)
    stage.store.patch(POD, key, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    await stage.work()
    assert stage.pod(key)["status"]["conditions"] == [{"type": "Ready", "status": "Unknown"}]


async def test_the_readiness_gate_becomes_true_when_the_guest_has_arrived(stage: Stage) -> None:
    key = await until_moved(stage)
    stage.store.patch(POD, key, {"status": {"conditions": [{"type": UNPAUSED, "status": "False"}]}})
    stage.catch_up()
    await stage.work()
    assert [condition["status"] for condition in stage.pod(key)["status"]["conditions"]] == ["True"]


async def test_the_node_label_is_written_even_if_the_readiness_gate_is_refused(stage: Stage) -> None:
    await until_moved(stage)
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"labels": {NODE_NAME: "another"}}})
    stage.catch_up()
    stage.direct.refusals["patch Pod"] = Forbidden("a policy of somebody's")
    await stage.work()
    assert stage.vmi["metadata"]["labels"][NODE_NAME] == "node-1"


async def test_a_deleted_pod_needs_no_readiness_gate(stage: Stage) -> None:
    key = await until_moved(stage)
    stage.store.delete(POD, key, grace_period_seconds=0)
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 1
    assert stage.said == ("", "")


async def until_moved(stage: Stage) -> Key:
    """Bring the guest to a target Pod that waits for its readiness gate."""
    key = await stage.until_running()
    ready = {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "observedGeneration": 7}
    gates = [{"conditionType": UNPAUSED}]
    stage.store.patch(POD, key, {"spec": {"readinessGates": gates}, "status": {"conditions": [ready]}})
    stage.catch_up()
    return key


async def test_an_adopted_pod_has_one_controller_and_keeps_its_other_owners(stage: Stage) -> None:
    key = await stage.until_running()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    stage.store.patch(POD, key, {"metadata": {"labels": None, "ownerReferences": [FORMER, other]}})
    stage.catch_up()
    await stage.work()
    owners = stage.pod(key)["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners if owner.get("controller")] == [stage.vmi["metadata"]["uid"]]
    assert other in owners


async def test_a_deleted_vmi_waits_for_all_of_its_pods(stage: Stage) -> None:
    """The granted Pod is gone; another with its name exists, which the cache does not show."""
    key = await stage.until_running()
    body = stage.pod(key)
    stage.lose(key)
    meta = {owner: body["metadata"][owner] for owner in ("name", "labels", "ownerReferences")}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {"nodeName": "node-1"}})
    stage.patch_status({"phase": "Failed", "reason": "LauncherGone"})
    stage.delete()
    for _unused in range(4):
        stage.caches[POD].forget()  # as a watch with a label selector shows it
        await stage.work()
    assert stage.vmi["metadata"]["finalizers"] == [VMI_FINALIZER]


async def test_another_pod_with_the_granted_name_is_not_the_granted_one(stage: Stage) -> None:
    key = await stage.until_running()
    body = stage.pod(key)
    stage.lose(key)
    meta = {owner: body["metadata"][owner] for owner in ("name", "labels", "ownerReferences")}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {}})
    stage.catch_up()
    await stage.work()
    assert stage.status["phase"] == "Unknown"


async def test_a_delete_names_the_observed_pod(stage: Stage) -> None:
    """By its UID: a newer Pod with the name stays."""
    key = await stage.until_running()
    world = stage.reconciler.observe(WEB)
    assert world is not None
    old = stage.pod(key)
    stage.store.delete(POD, key, grace_period_seconds=0)
    stage.store.create(POD, "default", {"metadata": {"name": key.name}, "spec": {}})
    with pytest.raises(ApiError):
        await stage.reconciler.apply(world, DeletePod(key.name, old["metadata"]["uid"], because="test"))
    assert [pod_key for pod_key, _unused in stage.store.list(POD)] == [key]


@pytest.mark.parametrize(
    "refusal", [Forbidden("exceeded quota"), Invalid("bad"), Throttled("later"), WebhookFailed("webhook")], ids=repr
)
async def test_a_refused_pod_is_reported_and_backs_off(stage: Stage, refusal: ApiError) -> None:
    stage.direct.refusals["create Pod"] = refusal
    outcome = await stage.work()
    assert outcome.error is refusal
    assert stage.said == ("FailedCreate", str(refusal))
    assert [reason for _unused, reason, _unused2 in stage.told.events] == ["FailedCreate"]


@pytest.mark.parametrize("refusal", [Forbidden("policy"), Invalid("bound"), Throttled("later")], ids=repr)
async def test_a_refused_grant_is_reported_and_starts_nothing(stage: Stage, refusal: ApiError) -> None:
    key = await stage.until_begun()
    stage.place(key)
    stage.direct.refusals["patch status of VirtualMachineInstance"] = refusal
    outcome = await stage.work()
    assert outcome.error is refusal
    assert "activePods" not in stage.status
    assert [reason for _unused, reason, _unused2 in stage.told.events] == ["FailedUpdate"] * 2


async def test_a_high_number_of_attempts_costs_only_a_few_reads(stage: Stage) -> None:
    """Users who can write the status could set it to two thousand million."""
    stage.lose(await stage.until_running())
    stage.patch_status({"attempt": 2_000_000_000, "epoch": 2_000_000_000})
    stage.catch_up()
    await stage.work()
    assert stage.calls.count("get Pod") == 3


async def test_the_finalizer_is_removed_only_after_the_api_server_confirmed(stage: Stage) -> None:
    stage.lose(await stage.until_begun())
    stage.delete()
    await stage.work()
    assert stage.calls.index("get Pod") < stage.calls.index("patch VirtualMachineInstance [uid+version]")
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []


async def test_the_node_label_is_informational(stage: Stage) -> None:
    """The start is granted without it; a removed label is restored."""
    key = await stage.until_begun()
    stage.place(key)
    await stage.work()
    assert stage.status["phase"] == "Scheduled"
    assert stage.vmi["metadata"]["labels"][NODE_NAME] == "node-1"


UNPLACED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]}
NO_IMAGE = {
    "containerStatuses": [
        {"name": "compute", "state": {"waiting": {"reason": "ErrImagePull", "message": "not in registry"}}}
    ]
}


@pytest.mark.parametrize(
    ("status", "told"),
    [
        pytest.param({"phase": "Pending", **UNPLACED}, ("Unschedulable", "0/3"), id="no node"),
        pytest.param({"phase": "Pending", **NO_IMAGE}, ("ErrImagePull", "not in registry"), id="no image"),
        pytest.param({"phase": "Failed", **FAILED}, ("LauncherFailed", "no disk"), id="the launcher gave up"),
    ],
)
async def test_trouble_of_a_machine_is_recorded_once_as_an_event(
    stage: Stage, status: Json, told: tuple[str, str]
) -> None:
    stage.place(await stage.until_begun(), status)
    await stage.work()
    await stage.work()
    assert [(reason, message) for _unused, reason, message in stage.told.events] == [told]


async def test_a_pod_that_is_gone_before_it_was_observed_is_not_created_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its deletion arrives before the response to its create."""
    made: list[str] = []

    async def create(direct: StoreApi, resource: Resource, namespace: str, body: Json) -> Json:
        stored = direct.store.create(resource, namespace, body)
        made.append(stored["metadata"]["name"])
        stage.lose(Key(namespace, made[-1]))
        return stored

    monkeypatch.setattr(StoreApi, "create", create)
    await stage.work()
    await stage.work()
    assert len(made) == 1
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "PodDeleted")


async def test_an_unseen_pod_of_another_leader_is_not_created_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This process only learns that the name is taken, and by which Pod; before the next pass the Pod is gone."""
    made: list[Key] = []

    async def create(direct: StoreApi, resource: Resource, namespace: str, body: Json) -> Json:
        stored = direct.store.create(resource, namespace, body)
        made.append(Key(namespace, stored["metadata"]["name"]))
        raise AlreadyExists("it is there")

    monkeypatch.setattr(StoreApi, "create", create)
    monkeypatch.setattr("controlplane.engine.reconcile.ROUNDS", 1)
    while not made:
        await reconcile(stage.reconciler, WEB)
    stage.lose(made[0])
    monkeypatch.undo()
    for _unused in range(3):
        await stage.work()
    assert stage.store.list(POD) == []
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "PodDeleted")


def about(pod: Json, *, reason: str = "FailedMount", message: str = 'secret "seed" not found', **other: str) -> bytes:
    """An Event about a Pod, as the kubelet writes it."""
    involved = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"], **other}
    metadata = {"name": "an-event", "namespace": "default"}
    event = {"metadata": metadata, "involvedObject": involved, "reason": reason, "message": message}
    return msgspec.json.encode(event)


async def test_a_volume_that_cannot_be_mounted_is_reported_from_an_event(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    assert stage.reconciler.note_event(about(stage.pod(key))) == WEB
    await stage.work()
    assert [condition["reason"] for condition in stage.status["conditions"] if condition["type"] == "Synchronized"] == [
        "FailedMount"
    ]
    assert [event[1:] for event in stage.told.events] == [("FailedMount", 'secret "seed" not found')]

    assert stage.reconciler.note_event(about(stage.pod(key))) is None, "the kubelet says it again and again"
    stage.place(key)
    await stage.work()
    assert stage.status["phase"] == "Scheduled"
    assert [condition for condition in stage.status["conditions"] if condition["type"] == "Synchronized"] == []


async def test_events_about_a_former_pod_of_the_name_are_ignored(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    stage.reconciler.note_event(about(stage.pod(key), uid="of another life"))
    await stage.work()
    assert [condition["type"] for condition in stage.status["conditions"]] == ["Ready"]


async def test_foreign_events_do_not_replace_those_about_its_pod(stage: Stage) -> None:
    """Every user who may create Events may name any UID."""
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    await stage.work()
    stage.reconciler.note_event(about(stage.pod(key)))
    assert stage.reconciler.note_event(about(stage.pod(key), message="x", uid="of another life")) is None
    await stage.work()
    assert stage.said == ("FailedMount", 'secret "seed" not found')


async def test_events_may_come_before_their_pod(stage: Stage) -> None:
    stage.direct.refusals["create Pod"] = Throttled("later")
    await stage.work()
    pod = {"metadata": {"name": pod_name(decode_vmi(stage.vmi), 1), "uid": "not seen yet"}}
    assert stage.reconciler.note_event(about(pod)) == WEB


async def test_two_volumes_that_cannot_be_mounted_do_not_alternate(stage: Stage) -> None:
    """The kubelet reports each by itself, again and again. Each change would be two writes and an Event."""
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    await stage.work()
    writes = []
    for _unused in range(5):
        for secret in ("user-data", "network-data"):
            stage.reconciler.note_event(about(stage.pod(key), message=f"secret {secret} not found"))
            await stage.work()
            writes += stage.calls
            stage.clock.advance(60)
    assert stage.said == ("FailedMount", "secret user-data not found")
    assert writes == ["patch status of VirtualMachineInstance [uid+version]"]

    stage.clock.advance(EVENT_HOLD_SECONDS)
    assert stage.reconciler.note_event(about(stage.pod(key), message="secret network-data not found")) == WEB
    await stage.work()
    assert stage.said == ("FailedMount", "secret network-data not found"), "the other one is there by now"


async def test_a_new_leader_keeps_the_former_leaders_report(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    stage.reconciler.note_event(about(stage.pod(key)))
    await stage.work()
    stage.reconciler = stage.another()
    await stage.work()
    assert stage.said == ("FailedMount", 'secret "seed" not found')

    stage.place(key)
    await stage.work()
    assert stage.said == ("", "")


NOBODYS = {
    "somebody else's Pod": {"metadata": {"name": "shop", "uid": "1"}},
    "no Pod at all": {"metadata": {"name": "", "uid": ""}},
}


@pytest.mark.parametrize("pod", NOBODYS.values(), ids=NOBODYS.keys())
async def test_events_about_other_pods_are_not_kept(stage: Stage, pod: Json) -> None:
    await stage.until_begun()
    assert stage.reconciler.note_event(about(pod)) is None


async def test_only_events_with_known_reasons_count(stage: Stage) -> None:
    key = await stage.until_begun()
    assert stage.reconciler.note_event(about(stage.pod(key), reason="Unhealthy")) is None
    assert stage.reconciler.note_event(b'{"involvedObject": 7}') is None


async def test_long_event_messages_are_cut(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    stage.reconciler.note_event(about(stage.pod(key), message="no\x1b " * 100_000))
    await stage.work()
    (synchronized,) = (condition for condition in stage.status["conditions"] if condition["type"] == "Synchronized")
    assert len(synchronized["message"]) <= MESSAGE_LIMIT
    assert synchronized["message"].isprintable()


async def test_a_missing_finalizer_is_added_beside_those_of_others(stage: Stage) -> None:
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": ["backup.example/hold"]}})
    stage.catch_up()
    await stage.work()
    assert stage.calls[0] == "patch VirtualMachineInstance [uid+version]"
    assert stage.vmi["metadata"]["finalizers"] == ["backup.example/hold", VMI_FINALIZER]


async def test_a_spec_is_validated_before_the_first_attempt_only(stage: Stage) -> None:
    """An instance that an earlier version admitted runs on: a new rule ends nothing."""
    await stage.until_running()
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": {"domain": {"memory": {"guest": "nonsense"}}}})
    stage.catch_up()
    assert stage.reconciler.observe(WEB).problems == ()
    stage.patch_status({"phase": "", "attempt": 0})
    stage.catch_up()
    assert stage.reconciler.observe(WEB).problems != ()


async def test_of_two_pods_the_one_that_lost_its_owner_gets_it_back(stage: Stage) -> None:
    key = await stage.until_running()
    meta = {**stage.pod(key)["metadata"], "name": "virt-launcher-a"}
    kept = {owner: meta[owner] for owner in ("name", "labels", "ownerReferences")}
    stage.store.create(POD, "default", {"metadata": kept, "spec": {"nodeName": "node-1"}})
    stage.store.patch(POD, key, {"metadata": {"labels": None}})
    stage.catch_up()
    await stage.work()
    assert [call for call in stage.calls if "Pod" in call] == ["patch Pod [uid+version]"]
    assert stage.pod(key)["metadata"]["labels"][ROLE] == LAUNCHER_ROLE


async def test_a_foreign_pod_with_the_name_does_not_block_the_deletion(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.lose(key)
    stage.store.create(POD, "default", {"metadata": {"name": key.name}, "spec": {}})
    stage.delete()
    for _unused in range(4):
        await stage.work()
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
