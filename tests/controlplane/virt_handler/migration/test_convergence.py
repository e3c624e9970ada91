# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a migration is aborted, and when it pauses its guest to send the rest."""

from __future__ import annotations

import asyncio

import pytest

from controlplane.api.objects.migration_state import MigrationConfiguration
from controlplane.domain.state import Life, State
from controlplane.hypervisor.domain import Progress
from controlplane.hypervisor.errors import Disconnected, HypervisorError, WrongState
from controlplane.virt_handler.migration.convergence import GIB, Pace, Watch
from controlplane.virt_handler.vmi.ports import NoContact

RUNS, MIGRATES, BY_USER = State(Life.RUNNING, "booted"), State(Life.PAUSED, "migration"), State(Life.PAUSED, "user")


class Migrating:
    """A guest that is being sent, and a clock that moves by a second per progress read."""

    name = "guest"

    def __init__(self, remaining: list[int], *, total: int = GIB, stopped: State = MIGRATES) -> None:
        """remaining: bytes at each read; the last value repeats. stopped: the state after the pause."""
        self.seconds = 0.0
        self.asked: list[str] = []
        self.refusals: list[Exception] = []
        self._remaining = remaining
        self._total = total
        self._stopped = stopped
        self._state = RUNS

    def monotonic(self) -> float:
        return self.seconds

    async def progress(self) -> Progress:
        self.seconds += 1
        remaining = self._remaining.pop(0) if len(self._remaining) > 1 else self._remaining[0]
        return Progress(total=self._total, remaining=remaining)

    async def write_stop(self) -> None:
        self._ask("write")

    async def stop_to_send(self) -> None:
        self._ask("stop")
        self._state = self._stopped

    async def resume(self) -> None:
        self._ask("resume")
        self._state = RUNS

    async def state(self) -> State:
        return self._state

    def _ask(self, what: str) -> None:
        self.asked.append(f"{what} at {self.seconds:.0f}")
        if self.refusals:
            raise self.refusals.pop(0)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _seconds: sleep(0))


def settings(**fields: int | bool) -> MigrationConfiguration:
    return MigrationConfiguration(
        **{"completion_timeout_per_gib": 20, "progress_timeout": 0, "allow_workload_disruption": True, **fields}  # type: ignore[arg-type]
    )


def a_watch(guest: Migrating, how: MigrationConfiguration, *, is_paused_by_user: bool = False) -> Watch:
    return Watch(guest, how, guest, guest.write_stop, is_paused_by_user=is_paused_by_user)


async def run(guest: Migrating, how: MigrationConfiguration, *, is_paused_by_user: bool = False) -> str:
    async with asyncio.timeout(10):
        return await a_watch(guest, how, is_paused_by_user=is_paused_by_user).run()


async def test_a_guest_not_sent_in_time_is_paused_once_and_gets_the_same_time_again() -> None:
    guest = Migrating([5, 4])
    assert await run(guest, settings()) == "did not complete within 40 s (20 s for each GiB)"
    assert (guest.asked, guest.seconds) == (["write at 21", "stop at 21"], 41)


async def test_the_time_limit_scales_with_the_memory() -> None:
    guest = Migrating([5], total=2 * GIB + 1)
    assert await run(guest, settings()) == "did not complete within 120 s (20 s for each GiB)"
    assert guest.asked == ["write at 61", "stop at 61"]


@pytest.mark.parametrize("is_paused_by_user", [True, False])
async def test_a_guest_is_not_paused_if_that_is_forbidden_or_a_user_paused_it(is_paused_by_user: bool) -> None:
    guest = Migrating([5])
    how = settings(allow_workload_disruption=is_paused_by_user)
    assert (
        await run(guest, how, is_paused_by_user=is_paused_by_user) == "did not complete within 20 s (20 s for each GiB)"
    )
    assert (guest.asked, guest.seconds) == ([], 21)


@pytest.mark.parametrize("refusal", [NoContact("no answer"), Disconnected("gone"), WrongState("no guest")])
@pytest.mark.parametrize("at", ["write", "stop"])
async def test_a_failed_pause_is_retried(refusal: Exception, at: str) -> None:
    guest = Migrating([5])
    if at == "write":
        guest.refusals = [refusal]
        expected = ["write at 21", "write at 22", "stop at 22"]
    else:
        guest.refusals = [refusal]
        ask = guest._ask
        guest._ask = lambda request: guest.asked.append(f"{request} at 21") if not guest.asked else ask(request)  # type: ignore[method-assign]
        expected = ["write at 21", "stop at 21", "write at 22", "stop at 22"]
    await run(guest, settings())
    assert guest.asked == expected


async def test_a_guest_that_cannot_be_paused_is_aborted_at_the_same_time() -> None:
    guest = Migrating([5])
    guest.refusals = [NoContact("no answer")] * 100
    assert await run(guest, settings()) == "did not complete within 40 s (20 s for each GiB)"
    assert "stop at 21" not in guest.asked


async def test_a_migration_without_progress_is_aborted_without_a_pause() -> None:
    guest = Migrating([5])
    assert await run(guest, settings(progress_timeout=10)) == "made no progress for 10 s"
    assert guest.asked == []


@pytest.mark.parametrize(("is_allowed", "seconds"), [(True, 41), (False, 14)])
async def test_a_busy_guest_that_may_be_paused_makes_progress_while_bytes_are_sent(
    is_allowed: bool, seconds: int
) -> None:
    """Its memory is sent again and again: the remaining bytes grow at the start of each round."""
    guest = Migrating([9, 6, 3] * 7 + list(range(99, 0, -1)))
    await run(guest, settings(allow_workload_disruption=is_allowed, progress_timeout=10))
    assert guest.seconds == seconds


def test_unplugged_memory_extends_no_time_limit() -> None:
    """QEMU counts the whole memory device."""
    pace = Pace(settings(), 0.0, spare=512 * GIB)
    pace.note(Progress(total=513 * GIB, remaining=5), 1.0)
    assert pace.longest == 20


def test_the_time_without_progress_begins_with_the_first_bytes() -> None:
    """Before it sends, QEMU reports zeros."""
    pace = Pace(settings(progress_timeout=10), 0.0, is_stoppable=True)
    pace.note(Progress(), 5.0)
    pace.note(Progress(total=GIB, remaining=5), 9.0)
    pace.note(Progress(total=GIB, remaining=5), 15.0)
    assert pace.too_long(15.0) == ""
    assert pace.too_long(20.0) == "made no progress for 10 s"


def test_an_impossible_total_extends_no_time_limit() -> None:
    """The total may come from a hostile launcher."""
    pace = Pace(settings(), 0.0, most=GIB)
    pace.note(Progress(total=1 << 62, remaining=5), 1.0)
    assert pace.longest == 20


async def test_a_migration_without_answers_is_aborted_in_time() -> None:
    class Mute(Migrating):
        async def progress(self) -> Progress:
            await super().progress()
            raise Disconnected("no answer")

    assert await run(Mute([5]), settings(allow_workload_disruption=False)) == (
        "did not complete within 20 s (20 s for each GiB)"
    )


async def test_without_a_limit_nothing_is_aborted_or_paused() -> None:
    pace = Pace(settings(completion_timeout_per_gib=0), 0.0, is_stoppable=True)
    pace.note(Progress(total=GIB, remaining=5), 1e6)
    assert (pace.too_long(1e6), pace.is_stop_announced(1e6)) == ("", False)


@pytest.mark.parametrize(
    ("stopped", "asked"),
    [
        pytest.param(MIGRATES, [], id="resumed by libvirt"),
        pytest.param(BY_USER, ["resume at 41"], id="paused after the end"),
        pytest.param(RUNS, [], id="runs"),
    ],
)
async def test_a_guest_paused_by_a_failed_migration_resumes(stopped: State, asked: list[str]) -> None:
    guest = Migrating([5], stopped=stopped)
    watch = a_watch(guest, settings())
    await watch.run()
    guest.asked.clear()
    await watch.let_go_on()
    assert guest.asked == asked


async def test_a_guest_that_the_migration_did_not_pause_is_not_resumed() -> None:
    """A user paused it."""
    guest = Migrating([5])
    guest._state = BY_USER
    await a_watch(guest, settings()).let_go_on()
    assert guest.asked == []


async def test_a_resume_waits_for_the_pause_in_progress() -> None:
    guest = Migrating([5], stopped=BY_USER)
    is_pausing, comes, stop = asyncio.Event(), asyncio.Event(), guest.stop_to_send

    async def late() -> None:
        is_pausing.set()
        await comes.wait()
        await stop()

    guest.stop_to_send = late  # type: ignore[method-assign]
    watch = a_watch(guest, settings())
    running = asyncio.create_task(watch.run())
    await is_pausing.wait()
    running.cancel()
    resuming = asyncio.create_task(watch.let_go_on())
    await asyncio.sleep(0)
    assert not resuming.done()
    comes.set()
    await resuming
    assert guest._state == RUNS


async def test_after_a_failed_pause_there_is_nothing_to_resume() -> None:
    guest = Migrating([5])
    guest.refusals = [HypervisorError("no")] * 100
    watch = a_watch(guest, settings())
    await watch.stop()
    await watch.let_go_on()
    assert guest._state == RUNS
