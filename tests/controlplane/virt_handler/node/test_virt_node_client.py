# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of virt-node, against the real service and against a faulty peer."""

from __future__ import annotations

import array
import asyncio
import os
import socket
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
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
    OpenReport,
    encode,
    read_from_handler,
)
from controlplane.virt_handler.launchers.ports import NodeAway, NodeError, NotThere, Refused
from controlplane.virt_handler.launchers.report_file import AT_ONCE, Reports
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


async def test_a_report_above_the_limit_is_refused(pair: Pair) -> None:
    pair.files.make_directory()
    with (pair.files.run / layout.REPORT).open("wb") as file:
        file.truncate(REPORT_LIMIT_BYTES + 1)
    with pytest.raises(Refused, match="more than"):
        await pair.client.read_report(POD_UID)


async def test_a_link_instead_of_a_report_is_refused(pair: Pair) -> None:
    pair.files.make_directory()
    (pair.files.run / layout.REPORT).symlink_to("/etc/shadow")
    with pytest.raises(Refused, match="not a regular file"):
        await pair.client.read_report(POD_UID)


async def test_a_network_is_set_up(pair: Pair) -> None:
    wanted = Masquerade("10.0.2.0/24")
    assert await pair.client.set_up_network(POD_UID, wanted) == ETH0
    assert pair.network.wanted == [wanted]


async def test_an_invalid_network_is_refused(pair: Pair) -> None:
    with pytest.raises(NodeError, match="CIDR"):
        await pair.client.set_up_network(POD_UID, Masquerade("10.0.2.0/33"))
    assert pair.network.wanted == []


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
        assert pair.client.trouble == "virt-node is not there"
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
        with pytest.raises(NodeError, match="no answer within"):
            await client.find_traces(POD_UID)
        assert not request.done()
        request.cancel()


async def test_a_hung_virt_node_fails_requests_at_their_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even cancellations cannot be sent once the socket is full."""
    monkeypatch.setattr(node_client, "_DEADLINE_SECONDS", 0.001)
    liar = Liar(is_deaf=True)
    async with dialling(liar) as client, asyncio.timeout(20):
        await until(lambda: client.is_connected, "contact")
        for _unused in range(400):
            with suppress(NodeError):
                await client.find_traces(POD_UID)
        await until(lambda: len(liar.ends) > 1, "a connection given up")


async def test_hundreds_of_requests_can_be_cancelled_at_once() -> None:
    async with dialling(Liar(is_deaf=True)) as client, asyncio.timeout(20):
        await until(lambda: client.is_connected, "contact")
        requests = [asyncio.create_task(client.open_socket(POD_UID)) for _unused in range(400)]
        await asyncio.sleep(0.01)
        for request in requests:
            request.cancel()
        await asyncio.wait(requests, timeout=5)
        assert [request for request in requests if not request.done()] == []


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


async def test_an_answer_of_another_kind_is_an_error() -> None:
    with pytest.raises(NodeError, match="without a descriptor: Done"):
        await asked_of(Liar(Done(1)))


async def test_a_missing_descriptor_is_an_error() -> None:
    with pytest.raises(NodeError, match="without a descriptor"):
        await asked_of(Liar(Opened(1)))


async def test_a_directory_instead_of_a_file_is_refused_and_closed(tmp_path: Path) -> None:
    """It raised another error, and leaked a descriptor each time."""
    directory = os.open(tmp_path, os.O_RDONLY)
    before = descriptors()
    with pytest.raises(Refused, match="something else than a file"):
        await asked_of(Liar(Opened(1), descriptor=directory))
    await until(lambda: descriptors() == before, "everything closed")
    os.close(directory)


async def test_an_unreadable_file_is_an_error(tmp_path: Path) -> None:
    written = os.open(tmp_path / "report", os.O_WRONLY | os.O_CREAT)
    before = descriptors()
    with pytest.raises(NodeError, match="cannot be read: Bad file descriptor"):
        await asked_of(Liar(Opened(1), descriptor=written))
    await until(lambda: descriptors() == before, "everything closed")
    os.close(written)


class NeverRead:
    """A reader of reports that never end, like /proc/kmsg, which looks like a regular file."""

    def __init__(self) -> None:
        self.begun = 0
        self._is_over = threading.Event()

    def __call__(self, descriptor: int) -> bytes:
        self.begun += 1
        self._is_over.wait(20)
        os.close(descriptor)
        return b"late"

    def end(self) -> None:
        self._is_over.set()


@pytest.fixture
def never() -> Iterator[NeverRead]:
    reader = NeverRead()
    yield reader
    reader.end()


@pytest.fixture
def report(tmp_path: Path) -> Callable[[], int]:
    """Return a function that opens another descriptor of a report."""
    (tmp_path / "report").write_text("{}")
    return lambda: os.open(tmp_path / "report", os.O_RDONLY)


async def test_endless_reports_take_no_shared_threads(never: NeverRead, report: Callable[[], int]) -> None:
    """They were read in the default executor, until it had no thread left."""
    only, reports = ThreadPoolExecutor(1), Reports(never)
    asyncio.get_running_loop().set_default_executor(only)
    reading = [asyncio.create_task(reports.read(report())) for _unused in range(40)]
    await until(lambda: never.begun == AT_ONCE, "as many as there may be")

    assert await asyncio.wait_for(asyncio.to_thread(lambda: 7), 10) == 7
    assert never.begun == AT_ONCE
    never.end()
    assert set(await asyncio.gather(*reading)) == {b"late"}


async def test_an_endless_report_times_out(never: NeverRead, report: Callable[[], int]) -> None:
    """A read in progress keeps its slot until it ends. A waiting descriptor is closed."""
    before, reports = descriptors(), Reports(never, seconds=0.05)
    errors = await asyncio.gather(*(reports.read(report()) for _unused in range(40)), return_exceptions=True)

    assert {str(error) for error in errors} == {f"{layout.REPORT} was not read within 0.05 s"}
    assert never.begun == AT_ONCE
    await until(lambda: descriptors() == before + AT_ONCE, "only what is being read")
    never.end()
    await until(lambda: descriptors() == before, "everything closed")
    read = await Reports(seconds=5).read(report())
    assert read == b"{}"


async def test_a_report_without_a_reader_is_closed_unread(never: NeverRead, report: Callable[[], int]) -> None:
    """Its descriptor leaked if no read had started."""
    before, reports = descriptors(), Reports(never)
    reading = [asyncio.create_task(reports.read(report())) for _unused in range(AT_ONCE + 1)]
    await until(lambda: never.begun == AT_ONCE, "as many as there may be")
    reading[-1].cancel()
    await asyncio.wait(reading[-1:])

    await until(lambda: descriptors() == before + AT_ONCE, "only what is being read")
    for task in reading:
        task.cancel()
    never.end()
    await until(lambda: descriptors() == before, "everything closed")


async def test_a_report_is_closed_if_no_thread_can_start(
    report: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    before, reports = descriptors(), Reports()
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(threading.Thread, "start", _cannot_begin)
        for _unused in range(AT_ONCE + 1):
            with pytest.raises(NodeError, match="no thread"):
                await reports.read(report())

    await until(lambda: descriptors() == before, "everything closed")
    assert await reports.read(report()) == b"{}"


def _cannot_begin(_thread: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


async def test_a_pipe_instead_of_a_file_is_refused_unread() -> None:
    read, write = os.pipe()
    before = descriptors()
    with pytest.raises(Refused, match="something else than a file"):
        await asked_of(Liar(Opened(1), descriptor=read))
    await until(lambda: descriptors() <= before + 3, "everything closed")  # + 3: the worker thread's
    os.close(read)
    os.close(write)


async def test_a_fifo_instead_of_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if it belongs to the right user and is only a path descriptor."""
    os.mkfifo(tmp_path / "fifo")
    named = os.open(tmp_path / "fifo", os.O_PATH)
    monkeypatch.setattr(layout, "UID", os.fstat(named).st_uid)
    before = descriptors()
    with pytest.raises(Refused, match="something else than a socket"):
        await asked_of(Liar(Opened(1), descriptor=named), ask_for_socket)
    await until(lambda: descriptors() == before, "everything closed")
    os.close(named)


async def test_a_connected_socket_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A path descriptor closes at once. Closing a socket can take as long as its creator chooses."""
    with lingering() as open_socket:
        monkeypatch.setattr(layout, "UID", os.fstat(open_socket.fileno()).st_uid)
        with pytest.raises(Refused, match="something else than a socket"):
            await asked_of(Liar(Opened(1), descriptor=open_socket.fileno()), ask_for_socket)


async def test_a_peer_that_sends_too_many_unrequested_messages_is_disconnected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Closing the descriptors of earlier messages may take long."""
    monkeypatch.setattr(node_client, "_UNWANTED", 3)
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


async def test_an_answer_to_a_cancelled_request_leaks_nothing() -> None:
    """Whichever comes first."""
    read, write = os.pipe()
    before = descriptors()
    for turns in range(12):
        async with dialling(Liar(Opened(1), descriptor=write)) as client:
            await until(lambda dialled=client: dialled.is_connected, "contact")
            request = asyncio.create_task(client._ask(lambda number: OpenReport(number, POD_UID)))
            for _unused in range(turns):
                await asyncio.sleep(0)
            request.cancel()
            with suppress(asyncio.CancelledError):
                _answer, descriptor = await request
                os.close(descriptor or -1)
        await until(lambda: descriptors() == before, f"everything closed ({turns})")
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


async def test_an_answer_before_garbage_is_delivered() -> None:
    """The caller has not taken the answer when the connection ends."""
    liar = Liar(Done(1), b"{}")
    async with dialling(liar) as client:
        await until(lambda: client.is_connected, "contact")
        with pytest.raises(NodeError, match="without a descriptor"):
            await ask_for_report(client)
        await until(lambda: len(liar.ends) > 1, "the next connection")


async def test_a_failed_dial_leaks_no_descriptor(tmp_path: Path) -> None:
    before = descriptors()
    with pytest.raises(FileNotFoundError) as failed:
        await node_client.dial_virt_node(str(tmp_path / "nobody"))
    assert descriptors() == before, failed
