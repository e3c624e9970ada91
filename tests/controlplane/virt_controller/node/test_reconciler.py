# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node controller over time: Leases that are renewed or not, a new leader, a watch that stands still."""

from __future__ import annotations

import pytest

from controlplane.api.objects.resources import LEASE, NODE, Key
from controlplane.engine.errors import Conflict
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.node.reconciler import REASON, NodeReconciler
from tests.controlplane.virt_controller.small_world import SmallWorld
from tests.support.store import Json

NODE_KEY, LEASE_KEY = Key("", "node-1"), Key("kubevirt", "virt-handler-node-1")


class Stage(SmallWorld):
    """A schedulable node and its Lease."""

    def __init__(self) -> None:
        super().__init__((NODE, LEASE))
        labels = {"kubevirt.io/schedulable": "true"}
        self.store.create(NODE, "", {"metadata": {"name": "node-1", "labels": labels}, "spec": {}})
        self.store.create(LEASE, "kubevirt", {"metadata": {"name": LEASE_KEY.name}, "spec": {}})
        self.start()
        self.lead()
        self.renew()

    def lead(self) -> None:
        """Elect a new leader, in a process that has watched for long."""
        self.reconciler = NodeReconciler(
            nodes=self.overlays[NODE],
            leases=self.caches[LEASE],
            api=self.api,
            clock=self.clock,
            events=self.recorder,
            namespace="kubevirt",
        )
        self.reconciler.begin()

    def renew(self, stamp: str | None = None, *, is_seen: bool = True) -> None:
        """is_seen: by the watch."""
        renewed = stamp or str(self.clock.monotonic())
        spec = {"holderIdentity": "pod", "leaseDurationSeconds": 40, "renewTime": renewed}
        self.patch_lease({"spec": spec}, is_seen=is_seen)

    def patch_lease(self, patch: Json, *, is_seen: bool = True) -> None:
        self.store.patch(LEASE, LEASE_KEY, patch)
        if is_seen:
            self.catch_up()

    async def run(self, after: float = 0.0) -> Outcome:
        self.clock.advance(after)
        outcome = await reconcile(self.reconciler, NODE_KEY)
        self.catch_up(NODE)
        return outcome

    @property
    def is_schedulable(self) -> bool:
        return bool(self.store.get(NODE, NODE_KEY)["metadata"]["labels"]["kubevirt.io/schedulable"] == "true")


@pytest.fixture
def stage() -> Stage:
    return Stage()


async def test_a_node_whose_virt_handler_renews_stays_schedulable(stage: Stage) -> None:
    for _unused in range(20):
        await stage.run(after=10)
        stage.renew()
    outcome = await stage.run()
    assert (stage.is_schedulable, stage.recorder.events) == (True, [])
    assert outcome.requeue_after == pytest.approx(40)


async def test_a_silent_node_is_marked_once_with_an_event(stage: Stage) -> None:
    assert (await stage.run()).requeue_after == pytest.approx(40)
    await stage.run(after=40)
    assert not stage.is_schedulable
    await stage.run(after=1000)
    assert [call for call in stage.calls if "patch" in call] == ["patch status of Node [uid]"]
    ((regarding, reason, message),) = stage.recorder.events
    assert (regarding, reason, stage.recorder.kinds) == ("node-1", REASON, ["Warning"])
    assert "not renewed for 40 s" in message
    assert "Running ones are not affected" in message


async def test_the_renew_time_in_a_lease_is_ignored(stage: Stage) -> None:
    """One node's clock is a year behind; another writes a year ahead and falls silent."""
    for stamp in ("2001-01-01T00:00:00.000000Z", "2001-01-01T00:00:10.000000Z"):
        stage.renew(stamp)
        await stage.run(after=30)
        assert stage.is_schedulable
    stage.renew("2999-01-01T00:00:00.000000Z")
    await stage.run()
    await stage.run(after=40)
    assert not stage.is_schedulable


async def test_a_new_leader_watches_for_a_whole_duration_first(stage: Stage) -> None:
    stage.clock.advance(3600)
    stage.lead()
    await stage.run()
    await stage.run(after=39.5)
    assert stage.is_schedulable
    await stage.run(after=1)
    assert not stage.is_schedulable


async def test_a_broken_watch_marks_no_node(stage: Stage) -> None:
    await stage.run()
    for _unused in range(5):
        stage.clock.advance(10)
        stage.renew(is_seen=False)
        outcome = await stage.run(after=30)
        assert stage.is_schedulable
        assert outcome.error is None or isinstance(outcome.error, Conflict)
    assert stage.recorder.events == []


async def test_a_renewal_that_only_the_api_server_has_restarts_the_time(stage: Stage) -> None:
    """Otherwise each pass would read the Lease again while the watch stands still."""
    await stage.run()
    stage.clock.advance(40)
    stage.renew(is_seen=False)
    assert isinstance((await stage.run()).error, Conflict)
    assert (await stage.run(after=1)).requeue_after == pytest.approx(40)
    assert (await stage.run(after=39)).requeue_after == pytest.approx(1)


async def test_a_deleted_lease_counts_as_silence_from_its_deletion(stage: Stage) -> None:
    """Not from the next pass, for which nothing enqueues the node."""
    await stage.run()
    stage.clock.advance(10)
    stage.store.delete(LEASE, LEASE_KEY)
    stage.catch_up()
    await stage.run(after=39)
    assert stage.is_schedulable
    await stage.run(after=1)
    assert not stage.is_schedulable
    assert "it has no Lease" in stage.recorder.events[0][2]


async def test_an_unreadable_lease_counts_as_missing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.patch_lease({"spec": 7})
    assert (await stage.run()).requeue_after == pytest.approx(40)
    assert "a Lease cannot be read" in caplog.text


async def test_a_new_node_with_the_same_name_is_not_patched(stage: Stage) -> None:
    await stage.run()
    stage.store.delete(NODE, NODE_KEY)
    labels = {"kubevirt.io/schedulable": "true"}
    stage.store.create(NODE, "", {"metadata": {"name": "node-1", "labels": labels}, "spec": {}})
    outcome = await stage.run(after=40)
    assert isinstance(outcome.error, Conflict)
    assert stage.is_schedulable


async def test_a_deleted_node_is_forgotten(stage: Stage) -> None:
    await stage.run()
    body = stage.store.get(NODE, NODE_KEY)
    stage.store.delete(NODE, NODE_KEY)
    stage.catch_up()
    assert (await stage.run(after=40)).requeue_after is None
    stage.store.create(NODE, "", {"metadata": {"name": "node-1", "labels": body["metadata"]["labels"]}, "spec": {}})
    stage.catch_up()
    await stage.run()
    assert stage.is_schedulable
