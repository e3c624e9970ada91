# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The start of a domain: when it is refused, repeated, or given up."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import Disconnected, HypervisorError, InvalidDomain, TimedOut, WrongState
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.vmi.ports import NoContact, OperationInputs, StartRefused
from controlplane.virt_handler.vmi.world import Failure, StartDomain
from tests.controlplane.virt_handler.builders import POD_UID, RUNNING, a_vmi
from tests.controlplane.virt_handler.fakes import FakeGuest
from tests.controlplane.virt_handler.launchers.session_stage import SessionStage


class Stage(SessionStage):
    def __init__(self) -> None:
        self.durations: list[float] = []
        super().__init__(started=self.durations.append)
        self.connect()
        self.vmi = a_vmi()

    async def start(self) -> None:
        await self.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=self._authorize))

    async def _authorize(self) -> VirtualMachineInstance:
        return self.vmi


@pytest.fixture
async def stage() -> Stage:
    return Stage()


@pytest.mark.parametrize(("strategy", "life"), [("", RUNNING), ("Paused", State(Life.PAUSED, "user"))])
async def test_a_started_guest_runs_or_is_paused_by_its_strategy(stage: Stage, strategy: str, life: State) -> None:
    stage.vmi = a_vmi(startStrategy=strategy)
    await stage.start()
    assert (stage.status.state, stage.status.has_run, stage.durations) == (life, True, [0.0])


async def test_a_start_without_a_grant_defines_nothing(stage: Stage) -> None:
    async def refuse() -> VirtualMachineInstance:
        raise NoContact("the start is not granted")

    with pytest.raises(NoContact, match="not granted"):
        await stage.perform(StartDomain(POD_UID, "test"), OperationInputs(authorize_start=refuse))
    assert (stage.libvirtd.defined, stage.durations) == ([], [])


async def test_a_successful_start_is_a_run_even_if_the_guest_was_never_seen(stage: Stage) -> None:
    """libvirtd dies with its guest. The next one does not know the domain, and virt-handler would start it again."""
    stage.libvirtd.look_error = Disconnected("eof")
    with pytest.raises(NoContact):
        await stage.start()
    assert stage.status.has_run


@pytest.mark.parametrize("error", [TimedOut("no answer within 30 s"), Disconnected("eof")])
async def test_after_a_start_without_a_response_the_domain_is_read_and_not_started_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, error: HypervisorError
) -> None:
    """The guest started and has shut down meanwhile. Another start would be a second run."""
    start = FakeGuest.start

    async def start_without_response(guest: FakeGuest, **_unused: object) -> None:
        await start(guest)
        raise error

    monkeypatch.setattr(FakeGuest, "start", start_without_response)
    with pytest.raises(NoContact):
        await stage.start()
    assert stage.libvirtd.guest is not None
    await stage.libvirtd.guest.shutdown()

    await stage.start()

    assert stage.libvirtd.guest.starts == 1
    assert stage.status.state == State(Life.SHUT_OFF, "shutdown")


async def test_a_start_that_never_arrived_is_repeated(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def lose(_guest: FakeGuest, **_unused: object) -> None:
        raise TimedOut("no answer within 30 s")

    with monkeypatch.context() as patched:
        patched.setattr(FakeGuest, "start", lose)
        with pytest.raises(NoContact):
            await stage.start()

    await stage.start()

    assert stage.status.state == RUNNING


async def test_a_read_during_a_start_waits_for_the_result(stage: Stage) -> None:
    """QEMU exists until it has read its command line. A read meanwhile would see a run that ends."""
    stage.libvirtd.start_error, stage.libvirtd.while_starting = HypervisorError("cannot start: no memory"), RUNNING
    starting = asyncio.create_task(stage.start())
    for _unused in range(20):
        await asyncio.sleep(0)
    assert stage.libvirtd.defined, "it is under way"

    await stage.look()

    with pytest.raises(StartRefused):
        await starting
    assert not stage.status.has_run
    assert stage.status.state == State(Life.SHUT_OFF, "failed")


async def test_an_earlier_invalid_definition_does_not_fail_the_start(stage: Stage) -> None:
    await stage.connect().define("<domain")
    await stage.look()
    await stage.start()
    assert stage.status.state == RUNNING


async def test_a_domain_that_already_runs_counts_as_started(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    async def refuse(guest: FakeGuest, **_unused: object) -> None:
        guest.life = RUNNING
        raise WrongState("cannot start: domain is already running")

    monkeypatch.setattr(FakeGuest, "start", refuse)
    await stage.start()
    assert stage.status.state == RUNNING


async def test_an_invalid_domain_is_given_up_at_once(stage: Stage) -> None:
    stage.libvirtd.define_error = InvalidDomain("cannot define: unsupported CPU model")
    with pytest.raises(StartRefused):
        await stage.start()
    assert stage.status.failure == Failure("InvalidDomain", "cannot define: unsupported CPU model")


async def test_a_vmi_that_makes_no_domain_is_given_up_at_once(stage: Stage) -> None:
    stage.vmi = a_vmi(volumes=[])
    with pytest.raises(StartRefused):
        await stage.start()
    assert stage.status.failure is not None
    assert stage.status.failure.reason == "InvalidDomain"


@pytest.mark.parametrize("is_off_again", [True, False], ids=["without effect", "refused"])
@pytest.mark.parametrize(
    ("pauses", "is_given_up"),
    [((0, 0, 0, 0), False), ((10,), False), ((1, 1), True)],
    ids=["often in a moment", "seldom in a while", "often in a while"],
)
async def test_a_failing_start_is_given_up_after_several_attempts_over_some_time(
    stage: Stage, pauses: tuple[float, ...], is_given_up: bool, is_off_again: bool
) -> None:
    """A missing resource may be available in a moment."""
    stage.libvirtd.is_off_again = is_off_again
    stage.libvirtd.start_error = None if is_off_again else HypervisorError("cannot start: the domain is off")
    for pause in (0, *pauses):
        stage.clock.seconds += pause
        with pytest.raises(StartRefused, match="the domain is off"):
            await stage.start()
    failure = stage.status.failure
    assert (failure is not None and failure.reason == "StartFailed") is is_given_up


@pytest.mark.parametrize(
    ("error", "meaning", "is_given_up"),
    [
        (NotThere("no report"), NoContact, False),
        (NodeAway("away"), NoContact, False),
        (NodeError("no memory"), StartRefused, False),
        (Refused("a link"), StartRefused, True),
    ],
    ids=["not yet", "virt-node is away", "the node cannot", "refused"],
)
async def test_a_start_waits_for_a_missing_report_and_fails_on_an_invalid_one(
    stage: Stage, error: NodeError, meaning: type[Exception], is_given_up: bool
) -> None:
    stage.node.error = error
    with pytest.raises(meaning):
        await stage.start()
    assert (stage.status.failure is not None) is is_given_up
