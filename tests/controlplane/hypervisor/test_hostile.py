# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's real client against hostile servers: an attack neither affects a neighbour nor leaves anything behind.

The neighbour starts domains. The tests do not measure how long a start takes, because that depends on the machine.
Instead the attack continues while the neighbour starts domains, so code that waits for the attacker never ends.
The work of the loop is measured as CPU time of its thread. Each test counts threads and descriptors at its end.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress

import libvirt
import pytest
import pytest_asyncio

from controlplane.hypervisor import partial_messages, receive_quota
from controlplane.hypervisor.connection import Connection, open_connection
from controlplane.hypervisor.cpu_quota import BURST_SECONDS, CPU_QUOTA_EXCEEDED, RATE, CpuQuota
from controlplane.hypervisor.errors import Disconnected, HypervisorError, NotText, TimedOut
from controlplane.hypervisor.events import ConnectionClosed, LifecycleChanged
from controlplane.hypervisor.partial_messages import PARTIAL_MESSAGES_EXCEEDED, PartialMessages
from controlplane.hypervisor.receive_quota import PEER_DOES_NOT_READ, RECEIVE_QUOTA_EXCEEDED, ReceiveQuota
from controlplane.hypervisor.transport import BLOCKED_BY_PEER
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import Behaviour, Hostile, Spawn
from tests.support.tasks import cancel_task

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

TIMEOUT_SECONDS = 0.3
"""The deadline of every call to the attacker; 10 s in production."""
ENDLESS_SECONDS = 600.0
RESCUE_SECONDS = 30.0
"""After this time a test ends the attacker and fails: something waits for it."""
STARTS = 30
"""How many starts of the neighbour make a round."""
OWN_SECONDS = 0.15
"""For the loop's own work: a few hundred starts and the calls to the attacker take 20 to 40 ms."""
BUSY = 3
"""On a busy machine the same work takes up to three times the CPU time; an attacker would take all of it."""


@pytest_asyncio.fixture(loop_scope="session")
async def neighbour(spawn: Spawn) -> AsyncIterator[Connection]:
    connection = await open_connection(spawn().uri)
    yield connection
    await connection.close()


class Census:
    """The threads and descriptors of this process, without those of the servers."""

    def __init__(self, server: Hostile) -> None:
        self._server = server
        self._threads, self._descriptors = self._count()

    async def is_as_before(self) -> None:
        """Wait until all additional threads and descriptors are gone."""
        async with asyncio.timeout(20):
            while self._has_more():  # noqa: ASYNC110 - threads give no signal
                await asyncio.sleep(0.01)

    def _has_more(self) -> bool:
        """Fewer than before is fine: work from an earlier test may have ended."""
        threads, descriptors = self._count()
        return bool(threads - self._threads) or descriptors > self._descriptors

    def _count(self) -> tuple[set[str], int]:
        calls = {thread.name for thread in threading.enumerate() if thread.name.startswith("libvirt")}
        return calls, len(os.listdir("/proc/self/fd")) - self._server.descriptors


@contextmanager
def not_held_up_by(server: Hostile) -> Iterator[None]:
    """Close the server after RESCUE_SECONDS and fail. A separate thread does it: the loop may be blocked by the server.

    If the body ends before, it did not wait for the server.
    """
    timer = threading.Timer(RESCUE_SECONDS, server.close)
    timer.start()
    try:
        yield
        assert timer.is_alive(), "code waited for the attacker"
    finally:
        timer.cancel()
        timer.join()


async def start(at: Connection) -> None:
    """Define and start a domain, like the session of a starting VMI."""
    guest = await at.define("<domain/>")
    await guest.start()


async def fall_into(server: Hostile, patience: float = TIMEOUT_SECONDS) -> None:
    """Make all calls that virt-handler makes to a launcher, then listen for events until a failure or timeout."""
    connection = await open_connection(server.uri, deadline_seconds=patience)
    try:
        guest = await connection.guest("web")
        assert guest is not None
        await guest.state()
        await guest.described(str)
        started = await connection.define("<domain/>")
        await started.start(deadline_seconds=patience)
        async with asyncio.timeout(patience):
            while not isinstance(await connection.events.get(), ConnectionClosed):
                pass
    finally:
        await connection.close()


@pytest.mark.parametrize(("behave", "options"), hostile.ATTACKS.values(), ids=hostile.ATTACKS.keys())
async def test_an_attack_holds_up_no_neighbour_and_leaves_nothing_behind(
    spawn: Spawn, neighbour: Connection, behave: Behaviour, options: dict[str, bool]
) -> None:
    """Code that waits for the attacker waits forever: calls to the attacker have no effective deadline here."""
    server = spawn(behave, **options)
    census, work = Census(server), Work()
    with not_held_up_by(server):
        attack = asyncio.create_task(fall_into(server, ENDLESS_SECONDS))
        try:
            await starts_until_it_gets_no_further(server, neighbour)
            work.stop()
        finally:
            attack.cancel()
            with suppress(asyncio.CancelledError, HypervisorError):
                await attack
    await census.is_as_before()
    assert work.seconds < work.allowed, "the loop is not kept from its other work"

    with suppress(HypervisorError, TimeoutError):  # nothing waits longer than the deadlines of the calls
        await fall_into(server)
    await census.is_as_before()


async def starts_until_it_gets_no_further(server: Hostile, neighbour: Connection) -> None:
    """Start domains until a whole round passes without a call to the attacker: it is cut off or hangs."""
    calls_before = -1
    while len(server.calls) != calls_before:
        calls_before = len(server.calls)
        for _unused in range(STARTS):
            await start(neighbour)


class Work:
    """The CPU time of the loop's thread, which does not depend on other load of the machine."""

    def __init__(self) -> None:
        self.seconds, self.allowed = 0.0, 0.0
        self._began, self._used = time.monotonic(), time.thread_time()

    def stop(self) -> None:
        """Set the CPU time since the beginning, and the CPU time that a connection may use in that period."""
        self.seconds = time.thread_time() - self._used
        self.allowed = BUSY * (BURST_SECONDS + RATE * (time.monotonic() - self._began) + OWN_SECONDS)


async def test_a_connection_that_opens_after_its_caller_left_is_closed_off_the_loop(spawn: Spawn) -> None:
    """The answer to OPEN is delayed, the caller is cancelled, the answer is sent, CLOSE is ignored."""
    is_asked, may_answer = threading.Event(), threading.Event()

    def behave(_unused: hostile.Caller, program: int, procedure: int, __: int) -> bool:
        if program == hostile.PROGRAM and procedure == hostile.OPEN:
            is_asked.set()
            may_answer.wait(5)
        return program == hostile.PROGRAM and procedure == hostile.CLOSE

    server = spawn(behave)
    census = Census(server)
    opening = asyncio.create_task(open_connection(server.uri))
    await asyncio.to_thread(is_asked.wait)
    await cancel_task(opening)
    may_answer.set()
    await census.is_as_before()


async def test_a_timed_out_call_closes_its_connection(spawn: Spawn) -> None:
    connection = await open_connection(spawn(hostile.deaf_to(hostile.LOOKUP)).uri, deadline_seconds=TIMEOUT_SECONDS)
    with pytest.raises(TimedOut, match=r"cannot look up domain web: no answer within 0\.3 s"):
        await connection.guest("web")
    assert await connection.events.get() == ConnectionClosed("it did not answer in time")
    with pytest.raises(Disconnected):
        await connection.guest("web")
    await connection.close()


@pytest.mark.parametrize("limit", ["time", "bytes"])
async def test_a_flooding_peer_is_cut_off_with_a_reason(
    spawn: Spawn, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flood begins when no call is under way: the event loop reads it."""
    if limit == "time":
        monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    else:
        monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
        monkeypatch.setattr(receive_quota, "RATE", 1)  # otherwise a slow machine would stay within the quota

    def behave(caller: hostile.Caller, program: int, procedure: int, serial: int) -> bool:
        if program != hostile.PROGRAM or procedure != hostile.VERSION:
            return False
        caller.answer(program, procedure, serial)
        hostile.pour(caller, hostile.EVENTS)
        return True

    connection = await open_connection(spawn(behave).uri)
    with suppress(HypervisorError):
        await connection.ping(5)
    events = []
    async with asyncio.timeout(30):
        while not events or not isinstance(events[-1], ConnectionClosed):
            events.append(await connection.events.get())
    assert events[-1] == ConnectionClosed(CPU_QUOTA_EXCEEDED if limit == "time" else RECEIVE_QUOTA_EXCEEDED)
    await connection.close()


async def test_a_peer_with_expensive_descriptions_is_cut_off(spawn: Spawn) -> None:
    """The time to read a description is charged to its connection."""

    def read_for_a_while(text: str) -> str:
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        return text

    connection = await open_connection(spawn().uri)
    guest = await connection.guest("web")
    assert guest is not None
    for _unused in range(200):
        try:
            await guest.described(read_for_a_while)
        except HypervisorError:
            break
    async with asyncio.timeout(10):
        assert await connection.events.get() == ConnectionClosed(CPU_QUOTA_EXCEEDED)
    await connection.close()


async def test_a_peer_with_an_unfinished_large_answer_is_cut_off(spawn: Spawn) -> None:
    sent = [0]
    connection = await open_connection(spawn(hostile.hold(32 << 20, sent)).uri)
    with pytest.raises(HypervisorError):
        await connection.guest("web")
    assert await connection.events.get() == ConnectionClosed(RECEIVE_QUOTA_EXCEEDED)
    await connection.close()


async def test_the_peer_with_the_largest_partial_message_is_cut_off_first(
    spawn: Spawn, neighbour: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each peer stays within its own receive quota until libvirt's keepalive ends it."""
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", PartialMessages(most=4 << 20))
    connections = []
    for size in (1 << 20, 1 << 20, (32 << 20) - 4096):
        connections.append(await open_connection(spawn(hostile.hold_unasked(size, [0])).uri))
        with suppress(HypervisorError):
            await connections[-1].ping(5)
    async with asyncio.timeout(10):
        assert await connections[-1].events.get() == ConnectionClosed(PARTIAL_MESSAGES_EXCEEDED)
    assert [other.events.drain() for other in connections[:-1]] == [[], []]
    await neighbour.ping(5)
    for connection in connections:
        await connection.close()


@pytest.mark.parametrize("procedure", [hostile.STATE, hostile.START], ids=["no call", "during a call"])
async def test_a_peer_that_sends_keepalives_and_reads_no_answers_is_cut_off(
    spawn: Spawn, procedure: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt's client buffers 4 KB for each keepalive answer that it cannot send.

    Several hundred keepalives a second stay within the quotas for CPU time and bytes.
    """
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    connection = await open_connection(spawn(hostile.ping_from(procedure)).uri)
    guest = await connection.guest("web")
    assert guest is not None
    with suppress(HypervisorError):
        await guest.state()
        if procedure == hostile.START:
            await guest.start(deadline_seconds=5)
    async with asyncio.timeout(10):
        assert await connection.events.get() == ConnectionClosed(PEER_DOES_NOT_READ)
    await connection.close()


@pytest.mark.parametrize("procedure", [hostile.VERSION, hostile.LOOKUP], ids=["on the loop", "in a call"])
async def test_a_lingering_socket_blocks_no_neighbour_and_its_sender_is_cut_off(
    spawn: Spawn, neighbour: Connection, procedure: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel closes descriptors that libvirt does not receive, in the reading thread, and that close blocks.

    The sender chooses for how long. Kernels before Linux 6.16 cannot refuse descriptors.
    """
    monkeypatch.setattr("controlplane.process.fd_passing._SO_PASSRIGHTS", -1)
    lingering = hostile.Lingering()
    connection = await open_connection(spawn(hostile.give_lingering(lingering, procedure)).uri)
    rescue = threading.Timer(RESCUE_SECONDS, lingering.release)
    rescue.start()
    try:
        with suppress(HypervisorError):
            await (connection.guest("web") if procedure == hostile.LOOKUP else connection.ping(ENDLESS_SECONDS))
        last: object = None
        async with asyncio.timeout(2 * RESCUE_SECONDS):
            while not isinstance(last, ConnectionClosed):
                last = await connection.events.get()
        await start(neighbour)
        assert rescue.is_alive(), "code waited for the attacker"
        assert last == ConnectionClosed(BLOCKED_BY_PEER)
    finally:
        rescue.cancel()
        lingering.release()
        await connection.close()


async def test_long_domain_names_are_cut(spawn: Spawn) -> None:
    """The names appear in our log lines."""

    def behave(caller: hostile.Caller, program: int, procedure: int, serial: int) -> bool:
        if program != hostile.PROGRAM or procedure != hostile.DEFINE:
            return False
        long_domain = hostile.string(b"w" * 100_000) + b"u" * 16 + b"\xff" * 4
        event = b"\0\0\0\1" + long_domain + b"\0\0\0\2\0\0\0\0"
        caller.transport.sendall(hostile.message(hostile.LIFECYCLE, hostile.EVENT, 0, event))
        caller.transport.sendall(hostile.message(procedure, hostile.REPLY, serial, long_domain))
        return True

    connection = await open_connection(spawn(behave).uri)
    guest = await connection.define("<domain/>")
    assert guest.name == "w" * 256
    assert await connection.events.get() == LifecycleChanged("w" * 256, "started")
    await connection.close()


async def test_undecodable_text_is_a_regular_error(spawn: Spawn, capfd: pytest.CaptureFixture[str]) -> None:
    """Otherwise it would look like a bug, and a launcher could fill the log with tracebacks."""
    connection = await open_connection(spawn(hostile.babble).uri)
    guest = await connection.guest("web")
    assert guest is not None
    with pytest.raises(NotText, match="cannot read the XML of domain web: libvirt's answer is not text"):
        await guest.described(str)
    defined = await connection.define("<domain/>")
    with pytest.raises(HypervisorError, match=r"cannot start domain \(not UTF-8\): .* is not text"):
        await defined.start()
    assert await connection.events.get() == LifecycleChanged("(not UTF-8)", "started")
    await connection.close()
    assert "Traceback" not in capfd.readouterr().err


async def test_a_silent_libvirtd_gets_a_keepalive_every_15_seconds(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two missed answers close the connection. Each keepalive wakes two processes, noticeable with a hundred guests."""
    keepalives: list[tuple[int, int]] = []
    monkeypatch.setattr(libvirt.virConnect, "setKeepAlive", lambda _unused, *every: keepalives.append(every))
    connection = await open_connection(spawn().uri)
    await connection.close()
    assert keepalives == [(15, 2)]
