# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations on a store with the API server's rules: successful, failed, cancelled, uncertain. Both virt-handlers are
simulated.
"""

from __future__ import annotations

import pytest
from kubevirt_api.names import LAUNCHER_ROLE, MIGRATION_JOB, MIGRATION_JOB_NAME, MIGRATION_TARGET_NODE, ROLE

from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.engine.errors import Forbidden, Unavailable
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.vmi.migration_commit import SOURCE_REPORT_SECONDS
from tests.controlplane.virt_controller.migration.stage import JOB, WEB, Stage


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_successful_migration_passes_every_phase(stage: Stage) -> None:
    await stage.until("PreparingTarget")
    source, target = stage.source, stage.target
    assert stage.instance()["metadata"]["labels"][MIGRATION_TARGET_NODE] == "node-2"
    assert stage.phase() == "PreparingTarget"
    stage.open_door()
    await stage.work()
    assert stage.phase() == "TargetReady"
    stage.begin()
    await stage.work()
    assert stage.phase() == "Running"
    stage.arrive()
    await stage.work()
    assert stage.phase() == "Running"
    assert stage.status["nodeName"] == "node-1"
    stage.leave()
    await stage.work()

    uid = stage.store.get(POD, target)["metadata"]["uid"]
    status, meta = stage.status, stage.instance()["metadata"]
    assert (status["nodeName"], status["activePods"], status["epoch"]) == ("node-2", {uid: "node-2"}, 2)
    assert status["launcherContainerImageVersion"] == "launcher:2"
    assert meta["labels"] == {"kubevirt.io/nodeName": "node-2"}
    assert stage.pods == [target]
    assert "deletionTimestamp" in stage.store.get(POD, source)["metadata"]
    job = stage.job
    assert "finalizers" not in job["metadata"]
    assert job["status"]["phase"] == "Succeeded"
    assert job["status"]["migrationState"] == stage.state
    entered = [timestamp["phase"] for timestamp in job["status"]["phaseTransitionTimestamps"]]
    assert entered == [
        "Pending",
        "Scheduling",
        "Scheduled",
        "PreparingTarget",
        "TargetReady",
        "Running",
        "Succeeded",
    ]
    reasons = [reason for reason in stage.reasons if reason != "SuccessfulDelete"]
    assert reasons == ["SuccessfulCreate", "SuccessfulHandOver", "SuccessfulMigration"]


async def test_the_target_pod_is_a_launcher_of_this_migration(stage: Stage) -> None:
    await stage.run_guest(spec={"nodeSelector": {"zone": "a"}})
    stage.migrate(addedNodeSelector={"zone": "b", "disk": "fast"})
    await stage.work()
    pod, uid = stage.store.get(POD, stage.target), stage.job["metadata"]["uid"]
    assert pod["metadata"]["labels"][MIGRATION_JOB] == uid
    assert pod["metadata"]["annotations"][MIGRATION_JOB_NAME] == "job"
    assert (pod["spec"]["nodeSelector"]["zone"], pod["spec"]["nodeSelector"]["disk"]) == ("a", "fast")
    (term,) = pod["spec"]["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert pod["spec"]["containers"][0]["image"] == "launcher:2"
    assert len(stage.target.name) <= 63


@pytest.mark.parametrize("phase", ["Scheduling", "Running"])
async def test_a_failed_migration_leaves_the_guest_on_its_node(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    if phase == "Scheduling":
        stage.end_pod(stage.target)
    else:
        stage.fail()
    await stage.work()
    assert stage.phase() == "Failed"
    assert stage.status["nodeName"] == "node-1"
    assert stage.status["phase"] == "Running"
    assert stage.pods == [stage.source]
    assert MIGRATION_TARGET_NODE not in stage.instance()["metadata"].get("labels", {})
    assert "finalizers" not in stage.job["metadata"]
    assert stage.reasons.count("FailedMigration") == 1


@pytest.mark.parametrize("phase", ["Scheduling", "TargetReady"])
async def test_a_migration_that_is_cancelled_before_the_start_ends_at_once(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    stage.cancel()
    await stage.work()
    assert stage.phase() == "gone"
    assert stage.pods == [stage.source]
    assert stage.status["nodeName"] == "node-1"
    assert "SuccessfulAbortMigration" in stage.reasons
    if phase != "Scheduling":
        assert stage.state["failed"]


async def test_a_migration_that_starts_during_its_cancellation_continues_until_its_source_ends_it(
    stage: Stage,
) -> None:
    await stage.until("TargetReady")
    stage.direct.meanwhile["patch status of VirtualMachineInstance"] = stage.begin
    stage.cancel()
    await stage.work()
    assert not stage.state.get("failed")
    assert stage.state["abortRequested"]
    assert stage.target in stage.pods


async def test_a_running_migration_is_cancelled_by_its_source(stage: Stage) -> None:
    await stage.until("Running")
    stage.cancel()
    await stage.work()
    assert stage.phase() == "Running"
    assert stage.state["abortRequested"]
    assert not stage.state.get("failed")
    assert stage.target in stage.pods
    stage.tell(abortStatus="Succeeded")
    stage.fail("cancelled")
    await stage.work()
    assert stage.phase() == "gone"
    assert stage.pods == [stage.source]


async def test_the_source_may_report_the_end_of_the_copy_after_its_launcher_has_ended(stage: Stage) -> None:
    await stage.until("Running")
    stage.end_pod(stage.source)
    await stage.work()
    stage.clock.advance(SOURCE_REPORT_SECONDS - 1)
    await stage.work()
    assert stage.status["phase"] == "Running"
    assert stage.target in stage.pods
    assert (await reconcile(stage.vmi_reconciler, WEB)).requeue_after == 1
    stage.leave()
    await stage.work()
    assert (stage.status["phase"], stage.status["nodeName"], stage.status["epoch"]) == ("Running", "node-2", 2)
    assert stage.phase() == "Succeeded"


async def test_a_removed_target_that_failed_gets_no_commit(stage: Stage) -> None:
    """The kubelet's last report counts, even after the Pod is removed."""
    await stage.until("ready")
    stage.set_pod(stage.target, {"phase": "Failed"})
    await reconcile(stage.vmi_reconciler, WEB)
    stage.catch_up()
    stage.lose_pod(stage.target)
    stage.end_pod(stage.source)
    await reconcile(stage.vmi_reconciler, WEB)
    assert stage.status["phase"] == "Failed"
    assert stage.status["nodeName"] == "node-1"


@pytest.mark.parametrize("phase", ["Scheduling", "ready"])
async def test_deleting_the_instance_removes_both_pods_and_the_migration(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    stage.delete_instance()
    await stage.work()
    assert stage.pods == []
    for key, body in stage.store.list(POD):
        stage.end_pod(key)
        stage.store.finish_pod(key, body["metadata"]["uid"])
        stage.catch_up()
        await stage.work()
    assert stage.store.list(VIRTUAL_MACHINE_INSTANCE) == []
    assert stage.phase() == "gone"


async def test_a_migration_whose_vmi_the_cache_lacks_does_not_fail(stage: Stage) -> None:
    """The migration's watch may be ahead of the VMI's."""
    await stage.run_guest()
    late = Stage(stage.store)
    late.store.create(
        VIRTUAL_MACHINE_INSTANCE_MIGRATION, "default", {"metadata": {"name": "job"}, "spec": {"vmiName": "new"}}
    )
    late.store.create(VIRTUAL_MACHINE_INSTANCE, "default", {"metadata": {"name": "new"}, "spec": {"domain": {}}})
    late.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    await reconcile(late.reconciler, JOB)
    assert late.phase() == "Pending"


async def test_a_migration_that_goes_with_its_instance_is_deleted_once(stage: Stage) -> None:
    """The deletion is not observed yet: the pass ends without an error."""
    stage.migrate(vmi="nobody")
    while stage.phase() != "gone":
        outcome = await reconcile(stage.reconciler, JOB)
    assert outcome.error is None
    assert stage.calls.count("delete VirtualMachineInstanceMigration [uid]") == 1


async def test_a_leader_that_has_not_observed_the_target_pod_does_not_fail_the_migration(stage: Stage) -> None:
    await stage.run_guest()
    other = Stage(stage.store)
    stage.migrate()
    await stage.work()
    other.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    await reconcile(other.reconciler, JOB)
    assert stage.phase() == "Scheduling"


async def test_a_leader_that_has_not_observed_the_hand_over_does_not_fail_the_migration(stage: Stage) -> None:
    """Otherwise it would delete the guest's Pod."""
    await stage.until("Scheduling")
    other = Stage(stage.store)
    await stage.until("Succeeded")
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"status": {"phase": "Running"}}, subresource="status")
    other.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION, POD)
    await reconcile(other.reconciler, JOB)
    assert stage.pods == [stage.target]
    assert stage.phase() == "Succeeded"


@pytest.mark.parametrize("last", [{}, {"migrationUid": "a later one"}], ids=["the last", "one before the last"])
async def test_a_leader_with_an_outdated_failure_does_not_delete_the_guests_pod(
    stage: Stage, last: dict[str, str]
) -> None:
    await stage.until("Scheduling")
    other = Stage(stage.store)
    await stage.until("Succeeded")
    stage.tell(**last)
    stage.store.patch(
        VIRTUAL_MACHINE_INSTANCE_MIGRATION,
        JOB,
        {"metadata": {"finalizers": ["kubevirt.io/migrationJobFinalize"]}},
    )
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"status": {"phase": "Failed"}}, subresource="status")
    other.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION, POD)
    await reconcile(other.reconciler, JOB)
    assert stage.pods == [stage.target]


async def test_two_leaders_create_one_target_pod(stage: Stage) -> None:
    await stage.run_guest()
    stage.migrate()
    other = Stage(stage.store)
    await reconcile(other.reconciler, JOB)
    await reconcile(stage.reconciler, JOB)
    stage.catch_up()
    await stage.work()
    assert len(stage.pods) == 2
    assert stage.phase() == "Scheduling"


async def test_a_target_pod_that_is_deleted_at_once_is_not_created_again(stage: Stage) -> None:
    """Its creation is remembered: the status was not written yet."""
    await stage.run_guest()
    stage.migrate()
    stage.direct.refusals["create Pod"] = Forbidden("exceeded quota")
    await stage.work()
    stage.direct.refusals = {"patch status of VirtualMachineInstanceMigration": Unavailable("no answer")}
    await reconcile(stage.reconciler, JOB)
    stage.lose_pod(stage.target)
    stage.direct.refusals = {}
    await stage.work()
    assert stage.phase() == "Failed"
    assert "create Pod" not in stage.calls


async def test_two_leaders_hand_over_once(stage: Stage) -> None:
    await stage.until("Scheduling")
    stage.bring_up_target()
    other = Stage(stage.store)
    await reconcile(other.reconciler, JOB)
    before = stage.state
    await reconcile(stage.reconciler, JOB)
    assert stage.state == before
    assert "migrationUid" in before


async def test_a_migration_that_another_leader_has_ended_is_not_handed_over(stage: Stage) -> None:
    await stage.until("Scheduling")
    stage.bring_up_target()
    stage.direct.meanwhile["get VirtualMachineInstanceMigration"] = stage.cancel_unseen
    await reconcile(stage.reconciler, JOB)
    assert stage.state == {}


@pytest.mark.parametrize("call", ["create Pod", "patch status of VirtualMachineInstance"])
async def test_a_lost_response_changes_no_outcome(stage: Stage, call: str) -> None:
    await stage.run_guest()
    stage.migrate()
    stage.lossy.lost = call
    await stage.work()
    if call != "create Pod":
        stage.bring_up_target()
        await stage.work()
    stage.lossy.lost = ""
    await stage.work()
    if call == "create Pod":
        stage.bring_up_target()
        await stage.work()
    assert stage.phase() == "PreparingTarget"
    assert len(stage.pods) == 2


@pytest.mark.parametrize("words", ["exceeded quota: compute", "failed quota: compute: must specify limits.cpu"])
async def test_a_quota_refusal_is_reported_and_retried(stage: Stage, words: str) -> None:
    await stage.run_guest()
    stage.migrate()
    stage.direct.refusals["create Pod"] = Forbidden(f"pods is forbidden: {words}")
    await stage.work()
    (condition,) = stage.job["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("migrationRejectedByResourceQuota", "True")
    assert stage.phase() == "Pending"
    stage.direct.refusals.clear()
    await stage.work()
    assert stage.phase() == "Scheduling"
    assert "conditions" not in stage.job["status"]


async def test_a_migration_that_a_quota_refuses_blocks_nobody(stage: Stage) -> None:
    await stage.run_guest()
    await stage.run_guest("db")
    stage.configuration = stage.limit(cluster=1)
    stage.migrate(priority="system-critical")
    stage.migrate("other", "db")
    stage.direct.refusals["create Pod"] = Forbidden("exceeded quota")
    await reconcile(stage.reconciler, JOB)
    stage.catch_up()
    stage.direct.refusals.clear()
    await reconcile(stage.reconciler, Key("default", "other"))
    assert stage.phase(Key("default", "other")) == "Scheduling"


async def test_a_quota_refusal_does_not_delay_a_new_migration_with_the_same_name(stage: Stage) -> None:
    await stage.run_guest()
    stage.migrate()
    stage.direct.refusals["create Pod"] = Forbidden("exceeded quota")
    await stage.work()
    assert stage.reconciler.next_in_turn() == []
    stage.cancel()
    await stage.work()
    stage.migrate()
    assert stage.reconciler.next_in_turn() == [JOB]


async def test_a_cancelled_migration_blocks_nobody(stage: Stage) -> None:
    await stage.run_guest()
    await stage.run_guest("db")
    stage.configuration = stage.limit(cluster=1)
    stage.migrate(priority="system-critical")
    stage.migrate("other", "db")
    assert stage.reconciler.next_in_turn() == [JOB]
    stage.cancel()
    assert stage.reconciler.next_in_turn() == [Key("default", "other")]


@pytest.mark.parametrize(
    ("node", "seconds", "annotations"),
    [
        (None, 300, {}),
        ("node-2", 900, {}),
        (None, 10, {"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "10"}),
        ("node-2", 20, {"kubevirt.io/migrationPendingPodTimeoutSeconds": "20"}),
        ("node-2", 3600, {"kubevirt.io/migrationPendingPodTimeoutSeconds": "99999999"}),
        ("node-2", 3600, {"kubevirt.io/migrationPendingPodTimeoutSeconds": "9" * 20}),
        ("node-2", 900, {"kubevirt.io/migrationPendingPodTimeoutSeconds": "a while"}),
    ],
)
async def test_a_target_that_does_not_come_up_times_out(
    stage: Stage, node: str | None, seconds: int, annotations: dict[str, str]
) -> None:
    await stage.run_guest()
    stage.migrate()
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"annotations": annotations}})
    stage.catch_up()
    await stage.work()
    if node is not None:
        stage.set_pod(stage.target, {"phase": "Pending"}, node)
    outcome = await stage.work()
    stage.clock.advance(seconds - 1)
    await stage.work()
    assert stage.phase() == "Scheduling"
    assert outcome.requeue_after is not None
    stage.clock.advance(max(2.0, outcome.requeue_after - seconds + 1))
    await stage.work()
    assert stage.phase() == "Failed"
    assert stage.pods == [stage.source]
    assert "migrationTargetPodUnschedulable" not in stage.reasons  # the scheduler has not said so


SECOND = Key("default", "second")
NO_NODE = {"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]}


async def with_another(stage: Stage, **limits: int) -> None:
    """Create a migration whose target is unschedulable, and a second one from the same node."""
    stage.configuration = stage.limit(**limits)
    await stage.run_guest("other")
    await stage.run_guest()
    stage.migrate()
    await stage.work()
    stage.set_pod(stage.target, NO_NODE)
    stage.migrate("second", "other")


async def test_an_unschedulable_target_blocks_others_for_a_limited_time(stage: Stage) -> None:
    await with_another(stage, cluster=1)
    outcome = await stage.work()
    assert outcome.requeue_after is not None
    assert (stage.phase(), stage.reasons.count("migrationTargetPodUnschedulable")) == ("Scheduling", 1)
    stage.clock.advance(29)
    await stage.work()
    assert (stage.phase(), stage.phase(SECOND)) == ("Scheduling", "Pending")

    stage.clock.advance(outcome.requeue_after - 29)
    await stage.work()
    await stage.work()
    assert (stage.phase(), stage.phase(SECOND)) == ("Failed", "Scheduling")
    assert stage.reasons.count("migrationTargetPodUnschedulable") == 1


async def test_an_unschedulable_target_is_reported_with_the_schedulers_words(stage: Stage) -> None:
    await stage.run_guest()
    stage.migrate()
    await stage.work()
    condition = {**NO_NODE["conditions"][0], "message": "0/3 nodes are available"}
    stage.set_pod(stage.target, {**NO_NODE, "conditions": [condition]})
    await stage.work()
    reported = [event[2] for event in stage.recorder.events if event[1] == "migrationTargetPodUnschedulable"]
    assert reported == [f"No node fits target Pod {stage.target.name} yet: 0/3 nodes are available"]


async def test_a_guest_whose_cpu_no_other_node_has_is_reported_once(stage: Stage) -> None:
    """Of the instance, as upstream's: its user sees why it stays on its node."""
    await stage.run_guest(spec={"nodeSelector": {"cpu-model-migration.node.kubevirt.io/EPYC": "true"}})
    stage.migrate()
    await stage.work()
    stage.set_pod(stage.target, NO_NODE)
    await stage.work()
    await stage.work()
    said = [event for event in stage.recorder.events if event[1] == "NoSuitableNodesForHostModelMigration"]
    assert len(said) == 1


async def test_an_annotation_cannot_block_other_migrations_for_long(stage: Stage) -> None:
    """The migration occupies a slot of a node that is being drained."""
    await with_another(stage, node=1)
    annotations = {"kubevirt.io/migrationUnschedulablePodTimeoutSeconds": "3600"}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"annotations": annotations}})
    stage.catch_up()
    await stage.work()
    stage.clock.advance(179)
    await stage.work()
    assert stage.phase() == "Scheduling"
    stage.clock.advance(2)
    await stage.work()
    await stage.work()
    assert (stage.phase(), stage.phase(SECOND)) == ("Failed", "Scheduling")


async def test_an_unschedulable_target_that_blocks_nobody_may_wait(stage: Stage) -> None:
    await with_another(stage)
    stage.clock.advance(200)
    outcome = await stage.work()
    assert (stage.phase(), stage.phase(SECOND)) == ("Scheduling", "Scheduling")
    assert outcome.requeue_after is not None
    assert outcome.requeue_after <= 31, "others may begin to wait"


@pytest.mark.parametrize(("namespace", "is_given_up"), [("theirs", True), ("default", False)])
async def test_a_placed_target_that_does_not_come_up_blocks_another_namespace_for_a_limited_time(
    stage: Stage, namespace: str, is_given_up: bool
) -> None:
    """Every user who may create machines can cause this, with an image that cannot be pulled."""
    stage.configuration = stage.limit(cluster=2, node=9)
    await stage.run_guest()
    await stage.run_guest("beside")
    await stage.run_guest("other", namespace=namespace)
    stage.migrate()
    await stage.work()
    stage.set_pod(stage.target, {"phase": "Pending"}, "node-2")
    before = {key for key, _unused in stage.store.list(POD)}
    stage.migrate("later", "beside")
    await stage.work()
    (later,) = {key for key, _unused in stage.store.list(POD)} - before
    stage.set_pod(later, {"phase": "Pending"}, "node-2")
    annotations = {"kubevirt.io/migrationPendingPodTimeoutSeconds": "3600"}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"annotations": annotations}})
    stage.migrate("second", "other", namespace=namespace)
    outcome = await stage.work()
    assert outcome.requeue_after is not None
    assert outcome.requeue_after <= 31, "others may begin to wait"
    stage.clock.advance(179)
    await stage.work()
    assert stage.phase() == "Scheduling"

    stage.clock.advance(1)
    await stage.work()
    await stage.work()
    second = stage.phase(Key(namespace, "second"))
    assert (stage.phase(), second) == (("Failed", "Scheduling") if is_given_up else ("Scheduling", "Pending"))


@pytest.mark.parametrize("ahead", [30, 10**9])
async def test_a_fast_clock_delays_by_at_most_one_more_pause(stage: Stage, ahead: int) -> None:
    """The former leader, with a fast clock, wrote the time since when the target Pod waits."""
    stage.clock.advance(ahead)
    await with_another(stage, cluster=1)
    await stage.work()
    stage.clock.advance(-ahead)
    for _unused in range(2):
        await stage.work()
        stage.clock.advance(31)
    await stage.work()
    await stage.work()
    assert (stage.phase(), stage.phase(SECOND)) == ("Failed", "Scheduling")


async def test_a_clock_that_was_ahead_at_most_doubles_the_timeout(stage: Stage) -> None:
    ahead = 3600
    stage.clock.advance(ahead)
    await stage.until("TargetReady")
    stage.clock.advance(-ahead)
    for _unused in range(2):
        outcome = await stage.work()
        assert outcome.requeue_after is None or outcome.requeue_after <= 150
        stage.clock.advance(150)
    await stage.work()
    assert stage.phase() == "Failed"


async def test_a_migration_that_does_not_start_fails(stage: Stage) -> None:
    await stage.until("TargetReady")
    outcome = await stage.work()
    assert outcome.requeue_after is not None
    stage.clock.advance(outcome.requeue_after)
    await stage.work()
    assert stage.phase() == "Failed"
    assert stage.state["failed"]


@pytest.mark.parametrize(
    ("mode", "before", "expected"),
    [
        pytest.param("Paused", [], ["PausedByMigrationMonitor"], id="stopped to be sent"),
        pytest.param("Paused", ["PausedByUser"], ["PausedByUser"], id="a person had paused it"),
        pytest.param("PreCopy", [], [], id="it was sent while it ran"),
    ],
)
async def test_an_aborted_migration_of_an_unreachable_source_reports_the_pause(
    stage: Stage, mode: str, before: list[str], expected: list[str]
) -> None:
    """The next hand-over removes the mode."""
    await stage.until("Running")
    kept = stage.status.get("conditions", [])
    paused = [{"type": "Paused", "status": "True", "reason": reason} for reason in before]
    stage.tell_instance({"migrationState": {"mode": mode}, "conditions": [*kept, *paused]})
    stage.end_pod(stage.target)
    await stage.work()
    assert stage.state["failed"]
    assert [
        condition["reason"] for condition in stage.status["conditions"] if condition["type"] == "Paused"
    ] == expected
    assert {condition["type"] for condition in stage.status["conditions"]} >= {migration["type"] for migration in kept}


async def test_the_newest_five_migrations_are_kept(stage: Stage) -> None:
    await stage.run_guest()
    for number in range(7):
        stage.clock.advance(1)
        stage.migrate(f"job-{number}")
        await stage.work()
        target = next(key for key in stage.pods if "-m0" in key.name)
        stage.end_pod(target)
        await stage.work()
    kept = [key.name for key, _body in stage.store.list(VIRTUAL_MACHINE_INSTANCE_MIGRATION)]
    assert kept == [f"job-{number}" for number in range(2, 7)]


async def test_limits_hold_and_the_next_migration_takes_a_freed_slot(stage: Stage) -> None:
    for number in range(4):
        await stage.run_guest(f"vm-{number}", node="node-1" if number < 3 else "node-2")
    for number in range(4):
        stage.clock.advance(1)
        stage.migrate(f"job-{number}", f"vm-{number}")
    await stage.work()
    phases = [stage.phase(Key("default", f"job-{number}")) for number in range(4)]
    assert phases == ["Scheduling", "Scheduling", "Pending", "Scheduling"]
    assert stage.reconciler.next_in_turn() == []
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", "job-0"))
    stage.catch_up()
    await reconcile(stage.reconciler, Key("default", "job-0"))
    stage.catch_up()
    assert stage.reconciler.next_in_turn() == [Key("default", "job-2")]
    await stage.work()
    assert stage.phase(Key("default", "job-2")) == "Scheduling"


async def test_nothing_is_decided_before_the_caches_are_synced() -> None:
    stage = Stage()
    stage.caches[POD].synced = False
    with pytest.raises(Unavailable):
        stage.reconciler.observe(JOB)


def take_owner_off(stage: Stage) -> None:
    stage.store.patch(POD, stage.target, {"metadata": {"ownerReferences": None}})
    stage.catch_up()


@pytest.mark.parametrize("phase", ["Scheduling", "TargetReady"])
async def test_a_target_without_an_owner_fails_the_migration_and_is_deleted(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    take_owner_off(stage)
    await stage.work()
    assert (stage.phase(), stage.pods) == ("Failed", [stage.source])
    assert "FailedMigration" in stage.reasons
    assert "finalizers" not in stage.job["metadata"]


async def test_a_foreign_pod_stays(stage: Stage) -> None:
    await stage.until("Scheduling")
    theirs = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "theirs", "uid": "theirs", "controller": True}
    stage.store.patch(POD, stage.target, {"metadata": {"ownerReferences": [theirs]}})
    stage.catch_up()
    await stage.work()
    assert stage.phase() == "Failed"
    assert len(stage.pods) == 2


async def test_a_started_migration_continues_to_a_pod_that_lost_its_owner(stage: Stage) -> None:
    await stage.until("ready")
    target = stage.target
    take_owner_off(stage)
    stage.leave()
    await stage.work()
    assert (stage.status["nodeName"], stage.pods, stage.phase()) == ("node-2", [target], "Succeeded")
    owner = stage.store.get(POD, target)["metadata"]["ownerReferences"]
    assert owner[0]["uid"] == stage.instance()["metadata"]["uid"]


@pytest.mark.parametrize("phase", ["Scheduling", "Running"])
async def test_deleting_an_instance_also_deletes_its_pods_without_owner(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    pods = stage.pods
    stage.delete_instance()
    for pod in pods:
        stage.store.patch(POD, pod, {"metadata": {"ownerReferences": None}})
    stage.catch_up()
    await stage.work()
    if phase == "Running":
        stage.fail("its instance is to end")
        await stage.work()
    assert stage.pods == []


async def test_a_target_of_a_deleted_instance_is_removed(stage: Stage) -> None:
    await stage.until("Running")
    stage.fail()
    await reconcile(stage.reconciler, JOB)
    take_owner_off(stage)
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": None}})
    stage.delete_instance()
    await stage.work()
    assert stage.pods == [stage.source]


async def test_a_foreign_pod_with_the_targets_name_does_not_block(stage: Stage) -> None:
    await stage.until("Scheduling")
    target = stage.target
    stage.lose_pod(target)
    stage.store.create(POD, "default", {"metadata": {"name": target.name, "labels": {ROLE: LAUNCHER_ROLE}}})
    stage.catch_up()
    await stage.work()
    assert stage.phase() == "Failed"
    assert "finalizers" not in stage.job["metadata"]
    assert target in stage.pods


async def test_a_foreign_pod_with_the_sources_name_does_not_block(stage: Stage) -> None:
    await stage.until("ready")
    source = stage.source
    stage.leave()
    await reconcile(stage.vmi_reconciler, WEB)
    stage.lose_pod(source)
    stage.store.create(POD, "default", {"metadata": {"name": source.name}})
    stage.catch_up()
    await stage.work()
    assert stage.phase() == "Succeeded"
    assert "finalizers" not in stage.job["metadata"]
    assert source in stage.pods


async def test_a_finished_copy_is_committed_before_the_next_hand_over(stage: Stage) -> None:
    """The migration was deleted by force and the commit is refused at first: only the migration state names the
    guest's node.
    """
    await stage.until("ready")
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"finalizers": None}})
    stage.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)
    stage.leave()
    again, before = Key("default", "again"), stage.state
    stage.migrate("again")
    for _unused in range(3):
        await reconcile(stage.reconciler, again)
        stage.catch_up()
    assert (stage.phase(again), stage.state) == ("Pending", before)
    await stage.work("again")
    assert (stage.status["nodeName"], stage.phase(again)) == ("node-2", "Scheduling")


async def test_a_ready_target_waits_for_the_commit_of_the_migration_before(stage: Stage) -> None:
    await stage.until("Scheduling")
    stage.bring_up_target()
    before = {"migrationUid": "before", "completed": True, "sourcePodUID": next(iter(stage.status["activePods"]))}
    stage.tell_instance({"migrationState": before})
    for _unused in range(3):
        await reconcile(stage.reconciler, JOB)
        stage.catch_up()
    assert (stage.phase(), stage.state["migrationUid"]) == ("Scheduled", "before")
