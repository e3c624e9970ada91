# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest is stopped so that it can be sent, and whatever dies then, it goes on; one that a person paused does not."""

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
    """A guest that is being sent for as long as nobody says how that ends."""

    def __init__(self, node: Node, stopped: State) -> None:
        """stopped: what becomes of the guest when it is stopped."""
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
        """Why the instance is said to be paused; "" when it is not."""
        found = [one["reason"] for one in self.node.status["conditions"] if one["type"] == "Paused"]
        return "".join(found)

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
    """Start virt-handler anew with a way to send guests, and begin."""
    made = Leaving(node, stopped)
    await node.end()
    node.send = made.send
    node.begin()
    await made.begin()
    return made


@pytest.mark.parametrize("stopped", [BY_MIGRATION, WHOLE], ids=lambda state: state.reason)
async def test_a_guest_that_was_stopped_for_nothing_goes_on(running: Node, stopped: State) -> None:
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
async def test_whoever_comes_after_a_virt_handler_that_died_lets_it_go_on(running: Node, stopped: State) -> None:
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
async def test_one_of_which_another_says_that_it_failed_goes_on(running: Node, stopped: State, is_away: bool) -> None:
    """virt-controller ends one whose target Pod has ended, whatever is known of the guest."""
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

    sent.guest.become(WHOLE, "suspended")  # by a person
    await until(lambda: sent.paused == "PausedByUser", "a word of it")
    assert sent.guest.life == WHOLE


async def test_one_that_a_person_has_paused_stays_so(running: Node) -> None:
    """Before it began: nothing of it was stopped."""
    assert running.libvirtd.guest is not None
    running.libvirtd.guest.become(WHOLE, "suspended")
    await until(lambda: any(one["type"] == "Paused" for one in running.status["conditions"]), "a word of it")
    sent = await leaving(running, BY_MIGRATION)
    await running.end()
    running.begin()
    await until(lambda: sent.state.get("failureReason") == RESTARTED, "its end")
    assert (sent.guest.life, sent.paused) == (WHOLE, "PausedByUser")
    assert "resume" not in running.libvirtd.asked


async def test_a_migration_begins_when_it_is_told_that_a_person_has_paused_the_guest(running: Node) -> None:
    """Or the target, which knows by that alone, would let the guest go on."""
    real = running.api.patch

    async def patch(*about: Any, **more: Any) -> Any:
        if "conditions" in about[2].get("status", {}):
            raise Unavailable("cut off")
        return await real(*about, **more)

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
    running.api.patch = real  # type: ignore[method-assign]
    await beginning
    assert sent.paused == "PausedByUser"


async def test_it_is_not_stopped_while_that_cannot_be_written(running: Node) -> None:
    sent = await leaving(running, BY_MIGRATION)
    running.api.error = Unavailable("cut off")
    sent.is_stop_announced.set()
    await until(lambda: "cut off" in sent.refused, "a refusal")
    assert sent.guest.life.life is Life.RUNNING
    running.api.error = None
    sent.is_broken.set()
    await until(lambda: sent.state.get("failed") is True, "its end")
    assert sent.state["mode"] == "PreCopy"
