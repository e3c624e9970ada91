# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole virt-handler process: a node starts guests once its recovery is complete.

A wait for something that never happens ends at the timeout of `until`: all of it is due at once.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from functools import partial

import pytest
from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.resources import NODE, POD
from controlplane.engine.clock import SystemClock
from controlplane.kube.lease import Heartbeat
from controlplane.links.node.messages import KvmFinding, NodeState
from controlplane.virt_handler import __main__ as virt_handler
from tests.controlplane.kube.late_api import settle
from tests.controlplane.virt_handler.fakes import LEASE_SECONDS
from tests.controlplane.virt_handler.wired import NODE_KEY, WEB, Stage


class LaterClock(SystemClock):
    """The system clock plus the time for which the host was suspended."""

    suspended = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.suspended


@dataclass
class Host:
    """A suspended host, as its processes see it."""

    clock: LaterClock
    due: asyncio.Event
    """Set when the next heartbeat is due."""

    def wake_up(self, seconds: float) -> None:
        self.clock.suspended += seconds
        self.due.set()


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    host = Host(LaterClock(), asyncio.Event())

    async def until_due(_seconds: float) -> None:
        await host.due.wait()
        host.due.clear()

    monkeypatch.setattr(virt_handler, "SystemClock", lambda: host.clock)
    monkeypatch.setattr(virt_handler, "Heartbeat", partial(Heartbeat, sleep=until_due))
    return host


async def until_listed(stage: Stage, says: str) -> None:
    """Wait until the schedulable label has this value and stays."""
    await stage.until(lambda: stage.node["metadata"].get("labels", {}).get(SCHEDULABLE) == says)
    await settle()
    assert stage.node["metadata"]["labels"][SCHEDULABLE] == says


async def offer(stage: Stage) -> None:
    await stage.virt_node.offer.update(NodeState(KvmFinding(is_usable=True)))


@pytest.fixture
def offering(launcher: Stage) -> Stage:
    launcher.api.set(NODE, NODE_KEY, {})
    return launcher


async def test_a_recovering_node_is_unschedulable_and_starts_guests_right_after(offering: Stage) -> None:
    """The next label check is a minute away, and no event enqueues the waiting VMIs."""
    offering.api.hold_get(WEB)
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "false")
        assert offering.phase == "Scheduled"
        offering.api.release()
        await until_listed(offering, "true")
        await offering.until(lambda: offering.phase == "Running")


async def test_a_node_is_not_recovered_before_its_pods_are_listed(offering: Stage) -> None:
    """Without known launchers the recovery has no question to ask and would end at once."""
    offering.api.hold("list", POD)
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "false")
        offering.api.release()
        await until_listed(offering, "true")


async def test_a_suspended_node_recovers_at_its_next_heartbeat(offering: Stage, host: Host) -> None:
    """A timer for the end of the Lease would fire late, by the whole suspension."""
    async with offering.running():
        await offer(offering)
        await until_listed(offering, "true")
        await offering.until(lambda: offering.phase == "Running")
        offering.api.hold_get(WEB)
        host.wake_up(LEASE_SECONDS + 1)
        await until_listed(offering, "false")
        offering.api.release()
        await until_listed(offering, "true")
