# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a transfer: when the guest resumes at its target, and which guest is ended at the source."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from controlplane.api.objects.migration_state import MigrationConfiguration, MigrationState
from controlplane.api.objects.resources import Key
from controlplane.domain.migratable import most_to_send
from controlplane.domain.state import Life, State
from controlplane.hypervisor.domain import Progress
from controlplane.hypervisor.errors import Disconnected
from controlplane.virt_handler.launchers.ports import Failed, TransferRequest
from controlplane.virt_handler.migration import sender as sending
from controlplane.virt_handler.migration.sender import Progressed, Sender
from controlplane.virt_handler.vmi.ports import NoContact
from tests.controlplane.virt_handler.builders import a_vmi

LEFT, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
CRASHED = State(Life.SHUT_OFF, "crashed")
ENDS = State(Life.SHUTTING_DOWN, "unknown")
RUNS, CANCELED = State(Life.RUNNING, "unpaused"), State(Life.RUNNING, "migration_canceled")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Guest:
    """A guest with these states, one after another; the last one repeats."""

    def __init__(self, states: list[State]) -> None:
        self.states = states

    async def state(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))


async def until_gone(guest: Guest) -> None:
    sender: Any = Sender
    async with asyncio.timeout(10):
        await sender(None, None, None, Clock(), directory="")._until_gone(guest)


@pytest.mark.parametrize(
    "states",
    [
        pytest.param([MIGRATED], id="libvirt has ended it"),
        pytest.param([ENDS, ENDS, MIGRATED], id="libvirt is ending it"),
        pytest.param([CRASHED], id="it was killed when all was sent"),
    ],
)
async def test_a_migrated_or_crashed_source_is_gone(states: list[State]) -> None:
    await until_gone(Guest(states))


@pytest.mark.parametrize("state", [RUNS, CANCELED])
async def test_a_running_source_is_not_ended(state: State) -> None:
    with pytest.raises(Failed, match="was let go on"):
        await until_gone(Guest([state]))


async def test_a_source_that_missed_the_targets_confirmation_resumes() -> None:
    with pytest.raises(Failed, match="did not hear"):
        await until_gone(Guest([ENDS, LEFT]))


async def test_a_source_that_does_not_end_fails_the_transfer() -> None:
    with pytest.raises(Failed, match="does not end"):
        await until_gone(Guest([ENDS]))


class Departed:
    """A SourceExit that knows at once whether the guest has left."""

    def __init__(self, there: Guest | None) -> None:
        self.there: Guest | None = None
        self._found = there

    async def watch(self) -> None:
        self.there = self._found


class Patient:
    """A convergence watch that never aborts. It has paused the guest, and records when it resumes it."""

    let_on: ClassVar[list[str]] = []
    given: ClassVar[dict[str, object]] = {}

    def __init__(self, *_unused: object, **fields: object) -> None:
        self.given.update(fields)

    async def run(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def let_go_on(self) -> None:
        self.let_on.append("it goes on here")


class Traveller(Guest):
    """A guest at the source or the target. It counts its resumes."""

    name = "vm"
    resumes = 0

    async def resume(self) -> None:
        self.resumes += 1


@pytest.fixture(autouse=True)
def _nobody_yet() -> None:
    Patient.let_on.clear()


async def send(
    monkeypatch: pytest.MonkeyPatch,
    guest: Guest,
    there: Traveller,
    *,
    has_left: bool,
    works: bool,
    held: bool = False,
    progressed: Progressed = lambda _key, _seen: None,
) -> list[str]:
    """Send the guest. Return what was reported, in order."""
    calls = list[str]()

    async def migrate(*_unused: object) -> Traveller:
        for _turn in range(5):
            await asyncio.sleep(0)
        if not works:
            raise Disconnected("the last word is lost")
        calls.append("libvirt's word")
        return there

    monkeypatch.setattr(sending, "Domain", Guest)
    monkeypatch.setattr(sending, "migrate", migrate)
    monkeypatch.setattr(sending, "_options", lambda *_unused: None)
    monkeypatch.setattr(sending, "Watch", Patient)
    monkeypatch.setattr(sending, "SourceExit", lambda *_unused: Departed(there if has_left else None))
    sender: Any = Sender
    no_writes: Any = SimpleNamespace(stop=None)
    order: Any = TransferRequest(
        a_vmi("Running"),
        MigrationState(),
        "source-pod",
        guest,
        is_paused_by_user=held,
        writes=no_writes,
        left=lambda: calls.append(f"it has left, let go on {there.resumes} times"),
    )
    async with asyncio.timeout(10):
        await sender(None, None, None, Clock(), directory="", progressed=progressed)._send(order, None)
    return calls


@pytest.mark.parametrize("has_left", [False, True])
async def test_the_guest_resumes_once_at_its_target(monkeypatch: pytest.MonkeyPatch, has_left: bool) -> None:
    there = Traveller([MIGRATED])
    await send(monkeypatch, Traveller([MIGRATED]), there, has_left=has_left, works=True)
    assert there.resumes == 1
    assert Patient.let_on == [], "nothing of it is here"


@pytest.mark.parametrize("held", [False, True])
async def test_the_guest_has_left_before_libvirt_returns(monkeypatch: pytest.MonkeyPatch, held: bool) -> None:
    there = Traveller([MIGRATED])
    calls = await send(monkeypatch, Traveller([MIGRATED]), there, has_left=True, works=True, held=held)
    assert calls == [f"it has left, let go on {0 if held else 1} times", "libvirt's word"]


async def test_without_proof_only_libvirts_return_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Traveller([MIGRATED])
    calls = await send(monkeypatch, Traveller([MIGRATED]), there, has_left=False, works=True)
    assert calls == ["libvirt's word"]


@pytest.mark.parametrize("has_left", [False, True])
async def test_a_guest_paused_by_a_user_stays_paused(monkeypatch: pytest.MonkeyPatch, has_left: bool) -> None:
    there = Traveller([MIGRATED])
    await send(monkeypatch, Traveller([MIGRATED]), there, has_left=has_left, works=True, held=True)
    assert there.resumes == 0


async def test_a_guest_that_resumed_at_its_target_has_moved_whatever_libvirt_returns(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    there = Traveller([MIGRATED])
    await send(monkeypatch, Traveller([LEFT]), there, has_left=True, works=False)
    assert there.resumes == 1


async def test_without_proof_a_failed_transfer_has_not_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    there = Traveller([MIGRATED])
    with pytest.raises(Failed, match="the last word is lost"):
        await send(monkeypatch, Traveller([LEFT]), there, has_left=False, works=False)
    assert there.resumes == 0
    assert Patient.let_on == ["it goes on here"]


async def test_progress_is_cleared_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = list[object]()

    def note(_key: Key, seen: Progress | None) -> None:
        progress.append(seen)

    here, there = Traveller([LEFT]), Traveller([MIGRATED])
    with pytest.raises(Failed):
        await send(monkeypatch, here, there, has_left=False, works=False, progressed=note)
    assert progress == [None]


async def test_the_time_limit_uses_the_most_memory_that_the_guest_can_have(monkeypatch: pytest.MonkeyPatch) -> None:
    await send(monkeypatch, Traveller([MIGRATED]), Traveller([MIGRATED]), has_left=False, works=True)
    assert Patient.given["most"] == most_to_send(a_vmi("Running")) > 0


class Stubborn(Traveller):
    """A guest whose transfer ends only by one particular measure. It records all measures."""

    def __init__(self, ends_by: str) -> None:
        super().__init__([RUNS])
        self.done = list[str]()
        self.over = asyncio.Event()
        self._ends_by = ends_by

    async def abort_job(self) -> None:
        self._do("asked to give it up")

    async def close(self) -> None:
        self._do("cut from the target")

    def cut(self) -> None:
        self._do("cut off here")

    def _do(self, what: str) -> None:
        self.done.append(what)
        if what == self._ends_by:
            self.over.set()


@pytest.mark.parametrize(
    "done",
    [
        ["asked to give it up"],
        ["asked to give it up", "cut from the target"],
        ["asked to give it up", "cut from the target", "cut off here"],
    ],
)
async def test_an_unwanted_transfer_ends_whatever_libvirt_does(
    monkeypatch: pytest.MonkeyPatch, done: list[str]
) -> None:
    guest = Stubborn(done[-1])

    async def migrate(*_unused: object) -> Traveller:
        await guest.over.wait()
        raise Disconnected("it is over")

    monkeypatch.setattr(sending, "migrate", migrate)
    monkeypatch.setattr(sending, "GONE_SECONDS", 0)
    monkeypatch.setattr(sending, "CUT_SECONDS", 0)
    ends: Any = (guest, guest, None, Patient(), Departed(None))
    unwanted = asyncio.Event()
    sending_task = asyncio.create_task(sending._migrate(*ends, unwanted=unwanted))
    for _turn in range(5):
        await asyncio.sleep(0)
    assert guest.done == []
    unwanted.set()
    async with asyncio.timeout(10):
        with pytest.raises(Failed, match="it is over"):
            await sending_task
    assert guest.done == done


class Line:
    """A connection to the target's libvirtd that opens when `is_open` is set, and the writes of its migration."""

    def __init__(self, *, refusal: Exception | None = None, trouble: Exception | None = None) -> None:
        self.is_open, self.is_begun = asyncio.Event(), asyncio.Event()
        self.refusal, self.trouble = refusal, trouble
        self.is_closed = False

    async def open(self, _unused: str) -> Line:
        await self.is_open.wait()
        if self.trouble is not None:
            raise self.trouble
        return self

    async def close(self) -> None:
        self.is_closed = True

    async def begin(self) -> None:
        self.is_begun.set()
        if self.refusal is not None:
            raise self.refusal


async def reach(monkeypatch: pytest.MonkeyPatch, line: Line) -> Any:
    monkeypatch.setattr(sending, "open_connection", line.open)
    writes: Any = SimpleNamespace(begin=line.begin)
    order: Any = TransferRequest(
        a_vmi("Running"), MigrationState(), "source-pod", Guest([LEFT]), is_paused_by_user=False, writes=writes
    )
    async with asyncio.timeout(10):
        return await sending._reach("/socket", order)


async def test_the_start_is_written_while_the_connection_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    reaching = asyncio.create_task(reach(monkeypatch, line))
    await line.is_begun.wait()
    assert not reaching.done()
    line.is_open.set()
    assert await reaching is line
    assert not line.is_closed


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_refused_start_leaves_no_connection(monkeypatch: pytest.MonkeyPatch, is_open: bool) -> None:
    line = Line(refusal=NoContact("it is cancelled"))
    if is_open:  # the connection opens before the refusal arrives
        line.is_open.set()
        begin = line.begin

        async def late() -> None:
            for _turn in range(5):
                await asyncio.sleep(0)
            await begin()

        monkeypatch.setattr(line, "begin", late)
    with pytest.raises(NoContact, match="it is cancelled"):
        await reach(monkeypatch, line)
    assert len(asyncio.all_tasks()) == 1
    assert line.is_closed == is_open


async def test_an_unreachable_target_fails_the_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(trouble=Disconnected("nobody listens"))
    line.is_open.set()
    with pytest.raises(Disconnected):
        await reach(monkeypatch, line)


@pytest.mark.parametrize("is_still", [False, True])
def test_a_guest_that_cannot_be_sent_while_running_is_sent_paused(is_still: bool) -> None:
    moving, vmi = MigrationState(target_pod_uid="there"), a_vmi("Running")
    nothing: Any = None
    order = TransferRequest(vmi, moving, "here", nothing, is_paused_by_user=False, writes=nothing, is_still=is_still)
    assert sending._options(order, MigrationConfiguration()).is_still is is_still
