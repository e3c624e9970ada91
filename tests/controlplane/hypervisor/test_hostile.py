# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""libvirt's real client against servers that mean harm: a neighbour does not notice, and nothing is left of an attack.

The neighbour's operation is a start. How long it takes is not asked, which is the machine's as much as ours: an attack
goes on for as long as the neighbour starts machines, so whoever waits for the attacker never ends; and what the loop
does for it is counted in the processor time of its thread. Threads and descriptors are counted after each.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

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
from controlplane.hypervisor.transport import BLOCKED_BY_PEER, Transport
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import Behaviour, Hostile

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.usefixtures("libvirt_loop")]

PATIENCE_SECONDS = 0.3
"""Of every call on the attacker; in production 10 s."""
ENDLESS_SECONDS = 600.0
RESCUE_SECONDS = 30.0
"""After so long a neighbour that does not get on never will."""
STARTS = 30
"""Of the neighbour, at least."""
OWN_SECONDS = 0.15
"""Of the loop's own work: some hundred starts and the calls of the attacked take 20 to 40 ms."""
BUSY = 3
"""The same work takes up to so many times its processor time on a busy machine; an attacker would take all of it."""
SPAWN = Callable[..., Hostile]


@pytest.fixture
def spawn(tmp_path: Path) -> Iterator[SPAWN]:
    """Make servers that are gone at the end."""
    made: list[Hostile] = []

    def make(behave: Behaviour = hostile.GOOD, **options: bool) -> Hostile:
        made.append(Hostile(Path(os.path.relpath(tmp_path)).absolute() / f"s{len(made)}", behave, **options))
        return made[-1]

    yield make
    for item in made:
        item.close()


@pytest_asyncio.fixture(loop_scope="session")
async def neighbour(spawn: SPAWN) -> AsyncIterator[Connection]:
    made = await open_connection(spawn().uri)
    yield made
    await made.close()


class Census:
    """What this process holds of threads and descriptors, without those of the servers."""

    def __init__(self, server: Hostile) -> None:
        self._server = server
        self._threads, self._descriptors = self._count()

    async def is_as_before(self) -> None:
        """Wait until everything is given back."""
        async with asyncio.timeout(20):
            while self._has_more():  # noqa: ASYNC110 - threads tell nobody
                await asyncio.sleep(0.01)

    def _has_more(self) -> bool:
        """Less than before is fine: what came before this may have ended since."""
        threads, descriptors = self._count()
        return bool(threads - self._threads) or descriptors > self._descriptors

    def _count(self) -> tuple[set[str], int]:
        calls = {thread.name for thread in threading.enumerate() if thread.name.startswith("libvirt")}
        return calls, len(os.listdir("/proc/self/fd")) - self._server.descriptors


@contextmanager
def not_held_up_by(server: Hostile) -> Iterator[None]:
    """End a server when nothing gets on, and fail: in a thread of its own, as the loop itself may wait for the server.

    Whatever is done meanwhile did not wait for it, then, however long it took.
    """
    timer = threading.Timer(RESCUE_SECONDS, server.close)
    timer.start()
    try:
        yield
        assert timer.is_alive(), "somebody waited for the attacker"
    finally:
        timer.cancel()
        timer.join()


async def start(at: Connection) -> None:
    """Do what a session does for a machine that starts."""
    guest = await at.define("<domain/>")
    await guest.start()


async def fall_into(server: Hostile, patience: float = PATIENCE_SECONDS) -> None:
    """Do all that virt-handler does with a launcher, until it fails or has been listened to for a while."""
    made = await open_connection(server.uri, deadline_seconds=patience)
    try:
        guest = await made.guest("web")
        assert guest is not None
        await guest.state()
        await guest.described(str)
        started = await made.define("<domain/>")
        await started.start(deadline_seconds=patience)
        async with asyncio.timeout(patience):
            while not isinstance(await made.events.get(), ConnectionClosed):
                pass
    finally:
        await made.close()


@pytest.mark.parametrize(("behave", "options"), hostile.ATTACKS.values(), ids=hostile.ATTACKS.keys())
async def test_a_neighbour_starts_its_machines_for_as_long_as_a_hostile_launcher_goes_on(
    spawn: SPAWN, neighbour: Connection, behave: Behaviour, options: dict[str, bool]
) -> None:
    """Whoever waits for the attacker in any way waits for ever: its calls have no deadline that would end it."""
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
    assert work.seconds < work.allowed, "nor is the loop kept from its other work"


async def starts_until_it_gets_no_further(server: Hostile, neighbour: Connection) -> None:
    """Start machines until the attacker is asked for nothing more while so many are: it has cut off, or it hangs."""
    seen = -1
    while len(server.calls) != seen:
        seen = len(server.calls)
        for _unused in range(STARTS):
            await start(neighbour)


@pytest.mark.parametrize(("behave", "options"), hostile.ATTACKS.values(), ids=hostile.ATTACKS.keys())
async def test_a_hostile_launcher_leaves_nothing_behind(
    spawn: SPAWN, behave: Behaviour, options: dict[str, bool]
) -> None:
    """Nobody waits longer than the deadlines of its own calls."""
    server = spawn(behave, **options)
    census = Census(server)
    with suppress(HypervisorError, TimeoutError):
        await fall_into(server)
    await census.is_as_before()


class Work:
    """What the loop's thread uses of the processor: whatever else the machine does, this is the loop's own."""

    def __init__(self) -> None:
        self.seconds, self.allowed = 0.0, 0.0
        self._began, self._used = time.monotonic(), time.thread_time()

    def stop(self) -> None:
        """Take what was used since the beginning, and what a connection may take in that time."""
        self.seconds = time.thread_time() - self._used
        self.allowed = BUSY * (BURST_SECONDS + RATE * (time.monotonic() - self._began) + OWN_SECONDS)


class Heart:
    """Tells how long the loop has ever stood still."""

    def __init__(self) -> None:
        self.longest = 0.0
        self._task = asyncio.create_task(self._beat())

    async def stop(self) -> None:
        self._task.cancel()
        with suppress(asyncio.CancelledError):
            await self._task

    async def _beat(self) -> None:
        while True:
            began = time.perf_counter()
            await asyncio.sleep(0.01)
            self.longest = max(self.longest, time.perf_counter() - began)


@pytest_asyncio.fixture(loop_scope="session")
async def heart() -> AsyncIterator[Heart]:
    made = Heart()
    yield made
    await made.stop()


async def test_an_open_that_is_answered_after_nobody_waits_is_closed_elsewhere(spawn: SPAWN, heart: Heart) -> None:
    """The answer is held back, the Pod loses its label, the answer is sent, CLOSE is ignored."""
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
    opening.cancel()
    with suppress(asyncio.CancelledError):
        await opening
    may_answer.set()
    await census.is_as_before()
    assert heart.longest < 3.0


async def test_a_domain_that_outlives_its_connection_blocks_nobody_when_it_goes(spawn: SPAWN, heart: Heart) -> None:
    """The last reference to a connection sends CLOSE, in whatever thread it is dropped."""
    made = await open_connection(spawn(hostile.deaf_to(hostile.CLOSE)).uri)
    guest = await made.guest("web")
    await made.close()
    del made
    assert guest is not None
    del guest
    await asyncio.sleep(0.02)
    assert heart.longest < 3.0


async def test_an_error_that_is_kept_holds_no_connection(spawn: SPAWN, heart: Heart) -> None:
    made = await open_connection(spawn(hostile.silent_from(hostile.LOOKUP)).uri, deadline_seconds=PATIENCE_SECONDS)
    with pytest.raises(TimedOut) as first:
        await made.guest("web")
    with pytest.raises(HypervisorError) as second:
        await made.guest("web")
    await made.close()
    del made, first, second
    assert heart.longest < 3.0


async def test_a_call_that_is_overdue_ends_its_connection_and_says_so(spawn: SPAWN) -> None:
    made = await open_connection(spawn(hostile.deaf_to(hostile.LOOKUP)).uri, deadline_seconds=PATIENCE_SECONDS)
    with pytest.raises(TimedOut, match=r"cannot look up domain web: no answer within 0\.3 s"):
        await made.guest("web")
    assert await made.events.get() == ConnectionClosed("it did not answer in time")
    with pytest.raises(Disconnected):
        await made.guest("web")
    await made.close()


@pytest.mark.parametrize("limit", ["time", "bytes"])
async def test_whoever_floods_us_is_cut_off_and_told_why(
    spawn: SPAWN, limit: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The flood begins when nobody waits for an answer: it is the event loop that reads it."""
    if limit == "time":
        monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    else:
        monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
        monkeypatch.setattr(receive_quota, "RATE", 1)  # or a machine that is slow enough would let it pass

    def behave(caller: hostile.Caller, program: int, procedure: int, serial: int) -> bool:
        if program != hostile.PROGRAM or procedure != hostile.VERSION:
            return False
        caller.answer(program, procedure, serial)
        hostile.pour(caller, hostile.EVENTS)
        return True

    made = await open_connection(spawn(behave).uri)
    with suppress(HypervisorError):
        await made.ping(5)
    seen = []
    async with asyncio.timeout(30):
        while not seen or not isinstance(seen[-1], ConnectionClosed):
            seen.append(await made.events.get())
    assert seen[-1] == ConnectionClosed(CPU_QUOTA_EXCEEDED if limit == "time" else RECEIVE_QUOTA_EXCEEDED)
    await made.close()


async def test_whoever_describes_its_domain_at_length_is_cut_off(spawn: SPAWN) -> None:
    """However much one description costs: it is the connection's own time in which it is read."""

    def read_for_a_while(text: str) -> str:
        until = time.thread_time() + 0.01
        while time.thread_time() < until:
            pass
        return text

    made = await open_connection(spawn().uri)
    guest = await made.guest("web")
    assert guest is not None
    for _unused in range(200):
        try:
            await guest.described(read_for_a_while)
        except HypervisorError:
            break
    async with asyncio.timeout(10):
        assert await made.events.get() == ConnectionClosed(CPU_QUOTA_EXCEEDED)
    await made.close()


async def test_whoever_has_us_keep_megabytes_that_we_wait_for_is_cut_off(spawn: SPAWN) -> None:
    sent = [0]
    made = await open_connection(spawn(hostile.hold(32 << 20, sent)).uri)
    with pytest.raises(HypervisorError):
        await made.guest("web")
    assert await made.events.get() == ConnectionClosed(RECEIVE_QUOTA_EXCEEDED)
    await made.close()


async def test_whoever_has_us_keep_megabytes_that_nobody_waits_for_is_cut_off(spawn: SPAWN) -> None:
    sent = [0]
    made = await open_connection(spawn(hostile.hold_unasked(8 << 20, sent)).uri)
    with suppress(HypervisorError):
        await made.ping(5)
    async with asyncio.timeout(10):
        assert await made.events.get() == ConnectionClosed(RECEIVE_QUOTA_EXCEEDED)
    await made.close()


async def test_of_many_that_leave_messages_unfinished_whoever_holds_most_is_cut_off_first(
    spawn: SPAWN, neighbour: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of them stays within its own intake, until libvirt's keepalive ends it."""
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", PartialMessages(most=4 << 20))
    made = []
    for size in (1 << 20, 1 << 20, (32 << 20) - 4096):
        made.append(await open_connection(spawn(hostile.hold_unasked(size, [0])).uri))
        with suppress(HypervisorError):
            await made[-1].ping(5)
    async with asyncio.timeout(10):
        assert await made[-1].events.get() == ConnectionClosed(PARTIAL_MESSAGES_EXCEEDED)
    assert [entry.events.drain() for entry in made[:-1]] == [[], []]
    await neighbour.ping(5)
    for item in made:
        await item.close()


async def test_what_is_whole_is_held_no_more(spawn: SPAWN, monkeypatch: pytest.MonkeyPatch) -> None:
    """Answers and events of an honest libvirtd, of which there are many times the budget."""
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(partial_messages, "PROCESS_WIDE", PartialMessages(most=256 << 10))
    made = await open_connection(spawn(hostile.much_before(hostile.STATE)).uri)
    guest = await made.guest("web")
    assert guest is not None
    for _unused in range(10):
        await guest.state()
        await guest.described(str)
    assert all(isinstance(item, LifecycleChanged) for item in made.events.drain())
    await made.close()


async def test_whoever_sends_much_before_each_of_many_quick_answers_is_cut_off(
    spawn: SPAWN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call is over before anybody looks at its thread."""
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr("controlplane.hypervisor.calls._FIRST_LOOK_SECONDS", 3600.0)
    monkeypatch.setattr(receive_quota, "RATE", 1)  # or a machine that is slow enough would let it pass
    made = await open_connection(spawn(hostile.much_before(hostile.STATE)).uri)
    guest = await made.guest("web")
    assert guest is not None
    for _unused in range(100):
        try:
            await guest.state()
        except HypervisorError:
            break
    last: object = None
    async with asyncio.timeout(10):
        while not isinstance(last, ConnectionClosed):
            last = await made.events.get()
    assert last == ConnectionClosed(RECEIVE_QUOTA_EXCEEDED)
    await made.close()


async def test_one_that_trickles_them_is_cut_off_too(spawn: SPAWN, monkeypatch: pytest.MonkeyPatch) -> None:
    """A piece at a time, each of them small."""
    monkeypatch.setattr(receive_quota, "RATE", 1)  # or a machine that is slow enough would let it pass

    def behave(caller: hostile.Caller, program: int, procedure: int, serial: int) -> bool:
        if program != hostile.PROGRAM or procedure != hostile.LOOKUP:
            return False
        data = memoryview(hostile.message(procedure, hostile.REPLY, serial, b"\1" * (16 << 20)))
        for at in range(0, len(data) - 4, 64 << 10):
            caller.transport.sendall(data[at : at + (64 << 10)])
            time.sleep(0.02)
        return True

    made = await open_connection(spawn(behave).uri)
    with pytest.raises(HypervisorError):
        await made.guest("web")
    assert await made.events.get() == ConnectionClosed(RECEIVE_QUOTA_EXCEEDED)
    await made.close()


@pytest.mark.parametrize("procedure", [hostile.STATE, hostile.START], ids=["nobody waits", "a call is under way"])
async def test_whoever_has_us_answer_and_reads_no_answer_is_cut_off(
    spawn: SPAWN, procedure: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libvirt's client keeps 4 KB for each answer to a keepalive that it cannot send: some hundreds in a second are
    below what a connection may take of time and bytes."""
    monkeypatch.setattr(CpuQuota, "take", lambda *_unused: True)
    monkeypatch.setattr(ReceiveQuota, "take", lambda *_unused: True)
    made = await open_connection(spawn(hostile.ping_from(procedure)).uri)
    guest = await made.guest("web")
    assert guest is not None
    with suppress(HypervisorError):
        await guest.state()
        if procedure == hostile.START:
            await guest.start(deadline_seconds=5)
    async with asyncio.timeout(10):
        assert await made.events.get() == ConnectionClosed(PEER_DOES_NOT_READ)
    await made.close()


@pytest.mark.parametrize("procedure", [hostile.VERSION, hostile.LOOKUP], ids=["on the loop", "in a call"])
async def test_a_socket_that_lingers_holds_up_nobody_and_its_sender_is_cut_off(
    spawn: SPAWN, neighbour: Connection, procedure: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel closes what libvirt does not take of a message, in the thread that reads it, and that close waits for
    as long as the sender has said. This kernel may be one that knows no way to refuse it."""
    monkeypatch.setattr("controlplane.process.fd_passing._SO_PASSRIGHTS", -1)
    lingering = hostile.Lingering()
    made = await open_connection(spawn(hostile.give_lingering(lingering, procedure)).uri)
    rescue = threading.Timer(RESCUE_SECONDS, lingering.release)
    rescue.start()
    try:
        with suppress(HypervisorError):
            await (made.guest("web") if procedure == hostile.LOOKUP else made.ping(ENDLESS_SECONDS))
        last: object = None
        async with asyncio.timeout(2 * RESCUE_SECONDS):
            while not isinstance(last, ConnectionClosed):
                last = await made.events.get()
        await start(neighbour)
        assert rescue.is_alive(), "somebody waited for the attacker"
        assert last == ConnectionClosed(BLOCKED_BY_PEER)
    finally:
        rescue.cancel()
        lingering.release()
        await made.close()


async def test_whoever_floods_a_call_is_cut_off_while_it_is_under_way(
    spawn: SPAWN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The call's thread reads what comes: it would go on until the call's end."""
    monkeypatch.setattr(receive_quota, "RATE", 1)  # or a machine that is slow enough would let it pass
    is_cut = threading.Event()

    def cut(_unused: Transport, because: str) -> None:
        if because == RECEIVE_QUOTA_EXCEEDED:
            is_cut.set()

    monkeypatch.setattr("controlplane.hypervisor.transport.Transport.cut", cut)
    server = spawn(hostile.flood(hostile.EVENTS))
    opening = asyncio.create_task(open_connection(server.uri, deadline_seconds=ENDLESS_SECONDS))
    has_been_cut = await asyncio.to_thread(is_cut.wait, RESCUE_SECONDS)
    monkeypatch.undo()
    server.close()
    with suppress(HypervisorError):
        await (await opening).close()
    assert has_been_cut


async def test_names_of_the_other_side_are_bounded(spawn: SPAWN) -> None:
    """They would be in our log lines."""

    def behave(caller: hostile.Caller, program: int, procedure: int, serial: int) -> bool:
        if program != hostile.PROGRAM or procedure != hostile.DEFINE:
            return False
        long = hostile.string(b"w" * 100_000) + b"u" * 16 + b"\xff" * 4
        event = b"\0\0\0\1" + long + b"\0\0\0\2\0\0\0\0"
        caller.transport.sendall(hostile.message(hostile.LIFECYCLE, hostile.EVENT, 0, event))
        caller.transport.sendall(hostile.message(procedure, hostile.REPLY, serial, long))
        return True

    made = await open_connection(spawn(behave).uri)
    guest = await made.define("<domain/>")
    assert guest.name == "w" * 256
    assert await made.events.get() == LifecycleChanged("w" * 256, "started")
    await made.close()


async def test_what_is_no_text_is_an_error_like_another(spawn: SPAWN, capfd: pytest.CaptureFixture[str]) -> None:
    """It was taken for a bug of ours, and each event was a traceback in the log, as often as the launcher liked."""
    made = await open_connection(spawn(hostile.babble).uri)
    guest = await made.guest("web")
    assert guest is not None
    with pytest.raises(NotText, match="cannot read the XML of domain web: libvirt's answer is not text"):
        await guest.described(str)
    defined = await made.define("<domain/>")
    with pytest.raises(HypervisorError, match=r"cannot start domain \(not UTF-8\): .* is not text"):
        await defined.start()
    assert await made.events.get() == LifecycleChanged("(not UTF-8)", "started")
    await made.close()
    assert "Traceback" not in capfd.readouterr().err


async def test_a_libvirtd_that_says_nothing_is_asked_every_15_seconds(
    spawn: SPAWN, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Given up when it did not answer twice. Each asking wakes two processes: with a hundred guests that is felt."""
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(libvirt.virConnect, "setKeepAlive", lambda _unused, *every: asked.append(every))
    made = await open_connection(spawn().uri)
    await made.close()
    assert asked == [(15, 2)]
