# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The quarantine over time: runs that fail and start elsewhere, new leaders, lost responses."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import NODE, VIRTUAL_MACHINE_INSTANCE, Key
from controlplane.engine.errors import Conflict, Unavailable
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.quarantine.quarantined_nodes import QuarantinedNodes
from controlplane.virt_controller.quarantine.reconciler import ALL_NODES, QuarantineReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld, StoreApi

LABEL = "virtops.kubevirt/quarantined"


class Stage(SmallWorld):
    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            labels = {"kubevirt.io/schedulable": "true"}
            self.store.create(NODE, "", {"metadata": {"name": name, "labels": labels}, "spec": {}})
        self.configuration = KubeVirtConfiguration()
        self.marked = QuarantinedNodes(self.overlays[NODE])
        self.enqueued: list[Key] = []
        self.quarantine = self.another()
        self.start()
        self.clock.advance(60)
        self.enqueued.clear()

    def another(self) -> QuarantineReconciler:
        """A process that leads and has not watched anything yet."""
        made = QuarantineReconciler(
            nodes=self.overlays[NODE],
            vmis=self.overlays[VIRTUAL_MACHINE_INSTANCE],
            api=self.api,
            clock=self.clock,
            events=self.recorder,
            configuration=lambda: self.configuration,
            enqueue=self.enqueued.append,
        )
        made.begin()
        return made

    async def work(self) -> Outcome:
        self.calls.clear()
        outcome = await reconcile(self.quarantine, ALL_NODES)
        self.catch_up()
        return outcome

    def start_elsewhere(
        self, name: str, namespace: str = "default", *, failed_on: str = "bad", on: str = "good"
    ) -> None:
        """Fail a run on one node by the node's fault, and start it on another node."""
        key = Key(namespace, name)
        self.store.create(VIRTUAL_MACHINE_INSTANCE, namespace, {"metadata": {"name": name}, "spec": {}})
        failed = {"attempt": 1, "nodeName": failed_on, "reason": "UnexpectedAdmissionError", "nodeFault": True}
        given: dict[str, Any] = {"nodeName": on, "failedAttempts": [failed] if failed_on else None}
        for phase in ("Scheduled", "Running"):
            status = {"status": {"phase": phase, **given}}
            self.store.patch(VIRTUAL_MACHINE_INSTANCE, key, status, subresource="status")
        self.catch_up()

    def start_three_elsewhere(self, failed_on: str = "bad") -> None:
        for name, namespace in (("a", "default"), ("b", "default"), ("c", "other")):
            self.start_elsewhere(f"{name}-{failed_on}", namespace, failed_on=failed_on)

    def label_of(self, name: str) -> str | None:
        label: str | None = self.store.get(NODE, Key("", name))["metadata"]["labels"].get(LABEL)
        return label

    def label(self, name: str, value: str | None) -> None:
        self.store.patch(NODE, Key("", name), {"metadata": {"labels": {LABEL: value}}})
        self.catch_up()

    def events_of(self, reason: str) -> list[tuple[str, str]]:
        return [(about, text) for about, why, text in self.recorder.events if why == reason]


@pytest.fixture
def stage() -> Stage:
    return Stage("bad", "good")


async def test_a_node_with_failed_starts_is_quarantined_for_a_while(stage: Stage) -> None:
    stage.start_three_elsewhere()
    assert set(stage.enqueued) == {ALL_NODES}
    await stage.work()
    assert stage.label_of("bad") is not None
    assert stage.marked() == {"bad"}
    assert [call for call in stage.calls if "patch" in call] == ["patch status of Node [uid+version]"]
    events = stage.events_of("NodeQuarantined")
    assert sorted(about for about, _unused in events) == ["bad", "default/a-bad", "default/b-bad", "other/c-bad"]
    assert "kubectl label node bad virtops.kubevirt/quarantined-" in events[0][1]
    assert (await stage.work()).requeue_after == pytest.approx(900)
    assert stage.calls == []

    stage.clock.advance(900)
    await stage.work()
    assert (stage.label_of("bad"), stage.marked()) == (None, frozenset())
    assert [about for about, _unused in stage.events_of("NodeReleased")] == ["bad"]
    await stage.work()
    assert (stage.label_of("bad"), stage.calls) == (None, [])


async def test_a_node_that_a_user_released_starts_over(stage: Stage) -> None:
    stage.start_three_elsewhere()
    await stage.work()
    stage.enqueued.clear()
    stage.label("bad", None)
    assert stage.enqueued
    for _unused in range(2):
        await stage.work()
    assert (stage.label_of("bad"), stage.marked()) == (None, frozenset())
    stage.start_elsewhere("one-more")
    await stage.work()
    assert stage.label_of("bad") is None


async def test_a_users_release_counts_before_the_label_was_observed(stage: Stage) -> None:
    """The relist shows the node without the label, as before."""
    stage.start_three_elsewhere()
    await reconcile(stage.quarantine, ALL_NODES)
    assert stage.label_of("bad") is not None
    stage.store.patch(NODE, Key("", "bad"), {"metadata": {"labels": {LABEL: None}}})
    stage.caches[NODE].relist()
    stage.catch_up()
    await stage.work()
    assert stage.label_of("bad") is None


async def test_a_new_node_with_the_same_name_has_no_failures(stage: Stage) -> None:
    for name in ("a", "b"):
        stage.start_elsewhere(name, name)
    stage.store.delete(NODE, Key("", "bad"))
    stage.catch_up()
    labels = {"kubevirt.io/schedulable": "true"}
    stage.store.create(NODE, "", {"metadata": {"name": "bad", "labels": labels}, "spec": {}})
    stage.start_elsewhere("c", "c")
    await stage.work()
    assert stage.label_of("bad") is None
    assert stage.calls == []


async def test_a_spared_node_is_reported_once() -> None:
    stage = Stage("bad")
    stage.start_three_elsewhere()
    for _unused in range(3):
        await stage.work()
    assert (stage.label_of("bad"), stage.calls) == (None, [])
    assert [about for about, _unused in stage.events_of("NodeNotQuarantined")] == ["bad"]


@pytest.mark.parametrize(
    "other",
    [
        {"metadata": {"labels": {LABEL: "20300101T000000Z"}}},
        {"metadata": {"labels": {"kubevirt.io/schedulable": "false"}}},
        {"spec": {"unschedulable": True}},
        None,
    ],
    ids=["quarantined by another leader", "not schedulable", "cordoned", "deleted"],
)
async def test_the_api_server_confirms_the_nodes_that_stay(stage: Stage, other: Any) -> None:
    """The watch does not show the change of the other node yet: fewer than half would stay."""
    stage.start_three_elsewhere()
    if other is None:
        stage.store.delete(NODE, Key("", "good"))
    else:
        stage.store.patch(NODE, Key("", "good"), other)
    outcome = await reconcile(stage.quarantine, ALL_NODES)
    assert isinstance(outcome.error, Conflict)
    assert stage.label_of("bad") is None


async def test_a_node_that_changed_meanwhile_is_not_quarantined(stage: Stage) -> None:
    stage.start_three_elsewhere()
    changed = {"metadata": {"labels": {LABEL: "maintenance"}}}
    stage.direct.meanwhile["patch status of Node"] = lambda: stage.store.patch(NODE, Key("", "bad"), changed)
    outcome = await reconcile(stage.quarantine, ALL_NODES)
    assert isinstance(outcome.error, Conflict)
    assert stage.label_of("bad") == "maintenance"


async def test_a_quarantine_without_a_response_is_reported_as_doubtful(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.start_three_elsewhere()
    real = StoreApi.patch

    async def lost(*given: Any, **options: Any) -> Any:
        await real(*given, **options)
        raise Unavailable("no answer")

    with monkeypatch.context() as patch:
        patch.setattr(StoreApi, "patch", lost)
        outcome = await stage.work()
    assert isinstance(outcome.error, Unavailable)
    assert [about for about, _unused in stage.events_of("NodeQuarantineDoubtful")] == ["bad"]
    marked = stage.label_of("bad")
    await stage.work()
    assert (stage.label_of("bad"), stage.calls) == (marked, [])
    stage.label("bad", None)
    await stage.work()
    assert stage.label_of("bad") is None


async def test_a_new_leader_waits_for_the_former_leaders_writes(stage: Stage) -> None:
    stage.quarantine.begin()
    stage.start_three_elsewhere()
    assert (await stage.work()).requeue_after == pytest.approx(60)
    assert stage.label_of("bad") is None
    stage.clock.advance(60)
    await stage.work()
    assert stage.label_of("bad") is not None


async def test_a_quarantine_of_a_former_process_ends_in_time(stage: Stage) -> None:
    """The wall clock may be wrong: the process ends a quarantine after watching it for its whole duration."""
    stage.label("bad", "20990101T000000Z")
    assert (await stage.work()).requeue_after == pytest.approx(900)
    stage.clock.advance(900)
    await stage.work()
    assert stage.label_of("bad") is None


async def test_a_label_with_a_new_time_is_observed_from_then_on(stage: Stage) -> None:
    stage.label("bad", "20990101T000000Z")
    await stage.work()
    stage.clock.advance(600)
    stage.label("bad", "20990102T000000Z")
    assert (await stage.work()).requeue_after == pytest.approx(900)


async def test_a_replica_that_does_not_lead_only_observes(stage: Stage) -> None:
    standby = QuarantineReconciler(
        nodes=stage.overlays[NODE],
        vmis=stage.overlays[VIRTUAL_MACHINE_INSTANCE],
        api=stage.api,
        clock=stage.clock,
        events=stage.recorder,
        configuration=KubeVirtConfiguration,
    )
    stage.start_three_elsewhere()
    assert standby.observe(ALL_NODES) is None
    standby.begin()
    world = standby.observe(ALL_NODES)
    assert world is not None
    assert [len(node.failures) for node in world.nodes] == [3, 0]


@pytest.mark.parametrize("unread", [NODE, VIRTUAL_MACHINE_INSTANCE], ids=str)
async def test_nothing_is_decided_before_the_caches_are_synced(stage: Stage, unread: Any) -> None:
    stage.start_three_elsewhere()
    stage.caches[unread].synced = False
    assert isinstance((await reconcile(stage.quarantine, ALL_NODES)).error, Unavailable)
