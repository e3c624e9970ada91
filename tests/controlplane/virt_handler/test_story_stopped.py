# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest that its migration paused resumes, whatever dies. A guest that a user paused stays paused."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from controlplane.domain.state import Life, State
from controlplane.engine.errors import Unavailable
from controlplane.virt_handler.launchers.ports import Failed, TransferRequest
from controlplane.virt_handler.vmi.migration_source import RESTARTED
from controlplane.virt_handler.vmi.ports import NoContact
from tests.controlplane.virt_handler.fakes import FakeGuest, until
from tests.controlplane.virt_handler.moving import BY_MIGRATION, WHOLE, moving_object
from tests.controlplane.virt_handler.stage import KEY, Node

pytestmark = pytest.mark.root  # sockets of uid 107


class Leaving:
    """A migration whose end the test triggers."""

    def __init__(self, node: Node, stopped: State) -> None:
        """stopped: the guest's state once the migration has paused it."""
        self.node = node
        self._stopped = stopped
        self.is_stop_announced = asyncio.Event()
        self.is_broken = asyncio.Event()
        self.refused = ""

    async def send(self, order: TransferRequest) -> None:
        await order.writes.begin()
        await self.is_stop_announced.wait()
        try:
            await order.writes.stop()
        except NoContact as error:
            self.refused = str(error)
        else:
            if self.guest.life.life is not Life.PAUSED:
                self.guest.become(self._stopped, "suspended")
        await self.is_broken.wait()
        raise Failed("the tunnel broke")

    @property
    def guest(self) -> FakeGuest:
        assert self.node.libvirtd.guest is not None
        return self.node.libvirtd.guest

    @property
    def state(self) -> dict[str, Any]:
        return dict(self.node.status["migrationState"])

    @property
    def paused(self) -> str:
        """Reason of the Paused condition, or ""."""
        reasons = [condition["reason"] for condition in self.node.status["conditions"] if condition["type"] == "Paused"]
        return "".join(reasons)

    async def begin(self) -> None:
        status = self.node.status
        moving = moving_object(targetNodeAddress="10.244.1.9", targetDirectMigrationNodePorts={"4711": 0})
        body = self.node.api.objects[KEY]
        self.node.api.store(
            {**body, "status": {**status, "migrationState": moving["status"]["migrationState"]}},
        )
        await until(lambda: "startTimestamp" in self.state, "a beginning")

    async def stop(self) -> None:
        self.is_stop_announced.set()
        await until(lambda: self.state["mode"] == "Paused", "that it is said")


async def leaving(node: Node, stopped: State) -> Leaving:
    """Restart virt-handler with a sender of guests, and start the migration."""
    migration = Leaving(node, stopped)
    await node.end()
    node.send = migration.send
    node.begin()
    await migration.begin()
    return migration


@pytest.mark.parametrize("stopped", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
async def test_a_guest_paused_by_a_failed_migration_resumes(running: Node, stopped: State) -> None:
    sent = await leaving(running, stopped)
    assert sent.state["mode"] == "PreCopy"
    await sent.stop()
    await until(lambda: sent.paused == "PausedByMigrationMonitor", "a word of it")
    sent.is_broken.set()
    await until(lambda: sent.state.get("failed") is True, "its end")
    assert sent.guest.life.life is Life.RUNNING, "before it is said to be over"
    assert sent.state["failureReason"] == "the tunnel broke"
    await until(lambda: sent.paused == "", "no word of it")


@pytest.mark.parametrize("stopped", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
async def test_a_restarted_virt_handler_resumes_the_guest(running: Node, stopped: State) -> None:
    sent = await leaving(running, stopped)
    await sent.stop()
    await until(lambda: sent.guest.life == stopped, "a pause")
    await running.end()
    assert sent.guest.life == stopped
    running.begin()
    await until(lambda: sent.guest.life.life is Life.RUNNING, "a guest that goes on")
    await until(lambda: sent.state.get("failureReason") == RESTARTED, "its end")


@pytest.mark.parametrize("stopped", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
@pytest.mark.parametrize("is_away", [True, False], ids=["virt-handler is away", "it cannot say so"])
async def test_a_guest_resumes_when_virt_controller_fails_the_migration(
    running: Node, stopped: State, is_away: bool
) -> None:
    """virt-controller fails a migration whose target Pod has ended, whatever the guest's state."""
    sent = await leaving(running, stopped)
    await sent.stop()
    await until(lambda: sent.guest.life == stopped, "a pause")
    if is_away:
        await running.end()
    over = {**sent.state, "failed": True, "completed": True, "failureReason": "the target Pod is down"}
    running.api.store({**running.api.objects[KEY], "status": {**running.status, "migrationState": over}})
    if is_away:
        running.begin()
    sent.is_broken.set()
    await until(lambda: sent.guest.life.life is Life.RUNNING, "a guest that goes on")
    await until(lambda: sent.paused == "", "no word of it")

    sent.guest.become(WHOLE, "suspended")  # paused by a user
    await until(lambda: sent.paused == "PausedByUser", "a word of it")
    assert sent.guest.life == WHOLE


async def test_a_guest_paused_by_a_user_stays_paused(running: Node) -> None:
    """It was paused before the migration started, which paused nothing."""
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(WHOLE, "suspended")
    await until(
        lambda: any(condition["type"] == "Paused" for condition in running.status["conditions"]), "a word of it"
    )
    sent = await leaving(running, BY_MIGRATION)
    await running.end()
    running.begin()
    await until(lambda: sent.state.get("failureReason") == RESTARTED, "its end")
    assert (sent.guest.life, sent.paused) == (WHOLE, "PausedByUser")
    assert "resume" not in running.libvirtd.asked


async def test_a_migration_starts_only_once_a_users_pause_is_in_the_status(running: Node) -> None:
    """The target knows of the pause from the status alone, and would resume the guest."""
    original = running.api.patch

    async def patch(*about: Any, **more: Any) -> Any:
        if "conditions" in about[2].get("status", {}):
            raise Unavailable("cut off")
        return await original(*about, **more)

    running.api.patch = patch  # type: ignore[method-assign]
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(WHOLE, "suspended")
    sent = Leaving(running, BY_MIGRATION)
    await running.end()
    running.send = sent.send
    running.begin()
    beginning = asyncio.create_task(sent.begin())
    await until(lambda: running.registry is not None and running.libvirtd.guest is not None, "a connection")
    for _unused in range(50):
        await asyncio.sleep(0)
    assert "startTimestamp" not in sent.state
    running.api.patch = original  # type: ignore[method-assign]
    await beginning
    assert sent.paused == "PausedByUser"


async def test_a_guest_is_not_paused_while_that_cannot_be_written(running: Node) -> None:
    sent = await leaving(running, BY_MIGRATION)
    running.api.error = Unavailable("cut off")
    sent.is_stop_announced.set()
    await until(lambda: "cut off" in sent.refused, "a refusal")
    assert sent.guest.life.life is Life.RUNNING
    running.api.error = None
    sent.is_broken.set()
    await until(lambda: sent.state.get("failed") is True, "its end")
    assert sent.state["mode"] == "PreCopy"
