# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One start over a connection that is there: no socket, no directory."""

from __future__ import annotations

import asyncio
import json
import socket

import pytest

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import Disconnected, HypervisorError, TimedOut, WrongState
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import StartDomain
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, VMI_UID, a_pod, a_vmi, vmi_object
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeGuest, FakeLibvirtd


class Node(NodeClient):
    """A node on which the launcher has reported."""

    async def read_report(self, pod_uid: str) -> bytes:
        disks = [{"volume": "root", "path": "/img/volumes/root/disk/disk.img", "format": "raw"}]
        return json.dumps({"version": 1, "container_disks": disks}).encode()


@pytest.fixture
def libvirtd() -> FakeLibvirtd:
    return FakeLibvirtd(VMI_UID)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def session(libvirtd: FakeLibvirtd, clock: FakeClock) -> Session:
    async def nowhere() -> socket.socket:
        raise ConnectionRefusedError

    made = Session(
        a_pod(), VMI_UID, Tools(Node(nowhere), clock, libvirtd.connect), lambda: None, spawn=asyncio.create_task
    )
    made.connection.current = FakeConnection(libvirtd)
    return made


async def granted() -> VirtualMachineInstance:
    return decode_vmi(vmi_object("Scheduled"))


async def test_a_start_is_done_when_the_guest_is_seen_up(session: Session) -> None:
    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.state == RUNNING


async def test_a_start_that_is_answered_is_a_run_though_nobody_has_seen_it(
    session: Session, libvirtd: FakeLibvirtd
) -> None:
    """libvirtd dies with its guest; the next one does not know the domain, and would be told to start it."""
    libvirtd.look_error = Disconnected("eof")
    with pytest.raises(NoContact):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.has_run


@pytest.mark.parametrize("error", [TimedOut("no answer within 30 s"), Disconnected("eof")])
async def test_after_a_start_without_an_answer_comes_a_look_and_no_other_start(
    session: Session, libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch, error: HypervisorError
) -> None:
    """The guest came up and has shut down again meanwhile: another start would be another run."""
    start = FakeGuest.start

    async def unanswered(guest: FakeGuest, **_unused: object) -> None:
        await start(guest)
        raise error

    monkeypatch.setattr(FakeGuest, "start", unanswered)
    with pytest.raises(NoContact):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert libvirtd.guest is not None
    await libvirtd.guest.shutdown()

    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))

    assert libvirtd.guest.starts == 1
    assert session.launcher().status.state == State(Life.SHUT_OFF, "shutdown")


async def test_a_look_in_the_middle_of_a_start_waits_for_its_answer(session: Session, libvirtd: FakeLibvirtd) -> None:
    """QEMU is there until it has read its command line: seen then, it would be a run that ends."""
    libvirtd.start_error, libvirtd.while_starting = HypervisorError("cannot start: no memory"), RUNNING
    starting = asyncio.create_task(
        session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    )
    for _unused in range(20):
        await asyncio.sleep(0)
    assert libvirtd.defined, "it is under way"

    await session.connection.refresh()

    with pytest.raises(StartRefused):
        await starting
    assert not session.launcher().status.has_run
    assert session.launcher().status.state == State(Life.SHUT_OFF, "failed")


async def test_a_start_that_never_arrived_is_made_again(
    session: Session, libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def lost(_guest: FakeGuest, **_unused: object) -> None:
        raise TimedOut("no answer within 30 s")

    with monkeypatch.context() as patched:
        patched.setattr(FakeGuest, "start", lost)
        with pytest.raises(NoContact):
            await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))

    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))

    assert session.launcher().status.state == RUNNING


@pytest.mark.parametrize(("strategy", "life"), [("", RUNNING), ("Paused", State(Life.PAUSED, "user"))])
async def test_a_guest_that_is_to_wait_does(session: Session, strategy: str, life: State) -> None:
    async def granted() -> VirtualMachineInstance:
        return a_vmi(startStrategy=strategy)

    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))

    assert session.launcher().status.state == life
    assert session.launcher().status.has_run


async def test_a_start_that_is_answered_and_not_done_is_refused(session: Session, libvirtd: FakeLibvirtd) -> None:
    """Else whoever decides would ask for the next one at once."""
    libvirtd.is_off_again = True
    with pytest.raises(StartRefused, match="the domain is off"):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.failure is None


async def test_what_was_defined_badly_before_is_not_held_against_what_is_started(
    session: Session, libvirtd: FakeLibvirtd
) -> None:
    await FakeConnection(libvirtd).define("<domain")
    await session.connection.refresh()
    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.state == RUNNING


async def test_a_domain_that_runs_already_is_started(
    session: Session, libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def runs_already(guest: FakeGuest, **_unused: object) -> None:
        guest.life = RUNNING
        raise WrongState("cannot start: domain is already running")

    monkeypatch.setattr(FakeGuest, "start", runs_already)
    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.state == RUNNING


@pytest.mark.parametrize(
    ("pauses", "is_given_up"),
    [((0, 0, 0, 0), False), ((10,), False), ((1, 1), True)],
    ids=["often in a moment", "seldom in a while", "often in a while"],
)
async def test_a_start_that_fails_is_given_up_when_it_was_tried_often_and_for_a_while(
    session: Session, libvirtd: FakeLibvirtd, clock: FakeClock, pauses: tuple[float, ...], is_given_up: bool
) -> None:
    """What is lacking may be there in a moment."""
    libvirtd.start_error = HypervisorError("cannot start: no memory")
    for pause in (0, *pauses):
        clock.seconds += pause
        with pytest.raises(StartRefused):
            await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert (session.launcher().status.failure is not None) is is_given_up


@pytest.mark.parametrize(
    ("answer", "meaning", "is_given_up"),
    [
        (NotThere("no report"), NoContact, False),
        (NodeAway("away"), NoContact, False),
        (NodeError("no memory"), StartRefused, False),
        (Refused("a link"), StartRefused, True),
    ],
    ids=["not yet", "nobody to ask", "the node cannot", "it is not what it has to be"],
)
async def test_a_start_waits_for_its_report_and_not_for_one_that_can_never_be(
    session: Session, monkeypatch: pytest.MonkeyPatch, answer: NodeError, meaning: type[Exception], is_given_up: bool
) -> None:
    async def read_report(_node: Node, _pod_uid: str) -> bytes:
        raise answer

    monkeypatch.setattr(Node, "read_report", read_report)
    with pytest.raises(meaning):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert (session.launcher().status.failure is not None) is is_given_up


async def test_starts_that_are_answered_and_not_done_are_given_up(
    session: Session, libvirtd: FakeLibvirtd, clock: FakeClock
) -> None:
    libvirtd.is_off_again = True
    for _unused in range(3):
        with pytest.raises(StartRefused):
            await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
        clock.seconds += 1
    failure = session.launcher().status.failure
    assert failure is not None
    assert (failure.reason, "the domain is off" in failure.message) == ("StartFailed", True)
