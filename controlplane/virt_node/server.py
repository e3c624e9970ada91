# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket for virt-handler: which user may connect, and how many requests may be open. service.py executes them."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import stat
import struct
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from controlplane.domain import layout
from controlplane.links.node.channel import Channel, Closed
from controlplane.links.node.messages import (
    PROTOCOL,
    Cancel,
    Failed,
    Hello,
    NodeState,
    ProtocolError,
    Request,
    bounded_text,
    encode,
    read_from_handler,
)
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_node.service import Service

log = logging.getLogger(__name__)

CONNECTIONS = 4
"""One virt-handler, a second one during a restart, and two more."""
OUTSTANDING = 4096
"""Open requests of one connection; each launcher of a full node has at most two."""
_ACCEPT_PAUSE_SECONDS = 0.5
_CREDENTIALS = struct.Struct("3i")


def listen(path: Path, uid: int = layout.HANDLER_UID) -> socket.socket:
    """Listen on a socket that only this user's group can connect to. Raises OSError."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise FileExistsError(f"{path} exists and is not a socket")
            path.unlink()  # from a previous process
        server.bind(str(path))
        os.chown(path, -1, uid)
        os.chmod(path, 0o660)
        refuse_descriptors(server)
        server.listen(CONNECTIONS)
        server.setblocking(False)
    except BaseException:
        server.close()
        raise
    return server


async def serve(
    server: socket.socket, service: Service, node_state: CurrentNodeState, uid: int = layout.HANDLER_UID
) -> None:
    """Serve until cancelled."""
    loop = asyncio.get_running_loop()
    slots = asyncio.Semaphore(CONNECTIONS)
    async with asyncio.TaskGroup() as group:
        while True:
            await slots.acquire()
            try:
                connection, _unused = await loop.sock_accept(server)
            except OSError as error:  # mostly no free descriptor, which is temporary
                log.warning("cannot accept a connection", extra={"error": str(error)})
                slots.release()
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            peer = _peer_uid(connection)
            if peer != uid:
                log.warning("refused a connection", extra={"uid": peer})
                Channel(connection, takes_descriptors=False).close(slots.release)
                continue
            group.create_task(serve_connection(connection, service, node_state, slots.release))


async def serve_connection(
    connection: socket.socket,
    service: Service,
    node_state: CurrentNodeState,
    closed: Callable[[], object] = lambda: None,
) -> None:
    """Serve one virt-handler until it disconnects or breaks the protocol. Raises nothing.

    closed: called when the connection and all descriptors from it are closed.
    """
    channel = Channel(connection, takes_descriptors=False)
    try:
        async with asyncio.TaskGroup() as group:
            await _Connection(channel, service, group).run(node_state)
    except* Closed as error:
        log.info("virt-handler has disconnected", extra={"because": str(error.exceptions[0])})
    except* ProtocolError as error:
        log.warning("virt-handler broke the protocol", extra={"because": str(error.exceptions[0])})
    except* Exception:
        log.exception("bug while serving virt-handler")
    finally:
        channel.close(closed)


class _Connection:
    def __init__(self, channel: Channel, service: Service, group: asyncio.TaskGroup) -> None:
        self._channel, self._service, self._group = channel, service, group
        self._open: dict[int, asyncio.Task[None]] = {}

    async def run(self, node_state: CurrentNodeState) -> None:
        await self._channel.send(encode(Hello(PROTOCOL)))
        greeting = await self._receive()
        if not isinstance(greeting, Hello) or greeting.protocol != PROTOCOL:
            raise ProtocolError(f"it speaks another version than {PROTOCOL}: {greeting}")
        log.info("virt-handler has connected")
        self._group.create_task(self._send_state(node_state))
        while True:
            self._take(await self._receive())
            await asyncio.sleep(0)  # a flood of requests must not starve other tasks

    async def _receive(self) -> Hello | Request | Cancel:
        data, _none = await self._channel.receive()
        return read_from_handler(data)

    def _take(self, message: Hello | Request | Cancel) -> None:
        match message:
            case Hello():
                raise ProtocolError("it sent Hello twice")
            case Cancel():
                if (task := self._open.get(message.id)) is not None:
                    task.cancel()
            case _:
                if message.id in self._open or len(self._open) >= OUTSTANDING:
                    raise ProtocolError(f"request {message.id} is already open, or {OUTSTANDING} other requests are")
                number = message.id
                task = self._open[number] = self._group.create_task(self._answer(message))
                task.add_done_callback(lambda _done: self._open.pop(number))

    async def _answer(self, request: Request) -> None:
        reply = await self._service.answer(request)
        try:
            try:
                packet = encode(reply.answer)
            except ValueError as error:  # one malformed Pod must not end the connection for the others
                packet = encode(Failed(request.id, "failed", bounded_text(str(error))))
            await self._channel.send(packet, reply.descriptor)
        finally:
            if reply.descriptor is not None:
                os.close(reply.descriptor)

    async def _send_state(self, node_state: CurrentNodeState) -> None:
        """Send the node's state, now and at each change."""
        sent: NodeState | None = None
        while True:
            sent = await node_state.wait_for_other_than(sent)
            await self._channel.send(encode(sent))


def _peer_uid(connection: socket.socket) -> int:
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(credentials)[1]
    return uid
