# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI reconciler on a store with the API server's rules: reads, writes with preconditions, controller state."""

from __future__ import annotations

import msgspec
import pytest
from kubevirt_api.condition_types import UNPAUSED
from kubevirt_api.names import DOMAIN, LAUNCHER_ROLE, NODE_NAME, ROLE, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects.kubevirt import DeveloperConfiguration, KubeVirtConfiguration
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
from controlplane.virt_controller.vmi.node_affinity import PREFERRED, REQUIRED
from controlplane.virt_controller.vmi.world import SetUnpausedCondition
from tests.controlplane.virt_controller.small_world import StoreApi
from tests.controlplane.virt_controller.vmi.stage import WEB, Stage
from tests.support.store import Json

NODE_1 = Key("", "node-1")
STATUS_WRITE = "patch status of VirtualMachineInstance [uid+version]"
FAILED = {"containerStatuses": [{"name": "compute", "state": {"terminated": {"exitCode": 1, "message": "no disk"}}}]}
OWNER = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web"}
FORMER = {**OWNER, "uid": "of another life", "controller": True}
"""The owner reference of a deleted VMI with the same name."""
OUT_OF_SERVICE = {"key": "node.kubernetes.io/out-of-service"}
EMULATED = KubeVirtConfiguration(developer_configuration=DeveloperConfiguration(use_emulation=True))


@pytest.fixture
def stage() -> Stage:
    return Stage()


def event_reasons(stage: Stage) -> list[str]:
    return stage.recorder.reasons


async def work(stage: Stage, times: int) -> list[str]:
    """Reconcile several times; return all calls."""
    calls: list[str] = []
    for _unused in range(times):
        await stage.work()
        calls += stage.calls
    return calls


# the start


async def test_a_start_takes_four_writes_each_on_the_observed_version(stage: Stage) -> None:
    key = await stage.until_begun()
    assert stage.calls == [STATUS_WRITE, "create Pod"]
    uid = stage.pod(key)["metadata"]["uid"]
    stage.store.set_pod(key, uid, node="node-1")
    stage.catch_up()
    await stage.work()
    assert stage.calls == ["patch VirtualMachineInstance [uid+version]"]
    stage.place(key)
    await stage.work()
    assert stage.calls == [STATUS_WRITE]
    assert (stage.status["activePods"], stage.status["epoch"]) == ({uid: "node-1"}, 1)


@pytest.mark.parametrize("unread", [POD, NODE, VIRTUAL_MACHINE_INSTANCE], ids=str)
async def test_nothing_is_decided_before_the_caches_are_synced(stage: Stage, unread: Resource) -> None:
    stage.caches[unread].synced = False
    outcome = await stage.work()
    assert (type(outcome.error), stage.calls) == (Unavailable, [])


async def test_a_pod_that_waits_for_kvm_is_replaced_once_emulation_is_allowed(stage: Stage) -> None:
    """One Pod at a time: the attempt is recorded, the unplaced Pod is deleted, then the next one is created."""
    first = await stage.until_begun()
    assert stage.pod(first)["spec"]["containers"][0]["resources"]["limits"]["devices.kubevirt.io/kvm"] == "1"
    stage.configuration = EMULATED
    calls = await work(stage, 4)
    ((second, body),) = stage.store.list(POD)
    assert (first.name[-2:], second.name[-2:]) == ("-1", "-2")
    assert "devices.kubevirt.io/kvm" not in body["spec"]["containers"][0]["resources"]["limits"]
    assert [call for call in calls if "Pod" in call] == ["delete Pod [uid]", "get Pod", "get Pod", "create Pod"]
    assert calls[0] == STATUS_WRITE
    stage.place(second)
    await stage.work()
    assert (stage.status["phase"], stage.status["attempt"], stage.status["epoch"]) == ("Scheduled", 2, 1)


async def test_a_failed_run_is_retried_on_another_node_and_reported(stage: Stage) -> None:
    """One Pod at a time; after the success only the record of the failure remains."""
    first = await stage.until_begun()
    stage.place(first, {"phase": "Failed", "reason": "UnexpectedAdmissionError", "message": "no kvm"})
    calls = await work(stage, 4)
    assert [call for call in calls if "Pod" in call] == ["delete Pod [uid]", "get Pod", "get Pod", "create Pod"]
    ((second, body),) = stage.store.list(POD)
    ((avoided,),) = (term["preference"]["matchFields"] for term in body["spec"]["affinity"]["nodeAffinity"][PREFERRED])
    assert avoided == {"key": "metadata.name", "operator": "NotIn", "values": ["node-1"]}
    assert stage.synchronized[0] == "FurtherAttempt"
    (message,) = [message for _unused, reason, message in stage.recorder.events if reason == "FurtherAttempt"]
    assert "attempt 1 failed on node node-1: UnexpectedAdmissionError: no kvm" in message
    stage.place(second)
    await stage.work()
    assert (stage.status["phase"], stage.status["attempt"], stage.synchronized) == ("Scheduled", 2, ("", ""))
    assert "reason" not in stage.status
    assert [attempt["nodeName"] for attempt in stage.status["failedAttempts"]] == ["node-1"]


@pytest.mark.parametrize(("kind", "events"), [("VirtualMachine", 2), ("VirtualMachineInstanceReplicaSet", 1)])
async def test_only_an_owner_that_is_a_vm_gets_an_event_about_the_attempt(stage: Stage, kind: str, events: int) -> None:
    """A VM with the name of another owner may exist, and would get the Event of a foreign run."""
    owner = {"apiVersion": "kubevirt.io/v1", "kind": kind, "name": "owner", "uid": "o", "controller": True}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"ownerReferences": [owner]}})
    stage.catch_up()
    stage.place(await stage.until_begun(), {"phase": "Failed", "reason": "OutOfcpu", "message": "full"})
    await stage.work()
    regarding = [event[0] for event in stage.recorder.events if event[1] == "FurtherAttempt"]
    assert regarding == ["default/web", "default/owner"][:events]


async def test_a_launcher_that_does_not_come_up_times_out_with_any_clock(stage: Stage) -> None:
    stage.place(await stage.until_begun(), {"phase": "Pending", "conditions": []})
    assert (await stage.work()).requeue_after == pytest.approx(600)
    stage.clock.advance(599)
    stage.machines_clock.offset = 86400.0
    await stage.work()
    assert stage.status["attempt"] == 1
    stage.clock.advance(1)
    stage.machines_clock.offset = -86400.0
    await stage.work()
    assert (stage.status["attempt"], stage.status["failedAttempts"][0]["reason"]) == (2, "RunTimedOut")


async def test_a_pod_avoids_quarantined_nodes_and_is_replaced_when_one_is_released(stage: Stage) -> None:
    quarantined = {"node-1"}
    stage.reconciler = stage.another(excluded_nodes=lambda: frozenset(quarantined))
    first = await stage.until_begun()
    assert stage.pod(first)["metadata"]["annotations"]["kubevirt.io/kept-from-nodes"] == "node-1"
    assert REQUIRED in stage.pod(first)["spec"]["affinity"]["nodeAffinity"]
    await stage.work()
    assert stage.status["attempt"] == 1
    quarantined.clear()
    await work(stage, 4)
    ((second, body),) = stage.store.list(POD)
    assert (second.name[-2:], body["spec"].get("affinity")) == ("-2", None)
    assert "failedAttempts" not in stage.status


async def test_a_grant_conflicts_with_a_concurrent_write(stage: Stage) -> None:
    """The VMI was deleted after it was read: the start is not granted any more."""
    stage.place(await stage.until_begun())
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    await reconcile(stage.reconciler, WEB)
    assert "activePods" not in stage.status


async def test_a_lost_response_causes_no_second_pod(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.reconciler = stage.another()
    stage.caches[POD].forget()
    await reconcile(stage.reconciler, WEB)
    assert [pod_key for pod_key, _unused in stage.store.list(POD)] == [key]


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
    await work(stage, 2)
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
    await work(stage, 3)
    assert stage.store.list(POD) == []
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "PodDeleted")


async def test_a_taken_name_is_reported_as_the_objects_problem(stage: Stage) -> None:
    key = await stage.until_begun()
    stage.store.delete(POD, key)
    stage.store.create(POD, "default", {"metadata": {"name": key.name}, "spec": {}})
    stage.patch_status({"phase": "Pending", "attempt": 1})
    stage.reconciler = stage.another()
    stage.catch_up()
    outcome = await stage.work()
    assert isinstance(outcome.error, Invalid)
    reason, message = stage.synchronized
    assert reason == "FailedCreate"
    assert key.name in message
    assert "delete it" in message


@pytest.mark.parametrize(
    "metadata",
    [{"ownerReferences": [FORMER]}, {"annotations": {DOMAIN: "web"}}],
    ids=["controlled by it", "orphaned by the garbage collector"],
)
async def test_a_vmi_starts_after_the_pod_of_its_predecessor_is_gone(stage: Stage, metadata: Json) -> None:
    """Somebody removed the finalizer of a VMI of this name. Two guests would write to one disk."""
    former = Key("default", "virt-launcher-web-former-1")
    labels = {"labels": {ROLE: LAUNCHER_ROLE}}
    stage.store.create(POD, "default", {"metadata": {"name": former.name, **labels, **metadata}, "spec": {}})
    stage.store.set_pod(former, stage.pod(former)["metadata"]["uid"], status={"phase": "Running"}, node="node-1")
    stage.catch_up()

    assert "create Pod" not in await work(stage, 3)
    reason, message = stage.synchronized
    assert reason == "PredecessorExists"
    assert message.startswith(f"launcher Pod {former.name} on node node-1 of a former instance of this name")

    stage.store.delete(POD, former)
    stage.catch_up()
    assert "create Pod" not in await work(stage, 2), "while it shuts down"
    stage.store.delete(POD, former, grace_period_seconds=0)
    stage.catch_up()
    assert "create Pod" in await work(stage, 2)
    assert not [kind for kind in stage.status.get("conditions", ()) if kind["type"] == "Synchronized"]


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
async def test_a_pod_that_is_over_is_no_predecessor(stage: Stage, phase: str) -> None:
    former = {"metadata": {"name": "former", "labels": {ROLE: LAUNCHER_ROLE}, "ownerReferences": [FORMER]}, "spec": {}}
    stage.store.create(POD, "default", former)
    key = Key("default", "former")
    stage.store.set_pod(key, stage.pod(key)["metadata"]["uid"], status={"phase": phase}, node="node-1")
    stage.catch_up()

    assert "create Pod" in await work(stage, 2)


@pytest.mark.parametrize(
    "kind",
    [
        {"controller": False},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet"},
        {"apiVersion": "kubevirt.io.evil.example/v1"},
    ],
    ids=["an owner that is no controller", "another kind", "another API group"],
)
async def test_a_pod_that_the_vmi_does_not_control_is_no_launcher(stage: Stage, kind: Json) -> None:
    """Users may list the VMI among a Pod's owners, and name controllers of unknown kinds with its UID."""
    reference = {**OWNER, "controller": True, "uid": stage.vmi["metadata"]["uid"], **kind}
    meta = {"name": "foreign", "labels": {ROLE: LAUNCHER_ROLE}, "ownerReferences": [reference]}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {}})
    stage.catch_up()
    assert stage.reconciler.observe(WEB).pods == ()


@pytest.mark.parametrize(
    "refusal", [Forbidden("exceeded quota"), Invalid("bad"), Throttled("later"), WebhookFailed("webhook")], ids=repr
)
async def test_a_refused_pod_is_reported_and_backs_off(stage: Stage, refusal: ApiError) -> None:
    stage.direct.refusals["create Pod"] = refusal
    outcome = await stage.work()
    assert outcome.error is refusal
    reason, message = stage.synchronized
    assert (reason, message.partition("; ")[0]) == ("FailedCreate", str(refusal))
    assert event_reasons(stage) == ["FailedCreate"]


async def test_a_refused_grant_is_reported_and_starts_nothing(stage: Stage) -> None:
    stage.place(await stage.until_begun())
    stage.direct.refusals["patch status of VirtualMachineInstance"] = refusal = Forbidden("policy")
    outcome = await stage.work()
    assert outcome.error is refusal
    assert "activePods" not in stage.status
    assert event_reasons(stage) == ["FailedUpdate"] * 2


UNPLACED = {"conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3"}]}


@pytest.mark.parametrize(
    ("status", "event"),
    [
        pytest.param({"phase": "Pending", **UNPLACED}, ("Unschedulable", "0/3"), id="no node"),
        pytest.param({"phase": "Failed", **FAILED}, ("LauncherFailed", "no disk"), id="the launcher failed"),
    ],
)
async def test_an_obstacle_to_the_start_is_recorded_once_as_an_event(
    stage: Stage, status: Json, event: tuple[str, str]
) -> None:
    stage.place(await stage.until_begun(), status)
    await work(stage, 2)
    assert [(reason, message) for _unused, reason, message in stage.recorder.events] == [event]


async def test_a_spec_is_validated_before_the_first_attempt_only(stage: Stage) -> None:
    """An instance that an earlier version admitted runs on: a new rule ends nothing."""
    await stage.until_running()
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"spec": {"domain": {"memory": {"guest": "nonsense"}}}})
    stage.catch_up()
    assert stage.reconciler.observe(WEB).problems == ()
    stage.patch_status({"phase": "", "attempt": 0})
    stage.catch_up()
    assert stage.reconciler.observe(WEB).problems != ()


async def test_a_missing_finalizer_is_added_beside_those_of_others(stage: Stage) -> None:
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": ["backup.example/hold"]}})
    stage.catch_up()
    await stage.work()
    assert stage.calls[0] == "patch VirtualMachineInstance [uid+version]"
    assert stage.vmi["metadata"]["finalizers"] == ["backup.example/hold", VMI_FINALIZER]


# Events about a Pod


def about(pod: Json, message: str = 'secret "seed" not found') -> bytes:
    """An Event about a Pod, as the kubelet writes it."""
    involved = {"kind": "Pod", "name": pod["metadata"]["name"], "uid": pod["metadata"]["uid"]}
    metadata = {"name": "an-event", "namespace": "default"}
    event = {"metadata": metadata, "involvedObject": involved, "reason": "FailedMount", "message": message}
    return msgspec.json.encode(event)


async def test_a_volume_that_cannot_be_mounted_is_reported_from_an_event(stage: Stage) -> None:
    """A new leader keeps the report: the kubelet repeats its Event rarely."""
    key = await stage.until_begun()
    stage.place(key, {"phase": "Pending"})
    assert stage.reconciler.note_event(about(stage.pod(key))) == WEB
    await stage.work()
    assert stage.synchronized == ("FailedMount", 'secret "seed" not found')
    assert [event[1:] for event in stage.recorder.events] == [("FailedMount", 'secret "seed" not found')]
    assert stage.reconciler.note_event(about(stage.pod(key))) is None
    stage.reconciler = stage.another()
    await stage.work()
    assert stage.synchronized == ("FailedMount", 'secret "seed" not found')
    stage.place(key)
    await stage.work()
    assert (stage.status["phase"], stage.synchronized) == ("Scheduled", ("", ""))


# evidence of death


async def test_a_lost_pod_is_no_dead_guest(stage: Stage) -> None:
    """A 404 from the API server was once taken for proof, and a second guest started."""
    stage.lose(await stage.until_running())
    await stage.work()
    assert "get Pod" in stage.calls
    assert (stage.status["phase"], stage.synchronized[0]) == ("Unknown", "LauncherLost")
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


async def test_the_pods_last_state_is_kept(stage: Stage) -> None:
    """A Pod that failed and was removed before a pass has failed nevertheless."""
    key = await stage.until_running()
    uid = stage.pod(key)["metadata"]["uid"]
    stage.store.set_pod(key, uid, status={"phase": "Failed", **FAILED})
    stage.store.finish_pod(key, uid)
    stage.catch_up()
    await stage.work()
    assert (stage.status["phase"], stage.status["reason"]) == ("Failed", "LauncherFailed")
    assert stage.calls == [STATUS_WRITE]


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
        stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    await stage.work()
    if deleted:
        assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
    else:
        assert (stage.status["phase"], stage.status["reason"][:4]) == ("Failed", "Node")


@pytest.mark.parametrize("error", [None, Unavailable("no answer")], ids=["answers", "does not answer"])
async def test_a_node_that_the_cache_lost_is_confirmed(stage: Stage, error: ApiError | None) -> None:
    """Absence of a Node in the cache proves nothing, and neither does an API server that does not answer."""
    stage.lose(await stage.until_running())
    stage.caches[NODE].forget()
    if error is not None:
        stage.direct.refusals["get Node"] = error
    await stage.work()
    assert "get Node" in stage.calls
    assert stage.status["phase"] == ("Unknown" if error is None else "Running")


async def test_a_former_taint_is_no_proof(stage: Stage) -> None:
    """The node was off, came back, and got this run; this replica's watch of Nodes stands still since."""
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    key = await stage.until_running()
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": None}})
    stage.store.delete(POD, key, grace_period_seconds=0)
    stage.catch_up(POD, VIRTUAL_MACHINE_INSTANCE)
    stage.calls.clear()
    await reconcile(stage.reconciler, WEB)
    assert stage.calls.count("get Node") == 1
    assert stage.status["phase"] == "Unknown"
    stage.store.patch(NODE, NODE_1, {"spec": {"taints": [OUT_OF_SERVICE]}})
    stage.catch_up()
    await stage.work()
    assert stage.status["reason"] == "NodeOutOfService"


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


async def test_the_unseen_pod_of_a_former_attempt_is_deleted_before_the_next_is_created(stage: Stage) -> None:
    """The delete request was lost, and the Pod has lost our label since."""
    first = await stage.until_begun()
    stage.patch_status({"attempt": 2})
    stage.store.patch(POD, first, {"metadata": {"labels": None}})
    stage.catch_up()
    stage.caches[POD].forget()  # as a watch with a label selector shows it
    await stage.work()
    assert "create Pod" not in stage.calls
    await work(stage, 4)
    ((second, _body),) = stage.store.list(POD)
    assert (first.name[-2:], second.name[-2:]) == ("-1", "-2")


# adoption


@pytest.mark.parametrize("error", [None, Forbidden("a policy")], ids=["adopted", "refused"])
async def test_a_granted_pod_without_label_and_owner_still_exists(stage: Stage, error: ApiError | None) -> None:
    """Users who may patch Pods can remove both: it is found by name and UID, and adopted again if possible."""
    key = await stage.until_running()
    stage.store.patch(POD, key, {"metadata": {"labels": None, "ownerReferences": None}})
    stage.caches[POD].forget()  # as a watch with a label selector shows it
    if error is not None:
        stage.direct.refusals["patch Pod"] = error
    await stage.work()
    assert "patch Pod [uid+version]" in stage.calls
    assert stage.status["phase"] == "Running"
    if error is None:
        meta = stage.pod(key)["metadata"]
        assert (meta["labels"][ROLE], meta["ownerReferences"][0]["uid"]) == (
            LAUNCHER_ROLE,
            stage.vmi["metadata"]["uid"],
        )
    else:
        assert not stage.reconciler.observe(WEB).is_absence_confirmed


async def test_an_adopted_pod_has_one_controller_and_keeps_its_other_owners(stage: Stage) -> None:
    key = await stage.until_running()
    other = {"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"}
    stage.store.patch(POD, key, {"metadata": {"labels": None, "ownerReferences": [FORMER, other]}})
    stage.catch_up()
    await stage.work()
    owners = stage.pod(key)["metadata"]["ownerReferences"]
    assert [owner["uid"] for owner in owners if owner.get("controller")] == [stage.vmi["metadata"]["uid"]]
    assert other in owners


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
    await work(stage, 2)
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
    assert stage.reconciler.vmi_of(key) is None


# the readiness gate of a migrated guest's Pod


async def until_migrated(stage: Stage, *conditions: Json) -> Key:
    """Bring the guest to a target Pod that waits for its readiness gate."""
    key = await stage.until_running()
    gates = [{"conditionType": UNPAUSED}]
    stage.store.patch(POD, key, {"spec": {"readinessGates": gates}, "status": {"conditions": list(conditions)}})
    stage.catch_up()
    return key


async def test_the_readiness_gate_is_set_once_and_other_conditions_stay(stage: Stage) -> None:
    ready = {"type": "Ready", "status": "False", "reason": "ReadinessGatesNotReady", "observedGeneration": 7}
    key = await until_migrated(stage, ready, {"type": UNPAUSED, "status": "False"})
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 1
    kept, unpaused = stage.pod(key)["status"]["conditions"]
    assert kept == ready
    assert (unpaused["type"], unpaused["status"], unpaused["reason"]) == (UNPAUSED, "True", "NotPaused")
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 0


async def test_the_readiness_gate_is_set_on_the_observed_pod_only(stage: Stage) -> None:
    key = await until_migrated(stage)
    world = stage.reconciler.observe(WEB)
    stage.lose(key)
    await stage.reconciler.apply(world, SetUnpausedCondition(key.name, "uid", because=""))
    stage.store.create(POD, key.namespace, {"metadata": {"name": key.name}, "spec": {}})
    stage.catch_up()
    with pytest.raises(Conflict):
        await stage.reconciler.apply(world, SetUnpausedCondition(key.name, "uid", because=""))
    assert "conditions" not in stage.pod(key)["status"]


async def test_a_concurrent_status_of_the_kubelet_is_kept(stage: Stage) -> None:
    key = await until_migrated(stage)
    stage.store.patch(POD, key, {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}})
    await stage.work()
    assert stage.pod(key)["status"]["conditions"] == [{"type": "Ready", "status": "Unknown"}]


async def test_the_node_label_is_written_even_if_the_readiness_gate_is_refused(stage: Stage) -> None:
    await until_migrated(stage)
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"labels": {NODE_NAME: "another"}}})
    stage.catch_up()
    stage.direct.refusals["patch Pod"] = Forbidden("a policy")
    await stage.work()
    assert stage.vmi["metadata"]["labels"][NODE_NAME] == "node-1"


async def test_a_deleted_pod_needs_no_readiness_gate(stage: Stage) -> None:
    stage.store.delete(POD, await until_migrated(stage), grace_period_seconds=0)
    await stage.work()
    assert stage.calls.count("patch status of Pod [uid+version]") == 1
    assert stage.synchronized == ("", "")


# the end


async def test_the_deletion_of_its_pod_is_recorded_once(stage: Stage) -> None:
    key = await stage.until_running()
    stage.recorder.events.clear()
    stage.delete()
    await work(stage, 2)
    text = f"Deleted virtual machine pod {key.name}: its VMI is deleted"
    assert stage.recorder.events == [("default/web", "SuccessfulDelete", text)]


async def test_a_pod_that_was_already_gone_is_not_recorded(stage: Stage) -> None:
    key = await stage.until_running()
    stage.store.delete(POD, key, grace_period_seconds=0)  # not observed yet
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE, WEB)
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE)
    await stage.work()
    assert "delete Pod [uid]" in stage.calls
    assert "SuccessfulDelete" not in event_reasons(stage)


async def test_foreign_finalizers_stay(stage: Stage) -> None:
    finalizers = [VMI_FINALIZER, VM_FINALIZER, "backup.example/hold"]
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": finalizers}})
    stage.delete()
    await work(stage, 2)
    assert stage.vmi["metadata"]["finalizers"] == ["backup.example/hold"]


async def test_the_finalizer_is_removed_only_after_the_api_server_confirmed(stage: Stage) -> None:
    """Also if a foreign Pod has the name."""
    key = await stage.until_begun()
    stage.lose(key)
    stage.store.create(POD, "default", {"metadata": {"name": key.name}, "spec": {}})
    stage.delete()
    calls = await work(stage, 4)
    assert calls.index("get Pod") < calls.index("patch VirtualMachineInstance [uid+version]")
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []


async def test_a_deleted_vmi_waits_for_all_of_its_pods(stage: Stage) -> None:
    """The granted Pod is gone; another with its name exists, which the cache does not show."""
    key = await stage.until_running()
    body = stage.pod(key)
    stage.lose(key)
    meta = {name: body["metadata"][name] for name in ("name", "labels", "ownerReferences")}
    stage.store.create(POD, "default", {"metadata": meta, "spec": {"nodeName": "node-1"}})
    stage.patch_status({"phase": "Failed", "reason": "LauncherGone"})
    stage.delete()
    for _unused in range(4):
        stage.caches[POD].forget()  # as a watch with a label selector shows it
        await stage.work()
    assert stage.vmi["metadata"]["finalizers"] == [VMI_FINALIZER]
