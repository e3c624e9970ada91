# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a domain over a connection that is open, lost or reopened: no socket, no directory."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import NotText
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.liveness import Alive, Unknown, judge
from controlplane.virt_handler.vmi.ports import NoContact
from controlplane.virt_handler.vmi.world import LauncherStatus
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, VMI_UID, a_pod, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeLibvirtd, until

DEFINED = State(Life.SHUT_OFF, "unknown")


class Node(NodeClient):
    """A node with a launcher, as long as has_launcher is set."""

    def __init__(self) -> None:
        super().__init__(self._nowhere)
        self.has_launcher = asyncio.Event()
        self.has_launcher.set()
        self.handed_over: list[int] = []

    async def _nowhere(self) -> socket.socket:
        raise ConnectionRefusedError

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        await self.has_launcher.wait()
        self.handed_over.append(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))
        return LauncherSocket(self.handed_over[-1])

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Save nothing."""


def a_session(libvirtd: FakeLibvirtd, node: Node | None = None) -> Session:
    return Session(
        a_pod(), VMI_UID, Tools(node or Node(), FakeClock(), libvirtd.connect), lambda: None, spawn=asyncio.create_task
    )


@asynccontextmanager
async def in_contact(session: Session) -> AsyncIterator[None]:
    contact = asyncio.create_task(session.run())
    try:
        yield
    finally:
        contact.cancel()
        with suppress(asyncio.CancelledError):
            await contact


@pytest.mark.parametrize("xml", ["<domain>", "<domain>" + "<a>" * 1000, domain_text()], ids=["cut", "deep", "ours"])
async def test_a_domain_description_is_read_once_per_connection(xml: str) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(xml)
    guest.life = RUNNING
    for _unused in range(3):
        await session.connection.refresh()
    assert guest.descriptions == 1
    assert (session.launcher().status.state == RUNNING) is (xml == domain_text())


async def test_a_description_that_is_not_text_is_requested_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was requested every 5 s and logged as a bug, and the end of the guest was never seen."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define("")
    guest.life = RUNNING
    requests: list[str] = []

    async def babble(_unused: object) -> str:
        requests.append("describe")
        raise NotText("cannot describe domain web: what libvirt says is no text (UTF-8)")

    monkeypatch.setattr(guest, "described", babble)
    for _unused in range(3):
        await session.connection.refresh()
    assert requests == ["describe"]
    assert session.launcher().status.state == State(Life.UNKNOWN, "unknown")


async def test_a_run_is_remembered_after_the_guest_is_off() -> None:
    """A domain must not start again in a Pod that had a run, even if libvirt reports that it never ran."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    for state, has_run in ((DEFINED, False), (RUNNING, True), (DEFINED, True)):
        guest.life = state
        await session.connection.refresh()
        assert session.launcher().status.has_run is has_run


@pytest.mark.parametrize("now", [None, "another"], ids=["lost", "made anew"])
async def test_a_state_read_over_a_lost_connection_is_not_published(now: str | None) -> None:
    """Otherwise an unreachable launcher would count as connected, with an old state."""
    libvirtd, is_reading, may_answer = FakeLibvirtd(VMI_UID), asyncio.Event(), asyncio.Event()
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())

    async def slow_state() -> State:
        is_reading.set()
        await may_answer.wait()
        return RUNNING

    guest.state = slow_state  # type: ignore[method-assign]
    reading = asyncio.create_task(session.connection.refresh())
    await is_reading.wait()
    session.connection.current = None if now is None else FakeConnection(libvirtd)
    may_answer.set()
    await reading

    assert session.launcher().status == LauncherStatus()


async def test_the_description_is_read_again_in_each_connection() -> None:
    """A restarted libvirtd may serve another domain under the same name."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    (await FakeConnection(libvirtd).define(domain_text())).life = RUNNING
    session.admit()
    async with in_contact(session):
        await until(lambda: judge(session.launcher(), VMI_UID) == Alive(RUNNING), "our domain")

        (await FakeConnection(libvirtd).define(domain_text().replace(POD_UID, "another"))).life = RUNNING
        libvirtd.hang_up()

        foreign = Unknown("the launcher's domain carries another identity")
        await until(lambda: judge(session.launcher(), VMI_UID) == foreign, "the other identity")


async def test_a_launcher_without_a_socket_is_not_here() -> None:
    """Nothing is set up for it meanwhile."""
    libvirtd, node = FakeLibvirtd(VMI_UID), Node()
    session = a_session(libvirtd, node)
    async with in_contact(session):
        await until(lambda: session.launcher().status.is_here, "its socket")
        assert libvirtd.dials == 0, "before the grant"
        session.admit()
        await until(lambda: session.launcher().status.is_connected, "contact")

        node.has_launcher.clear()
        libvirtd.hang_up()
        await until(lambda: not session.launcher().status.is_here, "the loss")
        assert not session.launcher().status.is_connected
        with pytest.raises(NoContact, match="the launcher is not connected"):
            await session.connection.refresh()

        node.has_launcher.set()
        await until(lambda: session.launcher().status.is_connected, "contact again")
        assert session.launcher().status.is_here


async def test_a_launcher_that_refuses_the_connection_is_not_here() -> None:
    libvirtd, node = FakeLibvirtd(VMI_UID), Node()
    libvirtd.is_listening = False
    session = a_session(libvirtd, node)
    async with in_contact(session):
        await until(lambda: session.launcher().status.is_here, "its socket")
        node.has_launcher.clear()
        session.admit()
        await until(lambda: libvirtd.dials == 1, "a call")
        await until(lambda: not session.launcher().status.is_here, "the socket that was let go")
        await until(lambda: session.launcher().status.trouble == "nobody listens", "why, for people")
    for descriptor in node.handed_over:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize("cause", ["panicked", "watchdog"])
async def test_the_cause_of_a_crash_survives_a_new_connection(cause: str) -> None:
    """libvirt's state is "crashed" for every cause. Only an event over the old connection named it."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    session.admit()
    async with in_contact(session):
        await until(lambda: bool(libvirtd.connections), "contact")
        guest = await libvirtd.connections[-1].define(domain_text())
        guest.become(RUNNING, "started")
        await until(lambda: session.launcher().status.state == RUNNING, "a guest that runs")
        libvirtd.tell(LifecycleChanged(VMI_UID, "crashed", cause))
        libvirtd.hang_up()
        guest.life = State(Life.SHUT_OFF, "crashed")

        await until(lambda: session.launcher().status.state == State(Life.CRASHED, cause), "the cause")
