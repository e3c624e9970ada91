# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What may reach libvirt before it has opened a connection, and what comes of what may not.

libvirt's client ends its process by an event that comes too early. So those attacks are on a process of its own.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import pytest_asyncio

from controlplane.hypervisor import wire
from controlplane.hypervisor.gate import UNASKED, Gate
from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import EVENT, EVENT_OF_START, KEEPALIVE, REPLY, Caller, Hostile, message
from tests.controlplane.virt_handler.fakes import until

pytestmark = pytest.mark.asyncio(loop_scope="session")

ANSWER = message(hostile.OPEN, REPLY, 1, b"")
PING = message(1, EVENT, 0, b"", KEEPALIVE)

OPEN_ONE = """
import asyncio, sys
from controlplane.hypervisor.connection import open_connection, register_event_loop
from controlplane.hypervisor.errors import HypervisorError

async def main():
    register_event_loop()
    try:
        made = await open_connection(sys.argv[1])
    except HypervisorError:
        print("refused")
    else:
        await made.close()
        print("open")

asyncio.run(main())
"""


def opening(uri: str) -> subprocess.CompletedProcess[str]:
    """Open a connection in a process of its own, and say what came of it."""
    command = [sys.executable, "-c", OPEN_ONE, uri]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=os.getcwd())


def early(procedure: int, data: bytes) -> hostile.Behaviour:
    """Say something before the answer to a call, and then the answer."""

    def behave(caller: Caller, _program: int, called: int, _serial: int) -> bool:
        if called == procedure:
            caller.wire.sendall(data)
        return False

    return behave


@pytest.mark.parametrize("procedure", [hostile.AUTHENTICATE, hostile.FEATURE, hostile.OPEN])
async def test_an_event_before_the_connection_is_open_ends_that_connection_and_not_the_process(
    tmp_path: Path, procedure: int
) -> None:
    server = Hostile(tmp_path / "s", early(procedure, EVENT_OF_START))
    try:
        done = await asyncio.to_thread(opening, server.uri)
    finally:
        server.close()
    assert (done.returncode, done.stdout) == (0, "refused\n"), done.stderr


async def test_whoever_asks_whether_we_are_there_meanwhile_is_answered(tmp_path: Path) -> None:
    server = Hostile(tmp_path / "s", early(hostile.OPEN, PING))
    try:
        done = await asyncio.to_thread(opening, server.uri)
    finally:
        server.close()
    assert (done.returncode, done.stdout) == (0, "open\n"), done.stderr


@dataclass
class Between:
    """A gate, with libvirt's side and the other one."""

    gate: Gate
    libvirt: socket.socket
    other: socket.socket
    renewed: list[int] = field(default_factory=list)

    async def read(self, count: int) -> bytes:
        return await asyncio.get_running_loop().sock_recv(self.libvirt, count)


@pytest_asyncio.fixture(loop_scope="session")
async def between() -> AsyncIterator[Between]:
    libvirt, other = socket.socketpair()
    libvirt.setblocking(False)
    renewed: list[int] = []

    def run(callback: Callable[[], None]) -> None:
        callback()

    loop = asyncio.get_running_loop()
    gate = Gate(loop, libvirt.fileno(), run=run, renew=lambda: renewed.append(libvirt.fileno()))
    with libvirt, other:
        yield Between(gate, libvirt, other, renewed)
        gate.end()


async def test_answers_pass_once_they_are_whole(between: Between) -> None:
    between.other.sendall(ANSWER + PING + ANSWER[:10])
    assert await between.read(1000) == ANSWER + PING
    assert not between.gate.open(), "somebody is in the middle of a word"
    between.other.sendall(ANSWER[10:])
    assert await between.read(1000) == ANSWER


async def test_what_libvirt_says_passes(between: Between) -> None:
    between.libvirt.send(b"anything")
    between.other.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(between.other, 100) == b"anything"


@pytest.mark.parametrize(
    "said",
    [
        pytest.param(EVENT_OF_START, id="an event"),
        pytest.param(ANSWER + EVENT_OF_START[:28], id="the head of one behind an answer"),
        pytest.param(message(hostile.OPEN, 0, 1, b""), id="a call"),
        pytest.param(message(hostile.OPEN, 3, 1, b""), id="a part of a stream"),
        pytest.param(message(hostile.OPEN, 5, 1, b""), id="an answer with descriptors"),
        pytest.param(message(hostile.OPEN, REPLY, 1, b"", 0x1234), id="of another program"),
        pytest.param(message(hostile.OPEN, REPLY, 1, bytes(64 << 10)), id="a long answer"),
        pytest.param(bytes(4) + ANSWER[4:], id="an answer of no length"),
    ],
)
async def test_what_nobody_asked_for_ends_it(between: Between, said: bytes) -> None:
    between.other.sendall(said)
    assert await between.read(1000) == b""


async def test_who_says_it_in_many_pieces_is_left(between: Between) -> None:
    with suppress(BrokenPipeError):
        for one in ANSWER * 20:
            between.other.send(bytes([one]))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
    seen = bytearray()
    while part := await between.read(1000):
        seen += part
    assert len(seen) <= 256


async def test_libvirt_gets_its_own_socket_back_once_all_is_read(between: Between) -> None:
    between.other.sendall(ANSWER)
    await asyncio.sleep(0.01)
    assert not between.gate.open(), "an answer is not read yet"
    assert await between.read(1000) == ANSWER
    assert between.gate.open()
    assert between.renewed == [between.libvirt.fileno()]
    between.other.sendall(EVENT_OF_START)
    assert await between.read(1000) == EVENT_OF_START
    between.libvirt.send(b"asked")
    assert between.other.recv(100) == b"asked"


async def test_who_leaves_leaves_nothing_behind(between: Between) -> None:
    between.libvirt.shutdown(socket.SHUT_RDWR)
    between.other.setblocking(False)
    assert await asyncio.get_running_loop().sock_recv(between.other, 100) == b""
    await until(between.gate.open)


class Unfinished(Gate):
    """One that never comes to its end."""

    def open(self) -> bool:
        return False


async def test_whoever_is_never_done_before_the_connection_is_open_is_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "_GATE_SECONDS", 0.0)
    libvirt, other = socket.socketpair()
    with libvirt, other:
        one = wire.Wire()
        one.attach(libvirt.fileno())
        loop = asyncio.get_running_loop()
        made: list[Gate] = []

        def make() -> Gate:
            made.append(Unfinished(loop, libvirt.fileno(), run=lambda callback: callback(), renew=lambda: None))
            return made[-1]

        one.guard(make)
        await one.opened()
        assert one.because == UNASKED
        made[0].end()


async def test_what_cannot_be_guarded_is_cut_at_once() -> None:
    libvirt, other = socket.socketpair()
    with libvirt, other:
        one = wire.Wire()
        one.attach(libvirt.fileno())

        def make() -> Gate:
            raise OSError(errno.EMFILE, "Too many open files")

        one.guard(make)
        assert "Too many open files" in one.because
        assert other.recv(1) == b""
