# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a domain, over a connection that is there, lost or made anew: no socket, no directory."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

import pytest

from controlplane.domain.state import State
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.launchers.session import Session, Tools
from controlplane.virt_handler.node_client import NodeClient
from controlplane.virt_handler.vmi.verdict import Alive, Unknown, judge
from controlplane.virt_handler.vmi.world import Sighting
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, VMI_UID, a_pod, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeLibvirtd, until


class Node(NodeClient):
    """A node on which the launcher is there already."""

    def __init__(self) -> None:
        super().__init__(self._nowhere)

    async def _nowhere(self) -> socket.socket:
        raise ConnectionRefusedError

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        return LauncherSocket(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Nothing is saved here."""


def a_session(libvirtd: FakeLibvirtd) -> Session:
    return Session(a_pod(), VMI_UID, Tools(Node(), FakeClock(), libvirtd.connect), lambda: None)


@pytest.mark.parametrize("xml", ["<domain>", "<domain>" + "<a>" * 1000, domain_text()], ids=["cut", "deep", "ours"])
async def test_a_description_is_read_once_in_a_connection_whatever_it_is(xml: str) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session._connection = FakeConnection(libvirtd)
    guest = await connection.define(xml)
    guest.life = RUNNING
    for _unused in range(3):
        await session.refresh()
    assert guest.descriptions == 1
    assert (session.launcher().sighting.state == RUNNING) is (xml == domain_text())


@pytest.mark.parametrize("now", [None, "another"], ids=["lost", "made anew"])
async def test_what_was_seen_over_a_connection_that_was_lost_meanwhile_is_not_published(now: str | None) -> None:
    """Else a launcher that is not reached counts as connected, with what its domain did once."""
    libvirtd, asked, may_answer = FakeLibvirtd(VMI_UID), asyncio.Event(), asyncio.Event()
    session = a_session(libvirtd)
    connection = session._connection = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())

    async def slow_state() -> State:
        asked.set()
        await may_answer.wait()
        return RUNNING

    guest.state = slow_state  # type: ignore[method-assign]
    looking = asyncio.create_task(session.refresh())
    await asked.wait()
    session._connection = None if now is None else FakeConnection(libvirtd)
    may_answer.set()
    await looking

    assert session.launcher().sighting == Sighting()


async def test_a_description_is_read_anew_in_each_connection() -> None:
    """A launcher that starts libvirtd anew may serve another domain under the same name."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    (await FakeConnection(libvirtd).define(domain_text())).life = RUNNING
    session.admit()
    contact = asyncio.create_task(session.run())
    await until(lambda: judge(session.launcher(), VMI_UID) == Alive(RUNNING), "our domain")

    (await FakeConnection(libvirtd).define(domain_text().replace(POD_UID, "another"))).life = RUNNING
    libvirtd.hang_up()

    foreign = Unknown("the launcher's domain carries another identity")
    await until(lambda: judge(session.launcher(), VMI_UID) == foreign, "the other identity")
    contact.cancel()
    with suppress(asyncio.CancelledError):
        await contact
