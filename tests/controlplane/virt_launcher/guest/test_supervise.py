# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What runs beside the guest, and who says how it ended. The whole, with a guest, is in test_launcher.py."""

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
    """A guest whose end is seen, or brought about, or neither. Notes what it was asked."""

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


async def begin(plan: LaunchPlan = PLAN, *, is_told: bool) -> asyncio.Task[GuestExit]:
    """Wait for the end of a guest, until that has begun; told to end it, or not."""
    told = asyncio.Event()
    if is_told:
        told.set()
    task = asyncio.create_task(supervise._wait_for_exit(plan, told, LibvirtdLiveness(lambda: 0.0)))
    for _unused in range(5):
        await asyncio.sleep(0)
    return task


async def test_a_guest_that_ends_by_itself_is_not_brought_down() -> None:
    task = await begin(is_told=False)
    Watch.made.seen.set_result(SEEN)

    assert await task == SEEN
    assert Watch.made.grace_seconds is None


async def test_once_the_pod_is_to_go_the_guest_has_its_grace_period() -> None:
    task = await begin(is_told=True)
    assert Watch.made.grace_seconds == 30
    assert not task.done()

    Watch.made.brought_about.set_result(BROUGHT_ABOUT)
    assert await task == BROUGHT_ABOUT


async def test_what_was_seen_goes_before_what_was_brought_about() -> None:
    task = await begin(is_told=True)
    Watch.made.brought_about.set_result(BROUGHT_ABOUT)
    Watch.made.seen.set_result(SEEN)

    assert await task == SEEN


@pytest.mark.parametrize(("grace", "expected"), [(30, True), (1, True), (0, False)])
async def test_only_a_guest_with_a_grace_period_is_expected_to_obey(grace: int, expected: bool) -> None:
    """Switched off at once, as was asked for, it has succeeded."""
    task = await begin(replace(PLAN, grace_period_seconds=grace), is_told=False)
    assert Watch.made.is_acpi_expected is expected
    Watch.made.seen.set_result(SEEN)
    await task


async def test_where_nobody_can_say_it_the_pod_ends_some_time_after_the_grace_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    limits: list[float | None] = []
    wait = asyncio.wait

    async def at_once(tasks: Any, *, timeout: float | None = None, **options: Any) -> Any:  # noqa: ASYNC109 - its own
        limits.append(timeout)
        return await wait(tasks, timeout=timeout and 0.001, **options)

    monkeypatch.setattr(supervise.asyncio, "wait", at_once)
    verdict = await (await begin(is_told=True))

    assert (verdict.exit_code, "nobody could say" in verdict.message) == (1, True)
    assert limits == [None, 30 + supervise.EXTRA_SECONDS]


@pytest.mark.parametrize("trouble", [OSError("no such device"), ValueError("no address"), None], ids=str)
async def test_a_service_that_ends_is_begun_again_and_ends_nobody_else(
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
