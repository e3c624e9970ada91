# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node controller over time: Leases that are renewed or not, a new leader, a watch that stands still."""

from __future__ import annotations

import json
from typing import Any

import pytest

from controlplane.api.objects.resources import LEASE, NODE, Key
from controlplane.engine.errors import Conflict
from controlplane.engine.plan import Outcome
from controlplane.engine.reconcile import reconcile
from controlplane.virt_controller.node.reconciler import REASON, NodeReconciler
from tests.controlplane.kube.virtual import MemoryApi, VirtualTime

NODE_KEY, LEASE_KEY = Key("", "node-1"), Key("kubevirt", "virt-handler-node-1")


class Mirror:
    """A cache of the API server's objects; a test can make it stand still."""

    def __init__(self, api: MemoryApi, plural: str) -> None:
        self._api = api
        self._plural = plural
        self._callbacks: list[Any] = []
        self._kept: bytes | None = None
        self.stands_still = False

    def get(self, key: Key) -> bytes | None:
        if not self.stands_still:
            body = self._api.objects.get((self._plural, key))
            self._kept = None if body is None else json.dumps(body).encode()
        return self._kept

    def subscribe(self, callback: Any) -> None:
        self._callbacks.append(callback)

    def tell(self, key: Key) -> None:
        for callback in self._callbacks:
            callback(key, None, self.get(key))


class Told:
    def __init__(self) -> None:
        self.events: list[tuple[str, str, str, str]] = []

    def record(self, regarding: Any, kind: str, reason: str, message: str, *, occurrence: str = "") -> None:
        self.events.append((str(regarding.key), kind, reason, message))


class Stage:
    def __init__(self) -> None:
        self.api, self.time, self.told = MemoryApi(), VirtualTime(), Told()
        self.nodes, self.leases = Mirror(self.api, "nodes"), Mirror(self.api, "leases")
        self.lead()

    def lead(self) -> None:
        """Elect a new leader, in a process that has watched for long."""
        self.reconciler = NodeReconciler(
            nodes=self.nodes,  # type: ignore[arg-type]
            leases=self.leases,  # type: ignore[arg-type]
            api=self.api,
            clock=self.time,
            events=self.told,
            namespace="kubevirt",
        )
        self.reconciler.begin()

    async def set_up(self, label: str = "true") -> None:
        await self.api.create(NODE, "", {"metadata": {"name": "node-1", "labels": {"kubevirt.io/schedulable": label}}})
        await self.api.create(LEASE, "kubevirt", {"metadata": {"name": LEASE_KEY.name}, "spec": {}})
        await self.renew()

    async def renew(self, holder: str = "pod", stamp: str | None = None) -> None:
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 40, "renewTime": stamp or str(self.time.seconds)}
        await self.api.patch(LEASE, LEASE_KEY, {"spec": spec})
        self.leases.tell(LEASE_KEY)

    async def look(self, after: float = 0.0) -> Outcome:
        self.time.seconds += after
        return await reconcile(self.reconciler, NODE_KEY)

    @property
    def label(self) -> str | None:
        labels: dict[str, str] = self.api.objects["nodes", NODE_KEY]["metadata"]["labels"]
        return labels.get("kubevirt.io/schedulable")


@pytest.fixture
async def stage() -> Stage:
    made = Stage()
    await made.set_up()
    return made


async def test_a_node_whose_virt_handler_renews_stays_schedulable(stage: Stage) -> None:
    for _unused in range(20):
        await stage.look(after=10)
        await stage.renew()

    outcome = await stage.look()
    assert (stage.label, stage.told.events) == ("true", [])
    assert outcome.requeue_after == pytest.approx(40)


async def test_a_silent_node_is_marked_once_with_an_event(stage: Stage) -> None:
    assert (await stage.look()).requeue_after == pytest.approx(40)

    await stage.look(after=40)
    assert stage.label == "false"
    writes = len(stage.api.writes)
    await stage.look(after=1000)

    assert len(stage.api.writes) == writes
    ((about, kind, reason, message),) = stage.told.events
    assert (about, kind, reason) == ("node-1", "Warning", REASON)
    assert "not renewed for 40 s" in message
    assert "Those that run are not touched" in message


async def test_the_renew_time_in_a_lease_is_ignored(stage: Stage) -> None:
    """One node's clock is a year behind; another writes a year ahead and falls silent."""
    for stamp in ("2001-01-01T00:00:00.000000Z", "2001-01-01T00:00:10.000000Z"):
        await stage.renew(stamp=stamp)
        await stage.look(after=30)
        assert stage.label == "true"

    await stage.renew(stamp="2999-01-01T00:00:00.000000Z")
    await stage.look()
    await stage.look(after=40)
    assert stage.label == "false"


async def test_a_new_leader_watches_for_a_whole_duration_first(stage: Stage) -> None:
    stage.time.seconds += 3600
    stage.lead()

    await stage.look()
    await stage.look(after=39.5)
    assert stage.label == "true"
    await stage.look(after=1)
    assert stage.label == "false"


async def test_a_broken_watch_marks_no_node(stage: Stage) -> None:
    await stage.look()
    stage.leases.stands_still = True

    for _unused in range(5):
        stage.time.seconds += 10
        await stage.renew()
        outcome = await stage.look(after=30)
        assert stage.label == "true"
        assert outcome.error is None or isinstance(outcome.error, Conflict)

    assert stage.told.events == []


async def test_a_renewal_that_only_the_api_server_has_restarts_the_time(stage: Stage) -> None:
    """Otherwise each pass would read the Lease again while the watch stands still."""
    await stage.look()
    stage.leases.stands_still = True
    stage.time.seconds += 40
    await stage.renew()
    assert isinstance((await stage.look()).error, Conflict)

    assert (await stage.look(after=1)).requeue_after == pytest.approx(40)
    assert (await stage.look(after=39)).requeue_after == pytest.approx(1)


async def test_a_missing_lease_counts_as_silence(stage: Stage) -> None:
    await stage.look()
    await stage.api.delete(LEASE, LEASE_KEY)
    await stage.look(after=10)
    assert stage.label == "true"

    await stage.look(after=40)

    assert stage.label == "false"
    assert "it has no Lease" in stage.told.events[0][3]


async def test_a_deleted_lease_counts_as_silence_from_its_deletion(stage: Stage) -> None:
    """Not from the next pass, for which nothing enqueues the node."""
    await stage.look()
    stage.time.seconds += 10
    await stage.api.delete(LEASE, LEASE_KEY)
    stage.leases.tell(LEASE_KEY)

    await stage.look(after=40)

    assert stage.label == "false"


async def test_a_new_node_with_the_same_name_is_not_patched(stage: Stage) -> None:
    await stage.look()
    stage.nodes.get(NODE_KEY)
    stage.nodes.stands_still = True
    stage.api.objects["nodes", NODE_KEY]["metadata"]["uid"] = "another"

    outcome = await stage.look(after=40)

    assert isinstance(outcome.error, Conflict)
    assert stage.label == "true"


async def test_a_deleted_node_is_forgotten(stage: Stage) -> None:
    await stage.look()
    node = stage.api.objects.pop(("nodes", NODE_KEY))
    assert (await stage.look(after=40)).requeue_after is None
    stage.api.objects["nodes", NODE_KEY] = node

    await stage.look()

    assert stage.label == "true"


async def test_an_unreadable_lease_counts_as_missing(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.api.objects["leases", LEASE_KEY]["spec"] = 7
    stage.leases.tell(LEASE_KEY)

    assert (await stage.look()).requeue_after == pytest.approx(40)
    assert "a Lease cannot be read" in caplog.text


async def test_leases_of_others_are_ignored(stage: Stage) -> None:
    await stage.look()
    key = Key("kubevirt", "virt-controller")
    await stage.api.create(LEASE, "kubevirt", {"metadata": {"name": key.name}, "spec": {"renewTime": "1"}})
    stage.leases.tell(key)

    await stage.look(after=40)

    assert stage.label == "false"
