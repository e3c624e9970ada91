# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a launcher: how it is opened, lost and reopened, and what is read from the domain."""

from __future__ import annotations

import asyncio
import os

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import HypervisorError, NotText
from controlplane.hypervisor.events import LifecycleChanged
from controlplane.virt_handler.vmi.liveness import Alive, Unknown, judge
from controlplane.virt_handler.vmi.ports import NoContact
from controlplane.virt_handler.vmi.world import LauncherStatus
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, VMI_UID, domain_text
from tests.controlplane.virt_handler.fakes import FakeConnection, until
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage

DEFINED = State(Life.SHUT_OFF, "unknown")


@pytest.fixture
async def stage() -> SessionStage:
    return SessionStage()


@pytest.mark.parametrize("xml", ["<domain>", "<domain>" + "<a>" * 1000, domain_text()], ids=["cut", "deep", "ours"])
async def test_a_domain_description_is_read_once_per_connection(stage: SessionStage, xml: str) -> None:
    guest = await stage.define(xml)
    for _unused in range(3):
        await stage.look()
    assert guest.descriptions == 1
    assert (stage.status.state == RUNNING) is (xml == domain_text())


async def test_a_description_that_is_not_text_is_requested_once(
    stage: SessionStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest, requests = await stage.define(), list[str]()

    async def babble(_unused: object) -> str:
        requests.append("describe")
        raise NotText("cannot describe domain web: what libvirt says is no text (UTF-8)")

    monkeypatch.setattr(guest, "described", babble)
    for _unused in range(3):
        await stage.look()
    assert requests == ["describe"]
    assert stage.status.state == State(Life.UNKNOWN, "unknown")


async def test_a_run_is_remembered_after_the_guest_is_off(stage: SessionStage) -> None:
    """A domain must not start again in a Pod that had a run, even if libvirt reports that it never ran."""
    guest = await stage.define()
    rows = ((DEFINED, False), (State(Life.PAUSED, "starting_up"), False), (RUNNING, True), (DEFINED, True))
    for state, has_run in rows:
        guest.life = state
        await stage.look()
        assert stage.status.has_run is has_run


@pytest.mark.parametrize("is_reopened", [False, True], ids=["lost", "reopened"])
async def test_a_state_read_over_a_lost_connection_is_not_published(stage: SessionStage, is_reopened: bool) -> None:
    """Otherwise an unreachable launcher would count as connected, with an old state."""
    is_reading, may_answer = asyncio.Event(), asyncio.Event()
    guest = await stage.define()

    async def slow_state() -> State:
        is_reading.set()
        await may_answer.wait()
        return RUNNING

    guest.state = slow_state  # type: ignore[method-assign]
    reading = asyncio.create_task(stage.look())
    await is_reading.wait()
    stage.session.connection.current = FakeConnection(stage.libvirtd) if is_reopened else None
    may_answer.set()
    await reading

    assert stage.status == LauncherStatus()


async def test_the_description_is_read_again_in_each_connection(stage: SessionStage) -> None:
    """A restarted libvirtd may serve another domain under the same name."""
    (await FakeConnection(stage.libvirtd).define(domain_text())).life = RUNNING
    stage.session.admit()
    async with stage.running():
        await until(lambda: judge(stage.session.launcher(), VMI_UID) == Alive(RUNNING), "our domain")

        (await FakeConnection(stage.libvirtd).define(domain_text().replace(POD_UID, "another"))).life = RUNNING
        stage.libvirtd.hang_up()

        foreign = Unknown("the launcher's domain has another identity")
        await until(lambda: judge(stage.session.launcher(), VMI_UID) == foreign, "the other identity")


async def test_a_launcher_is_connected_after_the_grant_and_while_it_has_a_socket(stage: SessionStage) -> None:
    async with stage.running():
        await until(lambda: stage.status.is_here, "its socket")
        assert stage.libvirtd.dials == 0, "before the grant"
        assert stage.node.capabilities == [(POD_UID, False)]
        stage.session.admit()
        await until(lambda: stage.status.is_connected, "a connection")

        stage.node.has_launcher.clear()
        stage.libvirtd.hang_up()
        await until(lambda: not stage.status.is_here, "the loss")
        assert not stage.status.is_connected
        with pytest.raises(NoContact, match="the launcher is not connected"):
            await stage.look()

        stage.node.has_launcher.set()
        await until(lambda: stage.status.is_connected, "another connection")
        assert stage.status.is_here


async def test_a_refused_connection_releases_the_socket_and_is_reported(stage: SessionStage) -> None:
    stage.libvirtd.is_listening = False
    async with stage.running():
        await until(lambda: stage.status.is_here, "its socket")
        stage.node.has_launcher.clear()
        stage.session.admit()
        await until(lambda: stage.libvirtd.dials == 1, "a dial")
        await until(lambda: not stage.status.is_here, "the released socket")
        await until(lambda: stage.status.trouble == "nobody listens", "the trouble")
    for descriptor in stage.node.opened:
        with pytest.raises(OSError, match="Bad file descriptor"):
            os.fstat(descriptor)


@pytest.mark.parametrize(
    ("fault", "value"),
    [("look_error", HypervisorError("cannot look up domain: no")), ("hangs_up", True)],
    ids=["the first request fails", "closed at once"],
)
async def test_a_launcher_whose_connections_break_is_dialled_with_back_off(
    stage: SessionStage, fault: str, value: object
) -> None:
    setattr(stage.libvirtd, fault, value)
    stage.session.admit()
    async with stage.running():
        await until(lambda: stage.libvirtd.dials >= 5, "some attempts")
        dials = stage.libvirtd.dials
        await asyncio.sleep(0.2)
        assert stage.libvirtd.dials - dials <= 1


async def test_a_domain_is_read_periodically_without_events() -> None:
    stage = SessionStage(resync_seconds=0.02)
    guest = await FakeConnection(stage.libvirtd).define(domain_text())
    guest.life = RUNNING
    stage.session.admit()
    async with stage.running():
        await until(lambda: stage.status.state == RUNNING, "a guest that runs")
        guest.life = State(Life.SHUT_OFF, "crashed")  # without an event
        await until(lambda: stage.status.state == guest.life, "its end")


@pytest.mark.parametrize("cause", ["panicked", "watchdog"])
async def test_the_cause_of_a_crash_survives_a_new_connection(stage: SessionStage, cause: str) -> None:
    """libvirt's state is "crashed" for every cause. Only an event over the old connection named it."""
    stage.session.admit()
    async with stage.running():
        await until(lambda: bool(stage.libvirtd.connections), "a connection")
        guest = await stage.libvirtd.connections[-1].define(domain_text())
        guest.become(RUNNING, "started")
        await until(lambda: stage.status.state == RUNNING, "a guest that runs")
        stage.libvirtd.tell(LifecycleChanged(VMI_UID, "crashed", cause))
        stage.libvirtd.hang_up()
        guest.life = State(Life.SHUT_OFF, "crashed")

        await until(lambda: stage.status.state == State(Life.CRASHED, cause), "the cause")


@pytest.mark.parametrize("error", [None, HypervisorError("no")], ids=["works", "fails"])
async def test_a_new_connection_loads_the_capabilities_that_a_start_needs(
    stage: SessionStage, error: HypervisorError | None
) -> None:
    stage.libvirtd.capabilities_error = error
    stage.session.admit()
    async with stage.running():
        await until(lambda: stage.libvirtd.capability_loads == 1, "the request")
        await until(lambda: stage.status.is_connected, "a connection")
