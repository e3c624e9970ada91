# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks at a domain, over a connection that is there, lost or made anew: no socket, no directory."""

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
    """A node on which the launcher is there, until it is not."""

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
        """Nothing is saved here."""


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
async def test_a_description_is_read_once_in_a_connection_whatever_it_is(xml: str) -> None:
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(xml)
    guest.life = RUNNING
    for _unused in range(3):
        await session.connection.refresh()
    assert guest.descriptions == 1
    assert (session.launcher().status.state == RUNNING) is (xml == domain_text())


async def test_a_description_that_is_no_text_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was asked for again every 5 s, as a bug of ours, and the guest's end was never seen."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define("")
    guest.life = RUNNING
    asked: list[str] = []

    async def babble(_unused: object) -> str:
        asked.append("describe")
        raise NotText("cannot describe domain web: what libvirt says is no text (UTF-8)")

    monkeypatch.setattr(guest, "described", babble)
    for _unused in range(3):
        await session.connection.refresh()
    assert asked == ["describe"]
    assert session.launcher().status.state == State(Life.UNKNOWN, "unknown")


async def test_that_a_guest_ran_is_remembered_when_it_is_off() -> None:
    """A domain that libvirt says was never on, in a Pod where one ran, must not be started again."""
    libvirtd = FakeLibvirtd(VMI_UID)
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())
    for state, has_run in ((DEFINED, False), (RUNNING, True), (DEFINED, True)):
        guest.life = state
        await session.connection.refresh()
        assert session.launcher().status.has_run is has_run


@pytest.mark.parametrize("now", [None, "another"], ids=["lost", "made anew"])
async def test_what_was_seen_over_a_connection_that_was_lost_meanwhile_is_not_published(now: str | None) -> None:
    """Else a launcher that is not reached counts as connected, with what its domain did once."""
    libvirtd, asked, may_answer = FakeLibvirtd(VMI_UID), asyncio.Event(), asyncio.Event()
    session = a_session(libvirtd)
    connection = session.connection.current = FakeConnection(libvirtd)
    guest = await connection.define(domain_text())

    async def slow_state() -> State:
        asked.set()
        await may_answer.wait()
        return RUNNING

    guest.state = slow_state  # type: ignore[method-assign]
    looking = asyncio.create_task(session.connection.refresh())
    await asked.wait()
    session.connection.current = None if now is None else FakeConnection(libvirtd)
    may_answer.set()
    await looking

    assert session.launcher().status == LauncherStatus()


async def test_a_description_is_read_anew_in_each_connection() -> None:
    """A launcher that starts libvirtd anew may serve another domain under the same name."""
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


async def test_a_launcher_whose_socket_is_let_go_is_not_here_until_there_is_another() -> None:
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


async def test_a_launcher_that_does_not_take_the_call_is_not_here_either() -> None:
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
async def test_why_a_guest_crashed_is_kept_from_what_was_told_before(cause: str) -> None:
    """Another connection may have to tell that it has: libvirt's state says "crashed" whatever it was."""
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
