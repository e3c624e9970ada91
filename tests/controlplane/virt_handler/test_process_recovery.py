# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-handler as it is wired: its node takes machines, and starts them, once it is clear of what is no longer its own.

A test that waits for what never comes ends after the patience of `until`: all of it is due at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import pytest
from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.resources import NODE, POD, Key
from controlplane.engine.clock import SystemClock
from controlplane.kube.lease import Heartbeat
from controlplane.links.node.messages import KvmFinding, NodeState
from controlplane.virt_handler import __main__ as virt_handler
from tests.controlplane.kube.late_api import settle
from tests.controlplane.virt_handler.builders import pod_object
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS
from tests.controlplane.virt_handler.wired import NODE_KEY, WEB, Stage


class LaterClock(SystemClock):
    """The machine's clock, and the time for which it was suspended."""

    suspended = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.suspended


@dataclass
class Host:
    """What a host that is suspended does to the processes on it."""

    clock: LaterClock
    due: asyncio.Event
    """The next beat."""

    def wake_up(self, seconds: float) -> None:
        self.clock.suspended += seconds
        self.due.set()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(LaterClock(), asyncio.Event())

    async def until_due(_seconds: float) -> None:
        await made.due.wait()
        made.due.clear()

    monkeypatch.setattr(virt_handler, "SystemClock", lambda: made.clock)
    monkeypatch.setattr(virt_handler, "Heartbeat", partial(Heartbeat, sleep=until_due))
    return made


OTHERS = Key("default", "virt-launcher-other")


async def until_listed(stage: Stage, says: str) -> None:
    """Wait until the Node says whether it takes machines, and nothing more is under way about it."""
    await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == says)
    await settle()
    assert stage.node["metadata"]["labels"][SCHEDULABLE] == says


async def offer(stage: Stage) -> None:
    await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True)))


@pytest.fixture
def offering(launcher: Stage) -> Stage:
    launcher.api.set(NODE, NODE_KEY, {})
    return launcher


async def test_a_node_is_not_listed_and_starts_nothing_until_it_is_clear_and_then_does_at_once(offering: Stage) -> None:
    """The next look at the label is a minute away, and nothing else tells of machines that waited."""
    offering.api.hold_get(WEB)
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "false")
        assert offering.phase == "Scheduled"
        offering.api.release()
        await until_listed(offering, "true")
        await offering.until(lambda: offering.phase == "Running")


async def test_who_has_waited_until_a_node_is_clear_is_started_then(offering: Stage) -> None:
    """What was asked about is another machine, of which nothing wakes this one."""
    pod = pod_object("other", owner_uid="another")
    pod["metadata"]["name"], pod["metadata"]["ownerReferences"][0]["name"] = OTHERS.name, "other"
    offering.api.set(POD, OTHERS, pod)
    offering.api.hold_get(Key("default", "other"))
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "false")
        assert offering.phase == "Scheduled"
        offering.api.release()
        await offering.until(lambda: offering.phase == "Running")


async def test_a_node_is_not_clear_before_its_launchers_are_known(offering: Stage) -> None:
    """To ask about no launchers is answered at once, and says nothing."""
    offering.api.hold("list", POD)
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "false")
        offering.api.release()
        await until_listed(offering, "true")


async def test_a_node_that_was_suspended_is_cleared_as_soon_as_it_is_heard_again(offering: Stage, host: Host) -> None:
    """The end of its Lease, at which it would look by itself, comes late by all the time that it slept."""
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "true")
        await offering.until(lambda: offering.phase == "Running")
        offering.api.hold_get(WEB)
        host.wake_up(LEASE_SECONDS + 1)
        await until_listed(offering, "false")
        offering.api.release()
        await until_listed(offering, "true")
