# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets with descriptors over a SOCK_SEQPACKET socket, on the asyncio loop. Their content is not read here.

One packet is one message, so there is no framing. A received descriptor belongs to the caller. A packet that is
truncated, or brings too many descriptors, is refused, and its descriptors are closed with the channel
(descriptor_closer.py).
"""

from __future__ import annotations

import array
import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.links.node.messages import MESSAGE_LIMIT_BYTES, ProtocolError
from controlplane.process.fd_passing import refuse_descriptors

_ANCILLARY_BYTES = socket.CMSG_SPACE(253 * array.array("i").itemsize)
"""Room for as many descriptors as a packet can bring: the kernel closes those without room, during recvmsg(2)."""


class Closed(Exception):
    """The connection is closed."""


class Channel:
    """One connection. One task receives, any number may send. Once closed, it is closed for all of them."""

    def __init__(self, connection: socket.socket, *, takes_descriptors: bool = True) -> None:
        """takes_descriptors: whether a received packet may bring one descriptor. More are never accepted."""
        connection.setblocking(False)
        self._socket = connection
        self._takes = int(takes_descriptors)
        if not takes_descriptors:
            refuse_descriptors(connection)
        self._closer = DescriptorCloser()
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._waiters: dict[asyncio.Future[None], Callable[[int], object]] = {}
        """The waiting tasks, and how to stop the loop from watching the socket for each."""

    async def send(self, data: bytes, descriptor: int | None = None) -> None:
        """Send one packet, optionally with a descriptor, which the caller keeps. Raises Closed."""
        attached = (
            [] if descriptor is None else [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [descriptor]))]
        )
        async with self._sending:
            while True:
                try:
                    self._socket.sendmsg([data], attached)
                    return
                except BlockingIOError:
                    await self._wait(self._loop.add_writer, self._loop.remove_writer)
                except OSError as error:
                    self.end()
                    raise Closed(f"cannot send: {error.strerror}") from error

    def send_now(self, data: bytes) -> None:
        """Send one packet if the socket has room, else end the connection; never waits."""
        try:
            if self._sending.locked():
                raise BlockingIOError
            self._socket.sendmsg([data])
        except OSError:
            self.end()

    async def receive(self) -> tuple[bytes, int | None]:
        """Return the next packet and its descriptor, which the caller owns. Raises Closed, ProtocolError."""
        while True:
            try:
                data, ancillary, flags, _unused = self._socket.recvmsg(
                    MESSAGE_LIMIT_BYTES, _ANCILLARY_BYTES, socket.MSG_CMSG_CLOEXEC
                )
                break
            except BlockingIOError:
                await self._wait(self._loop.add_reader, self._loop.remove_reader)
            except OSError as error:
                raise Closed(f"cannot receive: {error.strerror}") from error
        descriptors = _descriptors(ancillary)
        is_cut = bool(flags & (socket.MSG_TRUNC | socket.MSG_CTRUNC))
        if is_cut or len(descriptors) > self._takes:
            self._closer.add(*descriptors)
            raise ProtocolError("a packet that is too long, or has too many descriptors")
        if not data:
            self._closer.add(*descriptors)
            raise Closed("the other end has closed")
        return data, descriptors[0] if descriptors else None

    def end(self) -> None:
        """Shut the connection down: receivers at both ends find it closed."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self, closed: Callable[[], object] = lambda: None) -> None:
        """Close. Waiting tasks get Closed, and the loop forgets the descriptor before its number is reused.

        closed: called when all descriptors are closed, which a peer can delay.
        """
        waiters, self._waiters = self._waiters, {}
        for ready, remove in waiters.items():
            remove(self._socket.fileno())
            if not ready.done():
                ready.set_exception(Closed("it was closed here"))
        self.end()
        if self._socket.fileno() >= 0:
            self._closer.add(self._socket.detach())
        self._closer.when_closed(closed)

    async def _wait(self, add: Callable[..., None], remove: Callable[[int], object]) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        descriptor = self._socket.fileno()
        if descriptor < 0:
            raise Closed("it was closed here")
        add(descriptor, _settle, ready)
        self._waiters[ready] = remove
        try:
            await ready
        finally:
            if self._waiters.pop(ready, None) is not None:
                remove(descriptor)


def _settle(ready: asyncio.Future[None]) -> None:
    if not ready.done():
        ready.set_result(None)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            descriptors.frombytes(data[: len(data) - len(data) % descriptors.itemsize])
    return list(descriptors)
