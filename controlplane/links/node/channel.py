# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Packets with descriptors over a SOCK_SEQPACKET socket, on the asyncio loop. What is in them is not looked at.

One packet is one message, so there is no framing to get wrong. Descriptors that come with a packet belong to whoever
receives it; a packet that is cut short, or brings more of them than it may, is refused, and they are closed with the
channel (unwanted.py).
"""

from __future__ import annotations

import array
import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress

from controlplane.links.node.messages import MESSAGE_LIMIT_BYTES, ProtocolError
from controlplane.links.node.unwanted import Unwanted
from controlplane.process.fd_passing import refuse_descriptors

_ANCILLARY_BYTES = socket.CMSG_SPACE(253 * array.array("i").itemsize)
"""As many as a packet can bring: what there is no room for the kernel closes, and whoever receives waits for that."""


class Closed(Exception):
    """The other end is gone."""


class Channel:
    """One connection. One task receives; any number may send. Once it is closed for one of them, it is for all."""

    def __init__(self, connection: socket.socket, *, takes_descriptors: bool = True) -> None:
        """takes_descriptors: one with a packet at most; otherwise none at all."""
        connection.setblocking(False)
        self._socket = connection
        self._takes = int(takes_descriptors)
        if not takes_descriptors:
            refuse_descriptors(connection)
        self._unwanted = Unwanted()
        self._loop = asyncio.get_running_loop()
        self._sending = asyncio.Lock()
        self._waiters: dict[asyncio.Future[None], Callable[[int], object]] = {}
        """Who waits for the socket, and how the loop is told that nobody does."""

    async def send(self, data: bytes, descriptor: int | None = None) -> None:
        """Send one packet, with a descriptor if one is given; it stays the caller's. Closed."""
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
        """Send one packet if there is room for it, else end the connection; never waits."""
        try:
            if self._sending.locked():
                raise BlockingIOError
            self._socket.sendmsg([data])
        except OSError:
            self.end()

    async def receive(self) -> tuple[bytes, int | None]:
        """Return the next packet and the descriptor that came with it, which is the caller's. Closed, ProtocolError."""
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
            self._unwanted.add(*descriptors)
            raise ProtocolError("a packet that is too long, or has too many descriptors")
        if not data:
            self._unwanted.add(*descriptors)
            raise Closed("the other end has closed")
        return data, descriptors[0] if descriptors else None

    def end(self) -> None:
        """Let nothing more through: whoever receives, here and at the other end, finds it closed."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)

    def close(self, closed: Callable[[], object] = lambda: None) -> None:
        """Close. Whoever waits to send or to receive is told so, and the loop forgets the descriptor before it is
        somebody else's. closed: called when nothing is open any more, which may take as long as the other end likes."""
        waiters, self._waiters = self._waiters, {}
        for ready, remove in waiters.items():
            remove(self._socket.fileno())
            if not ready.done():
                ready.set_exception(Closed("it was closed here"))
        self.end()
        if self._socket.fileno() >= 0:
            self._unwanted.add(self._socket.detach())
        self._unwanted.once_closed(closed)

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
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)
