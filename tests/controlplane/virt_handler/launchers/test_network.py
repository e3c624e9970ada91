# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a Pod's network is set up again, and what is reported about it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

import pytest

from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.network import TAP_GONE, Network
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.node.virt_node_client import NodeClient, dial_virt_node
from tests.controlplane.virt_handler.builders import POD_UID
from tests.controlplane.virt_handler.fakes import FakeClock

WANTED = Masquerade("10.0.2.0/24")


class _Over(Exception):
    """Ends the test's time."""


class Stage(NodeClient):
    """A Pod's network, a node with these answers, and a clock that the pauses move."""

    def __init__(self, *answers: NodeError | None, pause: float = 300.0) -> None:
        super().__init__(dial_virt_node)
        self.clock = FakeClock()
        self.asked: list[tuple[float, str, Masquerade]] = []
        self.said: list[str] = []
        self._answers: Iterator[NodeError | None] = iter(answers)
        self.is_tap_open: bool | None = True
        self.has_guest = True
        self.network = Network(
            self,
            POD_UID,
            self.clock,
            pause=lambda: pause,
            trouble=self.said.append,
            has_guest=lambda: self.has_guest,
            sleep=self._pass,
        )

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        self.asked.append((self.clock.seconds - 1000.0, pod_uid, wanted))
        if (error := next(self._answers, None)) is not None:
            raise error
        return PodInterface(("10.244.0.7",), 1450, self.is_tap_open)

    @property
    def times(self) -> list[float]:
        return [when for when, _unused, __ in self.asked]

    async def until(self, seconds: float) -> None:
        """Follow until so many seconds after the start."""
        self._until = 1000.0 + seconds
        with suppress(_Over):
            await self.network.follow()
        self.clock.seconds = self._until

    async def _pass(self, seconds: float) -> None:
        if self.clock.seconds + seconds > self._until:
            raise _Over
        self.clock.seconds += seconds


async def test_the_same_network_is_set_up_every_five_minutes() -> None:
    stage = Stage()
    stage.network.keep(WANTED)
    await stage.until(1000)
    assert stage.asked == [(when, POD_UID, WANTED) for when in (300.0, 600.0, 900.0)]
    assert set(stage.said) == {""}


async def test_a_guest_without_a_network_has_none_set_up() -> None:
    stage = Stage()
    await stage.until(1000)
    stage.network.keep(None)
    await stage.until(2000)
    assert stage.asked == []


async def test_a_repair_is_due_after_the_last_setup_and_not_after_the_connect() -> None:
    """A libvirtd that reconnects every minute does not delay the repair."""
    stage = Stage()
    stage.network.keep(WANTED)
    for minutes in range(1, 12):
        await stage.until(60 * minutes)
    assert stage.times == [300.0, 600.0]


async def test_after_a_disconnect_only_an_overdue_repair_happens_at_once() -> None:
    stage = Stage()
    stage.network.keep(WANTED)
    stage.clock.seconds += 400
    await stage.until(450)
    stage.clock.seconds += 250
    stage.network.keep(WANTED)
    await stage.until(900)
    assert stage.times == [400.0]


async def test_a_failed_repair_is_reported_and_retried_soon() -> None:
    stage = Stage(Refused("a link"), NodeError("no eth0"))
    stage.network.keep(WANTED)
    await stage.until(500)
    assert stage.times == [300.0, 330.0, 360.0]
    assert stage.said == ["cannot set up the Pod's network: a link", "cannot set up the Pod's network: no eth0", ""]


@pytest.mark.parametrize("answer", [NodeAway("away"), NotThere("no Pod")], ids=["no virt-node", "the Pod goes"])
async def test_an_unreachable_node_is_no_network_trouble(answer: NodeError) -> None:
    stage = Stage(answer)
    stage.network.keep(WANTED)
    await stage.until(400)
    assert stage.times == [300.0, 330.0]
    assert stage.said == [""]


async def test_a_guest_whose_tap_was_deleted_has_lost_its_network() -> None:
    """A new tap exists, but QEMU holds the deleted one."""
    stage = Stage()
    stage.is_tap_open = False
    stage.network.keep(WANTED)
    await stage.until(400)
    assert stage.said == [TAP_GONE]
    assert "Restart the machine" in TAP_GONE


@pytest.mark.parametrize(
    ("is_tap_open", "has_guest"),
    [(False, False), (None, True), (True, True)],
    ids=["no guest is up", "a virt-node of the version before", "its QEMU holds it"],
)
async def test_a_closed_tap_matters_only_to_a_running_guest(is_tap_open: bool | None, has_guest: bool) -> None:
    stage = Stage()
    stage.is_tap_open, stage.has_guest = is_tap_open, has_guest
    stage.network.keep(WANTED)
    await stage.until(400)
    assert stage.said == [""]
