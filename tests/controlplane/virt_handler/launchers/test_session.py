# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions with a faulty or silent launcher."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.events import LifecycleChanged
from tests.controlplane.virt_handler.builders import RUNNING, domain_text, pod_object
from tests.controlplane.virt_handler.fakes import FakeConnection, FakeGuest, FakeLibvirtd, until
from tests.controlplane.virt_handler.stage import Node

pytestmark = pytest.mark.root  # sockets of uid 107


def come_up(node: Node) -> None:
    node.files.make_directory()
    node.files.report()
    node.files.listen()
    node.hand_over()
    node.pods.put(pod_object())


async def defined(libvirtd: FakeLibvirtd, xml: str) -> FakeGuest:
    guest = await FakeConnection(libvirtd).define(xml)
    guest.life = RUNNING
    return guest


@pytest.mark.parametrize(
    ("trouble", "value"),
    [("look_error", HypervisorError("cannot look up domain: no")), ("hangs_up", True)],
    ids=["answers open and fails at the first question", "hangs up at once"],
)
async def test_a_launcher_whose_connections_break_is_dialled_with_back_off(
    node: Node, trouble: str, value: object
) -> None:
    """It was dialled 928 times a second."""
    setattr(node.libvirtd, trouble, value)
    come_up(node)
    await until(lambda: node.libvirtd.dials >= 5, "some attempts")
    dials = node.libvirtd.dials
    await asyncio.sleep(0.2)
    assert node.libvirtd.dials - dials <= 1


async def test_an_unreadable_description_is_read_once_per_connection(node: Node) -> None:
    guest = await defined(node.libvirtd, "<domain>" + "<a>" * 100_000)
    come_up(node)
    await until(lambda: guest.descriptions == 1, "a first look")
    for _unused in range(10):
        node.libvirtd.tell(LifecycleChanged("domain", "resumed"))
        await asyncio.sleep(0.002)
    assert guest.descriptions == 1
    node.libvirtd.hang_up()
    await until(lambda: guest.descriptions == 2, "a look of the next connection")


async def test_a_domain_is_read_periodically_without_events(node: Node) -> None:
    guest = await defined(node.libvirtd, domain_text())
    come_up(node)
    await node.end()
    node.resync_seconds = 0.02
    node.begin()
    await until(lambda: node.phase == "Running", "Running")
    guest.life = State(Life.SHUT_OFF, "crashed")  # without an event
    await until(lambda: node.phase == "Failed", "Failed")
