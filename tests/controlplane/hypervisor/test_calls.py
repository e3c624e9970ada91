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


async def test_a_call_runs_in_a_thread_of_its_own() -> None:
    assert await call("ask", threading.get_ident) != threading.get_ident()


async def test_a_stuck_call_costs_its_caller_the_deadline_and_nothing_else() -> None:
    release = threading.Event()
    with pytest.raises(TimedOut, match=r"cannot ask the state of web: no answer within 0.01 s"):
        await call("ask the state of web", release.wait, deadline_seconds=0.01)
    assert await call("go on", lambda: "fine") == "fine"
    release.set()


async def test_what_comes_of_a_call_that_nobody_waits_for_any_more_is_let_go() -> None:
    """A connection that is made too late would stay open for good."""
    may_end, let_go = threading.Event(), threading.Event()
    with pytest.raises(TimedOut):
        await call("connect", lambda: may_end.wait(5), deadline_seconds=0.01, discard=lambda _unused: let_go.set())
    assert not let_go.is_set()
    may_end.set()
    assert await asyncio.to_thread(let_go.wait, 5)


async def test_whoever_keeps_a_thread_busy_has_its_wire_cut() -> None:
    """It reads what the other side sends before its answer, and takes the processor from everybody meanwhile."""
    transport = Transport()

    def read_on() -> None:
        while not transport.because and time.thread_time() < 20 * BURST_SECONDS:
            pass

    await call("ask", read_on, transport=transport)
    assert transport.because == CPU_QUOTA_EXCEEDED


async def test_a_call_is_charged_whole_however_soon_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of many short ones none is ever looked at."""
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 3600.0)
    transport, taken = Transport(), list[float]()

    def take(amount: float, _unused: float) -> bool:
        taken.append(amount)
        return False

    monkeypatch.setattr(transport.cpu_quota, "take", take)

    def read_for_a_while() -> None:
        while time.thread_time() < 0.01:
            pass

    await call("ask", read_for_a_while, transport=transport)
    assert sum(taken) >= 0.009
    assert transport.because == CPU_QUOTA_EXCEEDED


async def test_what_a_call_reads_is_charged_whole_and_once_however_soon_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whoever sends much before each of many quick answers would be counted by nobody."""
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 3600.0)
    transport, taken = Transport(), list[int]()
    monkeypatch.setattr(transport, "count_received", lambda amount, _unused: taken.append(amount))
    await call("ask", read_bytes, 50_000, transport=transport)
    assert 50_000 <= sum(taken) < 51_000


async def test_what_was_seen_of_a_call_s_reading_is_not_charged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 0.0)
    transport, taken, was_seen = Transport(), list[int](), threading.Event()

    def take(amount: int, _unused: float) -> None:
        taken.append(amount)
        if sum(taken) >= 50_000:
            was_seen.set()

    monkeypatch.setattr(transport, "count_received", take)

    def read_in_two_parts() -> None:
        read_bytes(50_000)
        assert was_seen.wait(5)
        read_bytes(30_000)

    await call("ask", read_in_two_parts, transport=transport)
    assert 80_000 <= sum(taken) < 82_000


def read_bytes(amount: int) -> None:
    """As libvirt's client does."""
    with Path("/dev/zero").open("rb", buffering=0) as zeros:
        assert len(zeros.read(amount)) == amount


async def test_what_each_call_takes_is_charged_to_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or somebody who asks a guest's agent a hundred times a second would have its connection cut."""
    monkeypatch.setattr("controlplane.hypervisor.calls._OWN_SECONDS", 3600.0)
    transport, left = Transport(), BURST_SECONDS
    await call("ask", lambda: None, transport=transport)
    assert transport.cpu_quota.left == left


async def test_libvirts_errors_are_translated() -> None:
    def fail() -> None:
        raise libvirt.libvirtError("no transport")

    with pytest.raises(HypervisorError, match="cannot dial: no transport"):
        await call("dial", fail)


async def test_a_bug_stays_a_bug() -> None:
    def fail() -> None:
        raise KeyError("oops")

    with pytest.raises(KeyError):
        await call("dial", fail)
