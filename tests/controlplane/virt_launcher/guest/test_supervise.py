# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The services beside the guest, and how its exit is decided. test_launcher.py covers the whole with a guest."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from controlplane.api.launch_plan import LaunchPlan
from controlplane.virt_launcher.guest import supervise
from controlplane.virt_launcher.guest.libvirtd_liveness import LibvirtdLiveness
from controlplane.virt_launcher.guest.watch import GuestExit

PLAN = LaunchPlan(domain="uid", title="ns/vm", grace_period_seconds=30, container_disk_limit_bytes=1 << 30)
SEEN, BROUGHT_ABOUT = GuestExit(0, "the guest shut down"), GuestExit(1, "the Pod was ended before its guest ran")


class Watch:
    """A guest watch whose results the test sets. It records its arguments."""

    made: Watch

    def __init__(self, *_unused: object, is_acpi_expected: bool) -> None:
        Watch.made, self.is_acpi_expected = self, is_acpi_expected
        self.seen: asyncio.Future[GuestExit] = asyncio.get_running_loop().create_future()
        self.brought_about: asyncio.Future[GuestExit] = asyncio.get_running_loop().create_future()
        self.is_asked = asyncio.Event()
        self.grace_seconds: float | None = None

    async def wait_for_exit(self) -> GuestExit:
        return await self.seen

    async def bring_down(self, grace_seconds: float) -> GuestExit:
        self.grace_seconds = grace_seconds
        self.is_asked.set()
        return await self.brought_about


@pytest.fixture(autouse=True)
def watch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervise, "GuestWatch", Watch)


async def begin(plan: LaunchPlan = PLAN, *, is_terminating: bool) -> asyncio.Task[GuestExit]:
    """Start waiting for the guest's exit. is_terminating: the Pod is terminating."""
    terminating = asyncio.Event()
    if is_terminating:
        terminating.set()
    task = asyncio.create_task(supervise._wait_for_exit(plan, terminating, LibvirtdLiveness(lambda: 0.0)))
    for _unused in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_guest_that_ends_by_itself_is_not_brought_down() -> None:
    task = await begin(is_terminating=False)
    Watch.made.seen.set_result(SEEN)

    assert await task == SEEN
    assert Watch.made.grace_seconds is None


async def test_a_terminating_pod_gives_its_guest_the_grace_period() -> None:
    task = await begin(is_terminating=True)
    assert Watch.made.grace_seconds == 30
    assert not task.done()

    Watch.made.brought_about.set_result(BROUGHT_ABOUT)
    assert await task == BROUGHT_ABOUT


async def test_an_observed_exit_wins_over_a_forced_one() -> None:
    task = await begin(is_terminating=True)
    Watch.made.brought_about.set_result(BROUGHT_ABOUT)
    Watch.made.seen.set_result(SEEN)

    assert await task == SEEN


@pytest.mark.parametrize(("grace", "expected"), [(30, True), (1, True), (0, False)])
async def test_only_a_guest_with_a_grace_period_is_expected_to_obey(grace: int, expected: bool) -> None:
    """A guest without one is destroyed at once, as requested, and has succeeded."""
    task = await begin(replace(PLAN, grace_period_seconds=grace), is_terminating=False)
    assert Watch.made.is_acpi_expected is expected
    Watch.made.seen.set_result(SEEN)
    await task


async def test_without_a_verdict_the_pod_ends_some_time_after_the_grace_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float | None] = []
    wait = asyncio.wait

    async def at_once(tasks: Any, *, timeout: float | None = None, **options: Any) -> Any:  # noqa: ASYNC109 - the signature of asyncio.wait
        limits.append(timeout)
        return await wait(tasks, timeout=timeout and 0.001, **options)

    monkeypatch.setattr(supervise.asyncio, "wait", at_once)
    verdict = await (await begin(is_terminating=True))

    assert (verdict.exit_code, "it is unknown how its guest ended" in verdict.message) == (1, True)
    assert limits == [None, 30 + supervise.EXTRA_SECONDS]


@pytest.mark.parametrize("trouble", [OSError("no such device"), ValueError("no address"), None], ids=str)
async def test_a_service_that_ends_is_restarted_and_ends_no_other(
    trouble: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervise, "_RETRY_SECONDS", 0)
    begun = asyncio.Semaphore(0)

    async def serve() -> None:
        begun.release()
        if trouble is not None:
            raise trouble

    task = asyncio.create_task(supervise._retry("dhcp", serve))
    async with asyncio.timeout(5):
        for _unused in range(3):
            await begun.acquire()
    assert not task.done()
    task.cancel()
