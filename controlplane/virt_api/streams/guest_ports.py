# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The far end of a forwarded port: a connection to the guest's network, at the address of its launcher Pod.

The address comes from the Pod, which the kubelet reports: neither the guest's agent nor a VMI's status, which a
compromised node may write, leads virt-api to another address.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, cast

from kubevirt_api.close_codes import LOST
from kubevirt_api.names import CREATED_BY

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD
from controlplane.kube.client import Client, Selection
from controlplane.links.handler import Guest
from controlplane.links.relay import Close, SocketEnd
from controlplane.links.streams import CHUNK_BYTES
from controlplane.tls.contexts import Address
from controlplane.virt_api.streams.preconditions import StreamRefusedError

DIAL_SECONDS = 10.0
STALL_SECONDS = 60.0
"""As upstream: a program that reads through a pager may take its time, and a guest that takes input as well."""
GONE_SECONDS = 60
"""How long a guest may answer no packet of a connection. A migration pauses it for seconds, a user for longer."""
DATAGRAMS = 64
"""Datagrams of a guest that wait for the client; further ones are dropped, as a network does."""
Protocol = Literal["tcp", "udp"]


def parse_port(arguments: tuple[str, ...]) -> tuple[int, Protocol]:
    """Read the port and the protocol of a path. StreamRefusedError."""
    number, protocol = arguments[0] if arguments else "", arguments[1] if len(arguments) > 1 else "tcp"
    if not (number.isascii() and number.isdecimal() and 0 < int(number) < 65536):
        raise StreamRefusedError(400, f"{number[:16]!r} is no port; use a number from 1 to 65535")
    if protocol not in ("tcp", "udp"):
        raise StreamRefusedError(400, f"{protocol[:16]!r} is no protocol; use tcp or udp")
    return int(number), "udp" if protocol == "udp" else "tcp"


@dataclass(frozen=True, slots=True)
class GuestAddress:
    """Where the ports of a guest are: the address of its launcher Pod, while that runs."""

    client: Client
    namespace: str
    guest: Guest
    is_allowed: Callable[[Address], bool]

    async def find(self) -> str:
        """Return the address. Raises StreamRefusedError, ApiError."""
        selection = Selection(POD, namespace=self.namespace, label_selector=f"{CREATED_BY}={self.guest.vmi_uid}")
        page = await self.client.list_page(selection)
        try:
            pods = [decode(raw, Pod) for raw in page.items]
            # A Pod that is over keeps its address in its status, and another Pod may have it by now.
            address = next((pod.status.pod_ip for pod in pods if pod.uid == self.guest.pod_uid and not pod.is_over), "")
            if not address or not self.is_allowed(ipaddress.ip_address(address)):
                raise ValueError(address)
        except ValueError as error:  # DecodeError is one
            raise StreamRefusedError(400, "its launcher Pod has no address (yet), or is over") from error
        return address

    async def find_end(self) -> Close | None:
        """Return an end when the guest is not there any more. Raises ApiError.

        A socket does not notice: datagrams would go to the next Pod that has the address. The guest has closed nothing,
        so the end is no regular one: what the client has received may lack a part.
        """
        try:
            await self.find()
        except StreamRefusedError:
            return Close(LOST, "the guest has stopped, or runs on another node")
        return None


async def open_port(address: str, port: int, protocol: Protocol) -> SocketEnd | UdpPort:
    """Connect to a port of the guest. StreamRefusedError."""
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            if protocol == "tcp":
                return SocketEnd(*await _connect(address, port), STALL_SECONDS)
            loop = asyncio.get_running_loop()
            _unused, datagrams = await loop.create_datagram_endpoint(UdpPort, remote_addr=(address, port))
            return datagrams
    except (OSError, TimeoutError) as error:
        why = "nothing listens there" if isinstance(error, ConnectionRefusedError) else "the guest does not answer"
        raise StreamRefusedError(500, f"cannot connect to port {port} of the guest: {why}") from error


async def _connect(address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        expect_answers(connection)
        await asyncio.get_running_loop().sock_connect(connection, (address, port))
        return await asyncio.open_connection(sock=connection, limit=CHUNK_BYTES)
    except BaseException:
        connection.close()
        raise


def expect_answers(connection: socket.socket) -> None:
    """Have the kernel break a connection whose guest answers nothing: it is gone, and so is its network."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_SECONDS // 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_SECONDS // 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_SECONDS * 1000)  # of unanswered data


class UdpPort(asyncio.DatagramProtocol):
    """Datagrams to and from one port of the guest; each is one message."""

    stall_seconds = input_seconds = STALL_SECONDS

    def __init__(self) -> None:
        self._received: asyncio.Queue[bytes | Close] = asyncio.Queue(DATAGRAMS)
        self._transport: asyncio.DatagramTransport | None = None
        self._is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # asyncio's own is no subclass before Python 3.12
        cast(asyncio.WriteTransport, transport).set_write_buffer_limits(high=0)

    def pause_writing(self) -> None:
        self._is_full = True

    def resume_writing(self) -> None:
        self._is_full = False

    def datagram_received(self, data: bytes, addr: object) -> None:
        del addr  # the socket is connected
        if data:
            self._put(data)

    def error_received(self, exc: Exception) -> None:
        if isinstance(exc, ConnectionRefusedError):
            self._put(Close(LOST, "nothing listens at this port of the guest"))

    def _put(self, received: bytes | Close) -> None:
        if not self._received.full():
            self._received.put_nowait(received)

    async def receive(self) -> bytes | Close:
        return await self._received.get()

    async def send(self, data: bytes) -> None:
        if self._transport is not None and not self._is_full:
            self._transport.sendto(data)  # else dropped, as a network does

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
