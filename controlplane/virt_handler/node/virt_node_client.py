# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client of virt-node, for operations that need root: one persistent connection, requests and responses.

It checks responses before use: virt-node runs as root, but a compromised one must not exhaust virt-handler. It retries
only requests that wait for a launcher.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import socket
import stat
from collections.abc import Awaitable, Callable
from itertools import count
from typing import TypeVar

from controlplane.domain import layout
from controlplane.links.node.channel import Channel, Closed
from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.links.node.messages import (
    PROTOCOL,
    Answer,
    Cancel,
    Done,
    Failed,
    FindTraces,
    FromNode,
    GiveCapabilities,
    GuestDevice,
    Hello,
    ListenForMigration,
    Masquerade,
    MigrationChannel,
    NetworkReady,
    NodeState,
    OpenConsoleLog,
    Opened,
    OpenGuestSocket,
    OpenMigrationSocket,
    OpenReport,
    OpenSocket,
    PodInterface,
    ProtocolError,
    Request,
    SetUpNetwork,
    TracesFound,
    encode,
    read_from_node,
)
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.virt_handler.launchers.console_backlog import read_backlog
from controlplane.virt_handler.launchers.file_reader import FileReader
from controlplane.virt_handler.launchers.ports import (
    LauncherSocket,
    NodeAway,
    NodeError,
    NotThere,
    Refused,
)
from controlplane.virt_handler.launchers.report_file import read_report
from controlplane.virt_handler.vmi.world import Traces

log = logging.getLogger(__name__)

Dial = Callable[[], Awaitable[socket.socket]]
A = TypeVar("A", NetworkReady, TracesFound, Done)

UNREACHABLE = "virt-node is not reachable"
_PAUSES_SECONDS = (0.1, 0.3, 1.0, 3.0)
_DEADLINE_SECONDS = 30.0
"""Timeout of requests that do not wait for a launcher. virt-node's own timeouts are shorter."""
_MAX_UNWANTED = 64
"""Limit of descriptors from unexpected responses that wait to be closed."""


class NodeClient:
    """Implements launchers.ports.Node."""

    def __init__(self, dial: Dial, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        self._dial = dial
        self._sleep = sleep
        self._channel: Channel | None = None
        self._trouble = UNREACHABLE
        self._connected = asyncio.Event()
        self._numbers = count(1)
        self._reports = FileReader(layout.REPORT, read_report)
        self._console_logs = FileReader(layout.SERIAL_LOG_NAME, read_backlog)
        self._unwanted = DescriptorCloser()
        self._waiting: dict[int, asyncio.Future[tuple[Answer, int | None]]] = {}
        self._node_state = CurrentNodeState(None)
        self._callbacks: list[Callable[[], None]] = []

    def subscribe(self, callback: Callable[[], None]) -> None:
        """Call back whenever the connection is opened or lost."""
        self._callbacks.append(callback)

    @property
    def is_connected(self) -> bool:
        return self._channel is not None

    @property
    def trouble(self) -> str:
        """Why there is no connection, in a stable text; "" while there is one."""
        return self._trouble if self._channel is None else ""

    @property
    def deprecated_machines(self) -> tuple[str, ...]:
        """The boards that QEMU will remove; none while that is unknown."""
        state = self._node_state.state
        return () if state is None or state.cpu is None else state.cpu.deprecated_machines

    async def wait_for_other_than(self, last: NodeState | None) -> NodeState:
        """Wait until the node's state differs from the last one, and return it."""
        return await self._node_state.wait_for_other_than(last)

    async def run(self) -> None:
        """Keep the connection until cancelled."""
        failures = 0
        while True:
            try:
                await self._converse(await self._dial())
            except (OSError, Closed, ProtocolError) as error:
                log.warning("no connection to virt-node", extra={"error": str(error)})
                self._trouble = str(error) if isinstance(error, ProtocolError) else UNREACHABLE
            # Only a full handshake resets the pause: a virt-node of another release refuses each connection at once.
            failures = 0 if self._node_state.state is not None else failures
            await self._node_state.update(None)
            await self._sleep(_PAUSES_SECONDS[min(failures, len(_PAUSES_SECONDS) - 1)])
            failures += 1

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        """Wait for a launcher's socket, without a timeout. NodeError."""
        return self._checked_socket(*await self._ask_without_deadline(lambda number: OpenSocket(number, pod_uid)))

    async def open_migration_socket(self, pod_uid: str, channel: MigrationChannel) -> LauncherSocket:
        """Wait for the socket on which a target's QEMU listens. NodeError."""
        return self._checked_socket(
            *await self._ask_without_deadline(lambda number: OpenMigrationSocket(number, pod_uid, channel))
        )

    async def open_guest_socket(self, pod_uid: str, device: GuestDevice) -> LauncherSocket:
        """Wait for the socket on which QEMU serves a device of the guest. NodeError."""
        return self._checked_socket(
            *await self._ask_without_deadline(lambda number: OpenGuestSocket(number, pod_uid, device))
        )

    async def listen_for_migration(self, pod_uid: str, channel: MigrationChannel) -> socket.socket:
        """Return a socket that listens where a source's QEMU dials. NodeError."""
        answer = await self._ask(lambda number: ListenForMigration(number, pod_uid, channel))
        descriptor = self._descriptor(*answer)
        status = os.fstat(descriptor)
        is_open = not fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_PATH
        listener = socket.socket(fileno=descriptor) if stat.S_ISSOCK(status.st_mode) and is_open else None
        if listener is None:
            self._drop(descriptor)
        elif listener.family == socket.AF_UNIX and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            return listener
        else:
            self._drop(listener.detach())
        raise Refused("the descriptor from virt-node is not a listening Unix socket")

    def _checked_socket(self, answer: Answer, received: int | None) -> LauncherSocket:
        """Accept an O_PATH descriptor of a socket that the launcher's user owns. Refused."""
        descriptor = self._descriptor(answer, received)
        status = os.fstat(descriptor)
        is_path = fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_PATH  # an open descriptor could block in close(2)
        if not stat.S_ISSOCK(status.st_mode) or status.st_uid != layout.UID or not is_path:
            self._drop(descriptor)
            raise Refused(f"the descriptor from virt-node is not a socket of uid {layout.UID}")
        return LauncherSocket(descriptor)

    async def read_report(self, pod_uid: str) -> bytes:
        """Read a launcher's report, up to the size limit. NodeError; NotThere when there is none yet."""
        descriptor = self._descriptor(*await self._ask(lambda number: OpenReport(number, pod_uid)))
        return await self._reports.read(descriptor)

    async def read_console_backlog(self, pod_uid: str) -> bytes:
        """Read the last bytes that a guest has printed on its console. NodeError; NotThere when there is no log."""
        descriptor = self._descriptor(*await self._ask(lambda number: OpenConsoleLog(number, pod_uid)))
        return await self._console_logs.read(descriptor)

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        """Wait for a launcher's directory and put libvirt's capability cache there. NodeError."""
        answer, descriptor = await self._ask_without_deadline(
            lambda number: GiveCapabilities(number, pod_uid, with_kvm)
        )
        self._expect(Done, answer, descriptor)

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        """Set up a Pod's network for its guest. NodeError."""
        answer, descriptor = await self._ask(lambda number: SetUpNetwork(number, pod_uid, wanted))
        return self._expect(NetworkReady, answer, descriptor).interface

    async def find_traces(self, pod_uid: str, *, wait_seconds: float = 0.0) -> Traces:
        """Look on the node for a Pod's directory and processes, after its QEMU if that ends in time. NodeError."""
        answer, descriptor = await self._ask(lambda number: FindTraces(number, pod_uid, wait_seconds))
        traces = self._expect(TracesFound, answer, descriptor)
        return Traces(traces.has_directory, traces.processes, traces.emulators)

    async def _ask_without_deadline(self, make: Callable[[int], Request]) -> tuple[Answer, int | None]:
        """Send a request that waits in virt-node, and repeat it when the connection is lost."""
        while True:
            await self._connected.wait()
            try:
                return await self._ask(make, has_deadline=False)
            except NodeAway as error:
                log.debug("repeating a request", extra={"error": str(error)})

    async def _ask(self, make: Callable[[int], Request], *, has_deadline: bool = True) -> tuple[Answer, int | None]:
        channel = self._channel
        if channel is None:
            raise NodeAway(self.trouble)
        number, timeout_seconds = next(self._numbers), _DEADLINE_SECONDS if has_deadline else None
        try:
            packet = encode(make(number))
        except ValueError as error:
            raise NodeError(str(error)) from error
        response: asyncio.Future[tuple[Answer, int | None]] = asyncio.get_running_loop().create_future()
        self._waiting[number] = response
        try:
            async with asyncio.timeout(timeout_seconds):
                await channel.send(packet)
                answer, descriptor = await response
        except Closed as error:
            self._lose(channel)  # before the receiver notices it: a retry has to wait for the next connection
            raise NodeAway(str(error)) from error
        except (TimeoutError, asyncio.CancelledError) as error:
            self._give_up(channel, number, response)
            if isinstance(error, TimeoutError):
                raise NodeError(f"virt-node did not respond within {timeout_seconds:g} s") from error
            raise
        finally:
            self._waiting.pop(number, None)
        if isinstance(answer, Failed):
            self._drop(descriptor)
            raise _error(answer)
        return answer, descriptor

    def _give_up(self, channel: Channel, number: int, response: asyncio.Future[tuple[Answer, int | None]]) -> None:
        """Drop a response that has arrived, or cancel the request in virt-node. This never waits.

        A response that arrives later is dropped then. If the socket's buffer is full, virt-node hangs: this closes the
        connection, which cancels all requests.
        """
        if response.done() and not response.cancelled() and response.exception() is None:
            self._drop(response.result()[1])
        elif self._channel is channel:
            channel.send_now(encode(Cancel(number)))

    async def _converse(self, connection: socket.socket) -> None:
        channel = Channel(connection)
        try:
            await channel.send(encode(Hello(PROTOCOL)))
            await self._receive_all(channel)
        finally:
            self._lose(channel)
            for future in self._waiting.values():
                if not future.done():
                    future.set_exception(NodeAway("virt-node has disconnected"))
            channel.close()

    def _lose(self, channel: Channel) -> None:
        if self._channel is channel:
            self._channel = None
            self._connected.clear()
            self._notify()

    def _notify(self) -> None:
        for callback in self._callbacks:
            callback()

    async def _receive_all(self, channel: Channel) -> None:
        self._welcome(channel, await self._receive(channel))
        while True:
            message, descriptor = await self._receive(channel)
            match message:
                case Hello():
                    self._drop(descriptor)
                    raise ProtocolError("virt-node sent Hello twice")
                case NodeState():
                    self._drop(descriptor)
                    await self._node_state.update(message)
                case _:
                    self._settle(message, descriptor)
            if len(self._unwanted) > _MAX_UNWANTED:
                raise ProtocolError("virt-node sends descriptors without a request")
            await asyncio.sleep(0)  # a virt-node that sends without a pause must not starve the event loop

    def _welcome(self, channel: Channel, first: tuple[FromNode, int | None]) -> None:
        hello, descriptor = first
        self._drop(descriptor)
        if not isinstance(hello, Hello):
            raise ProtocolError("virt-node did not send Hello first")
        if hello.protocol != PROTOCOL:
            raise ProtocolError(f"virt-node speaks version {hello.protocol}, not {PROTOCOL}")
        self._channel = channel
        self._connected.set()
        log.info("connected to virt-node")
        self._notify()

    def _settle(self, answer: Answer, descriptor: int | None) -> None:
        waiting = self._waiting.get(answer.id)
        if waiting is None or waiting.done():
            self._drop(descriptor)
        else:
            waiting.set_result((answer, descriptor))

    async def _receive(self, channel: Channel) -> tuple[FromNode, int | None]:
        data, descriptor = await channel.receive()
        try:
            return read_from_node(data), descriptor
        except ProtocolError:
            self._drop(descriptor)
            raise

    def _descriptor(self, answer: Answer, descriptor: int | None) -> int:
        if not isinstance(answer, Opened) or descriptor is None:
            self._drop(descriptor)
            raise NodeError(f"virt-node responded without a descriptor: {type(answer).__name__}")
        return descriptor

    def _expect(self, kind: type[A], answer: Answer, descriptor: int | None) -> A:
        self._drop(descriptor)
        if not isinstance(answer, kind):
            raise NodeError(f"unexpected response of virt-node: {type(answer).__name__}")
        return answer

    def _drop(self, descriptor: int | None) -> None:
        if descriptor is not None:
            self._unwanted.add(descriptor)


async def dial_virt_node(path: str = layout.NODE_SOCKET) -> socket.socket:
    """Connect to virt-node. OSError."""
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, path)
    except BaseException:
        connection.close()
        raise
    return connection


def _error(answer: Failed) -> NodeError:
    kinds: dict[str, type[NodeError]] = {"refused": Refused, "missing": NotThere, "gone": NotThere}
    return kinds.get(answer.kind, NodeError)(answer.text)
