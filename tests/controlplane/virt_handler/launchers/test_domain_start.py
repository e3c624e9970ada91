# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One start over an open connection: no socket, no directory."""

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
    """A node whose launcher has written its report."""

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

    session = Session(
        a_pod(), VMI_UID, Tools(Node(nowhere), clock, libvirtd.connect), lambda: None, spawn=asyncio.create_task
    )
    session.connection.current = FakeConnection(libvirtd)
    return session


async def granted() -> VirtualMachineInstance:
    return decode_vmi(vmi_object("Scheduled"))


async def test_a_start_is_done_when_the_guest_runs(session: Session) -> None:
    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.state == RUNNING


async def test_a_successful_start_is_a_run_even_if_the_guest_was_never_seen(
    session: Session, libvirtd: FakeLibvirtd
) -> None:
    """libvirtd dies with its guest. The next one does not know the domain, and virt-handler would start it again."""
    libvirtd.look_error = Disconnected("eof")
    with pytest.raises(NoContact):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.has_run


@pytest.mark.parametrize("error", [TimedOut("no answer within 30 s"), Disconnected("eof")])
async def test_after_a_start_without_an_answer_the_domain_is_read_and_not_started_again(
    session: Session, libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch, error: HypervisorError
) -> None:
    """The guest started and has shut down meanwhile. Another start would be a second run."""
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


async def test_a_read_during_a_start_waits_for_the_result(session: Session, libvirtd: FakeLibvirtd) -> None:
    """QEMU exists until it has read its command line. A read meanwhile would see a run that ends."""
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


async def test_a_start_that_never_arrived_is_repeated(
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
async def test_the_start_strategy_decides_whether_the_guest_starts_paused(
    session: Session, strategy: str, life: State
) -> None:
    async def granted() -> VirtualMachineInstance:
        return a_vmi(startStrategy=strategy)

    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))

    assert session.launcher().status.state == life
    assert session.launcher().status.has_run


async def test_a_start_without_effect_is_refused(session: Session, libvirtd: FakeLibvirtd) -> None:
    """Otherwise the reconciler would start it again at once."""
    libvirtd.is_off_again = True
    with pytest.raises(StartRefused, match="the domain is off"):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.failure is None


async def test_an_earlier_invalid_definition_does_not_fail_the_start(session: Session, libvirtd: FakeLibvirtd) -> None:
    await FakeConnection(libvirtd).define("<domain")
    await session.connection.refresh()
    await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert session.launcher().status.state == RUNNING


async def test_a_domain_that_already_runs_counts_as_started(
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
async def test_a_failing_start_is_given_up_after_several_attempts_over_some_time(
    session: Session, libvirtd: FakeLibvirtd, clock: FakeClock, pauses: tuple[float, ...], is_given_up: bool
) -> None:
    """A missing resource may be available in a moment."""
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
async def test_a_start_waits_for_a_missing_report_and_fails_on_an_invalid_one(
    session: Session, monkeypatch: pytest.MonkeyPatch, answer: NodeError, meaning: type[Exception], is_given_up: bool
) -> None:
    async def read_report(_node: Node, _pod_uid: str) -> bytes:
        raise answer

    monkeypatch.setattr(Node, "read_report", read_report)
    with pytest.raises(meaning):
        await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
    assert (session.launcher().status.failure is not None) is is_given_up


async def test_starts_without_effect_are_given_up(session: Session, libvirtd: FakeLibvirtd, clock: FakeClock) -> None:
    libvirtd.is_off_again = True
    for _unused in range(3):
        with pytest.raises(StartRefused):
            await session.operations.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=granted))
        clock.seconds += 1
    failure = session.launcher().status.failure
    assert failure is not None
    assert (failure.reason, "the domain is off" in failure.message) == ("StartFailed", True)
