# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of virt-node, against the real service and against a faulty peer."""

from __future__ import annotations

import array
import asyncio
import os
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from controlplane.domain import layout
from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.links.node.messages import (
    PROTOCOL,
    Done,
    Failed,
    FromNode,
    Hello,
    KvmFinding,
    Masquerade,
    NodeState,
    Opened,
    encode,
    read_from_handler,
)
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.node import virt_node_client as node_client
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_node.launcher_dir import PodsDirectory
from tests.controlplane.links.node.lingering import lingering, others_closed
from tests.controlplane.virt_handler.builders import ETH0, POD_UID
from tests.controlplane.virt_handler.fakes import FakeNetwork, FakeProc, LauncherFiles, until
from tests.controlplane.virt_handler.node.virt_node import VirtNode, linked

__all__ = ["others_closed"]

pytestmark = pytest.mark.usefixtures("others_closed")


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@dataclass
class Pair:
    files: LauncherFiles
    network: FakeNetwork
    node: VirtNode
    client: NodeClient


@pytest.fixture
async def pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Pair]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "pods").mkdir()
    directory, network = PodsDirectory(str(tmp_path / "pods")), FakeNetwork()
    node = VirtNode(directory, network, FakeProc(tmp_path / "proc"))
    connected = Pair(LauncherFiles(tmp_path / "pods"), network, node, NodeClient(node.dial))
    async with linked(connected.client):
        await until(lambda: connected.client.is_connected, "contact")
        yield connected
    await node.close()
    connected.files.close()
    directory.close()


@pytest.mark.root
async def test_a_launcher_socket_is_awaited_and_dialled(pair: Pair) -> None:
    request = asyncio.create_task(pair.client.open_socket(POD_UID))
    pair.files.make_directory()
    pair.files.listen()
    async with asyncio.timeout(5):
        launcher_socket = await request
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(1)
        client.connect(launcher_socket.path)
    launcher_socket.close()


@pytest.mark.root
async def test_a_cancelled_wait_leaks_nothing(pair: Pair) -> None:
    """Neither in the service nor in the client, whether the answer was already sent or not."""
    await pair.client.find_traces(POD_UID)  # from now on the worker thread has its descriptors
    before = descriptors()
    for turns in range(12):
        request = asyncio.create_task(pair.client.open_socket(POD_UID))
        if turns == 6:
            pair.files.make_directory()
            pair.files.listen()
            before += 1  # the launcher's listening socket
        for _unused in range(turns):
            await asyncio.sleep(0)
        request.cancel()
        with suppress(asyncio.CancelledError):
            (await request).close()
    await pair.client.find_traces(POD_UID)  # all earlier answers have arrived
    await until(lambda: descriptors() == before, "everything closed")


async def test_a_report_is_read(pair: Pair) -> None:
    pair.files.make_directory()
    with pytest.raises(NotThere):
        await pair.client.read_report(POD_UID)
    pair.files.report()
    assert b"container_disks" in await pair.client.read_report(POD_UID)


async def test_the_end_of_a_console_log_is_read(pair: Pair) -> None:
    pair.files.make_directory()
    log = pair.files.run / layout.SERIAL_LOG_NAME
    with pytest.raises(NotThere):
        await pair.client.read_console_backlog(POD_UID)
    log.write_bytes(b"login: ")
    assert await pair.client.read_console_backlog(POD_UID) == b"login: "
    log.unlink()
    log.symlink_to("/etc/hostname")
    with pytest.raises(Refused):
        await pair.client.read_console_backlog(POD_UID)


async def test_a_network_is_set_up(pair: Pair) -> None:
    wanted = Masquerade("10.0.2.0/24")
    assert await pair.client.set_up_network(POD_UID, wanted) == ETH0
    assert pair.network.wanted == [wanted]


async def test_a_new_node_state_is_received(pair: Pair) -> None:
    first = await pair.client.wait_for_other_than(None)
    offered = NodeState(KvmFinding(is_usable=True), ("kvm",), ("kvm",))
    await pair.node.offer.update(offered)
    async with asyncio.timeout(5):
        assert await pair.client.wait_for_other_than(first) == offered


async def test_the_trouble_has_the_same_text_after_every_attempt(pair: Pair) -> None:
    """It is part of the status of each VMI that waits for virt-node."""
    assert pair.client.trouble == ""
    await pair.node.kill()
    await until(lambda: not pair.client.is_connected, "the loss")
    dials = pair.node.dials
    for attempts in (0, 1, 2):
        await until(lambda so_far=dials + attempts: pair.node.dials >= so_far, "an attempt")
        assert pair.client.trouble == "virt-node is not reachable"
    pair.node.is_up = True
    await until(lambda: pair.client.is_connected, "contact")
    assert pair.client.trouble == ""


async def test_the_state_of_a_former_virt_node_does_not_count(pair: Pair) -> None:
    """A restarted virt-node may have lost a device."""
    await pair.client.wait_for_other_than(None)
    await pair.node.kill()
    await until(lambda: not pair.client.is_connected, "the loss")
    request = asyncio.create_task(pair.client.wait_for_other_than(None))
    await asyncio.sleep(0)
    assert not request.done()
    offered = NodeState(KvmFinding(is_usable=False, reason="gone"))
    await pair.node.offer.update(offered)
    pair.node.is_up = True
    async with asyncio.timeout(5):
        assert await request == offered


@pytest.mark.root
async def test_a_wait_for_a_launcher_continues_with_the_next_virt_node(pair: Pair) -> None:
    request = asyncio.create_task(pair.client.open_socket(POD_UID))
    await asyncio.sleep(0)
    await pair.node.kill()
    await until(lambda: not pair.client.is_connected, "the loss")
    with pytest.raises(NodeAway):
        await pair.client.read_report(POD_UID)
    pair.files.make_directory()
    pair.files.listen()
    pair.node.is_up = True
    async with asyncio.timeout(5):
        (await request).close()


async def test_a_wait_without_virt_node_continues_later_and_does_not_block(
    pair: Pair,
) -> None:
    await pair.node.kill()
    await until(lambda: not pair.client.is_connected, "the loss")
    request = asyncio.create_task(pair.client.give_capabilities(POD_UID, with_kvm=True))
    await asyncio.sleep(0)
    assert not request.done()
    pair.node.is_up = True
    async with asyncio.timeout(5):
        await request


async def test_a_launcher_is_awaited_without_a_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its image may have to be pulled. Requests for things that exist have a deadline."""
    monkeypatch.setattr(node_client, "_DEADLINE_SECONDS", 0.001)
    async with dialling(Liar(is_deaf=True)) as client:
        await until(lambda: client.is_connected, "contact")
        request = asyncio.create_task(client.open_socket(POD_UID))
        await asyncio.sleep(0)
        with pytest.raises(NodeError, match="did not respond within"):
            await client.find_traces(POD_UID)
        assert not request.done()
        request.cancel()


async def test_a_hung_virt_node_fails_requests_at_their_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even cancellations cannot be sent once the socket is full."""
    monkeypatch.setattr(node_client, "_DEADLINE_SECONDS", 0.001)
    liar = Liar(is_deaf=True)
    async with dialling(liar) as client, asyncio.timeout(20):
        await until(lambda: client.is_connected, "contact")
        for _unused in range(400):
            with suppress(NodeError):
                await client.find_traces(POD_UID)
        await until(lambda: len(liar.ends) > 1, "another connection")


class Liar:
    """A peer that says hello and then answers the first request with these answers."""

    def __init__(
        self, *answers: FromNode | bytes, descriptor: int | None = None, protocol: int = PROTOCOL, is_deaf: bool = False
    ) -> None:
        self._is_deaf = is_deaf
        self._answers, self._descriptor, self._protocol = answers, descriptor, protocol
        self.ends: list[socket.socket] = []

    async def dial(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        theirs.setblocking(False)
        self.ends.append(theirs)
        theirs.send(encode(Hello(self._protocol)))
        if not self._is_deaf:
            asyncio.get_running_loop().add_reader(theirs, self._read, theirs)
        return ours

    def _read(self, theirs: socket.socket) -> None:
        data = theirs.recv(65536)
        if not data:
            asyncio.get_running_loop().remove_reader(theirs)
        elif not isinstance(read_from_handler(data), Hello):
            attached = []
            if self._descriptor is not None:
                attached = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [self._descriptor]))]
            for answer in self._answers:
                theirs.sendmsg([answer if isinstance(answer, bytes) else encode(answer)], attached)


def ask_for_report(client: NodeClient) -> Awaitable[object]:
    return client.read_report(POD_UID)


def ask_for_socket(client: NodeClient) -> Awaitable[object]:
    return client.open_socket(POD_UID)


@asynccontextmanager
async def dialling(liar: Liar, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> AsyncIterator[NodeClient]:
    """Return a client of that peer, and close everything in the end."""
    client = NodeClient(liar.dial, sleep)
    try:
        async with linked(client):
            yield client
    finally:
        for end in liar.ends:
            asyncio.get_running_loop().remove_reader(end)
            end.close()


async def asked_of(liar: Liar, ask: Callable[[NodeClient], Awaitable[object]] = ask_for_report) -> None:
    async with dialling(liar) as client:
        await until(lambda: client.is_connected, "contact")
        await ask(client)


async def test_a_missing_descriptor_is_an_error() -> None:
    with pytest.raises(NodeError, match="without a descriptor"):
        await asked_of(Liar(Opened(1)))


@pytest.mark.parametrize(
    ("flags", "error", "message"),
    [
        (os.O_RDONLY | os.O_DIRECTORY, Refused, "is not a regular file"),
        (os.O_WRONLY | os.O_CREAT, NodeError, "cannot be read: Bad file descriptor"),
    ],
    ids=["a directory", "an unreadable file"],
)
async def test_another_descriptor_than_of_a_readable_file_is_refused_and_closed(
    tmp_path: Path, flags: int, error: type[NodeError], message: str
) -> None:
    descriptor = os.open(tmp_path if flags & os.O_DIRECTORY else tmp_path / "report", flags)
    before = descriptors()
    with pytest.raises(error, match=message):
        await asked_of(Liar(Opened(1), descriptor=descriptor))
    await until(lambda: descriptors() == before, "everything closed")
    os.close(descriptor)


async def test_a_fifo_instead_of_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it belongs to the right user and is only a path descriptor."""
    os.mkfifo(tmp_path / "fifo")
    named = os.open(tmp_path / "fifo", os.O_PATH)
    monkeypatch.setattr(layout, "UID", os.fstat(named).st_uid)
    before = descriptors()
    with pytest.raises(Refused, match="is not a socket of uid"):
        await asked_of(Liar(Opened(1), descriptor=named), ask_for_socket)
    await until(lambda: descriptors() == before, "everything closed")
    os.close(named)


async def test_a_connected_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path descriptor closes at once. Closing a socket can take as long as its creator chooses."""
    with lingering() as open_socket:
        monkeypatch.setattr(layout, "UID", os.fstat(open_socket.fileno()).st_uid)
        with pytest.raises(Refused, match="is not a socket of uid"):
            await asked_of(Liar(Opened(1), descriptor=open_socket.fileno()), ask_for_socket)


async def test_a_peer_that_sends_too_many_unrequested_messages_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the descriptors of earlier messages may take long."""
    monkeypatch.setattr(node_client, "_MAX_UNWANTED", 3)
    monkeypatch.setattr(DescriptorCloser, "__len__", lambda _unused: 4)
    with pytest.raises(NodeAway):
        await asked_of(Liar(NodeState(), Done(1)))


async def test_an_answer_without_a_request_leaks_nothing() -> None:
    read, write = os.pipe()
    before = descriptors()
    with pytest.raises(NodeError, match="without a descriptor"):
        await asked_of(Liar(Opened(99), Done(1), descriptor=read))
    await until(lambda: descriptors() == before, "everything closed")
    os.close(read)
    os.close(write)


@pytest.mark.parametrize(
    ("kind", "error"),
    [("refused", Refused), ("missing", NotThere), ("gone", NotThere), ("failed", NodeError)],
)
async def test_each_kind_of_failure_is_its_own_error(
    kind: Literal["refused", "missing", "gone", "failed"], error: type[NodeError]
) -> None:
    """What is missing may appear later. A refusal is final."""
    with pytest.raises(NodeError, match="because") as failed:
        await asked_of(Liar(Failed(1, kind, "because")))
    assert failed.type is error


@pytest.mark.parametrize("words", [b"{}", b"[" * 60000], ids=["no message", "nested"])
async def test_a_peer_that_sends_garbage_is_disconnected(words: bytes) -> None:
    with pytest.raises(NodeAway):
        await asked_of(Liar(words))


@pytest.mark.parametrize("spoken", [PROTOCOL - 1, PROTOCOL + 1], ids=["an older one", "a newer one"])
async def test_another_protocol_version_is_no_connection_and_is_retried_with_back_off(spoken: int) -> None:
    """During an upgrade the other end follows within minutes."""
    liar, pauses = Liar(protocol=spoken), []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async with dialling(liar, sleep) as client:
        await until(lambda: len(pauses) >= 5, "another attempt")
        assert not client.is_connected
        assert client.trouble == f"virt-node speaks version {spoken}, not {PROTOCOL}"
    assert pauses[:5] == [0.1, 0.3, 1.0, 3.0, 3.0]
