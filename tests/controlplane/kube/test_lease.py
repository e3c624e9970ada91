# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import Unavailable
from controlplane.kube.lease import Heartbeat, render_time
from tests.controlplane.kube.virtual import MemoryApi, SlowApi, VirtualTime
from tests.support.tasks import cancel_task

KEY = Key("kubevirt", "virt-handler-n1")


def test_a_time_is_written_with_microseconds() -> None:
    assert render_time(1_750_000_000.25) == "2025-06-15T15:06:40.250000Z"


async def test_the_first_heartbeat_creates_the_lease_and_later_ones_renew_it() -> None:
    api, time = MemoryApi(), VirtualTime()
    heartbeat = Heartbeat(api, KEY, "n1", time, labels={"a": "b"}, sleep=time.sleep)
    assert heartbeat.last_beat is None

    await heartbeat.beat()
    time.seconds += 10
    await heartbeat.beat()

    assert [verb for verb, *_unused in api.writes] == ["create", "patch"]
    lease = api.objects["leases", KEY]
    assert lease["metadata"]["labels"] == {"a": "b"}
    assert lease["spec"]["holderIdentity"] == "n1"
    assert lease["spec"]["renewTime"] == render_time(time.now())
    assert heartbeat.last_beat == time.seconds


async def test_a_heartbeat_counts_from_its_send_time() -> None:
    time = VirtualTime()
    heartbeat = Heartbeat(SlowApi(time=time, answers_after=8), KEY, "n1", time, sleep=time.sleep)
    beating = asyncio.create_task(heartbeat.beat())
    began = time.seconds
    await time.advance(9)
    await beating

    assert heartbeat.last_beat == began


async def test_a_first_heartbeat_later_than_the_lease_duration_ends_a_silence() -> None:
    """The process started while the server accepted no renewals: its view from before the heartbeat may be old."""
    api, time, events = MemoryApi(), VirtualTime(), []
    heartbeat = Heartbeat(api, KEY, "n1", time, sleep=time.sleep)
    heartbeat.subscribe(lambda: events.append(time.seconds))
    await heartbeat.beat()
    assert (heartbeat.silences, events) == (0, [])

    late = Heartbeat(api, KEY, "n1", time, sleep=time.sleep)
    late.subscribe(lambda: events.append(time.seconds))
    time.seconds += late.duration_seconds
    await late.beat()
    assert (late.silences, events) == (1, [time.seconds])


async def test_a_failed_heartbeat_is_retried_soon_and_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    api, time = MemoryApi(), VirtualTime()
    heartbeat = Heartbeat(api, KEY, "n1", time, sleep=time.sleep)
    running = asyncio.create_task(heartbeat.run())
    await time.settle()
    began = heartbeat.last_beat

    api.failing = Unavailable("gone")
    await time.advance(25)
    assert heartbeat.last_beat == began
    assert caplog.text.count("cannot renew the heartbeat") == 1

    api.failing = None
    await time.advance(2.1)
    assert heartbeat.last_beat is not None
    assert heartbeat.last_beat > time.seconds - 2.1
    await cancel_task(running)


async def test_a_heartbeat_after_a_silence_longer_than_the_lease_announces_it() -> None:
    """The first one too: the control plane knew nothing of this process before."""
    api, time = MemoryApi(), VirtualTime()
    heartbeat = Heartbeat(api, KEY, "n1", time, duration_seconds=40, sleep=time.sleep)

    for silence, expected in ((0, True), (0, False), (39, False), (41, True)):
        time.seconds += silence
        await heartbeat.beat()
        assert heartbeat.resumed.is_set() is expected
        heartbeat.resumed.clear()


async def test_every_silence_longer_than_the_lease_is_counted_and_announced() -> None:
    """The time before the first heartbeat is no silence."""
    api, time = MemoryApi(), VirtualTime()
    heartbeat = Heartbeat(api, KEY, "n1", time, duration_seconds=40, sleep=time.sleep)
    announced: list[int] = []
    heartbeat.subscribe(lambda: announced.append(heartbeat.silences))

    for silence, expected in ((0, []), (39, []), (41, [1]), (10, [1]), (300, [1, 2])):
        time.seconds += silence
        await heartbeat.beat()
        assert announced == expected


async def test_a_heartbeat_is_fresh_for_the_lease_duration() -> None:
    api, time = MemoryApi(), VirtualTime()
    heartbeat = Heartbeat(api, KEY, "n1", time, duration_seconds=40, sleep=time.sleep)
    assert not heartbeat.is_fresh

    await heartbeat.beat()
    time.seconds += 39
    assert heartbeat.is_fresh
    time.suspend(1)
    assert not heartbeat.is_fresh


async def test_a_response_after_the_lease_has_expired_counts_as_a_silence() -> None:
    """The heartbeat was sent in time, but readers of the Lease have seen it expire, and may have acted."""
    time, events = VirtualTime(), []
    api = SlowApi(time=time)
    heartbeat = Heartbeat(api, KEY, "n1", time, duration_seconds=40, sleep=time.sleep)
    await take(time, heartbeat)
    heartbeat.resumed.clear()
    heartbeat.subscribe(lambda: events.append(time.seconds))
    time.seconds += 25
    api.answers_after = 8
    await take(time, heartbeat)
    assert heartbeat.resumed.is_set()
    assert (heartbeat.silences, len(events)) == (1, 1)


async def take(time: VirtualTime, heartbeat: Heartbeat) -> None:
    """Send one heartbeat and wait for its response."""
    beating = asyncio.create_task(heartbeat.beat())
    await time.advance(9)
    await beating
