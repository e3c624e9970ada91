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
from typing import Literal, cast

from kubevirt_api.names import CREATED_BY

from controlplane.api.objects.decode import decode
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.resources import POD
from controlplane.kube.client import Client, Selection
from controlplane.links.handler import Guest
from controlplane.links.relay import Close, SocketEnd
from controlplane.links.streams import CHUNK_BYTES, LOST
from controlplane.tls.contexts import Address
from controlplane.virt_api.streams.preconditions import StreamRefusedError

DIAL_SECONDS = 10.0
STALL_SECONDS = 60.0
"""As upstream: a program that reads through a pager may take its time."""
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


async def find_address(client: Client, namespace: str, guest: Guest, is_allowed: Callable[[Address], bool]) -> str:
    """Return the address of a guest's launcher Pod. Raises StreamRefusedError, ApiError."""
    selection = Selection(POD, namespace=namespace, label_selector=f"{CREATED_BY}={guest.vmi_uid}")
    page = await client.list_page(selection)
    try:
        pods = [decode(raw, Pod) for raw in page.items]
        address = next((pod.status.pod_ip for pod in pods if pod.uid == guest.pod_uid), "")
        if not address or not is_allowed(ipaddress.ip_address(address)):
            raise ValueError(address)
    except ValueError as error:  # DecodeError is one
        raise StreamRefusedError(400, "its launcher Pod has no address (yet)") from error
    return address


async def open_port(address: str, port: int, protocol: Protocol) -> SocketEnd | UdpPort:
    """Connect to a port of the guest. StreamRefusedError."""
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            if protocol == "tcp":
                reader, writer = await asyncio.open_connection(address, port, limit=CHUNK_BYTES)
                expect_answers(writer.get_extra_info("socket"))
                return SocketEnd(reader, writer, STALL_SECONDS)
            loop = asyncio.get_running_loop()
            _unused, datagrams = await loop.create_datagram_endpoint(UdpPort, remote_addr=(address, port))
            return datagrams
    except (OSError, TimeoutError) as error:
        why = "nothing listens there" if isinstance(error, ConnectionRefusedError) else "the guest does not answer"
        raise StreamRefusedError(500, f"cannot connect to port {port} of the guest: {why}") from error


def expect_answers(connection: socket.socket) -> None:
    """Have the kernel break a connection whose guest answers nothing: it is gone, and so is its network."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, GONE_SECONDS // 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, GONE_SECONDS // 4)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, GONE_SECONDS * 1000)  # of unanswered data


class UdpPort(asyncio.DatagramProtocol):
    """Datagrams to and from one port of the guest; each is one message."""

    stall_seconds = STALL_SECONDS

    def __init__(self) -> None:
        self._received: asyncio.Queue[bytes | Close] = asyncio.Queue(DATAGRAMS)
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)  # asyncio's own is no subclass before Python 3.12

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
        if self._transport is not None:
            self._transport.sendto(data)

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()
