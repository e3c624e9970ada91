# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import time

import pytest

from controlplane.domain.state import Life, State
from controlplane.hypervisor.events import AgentChanged, LifecycleChanged
from controlplane.virt_launcher.guest import libvirtd_liveness as liveness_module
from controlplane.virt_launcher.guest import watch as watch_module
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness
from controlplane.virt_launcher.guest.watch import GuestExit, GuestWatch, derive_exit
from tests.controlplane.virt_launcher.fake_hypervisor import RUNNING, FakeGuest, FakeLibvirtd


@pytest.mark.parametrize(
    ("state", "with_grace", "without_grace"),
    [
        pytest.param(State(Life.RUNNING, "booted"), None, None, id="runs"),
        pytest.param(State(Life.SHUT_OFF, "unknown"), None, None, id="not begun"),
        pytest.param(State(Life.SHUT_OFF, "failed"), None, None, id="could not be started: may be tried again"),
        pytest.param(State(Life.SHUT_OFF, "shutdown"), 0, 0, id="shut down"),
        pytest.param(State(Life.SHUT_OFF, "destroyed"), 1, 0, id="switched off"),
        pytest.param(State(Life.SHUT_OFF, "crashed"), 1, 1, id="QEMU was killed"),
        pytest.param(State(Life.CRASHED, "panicked"), 1, 1, id="panicked"),
        pytest.param(State(Life.SHUT_OFF, "migrated"), None, None, id="went on elsewhere"),
    ],
)
def test_the_exit_code_shows_how_the_guest_ended(
    state: State, with_grace: int | None, without_grace: int | None
) -> None:
    def code(verdict: GuestExit | None) -> int | None:
        return verdict and verdict.exit_code

    assert code(derive_exit(state, is_acpi_expected=True)) == with_grace
    assert code(derive_exit(state, is_acpi_expected=False)) == without_grace


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ("panicked", "the guest's kernel panicked"),
        ("watchdog", "the guest's watchdog expired, which was to end its run"),
        ("", "QEMU ended unexpectedly: shut off, crashed"),
    ],
)
async def test_the_exit_message_names_the_reported_cause(libvirtd: FakeLibvirtd, cause: str, message: str) -> None:
    libvirtd.state_now = RUNNING
    task = asyncio.create_task(a_watch().wait_for_exit())
    async with asyncio.timeout(5):
        await libvirtd.is_watched.wait()
    libvirtd.put(LifecycleChanged("uid", "crashed", cause))
    libvirtd.change(State(Life.SHUT_OFF, "crashed"), "stopped")
    assert await task == GuestExit(1, message)


async def test_the_cause_is_reported_though_the_end_was_read_at_an_earlier_event(libvirtd: FakeLibvirtd) -> None:
    """libvirt sends pause, panic and end of a panicked guest at once. A late read of the state sees the end first."""
    libvirtd.state_now = RUNNING
    task = asyncio.create_task(a_watch().wait_for_exit())
    async with asyncio.timeout(5):
        await libvirtd.is_watched.wait()
    libvirtd.put(LifecycleChanged("uid", "suspended"))
    libvirtd.put(LifecycleChanged("uid", "crashed", "panicked"))
    libvirtd.change(State(Life.SHUT_OFF, "crashed"), "stopped")
    assert await task == GuestExit(1, "the guest's kernel panicked")


@pytest.fixture
def libvirtd(monkeypatch: pytest.MonkeyPatch) -> FakeLibvirtd:
    fake = FakeLibvirtd()
    monkeypatch.setattr(watch_module, "open_connection", fake.open_connection)
    monkeypatch.setattr(watch_module, "Domain", FakeGuest)
    monkeypatch.setattr(watch_module, "_RETRY_SECONDS", 0)
    return fake


def a_watch(liveness: LibvirtdLiveness | None = None) -> GuestWatch:
    socket = "/run/launcher/libvirt/libvirt-sock"
    return GuestWatch("uid", socket, liveness or LibvirtdLiveness(lambda: 0.0), is_acpi_expected=True)


class Time:
    """A clock that moves on with each read."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        self.seconds += 1.0
        return self.seconds


async def test_an_idle_libvirtd_is_pinged(libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(liveness_module, "PING_SECONDS", 0.001)
    libvirtd.state_now = RUNNING
    liveness = LibvirtdLiveness(Time())
    task = asyncio.create_task(a_watch(liveness).wait_for_exit())
    async with asyncio.timeout(5):
        while libvirtd.pings < 20:  # noqa: ASYNC110 - the fake has no event for it
            await asyncio.sleep(0.001)
    assert liveness.seconds_left() > 10
    libvirtd.change(State(Life.SHUT_OFF, "shutdown"), "stopped")
    assert await task == GuestExit(0, "the guest shut down")
    assert len(libvirtd.connections) == 1


async def test_a_hung_libvirtd_is_reconnected_and_its_guest_keeps_running(
    libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(liveness_module, "PING_SECONDS", 0.001)
    libvirtd.state_now, libvirtd.is_hung = RUNNING, True
    task = asyncio.create_task(a_watch(LibvirtdLiveness(time.monotonic)).wait_for_exit())
    async with asyncio.timeout(5):
        while len(libvirtd.connections) < 3:  # noqa: ASYNC110 - the fake has no event for it
            await asyncio.sleep(0.001)
    assert not task.done()
    libvirtd.is_hung = False
    libvirtd.change(State(Life.SHUT_OFF, "shutdown"), "stopped")
    assert await task == GuestExit(0, "the guest shut down")


async def test_events_delay_no_ping(libvirtd: FakeLibvirtd) -> None:
    """The agent of a booting guest connects 8 s after the start. libvirtd was killed 15 s after that event."""
    libvirtd.state_now = RUNNING
    now = [0.0]
    liveness = LibvirtdLiveness(lambda: now[0])
    task = asyncio.create_task(a_watch(liveness).wait_for_exit())
    await libvirtd.is_watched.wait()
    for _unused in range(6):
        now[0] += 6
        libvirtd.put(AgentChanged("uid", is_connected=True))
        for _turn in range(5):
            await asyncio.sleep(0)
        assert liveness.seconds_left() > 0
    assert libvirtd.pings == 3, "every second time, and not at each event"
    task.cancel()


async def test_the_exit_is_seen_whenever_the_domain_appears(libvirtd: FakeLibvirtd) -> None:
    libvirtd.refusals = 3
    task = asyncio.create_task(a_watch().wait_for_exit())
    await libvirtd.is_watched.wait()
    libvirtd.change(State(Life.SHUT_OFF, "unknown"), "defined")
    libvirtd.change(RUNNING, "started")
    libvirtd.change(State(Life.SHUT_OFF, "shutdown"), "stopped")
    assert await task == GuestExit(0, "the guest shut down")
    assert [connection.is_closed for connection in libvirtd.connections] == [True]


async def test_the_death_of_libvirtd_is_no_exit(libvirtd: FakeLibvirtd) -> None:
    libvirtd.state_now = RUNNING
    task = asyncio.create_task(a_watch().wait_for_exit())
    await libvirtd.is_watched.wait()
    libvirtd.is_watched.clear()
    libvirtd.die()
    await libvirtd.is_watched.wait()
    assert not task.done()
    libvirtd.change(State(Life.SHUT_OFF, "crashed"), "stopped")
    assert (await task).exit_code == 1
    assert len(libvirtd.connections) == 2


async def test_a_missing_libvirtd_is_dialled_at_least_once_a_second(
    libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be away for long, and its guest may end at any time."""
    waits: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        waits.append(seconds)
        await sleep(0)

    monkeypatch.setattr(asyncio, "sleep", at_once)
    monkeypatch.setattr(watch_module, "_RETRY_SECONDS", 0.02)
    libvirtd.refusals, libvirtd.state_now = 9, State(Life.SHUT_OFF, "shutdown")
    assert (await a_watch().wait_for_exit()).exit_code == 0
    assert waits == [0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.0, 1.0, 1.0]


async def bring_down(libvirtd: FakeLibvirtd, grace_seconds: float) -> GuestExit:
    watch = a_watch()
    ended = asyncio.create_task(watch.wait_for_exit())
    await libvirtd.is_watched.wait()
    bringing_down = asyncio.create_task(watch.bring_down(grace_seconds))
    done, pending = await asyncio.wait((ended, bringing_down), return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    return done.pop().result()


async def test_a_guest_that_obeys_is_only_shut_down(libvirtd: FakeLibvirtd) -> None:
    libvirtd.state_now = RUNNING
    assert await bring_down(libvirtd, 3600) == GuestExit(0, "the guest shut down")
    assert libvirtd.commands == ["shutdown"]


async def test_a_guest_without_grace_period_is_destroyed_at_once(libvirtd: FakeLibvirtd) -> None:
    libvirtd.state_now = RUNNING
    assert (await bring_down(libvirtd, 0)).exit_code == 1
    assert libvirtd.commands == ["destroy"]


async def test_a_guest_that_does_not_obey_is_destroyed_after_its_grace_period(libvirtd: FakeLibvirtd) -> None:
    libvirtd.state_now, libvirtd.obeys = RUNNING, False
    verdict = await bring_down(libvirtd, 0.01)
    assert verdict == GuestExit(1, "the guest did not shut down within its grace period and was ended")
    assert libvirtd.commands == ["shutdown", "destroy"]


async def test_a_guest_that_libvirt_cannot_destroy_is_killed(
    libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "_LAST_RETRY_SECONDS", 0)
    libvirtd.state_now, libvirtd.is_stuck = RUNNING, True
    async with asyncio.timeout(5):
        assert (await bring_down(libvirtd, 0)).exit_code == 1
    assert libvirtd.commands == ["destroy", "kill"]


@pytest.mark.parametrize("trouble", ["gone", "mute"])
async def test_a_silent_libvirtd_is_no_exit(
    libvirtd: FakeLibvirtd, monkeypatch: pytest.MonkeyPatch, trouble: str
) -> None:
    """QEMU may still run. An exit code would be a verdict without evidence."""
    monkeypatch.setattr(watch_module, "_LAST_RETRY_SECONDS", 0.001)
    monkeypatch.setattr(watch_module, "POWER_BUTTON_SECONDS", 0.001)
    libvirtd.state_now, libvirtd.obeys = RUNNING, False
    watch = a_watch()
    ended = asyncio.create_task(watch.wait_for_exit())
    await libvirtd.is_watched.wait()
    await asyncio.sleep(0)
    if trouble == "gone":
        libvirtd.refusals = 10**9
        libvirtd.die()
        for _unused in range(5):
            await asyncio.sleep(0)
    libvirtd.is_mute = trouble == "mute"

    bringing_down = asyncio.create_task(watch.bring_down(0.01))
    await asyncio.wait({bringing_down}, timeout=0.05)
    assert not bringing_down.done()

    libvirtd.refusals, libvirtd.is_mute = 0, False
    async with asyncio.timeout(5):
        assert (await ended).message == "the guest did not shut down within its grace period and was ended"
    bringing_down.cancel()


NOT_RUN = GuestExit(1, "the Pod was ended before its guest ran")


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        pytest.param(None, NOT_RUN, id="no domain"),
        pytest.param(State(Life.SHUT_OFF, "unknown"), NOT_RUN, id="only defined"),
        pytest.param(
            State(Life.SHUT_OFF, "migrated"), GuestExit(0, "the guest has moved to another node"), id="migrated"
        ),
    ],
)
async def test_without_a_running_guest_there_is_no_wait(
    libvirtd: FakeLibvirtd, state: State | None, expected: GuestExit
) -> None:
    libvirtd.state_now = state
    assert await bring_down(libvirtd, 3600) == expected
    assert libvirtd.commands == []


async def test_a_start_that_failed_without_an_event_is_not_awaited(libvirtd: FakeLibvirtd) -> None:
    """QEMU existed for a moment when the state was read, and libvirt sends no event for a failed start."""
    libvirtd.state_now = RUNNING
    watch = a_watch()
    ended = asyncio.create_task(watch.wait_for_exit())
    await libvirtd.is_watched.wait()
    libvirtd.state_now = State(Life.SHUT_OFF, "failed")
    async with asyncio.timeout(5):
        assert await watch.bring_down(3600) == NOT_RUN
    assert libvirtd.commands == []
    ended.cancel()
