# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The end of a transfer: when the guest resumes at its target, and which guest is ended at the source."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest

from controlplane.api.objects.migration_state import MigrationConfiguration, MigrationState
from controlplane.domain.migratable import most_to_send
from controlplane.domain.state import Life, State
from controlplane.hypervisor.errors import Disconnected
from controlplane.virt_handler.launchers.ports import Failed, TransferRequest
from controlplane.virt_handler.migration import sender as sender_module
from controlplane.virt_handler.migration.sender import Sender
from controlplane.virt_handler.vmi.ports import NoContact
from tests.controlplane.virt_handler.builders import a_vmi

LEFT, MIGRATED = State(Life.PAUSED, "migration"), State(Life.SHUT_OFF, "migrated")
CRASHED, ENDS = State(Life.SHUT_OFF, "crashed"), State(Life.SHUTTING_DOWN, "unknown")
RUNS, CANCELED = State(Life.RUNNING, "unpaused"), State(Life.RUNNING, "migration_canceled")


class Clock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1.0
        return self.seconds


class Guest:
    """A guest with these states, one after another; the last one repeats. It counts its resumes."""

    name = "vm"

    def __init__(self, *states: State) -> None:
        self.states = list(states)
        self.resumes = 0

    async def state(self) -> State:
        return self.states.pop(0) if len(self.states) > 1 else self.states[0]

    async def resume(self) -> None:
        self.resumes += 1


class Departed:
    """A SourceExit that knows at once whether the guest has left."""

    def __init__(self, there: Guest | None) -> None:
        self.there: Guest | None = None
        self._result = there

    async def watch(self) -> None:
        self.there = self._result


class PatientWatch:
    """A convergence watch that never aborts. It records what it was given, and when it resumes the guest."""

    resumes: ClassVar[list[str]] = []
    given: ClassVar[dict[str, object]] = {}

    def __init__(self, *_unused: object, **fields: object) -> None:
        self.given.update(fields)

    async def run(self) -> str:
        await asyncio.Event().wait()
        return ""

    async def let_go_on(self) -> None:
        self.resumes.append("resumed at the source")


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))
    PatientWatch.resumes.clear()


def a_request(guest: Any = None, **fields: Any) -> TransferRequest:
    values = {"is_paused_by_user": False, "writes": SimpleNamespace(stop=None), **fields}
    return TransferRequest(a_vmi("Running"), MigrationState(target_pod_uid="there"), "source-pod", guest, **values)


ENDINGS: dict[str, tuple[tuple[State, ...], str]] = {
    "ended by libvirt": ((MIGRATED,), ""),
    "being ended by libvirt": ((ENDS, ENDS, MIGRATED), ""),
    "killed when all was sent": ((CRASHED,), ""),
    "resumed": ((RUNS,), "was resumed"),
    "migration cancelled": ((CANCELED,), "was resumed"),
    "the target's confirmation was lost": ((ENDS, LEFT), "did not confirm"),
    "does not end": ((ENDS,), "does not end"),
}


@pytest.mark.parametrize(("states", "failure"), ENDINGS.values(), ids=ENDINGS)
async def test_the_guest_must_have_ended_at_its_source(states: tuple[State, ...], failure: str) -> None:
    sender: Any = Sender
    ending = sender(None, None, None, Clock(), directory="")._until_gone(Guest(*states))
    async with asyncio.timeout(10):
        if not failure:
            await ending
            return
        with pytest.raises(Failed, match=failure):
            await ending


class Transfer:
    """A transfer of a guest, and what was reported in order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.there = Guest(MIGRATED)
        self.reports: list[object] = []
        self._patch = monkeypatch

    async def send(
        self, *source: State, has_left: bool, succeeds: bool = True, is_paused_by_user: bool = False
    ) -> None:
        async def migrate(*_unused: object) -> Guest:
            for _turn in range(5):
                await asyncio.sleep(0)
            if not succeeds:
                raise Disconnected("the last response is lost")
            self.reports.append("libvirt's response")
            return self.there

        departed = Departed(self.there if has_left else None)
        for name, value in (
            ("Domain", Guest),
            ("migrate", migrate),
            ("_options", lambda *_unused: None),
            ("Watch", PatientWatch),
            ("SourceExit", lambda *_unused: departed),
        ):
            self._patch.setattr(sender_module, name, value)
        request = a_request(
            Guest(*source),
            is_paused_by_user=is_paused_by_user,
            left=lambda: self.reports.append(f"left, {self.there.resumes} resumes"),
        )
        sender: Any = Sender
        note = lambda _key, progress: self.reports.append(progress)  # noqa: E731
        async with asyncio.timeout(10):
            await sender(None, None, None, Clock(), directory="", progressed=note)._send(request, None)


@pytest.fixture
def transfer(monkeypatch: pytest.MonkeyPatch) -> Transfer:
    return Transfer(monkeypatch)


@pytest.mark.parametrize("is_paused_by_user", [False, True])
@pytest.mark.parametrize("has_left", [False, True])
async def test_the_guest_resumes_once_at_its_target_unless_a_user_paused_it(
    transfer: Transfer, has_left: bool, is_paused_by_user: bool
) -> None:
    """The exit is detected before libvirt responds."""
    await transfer.send(MIGRATED, has_left=has_left, is_paused_by_user=is_paused_by_user)
    resumes = 0 if is_paused_by_user else 1
    early = [f"left, {resumes} resumes"] if has_left else []
    assert transfer.reports == [*early, "libvirt's response", None], "at the end there is no progress"
    assert transfer.there.resumes == resumes
    assert PatientWatch.resumes == []
    assert PatientWatch.given["most"] == most_to_send(a_vmi("Running")) > 0
    assert PatientWatch.given["is_paused_by_user"] is is_paused_by_user


async def test_a_guest_that_left_has_moved_whatever_libvirt_responds(transfer: Transfer) -> None:
    await transfer.send(LEFT, has_left=True, succeeds=False)
    assert transfer.there.resumes == 1


async def test_without_proof_a_failed_transfer_has_not_moved(transfer: Transfer) -> None:
    with pytest.raises(Failed, match="the last response is lost"):
        await transfer.send(LEFT, has_left=False, succeeds=False)
    assert transfer.there.resumes == 0
    assert (PatientWatch.resumes, transfer.reports) == (["resumed at the source"], [None])


class Stubborn(Guest):
    """A guest whose transfer ends only by one particular measure. It records all measures."""

    def __init__(self, ends_by: str) -> None:
        super().__init__(RUNS)
        self.done = list[str]()
        self.over = asyncio.Event()
        self._ends_by = ends_by

    async def abort_job(self) -> None:
        self._do("abort")

    async def close(self) -> None:
        self._do("close the target")

    def cut(self) -> None:
        self._do("cut the source")

    def _do(self, measure: str) -> None:
        self.done.append(measure)
        if measure == self._ends_by:
            self.over.set()


MEASURES = ["abort", "close the target", "cut the source"]


@pytest.mark.parametrize("count", [1, 2, 3])
async def test_an_unwanted_transfer_ends_whatever_libvirt_does(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    guest = Stubborn(MEASURES[count - 1])

    async def migrate(*_unused: object) -> Guest:
        await guest.over.wait()
        raise Disconnected("it is over")

    monkeypatch.setattr(sender_module, "migrate", migrate)
    monkeypatch.setattr(sender_module, "GONE_SECONDS", 0)
    monkeypatch.setattr(sender_module, "CUT_SECONDS", 0)
    parts: Any = (guest, guest, None, PatientWatch(), Departed(None))
    unwanted = asyncio.Event()
    task = asyncio.create_task(sender_module._migrate(*parts, unwanted=unwanted))
    for _turn in range(5):
        await asyncio.sleep(0)
    assert guest.done == []
    unwanted.set()
    async with asyncio.timeout(10):
        with pytest.raises(Failed, match="it is over"):
            await task
    assert guest.done == MEASURES[:count]


class Line:
    """A connection to the target's libvirtd that opens when `is_open` is set, and the writes of its migration."""

    def __init__(self, *, refusal: Exception | None = None, error: Exception | None = None) -> None:
        self.is_open, self.is_begun = asyncio.Event(), asyncio.Event()
        self.refusal, self.error = refusal, error
        self.is_closed = False

    async def open(self, _unused: str) -> Line:
        await self.is_open.wait()
        if self.error is not None:
            raise self.error
        return self

    async def close(self) -> None:
        self.is_closed = True

    async def begin(self) -> None:
        self.is_begun.set()
        if self.is_open.is_set():  # let the connection open before the refusal
            for _turn in range(5):
                await asyncio.sleep(0)
        if self.refusal is not None:
            raise self.refusal


async def reach(monkeypatch: pytest.MonkeyPatch, line: Line) -> Any:
    monkeypatch.setattr(sender_module, "open_connection", line.open)
    request = a_request(writes=SimpleNamespace(begin=line.begin))
    async with asyncio.timeout(10):
        return await sender_module._reach("/socket", request)


async def test_the_start_is_written_while_the_connection_opens(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line()
    task = asyncio.create_task(reach(monkeypatch, line))
    await line.is_begun.wait()
    assert not task.done()
    line.is_open.set()
    assert await task is line
    assert not line.is_closed


@pytest.mark.parametrize("is_open", [False, True])
async def test_a_refused_start_leaves_no_connection(monkeypatch: pytest.MonkeyPatch, is_open: bool) -> None:
    line = Line(refusal=NoContact("it is cancelled"))
    if is_open:
        line.is_open.set()
    with pytest.raises(NoContact, match="it is cancelled"):
        await reach(monkeypatch, line)
    assert len(asyncio.all_tasks()) == 1
    assert line.is_closed == is_open


async def test_an_unreachable_target_fails_the_transfer(monkeypatch: pytest.MonkeyPatch) -> None:
    line = Line(error=Disconnected("nobody listens"))
    line.is_open.set()
    with pytest.raises(Disconnected):
        await reach(monkeypatch, line)


def test_a_volume_without_a_disk_is_not_sent() -> None:
    volumes = [{"name": name, "emptyDisk": {"capacity": "1Gi"}} for name in ("data", "spare")]
    disks = {"devices": {"disks": [{"name": "data", "disk": {"bus": "virtio"}}]}}
    request = replace(a_request(), vmi=a_vmi("Running", domain=disks, volumes=volumes))
    assert sender_module._options(request, MigrationConfiguration()).disks == ("vda",)


@pytest.mark.parametrize("is_still", [False, True])
def test_the_options_come_from_the_request_and_the_settings(is_still: bool) -> None:
    settings = MigrationConfiguration(bandwidth_per_migration="1Mi", allow_auto_converge=is_still)
    options = sender_module._options(a_request(is_still=is_still), settings)
    assert (options.pod_uid, options.epoch, options.is_still, options.auto_converge, options.bytes_per_second) == (
        "there",
        2,
        is_still,
        is_still,
        1 << 20,
    )
