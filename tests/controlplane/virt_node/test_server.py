# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may connect to virt-node, and what ends a connection. The requests: virt_handler/test_node_client.py."""

from __future__ import annotations

import array
import asyncio
import errno
import os
import socket
import stat
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

import pytest

from controlplane.links.node import descriptor_closer
from controlplane.links.node.messages import (
    PROTOCOL,
    Cancel,
    Done,
    Failed,
    FindTraces,
    FromHandler,
    Hello,
    NetworkReady,
    NodeState,
    OpenReport,
    OpenSocket,
    PodInterface,
    Request,
    encode,
    read_from_node,
)
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_node import server as server_module
from controlplane.virt_node.server import CONNECTIONS, listen, serve, serve_connection
from controlplane.virt_node.service import Reply
from tests.controlplane.links.node.lingering import give_away, is_refused, lingering, old_kernel
from tests.controlplane.virt_handler.fakes import until
from tests.support.tasks import cancel_task

__all__ = ["old_kernel"]

OURS = os.getegid()
"""A group that a socket can get without root."""
UID = "bbbb0000-1111-2222-3333-444444444444"


class Slow:
    """A service that answers only searches and counts the open requests."""

    def __init__(self) -> None:
        self.open = 0
        self.has_bug = False

    async def answer(self, request: Request) -> Reply:
        if self.has_bug:
            raise ZeroDivisionError
        if isinstance(request, FindTraces):
            return Reply(Done(request.id))
        if isinstance(request, OpenReport):
            return Reply(NetworkReady(request.id, PodInterface(("10.244.0.7",) * 99, 1450)))
        self.open += 1
        try:
            await asyncio.Event().wait()
        finally:
            self.open -= 1
        raise AssertionError


class Handler:
    """virt-handler's end of a connection, which can send anything."""

    def __init__(self, service: Slow) -> None:
        self.socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.setblocking(False)
        self.task = asyncio.create_task(serve_connection(theirs, service, CurrentNodeState(NodeState())))  # type: ignore[arg-type]

    def say(self, *messages: FromHandler) -> None:
        for message in messages:
            self.socket.send(encode(message))

    async def hear(self) -> object:
        async with asyncio.timeout(5):
            return read_from_node(await asyncio.get_running_loop().sock_recv(self.socket, 65536))

    async def close(self) -> None:
        self.socket.close()
        await cancel_task(self.task)


@pytest.fixture
async def service() -> Slow:
    return Slow()


@pytest.fixture
async def handler(service: Slow) -> AsyncIterator[Handler]:
    connected = Handler(service)
    connected.say(Hello(PROTOCOL))
    assert await connected.hear() == Hello(PROTOCOL)
    assert await connected.hear() == NodeState()
    yield connected
    await connected.close()


async def test_requests_are_answered_independently(handler: Handler) -> None:
    handler.say(OpenSocket(1, UID), FindTraces(2, UID), FindTraces(3, UID))
    assert [await handler.hear(), await handler.hear()] == [Done(2), Done(3)]


async def test_an_unsendable_answer_fails_only_its_request(handler: Handler) -> None:
    handler.say(OpenReport(1, UID), FindTraces(2, UID))
    failed, done = await handler.hear(), await handler.hear()
    assert isinstance(failed, Failed)
    assert "would be refused" in failed.text
    assert done == Done(2)


async def test_a_cancelled_request_ends(handler: Handler, service: Slow) -> None:
    """It may or may not have begun."""
    handler.say(OpenSocket(1, UID))
    await until(lambda: service.open == 1, "the request")
    handler.say(Cancel(1), OpenSocket(2, UID), Cancel(2), Cancel(99))
    await until(lambda: service.open == 0, "nothing")
    handler.say(FindTraces(3, UID))
    assert await handler.hear() == Done(3)
    handler.say(OpenSocket(1, UID), OpenSocket(2, UID))
    await until(lambda: service.open == 2, "both numbers again")


async def test_requests_end_when_virt_handler_disconnects(handler: Handler, service: Slow) -> None:
    handler.say(OpenSocket(1, UID), OpenSocket(2, UID))
    await until(lambda: service.open == 2, "the requests")
    handler.socket.close()
    await asyncio.wait_for(handler.task, 5)
    assert service.open == 0


async def ends(handler: Handler) -> bool:
    await asyncio.wait_for(handler.task, 5)
    return handler.task.exception() is None


@pytest.mark.parametrize(
    "packets",
    [
        [encode(OpenSocket(1, UID)), encode(OpenSocket(1, UID))],
        [encode(Hello(PROTOCOL))],
        [b'{"type":"Reboot"}'],
        [b"\xff"],
    ],
    ids=["a request number in use", "a second greeting", "an unknown request", "no text"],
)
async def test_a_protocol_error_ends_the_connection(handler: Handler, packets: list[bytes]) -> None:
    for packet in packets:
        handler.socket.send(packet)
    assert await ends(handler)


async def test_too_many_open_requests_end_the_connection(
    handler: Handler, service: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "OUTSTANDING", 3)
    handler.say(*(OpenSocket(number, UID) for number in (1, 2, 3, 4)))
    assert await ends(handler)
    assert service.open == 0


async def test_a_bug_ends_only_its_connection(
    handler: Handler, service: Slow, caplog: pytest.LogCaptureFixture
) -> None:
    """If it were raised further, it would end root's process and all other connections."""
    handler.say(OpenSocket(1, UID))
    await until(lambda: service.open == 1, "a request")
    service.has_bug = True
    handler.say(FindTraces(2, UID))
    assert await ends(handler)
    assert service.open == 0
    assert "bug while serving virt-handler" in caplog.text


@pytest.mark.usefixtures("old_kernel")
async def test_a_descriptor_ends_the_connection_and_is_closed(handler: Handler) -> None:
    read, write = os.pipe()
    handler.socket.sendmsg(
        [encode(FindTraces(1, UID))], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [write]))]
    )
    os.close(write)
    assert await ends(handler)
    assert await asyncio.to_thread(os.read, read, 1) == b"", "no process has the write end"
    os.close(read)


@pytest.mark.parametrize("first", [Hello(PROTOCOL + 1), FindTraces(1, UID)], ids=["another version", "no greeting"])
async def test_a_wrong_greeting_ends_the_connection(first: FromHandler, service: Slow) -> None:
    handler = Handler(service)
    handler.say(first)
    assert await ends(handler)
    assert await handler.hear() == Hello(PROTOCOL), "so that virt-handler can report the version"
    await handler.close()


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return Path("node.sock")


@pytest.mark.root
def test_the_socket_belongs_to_one_group(path: Path) -> None:
    listen(path, 4711).close()
    status = path.stat()
    assert (stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid) == (0o660, os.geteuid(), 4711)


def test_only_a_socket_is_replaced(path: Path) -> None:
    for _unused in range(2):
        listen(path, OURS).close()
        assert stat.S_IMODE(path.stat().st_mode) == 0o660
    path.unlink()
    path.write_text("somebody's")
    with pytest.raises(FileExistsError):
        listen(path, OURS)
    assert path.read_text() == "somebody's"


@asynccontextmanager
async def serving(path: Path, service: Slow, uid: int) -> AsyncIterator[None]:
    """Serve on a socket. uid: the user that may connect."""
    server = listen(path, OURS)
    task = asyncio.create_task(serve(server, service, CurrentNodeState(NodeState()), uid))  # type: ignore[arg-type]
    yield
    await cancel_task(task)
    server.close()


async def connect(path: Path) -> socket.socket:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, str(path))
    return client


async def first_packet(client: socket.socket) -> bytes:
    async with asyncio.timeout(5):
        return await asyncio.get_running_loop().sock_recv(client, 65536)


@pytest.mark.parametrize("is_expected", [True, False], ids=["virt-handler", "another user"])
async def test_only_one_user_may_connect(is_expected: bool, path: Path, service: Slow) -> None:
    async with serving(path, service, os.geteuid() if is_expected else os.geteuid() + 1):
        for _unused in range(CONNECTIONS + 1):
            with await connect(path) as client:
                assert bool(await first_packet(client)) is is_expected


@pytest.mark.usefixtures("old_kernel")
async def test_a_connection_occupies_its_slot_until_its_descriptors_are_closed(
    path: Path, service: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """This limits the number of closing threads to the number of connections."""
    monkeypatch.setattr(descriptor_closer, "_INTERRUPT_SECONDS", 3600.0)
    async with serving(path, service, os.geteuid()):
        with ExitStack() as stack:
            for _unused in range(CONNECTIONS - 1):
                with await connect(path) as hostile:
                    give_away(hostile, encode(Hello(PROTOCOL)), stack.enter_context(lingering()))
            client, late = stack.enter_context(await connect(path)), stack.enter_context(await connect(path))
            assert await first_packet(client)
            waiting = asyncio.create_task(first_packet(late))
            client.send(encode(Hello(PROTOCOL)))
            assert read_from_node(await first_packet(client)) == NodeState()
            assert not waiting.done(), "all places are taken"
            client.close()
            assert await waiting, "one is free again"


def test_the_kernel_refuses_descriptors_before_a_connection_is_accepted(path: Path) -> None:
    """If the kernel can refuse them (since Linux 6.16)."""
    with listen(path, OURS), socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
        can_refuse = refuse_descriptors(client)
        client.connect(str(path))
        assert is_refused(client) == can_refuse


async def test_the_server_recovers_from_a_lack_of_descriptors(
    path: Path, service: Slow, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, CONNECTIONS + 1

    async def short_of_descriptors(server: socket.socket) -> tuple[socket.socket, object]:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise OSError(errno.EMFILE, "Too many open files")
        return await accept(server)

    monkeypatch.setattr(loop, "sock_accept", short_of_descriptors)
    monkeypatch.setattr(server_module, "_ACCEPT_PAUSE_SECONDS", 0.001)
    async with serving(path, service, os.geteuid()):
        with await connect(path) as client:
            assert await first_packet(client)
