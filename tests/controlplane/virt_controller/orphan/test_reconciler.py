# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A migration that is deleted without its finalizer, on a store with the API server's rules: it ends and leaves
nothing.
"""

from __future__ import annotations

import pytest
from kubevirt_api.names import MIGRATION_JOB, MIGRATION_TARGET_NODE

from controlplane.api.objects.resources import (
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
    Resource,
)
from controlplane.engine.errors import Conflict, Forbidden, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from tests.controlplane.virt_controller.migration.stage import JOB, WEB, Stage

AGAIN = Key("default", "again")
NOT_BEGUN = ("PreparingTarget", "TargetReady")


@pytest.fixture
def stage() -> Stage:
    return Stage()


def wipe(stage: Stage) -> None:
    """Delete the migration at once, without its finalizer."""
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB, {"metadata": {"finalizers": None}})
    if stage.store.find(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB) is not None:
        stage.store.delete(VIRTUAL_MACHINE_INSTANCE_MIGRATION, JOB)


def is_at_source(stage: Stage) -> bool:
    return (stage.status["nodeName"], stage.status["phase"], stage.pods) == ("node-1", "Running", [stage.source])


async def test_a_migration_with_only_a_pod_leaves_no_pod(stage: Stage) -> None:
    await stage.until("Scheduling")
    wipe(stage)
    stage.catch_up()
    await stage.work()
    assert is_at_source(stage)


@pytest.mark.parametrize("phase", NOT_BEGUN)
async def test_a_migration_that_has_not_started_fails_and_the_next_one_proceeds(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    wipe(stage)
    stage.catch_up()
    await stage.work()
    assert (stage.state["failed"], stage.state["completed"]) == (True, True)
    assert stage.state["failureReason"] == "the VirtualMachineInstanceMigration was deleted"
    assert stage.state["endTimestamp"]
    assert is_at_source(stage)
    assert MIGRATION_TARGET_NODE not in stage.instance()["metadata"]["labels"]
    stage.migrate("again")
    await stage.work("again")
    stage.set_pod(next(key for key in stage.pods if key != stage.source), node="node-3")
    await stage.work("again")
    assert stage.phase(AGAIN) == "PreparingTarget"


async def test_a_running_migration_is_cancelled_and_its_source_ends_it(stage: Stage) -> None:
    await stage.until("Running")
    wipe(stage)
    stage.catch_up()
    await stage.work()
    assert (stage.state["abortRequested"], "completed" in stage.state) == (True, False)
    assert len(stage.pods) == 2
    stage.fail("it was cancelled")
    await stage.work()
    assert is_at_source(stage)
    assert MIGRATION_TARGET_NODE not in stage.instance()["metadata"]["labels"]


async def test_a_guest_whose_copy_is_complete_is_committed_and_its_source_deleted(stage: Stage) -> None:
    await stage.until("ready")
    target, source = stage.target, stage.source
    wipe(stage)
    stage.leave()
    await stage.work()
    assert (stage.status["nodeName"], stage.pods) == ("node-2", [target])
    assert "deletionTimestamp" in stage.store.get(POD, source)["metadata"]
    assert MIGRATION_TARGET_NODE not in stage.instance()["metadata"]["labels"]


@pytest.mark.parametrize("phase", ["Scheduling", "PreparingTarget", "Running", "Succeeded"])
async def test_an_existing_migration_is_left_to_its_own_controller(stage: Stage, phase: str) -> None:
    await stage.until(phase)
    stage.calls.clear()
    before = stage.store.version
    outcome = await reconcile(stage.orphan, WEB)
    assert (outcome.error, outcome.requeue_after, stage.calls, stage.store.version) == (None, None, [], before)


@pytest.mark.parametrize("phase", ["Scheduling", "Running"])
async def test_a_migration_that_the_cache_lacks_is_not_taken_for_deleted(stage: Stage, phase: str) -> None:
    await stage.run_guest()
    late = Stage(stage.store)
    await stage.until(phase)
    late.catch_up(VIRTUAL_MACHINE_INSTANCE, POD)
    assert await reconcile(late.orphan, WEB) == Outcome()
    late.catch_up()
    assert await reconcile(late.orphan, WEB) == Outcome()
    assert late.calls == []


async def test_the_instance_is_enqueued_once_when_the_cache_has_caught_up(stage: Stage) -> None:
    await stage.until("Scheduling")
    enqueued: list[Key] = []
    stage.orphan.enqueue_by(enqueued.append)
    wipe(stage)
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    stage.store.patch(POD, stage.target, {"metadata": {"annotations": {"told": "later"}}})
    stage.catch_up(POD)
    stage.calls.clear()
    assert await reconcile(stage.orphan, WEB) == Outcome()
    assert (stage.calls, enqueued) == ([], [])
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    assert enqueued == [WEB]
    await reconcile(stage.orphan, WEB)
    stage.catch_up()
    assert (stage.pods, enqueued) == ([stage.source], [WEB])


async def test_later_writes_do_not_hide_a_deleted_migration(stage: Stage) -> None:
    await stage.until("Scheduling")
    wipe(stage)
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    stage.store.patch(POD, stage.target, {"metadata": {"annotations": {"told": "once"}}})
    stage.catch_up(POD)
    assert await reconcile(stage.orphan, WEB) == Outcome()
    stage.catch_up(VIRTUAL_MACHINE_INSTANCE_MIGRATION)
    stage.store.patch(POD, stage.target, {"metadata": {"annotations": {"told": "again"}}})
    stage.catch_up(POD)
    await reconcile(stage.orphan, WEB)
    stage.catch_up()
    assert stage.pods == [stage.source]


async def test_a_deleted_instance_is_forgotten(stage: Stage) -> None:
    await stage.until("Running")
    stage.fail()
    wipe(stage)
    stage.catch_up()
    await reconcile(stage.orphan, WEB)
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"finalizers": None}})
    stage.delete_instance()
    assert stage.orphan._unconfirmed == {}


async def test_a_pod_with_another_controller_stays(stage: Stage) -> None:
    await stage.until("Scheduling")
    wipe(stage)
    (mine,) = stage.store.get(POD, stage.target)["metadata"]["ownerReferences"]
    owners = [{**mine, "controller": False}]
    stage.store.patch(POD, stage.target, {"metadata": {"ownerReferences": owners}})
    stage.catch_up()
    await stage.work()
    assert len(stage.pods) == 2


async def test_the_remains_of_a_finished_run_are_left_to_its_own_controller(stage: Stage) -> None:
    await stage.until("Running")
    wipe(stage)
    stage.tell_instance({"phase": "Failed"})
    stage.calls.clear()
    assert await reconcile(stage.orphan, WEB) == Outcome()
    assert stage.calls == []


@pytest.mark.parametrize("resource", [VIRTUAL_MACHINE_INSTANCE_MIGRATION, POD, VIRTUAL_MACHINE_INSTANCE])
async def test_nothing_is_decided_before_the_caches_are_synced(stage: Stage, resource: Resource) -> None:
    await stage.until("Running")
    late = Stage(stage.store)
    late.caches[resource].synced = False
    outcome = await reconcile(late.orphan, WEB)
    assert isinstance(outcome.error, Unavailable)
    assert late.calls == []


async def test_a_pod_that_was_handed_over_meanwhile_stays(stage: Stage) -> None:
    await stage.until("Running")
    stage.fail()
    wipe(stage)
    stage.catch_up()
    version = stage.instance()["status"]
    late = {"failed": None, "completed": None, "failureReason": None}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"status": {"migrationState": late}}, subresource="status")
    assert version != stage.status
    await reconcile(stage.orphan, WEB)
    assert "delete Pod [uid]" not in stage.calls
    assert len(stage.pods) == 2


async def test_a_pod_that_became_active_meanwhile_stays(stage: Stage) -> None:
    await stage.until("Scheduling")
    wipe(stage)
    stage.catch_up()
    target = stage.store.get(POD, stage.target)["metadata"]["uid"]
    source = stage.store.get(POD, stage.source)["metadata"]["uid"]
    given = {"status": {"activePods": {source: None, target: "node-2"}}}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, given, subresource="status")
    outcome = await reconcile(stage.orphan, WEB)
    assert isinstance(outcome.error, Conflict)
    assert len(stage.pods) == 2


async def test_a_forged_label_deletes_no_pod(stage: Stage) -> None:
    await stage.until("Running")
    for pod in (stage.source, stage.target):
        stage.store.patch(POD, pod, {"metadata": {"labels": {MIGRATION_JOB: "nobody"}}})
    stage.catch_up()
    await stage.work()
    assert len(stage.pods) == 2
    assert stage.phase() == "Running"


async def test_a_refused_delete_is_recorded(stage: Stage) -> None:
    await stage.until("Scheduling")
    wipe(stage)
    stage.catch_up()
    stage.direct.refusals["delete Pod"] = Forbidden("no")
    await reconcile(stage.orphan, WEB)
    assert stage.reasons[-1] == "FailedDelete"
