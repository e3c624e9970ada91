# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests in a launcher that is not the deployed one, on a store with the API server's rules."""

from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api.names import (
    CONTROL_PLANE_IMAGE,
    OUTDATED_LAUNCHER,
    SCHEDULABLE,
    WORKLOAD_UPDATE_MIGRATION,
    WORKLOAD_UPDATE_REASON,
)

from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import (
    KUBEVIRT,
    NODE,
    POD,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.engine.errors import Forbidden, Throttled, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.read_your_writes import ReadYourWritesCache
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.workload_update.candidates import CandidateCache, MoveReason
from controlplane.virt_controller.workload_update.controller_state import HOLD_SECONDS
from controlplane.virt_controller.workload_update.handler_rollout import HandlerRollout
from controlplane.virt_controller.workload_update.reconciler import WorkloadUpdateReconciler
from controlplane.virt_controller.workload_update.world import OUTDATED
from tests.controlplane.virt_controller.migration import stage as migrating
from tests.controlplane.virt_controller.migration.stage import WEB, Stage
from tests.support.clock import SimulatedClock
from tests.support.lagging_cache import LaggingCache
from tests.support.store import Json, Store

NAME = Key("kubevirt", "kubevirt")
ALL = (*migrating.RESOURCES, KUBEVIRT)


class Updating(Stage):
    """A migration stage with a KubeVirt, and evictions that end a Pod or are refused."""

    def __init__(self, methods: list[str], reasons: tuple[MoveReason, ...] = (), image: str = "launcher:2") -> None:
        store = Store(SimulatedClock(), ALL)
        migrating.add_nodes(store)
        spec = {"workloadUpdateStrategy": {"workloadUpdateMethods": methods}}
        store.create(KUBEVIRT, "kubevirt", {"metadata": {"name": "kubevirt"}, "spec": spec})
        store.patch(KUBEVIRT, NAME, {"status": {"phase": "Deployed"}}, subresource="status")
        super().__init__(store)
        self.caches[KUBEVIRT] = LaggingCache(store, KUBEVIRT)
        self.overlays[KUBEVIRT] = ReadYourWritesCache(self.caches[KUBEVIRT])
        self.caches[KUBEVIRT].start()
        self.refusal: Exception | None = None
        self.lingers = False
        """Whether guests take long to shut down."""
        self.evicted: list[str] = []
        self.updates = self.an_updater(reasons, image)

    def an_updater(self, reasons: tuple[MoveReason, ...] = (), image: str = "launcher:2") -> WorkloadUpdateReconciler:
        vmis, pods = self.overlays[VIRTUAL_MACHINE_INSTANCE], self.overlays[POD]
        self.candidates = CandidateCache(vmis, pods, image, reasons)
        self.rollout = HandlerRollout(self.overlays[NODE], "")
        return WorkloadUpdateReconciler(
            kubevirts=self.overlays[KUBEVIRT],
            vmis=vmis,
            pods=pods,
            migrations=self.overlays[VIRTUAL_MACHINE_INSTANCE_MIGRATION],
            unfinished=self.unfinished,
            candidates=self.candidates,
            rollout=self.rollout,
            api=self.api,
            evict=self.evict,
            clock=self.clock,
            events=self.recorder,
        )

    async def evict(self, pod: Key, uid: str) -> None:
        if self.refusal is not None:
            raise self.refusal
        self.evicted.append(pod.name)
        if not self.lingers:
            self.store.delete(POD, pod, uid=uid)

    async def update(self) -> Outcome:
        outcome = await reconcile(self.updates, NAME)
        self.catch_up()
        return outcome

    @property
    def migrations(self) -> list[Json]:
        return [body for _key, body in self.store.list(VIRTUAL_MACHINE_INSTANCE_MIGRATION)]

    @property
    def state(self) -> Json:
        return self.store.get(KUBEVIRT, NAME)["status"]

    def labels(self, key: Key = WEB) -> Json:
        return self.instance(key)["metadata"].get("labels", {})


async def a_stage(*methods: str, **options: Any) -> Updating:
    stage = Updating(list(methods), **options)
    await stage.run_guest()
    return stage


async def test_an_outdated_instance_is_labelled_counted_and_migrated_once() -> None:
    stage = await a_stage("LiveMigrate")
    await stage.update()
    await stage.update()
    assert stage.labels()[OUTDATED_LAUNCHER] == ""
    assert stage.state["outdatedVirtualMachineInstanceWorkloads"] == 1
    (made,) = stage.migrations
    assert made["metadata"]["name"].startswith("kubevirt-workload-update-")
    assert made["metadata"]["annotations"] == {WORKLOAD_UPDATE_MIGRATION: "", WORKLOAD_UPDATE_REASON: OUTDATED}
    assert made["spec"] == {"vmiName": "web", "priority": "system-critical"}
    assert stage.reasons.count("SuccessfulCreate") >= 1


@pytest.mark.parametrize(("limits", "made"), [((1, 2), 1), ((5, 2), 2)], ids=["of the cluster", "of a node"])
async def test_own_migrations_count_before_the_watch_shows_them(limits: tuple[int, int], made: int) -> None:
    stage = await a_stage("LiveMigrate")
    await stage.run_guest("db")
    await stage.run_guest("mail")
    of_cluster, of_node = limits
    settings = {"parallelMigrationsPerCluster": of_cluster, "parallelOutboundMigrationsPerNode": of_node}
    stage.store.patch(KUBEVIRT, NAME, {"spec": {"configuration": {"migrations": settings}}})
    stage.catch_up()
    await stage.update()  # labels
    await stage.update()
    assert len(stage.migrations) == made


async def test_a_label_that_a_user_wrote_is_removed() -> None:
    stage = await a_stage(image="launcher:1")
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"labels": {OUTDATED_LAUNCHER: "x"}}})
    stage.catch_up()
    await stage.update()
    assert OUTDATED_LAUNCHER not in stage.labels()


async def test_an_instance_that_cannot_migrate_is_evicted_once_after_the_batch_is_recorded() -> None:
    stage = await a_stage("LiveMigrate", "Evict")
    stage.tell_instance({"conditions": [{"type": "LiveMigratable", "status": "False"}]})
    await stage.update()
    await stage.update()
    assert len(stage.evicted) == 1
    assert stage.state["lastWorkloadEviction"]
    assert stage.reasons.count("SuccessfulEvict") == 1


async def test_an_instance_with_a_slow_shutdown_is_not_evicted_again() -> None:
    stage = await a_stage("Evict")
    stage.lingers = True
    await stage.update()
    stage.clock.advance(60)
    await stage.update()
    assert len(stage.evicted) == 1


async def test_no_batch_begins_before_its_time_is_written() -> None:
    stage = await a_stage("Evict")
    stage.direct.refusals["patch status of KubeVirt"] = Forbidden("no")
    await stage.update()
    assert stage.evicted == []


async def test_no_batch_begins_with_an_outdated_strategy() -> None:
    stage = await a_stage("Evict")
    strategy = {"workloadUpdateStrategy": {"workloadUpdateMethods": []}}
    stage.store.patch(KUBEVIRT, NAME, {"spec": strategy})
    await reconcile(stage.updates, NAME)  # the cache does not show the change yet
    assert stage.evicted == []
    assert "lastWorkloadEviction" not in stage.state


def mark(stage: Updating, name: str, **spec: str) -> None:
    body = {"metadata": {"annotations": {WORKLOAD_UPDATE_MIGRATION: ""}}, "spec": spec}
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE_MIGRATION, Key("default", name), body)
    stage.catch_up()


async def test_migrations_that_cannot_start_occupy_no_slot() -> None:
    """An instance that is off can have any number of them."""
    stage = await a_stage("LiveMigrate")
    settings = {"spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": 1}}}}
    stage.store.patch(KUBEVIRT, NAME, settings)
    stage.migrate("waits", "is-off")
    mark(stage, "waits", priority="system-critical")
    await stage.update()
    assert {body["spec"]["vmiName"] for body in stage.migrations} == {"is-off", "web"}


async def test_a_refused_eviction_is_reported_and_delays_no_other() -> None:
    stage = await a_stage("Evict")
    await stage.run_guest("other")
    stage.refusal = Throttled("cannot evict Pod: it is to stay")
    outcome = await stage.update()
    assert outcome.error is None
    assert outcome.requeue_after == 20
    assert stage.reasons.count("FailedEvict") == 2
    stage.refusal = None
    stage.clock.advance(60)
    await stage.update()
    assert len(stage.evicted) == 2


async def test_a_refused_migration_is_reported_and_delays_no_other() -> None:
    stage = await a_stage("LiveMigrate")
    stage.direct.refusals["create VirtualMachineInstanceMigration"] = Forbidden("quota")
    outcome = await stage.update()
    assert outcome.error is None
    assert stage.reasons.count("FailedCreate") == 1
    stage.direct.refusals.clear()
    stage.clock.advance(20)
    await stage.update()
    assert len(stage.migrations) == 1


async def test_a_failed_migration_is_followed_by_another_after_the_back_off() -> None:
    stage = await a_stage("LiveMigrate")
    await stage.update()
    await stage.work()
    stage.end_pod(stage.target)
    await stage.work()
    outcome = await stage.update()
    assert outcome.requeue_after == 20
    await stage.update()
    assert stage.reasons.count("MigrationBackoff") == 1
    assert len(stage.migrations) == 1
    stage.clock.advance(20)
    await stage.update()
    assert [body["metadata"]["name"][-2:] for body in stage.migrations] == ["-1", "-2"]


def take(stage: Updating, name: str) -> None:
    """Take the name of the instance's next migration, as every user can who knows its UID."""
    uid = stage.instance(Key("default", name))["metadata"]["uid"].replace("-", "")[:8]
    body = {"metadata": {"name": f"kubevirt-workload-update-{uid}-1"}, "spec": {"vmiName": "decoy"}}
    stage.store.create(VIRTUAL_MACHINE_INSTANCE_MIGRATION, "default", body)
    stage.catch_up()


async def test_a_taken_name_is_reported_and_delays_no_other() -> None:
    stage = await a_stage("LiveMigrate")
    for name in ("b", "c"):
        await stage.run_guest(name, node="node-2")
    settings = {"spec": {"configuration": {"migrations": {"parallelMigrationsPerCluster": 1}}}}
    stage.store.patch(KUBEVIRT, NAME, settings)
    for name in ("b", "web"):
        take(stage, name)
    for _unused in range(4):
        await stage.update()
    assert [
        migration["spec"]["vmiName"] for migration in stage.migrations if migration["spec"]["vmiName"] != "decoy"
    ] == ["c"]
    assert stage.reasons.count("FailedCreate") == 1
    assert stage.state["outdatedVirtualMachineInstanceWorkloads"] == 3


async def test_a_vmi_that_changes_often_delays_no_other() -> None:
    stage = await a_stage("LiveMigrate", "Evict")
    await stage.run_guest("b", node="node-2")
    stage.tell_instance({"conditions": [{"type": "LiveMigratable", "status": "False"}]}, Key("default", "b"))
    stage.store.patch(VIRTUAL_MACHINE_INSTANCE, WEB, {"metadata": {"annotations": {"written": "again"}}})
    outcome = await reconcile(stage.updates, NAME)  # the cache does not show the change yet
    assert (outcome.error, outcome.requeue_after) == (None, HOLD_SECONDS), "the VMI itself is tried again soon"
    assert len(stage.evicted) == 1
    assert stage.migrations == []


async def test_an_instance_that_changed_meanwhile_is_decided_again() -> None:
    stage = await a_stage("LiveMigrate")
    stage.direct.refusals["create VirtualMachineInstanceMigration"] = Forbidden("quota")
    await stage.update()
    stage.direct.refusals.clear()
    stage.clock.advance(20)
    stage.store.patch(
        VIRTUAL_MACHINE_INSTANCE, WEB, {"status": {"launcherContainerImageVersion": "launcher:2"}}, subresource="status"
    )
    await reconcile(stage.updates, NAME)  # the cache shows the label, and no later change
    assert stage.migrations == []


async def test_another_reason_migrates_an_instance_and_evicts_none() -> None:
    def reason(vmi: VirtualMachineInstance, pod: Pod | None) -> str | None:
        return "it has another memory" if pod is not None and vmi.metadata.name == "web" else None

    stage = await a_stage("LiveMigrate", "Evict", reasons=(reason,), image="launcher:1")
    await stage.update()
    (made,) = stage.migrations
    assert made["spec"]["priority"] == "user-triggered"
    assert made["metadata"]["annotations"][WORKLOAD_UPDATE_REASON] == "it has another memory"
    assert stage.evicted == []
    assert stage.state["outdatedVirtualMachineInstanceWorkloads"] == 0


async def test_a_migration_whose_reason_is_gone_is_deleted_before_it_starts() -> None:
    """The change was withdrawn, and no node has capacity for it; the response to the first delete is lost."""
    wanted = ["it has another memory"]
    stage = await a_stage("LiveMigrate", reasons=(lambda _vmi, _pod: next(iter(wanted), None),), image="launcher:1")
    await stage.update()
    (made,) = stage.migrations
    await stage.work(made["metadata"]["name"])
    assert stage.phase(Key("default", made["metadata"]["name"])) == "Scheduling"
    wanted.clear()
    stage.tell_instance({"instance": {"type": "q35"}})
    assert stage.candidates() == []
    stage.direct.refusals["delete VirtualMachineInstanceMigration"] = Unavailable("no answer")
    await stage.update()
    assert "deletionTimestamp" not in stage.migrations[0]["metadata"]
    stage.direct.refusals.clear()
    await stage.update()
    (remaining,) = stage.migrations
    assert remaining["metadata"]["deletionTimestamp"]


async def test_the_reason_is_derived_again_when_the_pod_is_known() -> None:
    """A new leader lists instances before Pods."""
    stage = await a_stage("LiveMigrate")
    pods = LaggingCache(stage.store, POD)
    reason: MoveReason = lambda _vmi, pod: "" if pod is not None else "it is in no Pod"  # noqa: E731
    candidates = CandidateCache(
        stage.overlays[VIRTUAL_MACHINE_INSTANCE], ReadYourWritesCache(pods), "launcher:1", (reason,)
    )
    candidates._changed(WEB, None, stage.overlays[VIRTUAL_MACHINE_INSTANCE].get(WEB))
    assert [candidate.reason for candidate in candidates()] == ["it is in no Pod"]
    pods.start()
    assert candidates() == []


async def test_no_vmi_is_migrated_during_a_rollout_of_virt_handler() -> None:
    stage = await a_stage("LiveMigrate")
    other, ours = ({"annotations": {CONTROL_PLANE_IMAGE: image}} for image in ("another", None))

    async def say(node: str, meta: Json) -> int:
        stage.store.patch(NODE, Key("", node), {"metadata": meta})
        stage.catch_up()
        await stage.update()
        return len(stage.migrations)

    assert await say("node-3", other) == 0
    assert OUTDATED_LAUNCHER in stage.labels()
    stage.store.patch(NODE, Key("", "node-3"), {"metadata": ours})
    assert await say("node-1", other | {"labels": {SCHEDULABLE: "false"}}) == 0, "it is there"
    assert await say("node-1", ours) == 1


async def test_nothing_is_decided_before_the_caches_are_synced() -> None:
    stage = await a_stage("LiveMigrate")
    stage.caches[POD].synced = False
    with pytest.raises(Unavailable):
        stage.updates.observe(NAME)
    stage.caches[POD].synced = True
    assert stage.updates.observe(Key("kubevirt", "other")) is None
    stage.store.create(KUBEVIRT, "kubevirt", {"metadata": {"name": "other"}, "spec": {}})
    stage.catch_up()
    assert stage.updates.observe(Key("kubevirt", "other")) is None, "one of them is in charge"
    assert stage.updates.observe(NAME) is not None
