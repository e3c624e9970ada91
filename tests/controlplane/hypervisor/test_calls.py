# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import threading
import time
from pathlib import Path

import libvirt
import pytest

from controlplane.hypervisor.calls import call
from controlplane.hypervisor.cpu_quota import BURST_SECONDS, CPU_QUOTA_EXCEEDED
from controlplane.hypervisor.errors import HypervisorError, TimedOut
from controlplane.hypervisor.transport import Transport


async def test_a_call_runs_in_its_own_thread() -> None:
    assert await call("ask", threading.get_ident) != threading.get_ident()


async def test_a_stuck_call_times_out_and_does_not_block_the_next_call() -> None:
    release = threading.Event()
    with pytest.raises(TimedOut, match=r"cannot ask the state of web: no answer within 0.01 s"):
        await call("ask the state of web", release.wait, deadline_seconds=0.01)
    assert await call("go on", lambda: "fine") == "fine"
    release.set()


async def test_the_result_of_an_abandoned_call_is_discarded() -> None:
    """Otherwise a connection that opens too late would stay open forever."""
    may_end, discarded = threading.Event(), threading.Event()
    with pytest.raises(TimedOut):
        await call("connect", lambda: may_end.wait(5), deadline_seconds=0.01, discard=lambda _unused: discarded.set())
    assert not discarded.is_set()
    may_end.set()
    assert await asyncio.to_thread(discarded.wait, 5)


async def test_a_result_that_arrives_with_the_cancellation_is_discarded() -> None:
    discarded = threading.Event()
    calling = asyncio.create_task(call("connect", lambda: "made", discard=lambda _unused: discarded.set()))
    await asyncio.sleep(0)
    while any(thread.name == "libvirt: connect" for thread in threading.enumerate()):
        time.sleep(0.001)  # noqa: ASYNC251 - the loop must not take the result yet
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    assert await asyncio.to_thread(discarded.wait, 5)


async def test_a_call_over_its_cpu_quota_is_cut() -> None:
    """The thread reads data that the peer sends before its answer, and uses the CPU meanwhile."""
    transport = Transport()

    def read_on() -> None:
        while not transport.because and time.thread_time() < 20 * BURST_SECONDS:
            pass

    await call("ask", read_on, transport=transport)
    assert transport.because == CPU_QUOTA_EXCEEDED


async def test_the_cpu_time_of_a_short_call_is_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Short calls end before the first look of the watchdog."""
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 3600.0)
    transport, charges = Transport(), list[float]()

    def take(amount: float, _unused: float) -> bool:
        charges.append(amount)
        return False

    monkeypatch.setattr(transport.cpu_quota, "take", take)

    def read_for_a_while() -> None:
        while time.thread_time() < 0.01:
            pass

    await call("ask", read_for_a_while, transport=transport)
    assert sum(charges) >= 0.009
    assert transport.because == CPU_QUOTA_EXCEEDED


async def test_the_bytes_read_by_a_short_call_are_charged_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Otherwise data before each of many quick answers would be free."""
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 3600.0)
    transport, charges = Transport(), list[int]()
    monkeypatch.setattr(transport, "count_received", lambda amount, _unused: charges.append(amount))
    await call("ask", read_bytes, 50_000, transport=transport)
    assert 50_000 <= sum(charges) < 51_000


async def test_bytes_charged_during_a_call_are_not_charged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 0.0)
    transport, charges, was_seen = Transport(), list[int](), threading.Event()

    def take(amount: int, _unused: float) -> None:
        charges.append(amount)
        if sum(charges) >= 50_000:
            was_seen.set()

    monkeypatch.setattr(transport, "count_received", take)

    def read_in_two_parts() -> None:
        read_bytes(50_000)
        assert was_seen.wait(5)
        read_bytes(30_000)

    await call("ask", read_in_two_parts, transport=transport)
    assert 80_000 <= sum(charges) < 82_000


def read_bytes(amount: int) -> None:
    """Read so many bytes in this thread, like libvirt's client."""
    with Path("/dev/zero").open("rb", buffering=0) as zeros:
        assert len(zeros.read(amount)) == amount


async def test_the_fixed_cost_of_a_call_is_not_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a hundred agent commands a second would cut the connection."""
    monkeypatch.setattr("controlplane.hypervisor.calls._OWN_SECONDS", 3600.0)
    transport, before = Transport(), BURST_SECONDS
    await call("ask", lambda: None, transport=transport)
    assert transport.cpu_quota.left == before


async def test_libvirts_errors_are_translated() -> None:
    def fail() -> None:
        raise libvirt.libvirtError("no transport")

    with pytest.raises(HypervisorError, match="cannot dial: no transport"):
        await call("dial", fail)
