# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import Unavailable
from controlplane.kube.lease import Heartbeat
from controlplane.virt_handler.node.heartbeat import LONGEST_RETRY_SECONDS, LOOK_SECONDS, keep_schedulable
from controlplane.virt_handler.node.labels import serving_patch
from controlplane.virt_node.kvm import KvmFinding
from tests.controlplane.kube.fake_api import Json
from tests.controlplane.kube.virtual import MemoryApi, VirtualTime

KEY, LEASE_KEY = Key("", "node-1"), Key("kubevirt", "virt-handler-node-1")


class Ended(Exception):
    """The test is over."""


def a_heartbeat(api: MemoryApi, time: VirtualTime) -> Heartbeat:
    return Heartbeat(api, LEASE_KEY, "node-1", time, duration_seconds=40, sleep=time.sleep)


class Stage:
    """A Node, and what happens at each pause."""

    def __init__(self, *happens: Any) -> None:
        self.api, self.leases, self.time = MemoryApi(), MemoryApi(), VirtualTime()
        self.heartbeat = a_heartbeat(self.leases, self.time)
        self.happens = list(happens)
        self.held = ""
        self.waits: list[float] = []
        self.seen: list[str] = []
        """The schedulable label at each pause."""

    async def play(self) -> None:
        await self.api.create(NODE, "", {"metadata": {"name": "node-1"}})
        self.api.writes.clear()
        await self.heartbeat.beat()
        patch = serving_patch(KvmFinding(is_usable=True), 0.0, {})
        with pytest.raises(Ended):
            await keep_schedulable(
                self.api,
                "node-1",
                lambda _node: patch,
                self.heartbeat,
                start_blocked_reason=lambda: self.held,
                wait=self.wait,
            )

    async def wait(self, event: asyncio.Event, seconds: float) -> None:
        """Renew the Lease meanwhile, if that succeeds."""
        self.seen.append(self.labels.get("kubevirt.io/schedulable", ""))
        self.waits.append(seconds)
        if not self.happens:
            raise Ended
        self.happens.pop(0)(self)
        self.time.seconds += seconds
        with suppress(Unavailable):
            await self.heartbeat.beat()

    def taken_off(self) -> None:
        self.api.objects["nodes", KEY]["metadata"]["labels"]["kubevirt.io/schedulable"] = "false"

    def fails(self) -> None:
        self.api.failing = Unavailable("gone")

    def works(self) -> None:
        self.api.failing = None

    def is_unheard(self) -> None:
        """The Lease is no longer renewed, and virt-controller makes the node unschedulable."""
        self.leases.failing = Unavailable("cut off")
        self.taken_off()

    def is_heard(self) -> None:
        self.leases.failing = None

    def is_paused_by_user(self) -> None:
        """The node's recovery is not complete."""
        self.held = "guests are being ended"
        self.heartbeat.resumed.set()

    def is_clear(self) -> None:
        self.held = ""
        self.heartbeat.resumed.set()

    def nothing(self) -> None:
        pass

    @property
    def labels(self) -> dict[str, str]:
        return dict(self.api.objects["nodes", KEY]["metadata"].get("labels", {}))


async def test_a_node_is_unschedulable_until_its_recovery_is_complete() -> None:
    stage = Stage(Stage.is_paused_by_user, Stage.taken_off, Stage.is_clear, Stage.nothing)
    await stage.play()

    assert stage.seen == ["true", "false", "false", "true", "true"]


async def test_a_node_made_unschedulable_is_made_schedulable_again() -> None:
    stage = Stage(Stage.taken_off, Stage.nothing)
    await stage.play()

    assert stage.labels["kubevirt.io/schedulable"] == "true"
    assert len(stage.api.writes) == 2


async def test_a_failed_write_is_retried_with_back_off(caplog: pytest.LogCaptureFixture) -> None:
    stage = Stage(Stage.fails, *[Stage.nothing] * 7, Stage.works, Stage.fails, Stage.nothing)
    await stage.play()

    longest = [LONGEST_RETRY_SECONDS] * 3
    assert stage.waits == [LOOK_SECONDS, 1, 2, 4, 8, 16, *longest, LOOK_SECONDS, 1, 2], "and soon again the next time"


async def test_a_node_without_a_lease_stays_unschedulable_until_its_next_beat() -> None:
    """The label flapped once a minute while the Lease was refused and the Node was not."""
    stage = Stage(Stage.is_unheard, Stage.nothing, Stage.nothing, Stage.is_heard)
    await stage.play()

    assert stage.seen == ["true", "false", "false", "false", "true"]


async def test_a_recovery_that_completes_during_a_write_is_written_at_once() -> None:
    class ClearMeanwhile(MemoryApi):
        held = "guests are being ended"

        async def patch(self, *args: Any, **options: Any) -> Json:
            written = await super().patch(*args, **options)
            self.held = ""
            heartbeat.resumed.set()
            return written

    api, leases, time = ClearMeanwhile(), MemoryApi(), VirtualTime()
    heartbeat = a_heartbeat(leases, time)
    await api.create(NODE, "", {"metadata": {"name": "node-1"}})
    await heartbeat.beat()
    patch = serving_patch(KvmFinding(is_usable=True), 0.0, {})
    keeping = asyncio.create_task(
        keep_schedulable(api, "node-1", lambda _node: patch, heartbeat, start_blocked_reason=lambda: api.held)
    )
    await settle()

    assert api.objects["nodes", KEY]["metadata"]["labels"]["kubevirt.io/schedulable"] == "true"
    keeping.cancel()
    await asyncio.wait({keeping})


async def settle() -> None:
    for _unused in range(10):
        await asyncio.sleep(0)
