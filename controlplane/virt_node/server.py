# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket on which virt-handler asks, who is let in, and how many questions may be open. No request is done here."""

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
from controlplane.links.node.offer import Offer
from controlplane.process.fd_passing import refuse_descriptors
from controlplane.virt_node.service import Service

log = logging.getLogger(__name__)

CONNECTIONS = 4
"""One virt-handler, and one that is about to go or to come."""
OUTSTANDING = 4096
"""Requests of one connection: every launcher of a full node has two at most."""
_AGAIN_SECONDS = 0.5
_CREDENTIALS = struct.Struct("3i")


def listen(path: Path, uid: int = layout.HANDLER_UID) -> socket.socket:
    """Listen, for this user's group alone. OSError."""
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    try:
        with suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.lstat().st_mode):
                raise FileExistsError(f"{path} is in the way, and no socket")
            path.unlink()  # of a predecessor
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


async def serve(server: socket.socket, service: Service, offer: Offer, uid: int = layout.HANDLER_UID) -> None:
    """Serve until cancelled."""
    loop = asyncio.get_running_loop()
    places = asyncio.Semaphore(CONNECTIONS)
    async with asyncio.TaskGroup() as group:
        while True:
            await places.acquire()
            try:
                connection, _unused = await loop.sock_accept(server)
            except OSError as error:  # no descriptor is left for it, which passes
                log.warning("cannot let anybody in", extra={"error": str(error)})
                places.release()
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            found = _peer(connection)
            if found != uid:
                log.warning("turned away", extra={"uid": found})
                Channel(connection, takes_descriptors=False).close(places.release)
                continue
            group.create_task(converse(connection, service, offer, places.release))


async def converse(
    connection: socket.socket, service: Service, offer: Offer, left: Callable[[], object] = lambda: None
) -> None:
    """Answer one virt-handler until it is gone or says something that it cannot mean. Nothing is raised.

    left: called when nothing that it sent along is open any more.
    """
    channel = Channel(connection, takes_descriptors=False)
    try:
        async with asyncio.TaskGroup() as group:
            await _Conversation(channel, service, group).run(offer)
    except* Closed as gone:
        log.info("virt-handler is gone", extra={"because": str(gone.exceptions[0])})
    except* ProtocolError as error:
        log.warning("virt-handler is not listened to any more", extra={"because": str(error.exceptions[0])})
    except* Exception:
        log.exception("bug in a conversation with virt-handler")
    finally:
        channel.close(left)


class _Conversation:
    def __init__(self, channel: Channel, service: Service, group: asyncio.TaskGroup) -> None:
        self._channel, self._service, self._group = channel, service, group
        self._open: dict[int, asyncio.Task[None]] = {}

    async def run(self, offer: Offer) -> None:
        await self._channel.send(encode(Hello(PROTOCOL)))
        greeting = await self._receive()
        if not isinstance(greeting, Hello) or greeting.protocol != PROTOCOL:
            raise ProtocolError(f"it speaks another version than {PROTOCOL}: {greeting}")
        log.info("virt-handler is here")
        self._group.create_task(self._tell(offer))
        while True:
            self._take(await self._receive())
            await asyncio.sleep(0)  # whoever asks without a pause does not keep the loop to itself

    async def _receive(self) -> Hello | Request | Cancel:
        data, _none = await self._channel.receive()
        return read_from_handler(data)

    def _take(self, message: Hello | Request | Cancel) -> None:
        match message:
            case Hello():
                raise ProtocolError("it greeted twice")
            case Cancel():
                if (task := self._open.get(message.id)) is not None:
                    task.cancel()
            case _:
                if message.id in self._open or len(self._open) >= OUTSTANDING:
                    raise ProtocolError(f"request {message.id} is open already, or {OUTSTANDING} others are")
                number = message.id
                task = self._open[number] = self._group.create_task(self._answer(message))
                task.add_done_callback(lambda _done: self._open.pop(number))

    async def _answer(self, request: Request) -> None:
        reply = await self._service.answer(request)
        try:
            try:
                packet = encode(reply.answer)
            except ValueError as error:  # of one odd Pod; the others' answers go on
                packet = encode(Failed(request.id, "failed", bounded_text(str(error))))
            await self._channel.send(packet, reply.descriptor)
        finally:
            if reply.descriptor is not None:
                os.close(reply.descriptor)

    async def _tell(self, offer: Offer) -> None:
        """Tell what the node offers, now and whenever it changes."""
        told: NodeState | None = None
        while True:
            told = await offer.other_than(told)
            await self._channel.send(encode(told))


def _peer(connection: socket.socket) -> int:
    answer = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    uid: int = _CREDENTIALS.unpack(answer)[1]
    return uid
