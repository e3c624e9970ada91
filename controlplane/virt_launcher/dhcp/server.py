# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The socket of the DHCP server: waits for the bridge, and serves only there, at a limited rate.

It needs no privilege: a sysctl of the Pod permits port 67, and a socket bound to the bridge reaches only the guest.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import logging
import socket
import struct
from collections.abc import Iterator

from controlplane.api.launch_plan import Dhcp
from controlplane.virt_launcher.dhcp.packet import Lease, reply_to
from controlplane.virt_launcher.dhcp.resolver import LIMIT_BYTES, parse_resolver, search_with

PACKETS_PER_SECOND = 100
_SERVER_PORT, _CLIENT_PORT = 67, 68
_LINK_GROUP = 1
_SIOCGIFFLAGS, _SIOCGIFMTU = 0x8913, 0x8921
_IFF_UP = 1
_DATAGRAM_LIMIT = 2048

log = logging.getLogger(__name__)


async def serve_dhcp(plan: Dhcp, *, resolver_path: str = "/etc/resolv.conf") -> None:
    """Serve the guest until cancelled, also after the bridge was deleted and created again."""
    with _watch_links() as changed:
        while True:
            index = await _bridge(plan.bridge, changed)
            lease = build_lease(plan, mtu=plan.mtu or _interface(plan.bridge, _SIOCGIFMTU), resolver_path=resolver_path)
            with _serve_on(plan.bridge, lease):
                log.info("serving dhcp", extra={"bridge": plan.bridge, "address": plan.address, "mtu": lease.mtu})
                while _index(plan.bridge) == index:
                    changed.clear()
                    await changed.wait()


def build_lease(plan: Dhcp, *, mtu: int, resolver_path: str) -> Lease:
    """Build the lease from the plan and the Pod's resolv.conf. ValueError or OSError for an invalid address."""
    address, _unused, prefix = plan.address.partition("/")
    bits = int(prefix)
    with open(resolver_path, encoding="ascii", errors="replace") as file:
        resolver = parse_resolver(file.read(LIMIT_BYTES))
    return Lease(
        mac=bytes.fromhex(plan.mac.replace(":", "")),
        address=socket.inet_aton(address),
        mask=struct.pack(">I", (0xFFFFFFFF << (32 - bits)) & 0xFFFFFFFF),
        router=socket.inet_aton(plan.router),
        mtu=mtu,
        hostname=plan.hostname,
        servers=resolver.servers,
        search=search_with(plan.service_domain, resolver.search),
    )


class RateLimit:
    """Permits this many events per second, and as many at once. Others are dropped, not delayed."""

    def __init__(self, per_second: float, now: float) -> None:
        self._per_second = self._tokens = per_second
        self._last = now

    def allows(self, now: float) -> bool:
        """Count one event; return whether it is permitted. now: monotonic seconds."""
        self._tokens = min(self._per_second, self._tokens + (now - self._last) * self._per_second)
        self._last = now
        if self._tokens < 1:
            return False
        self._tokens -= 1
        return True


async def _bridge(name: str, changed: asyncio.Event) -> int:
    """Wait until the bridge exists and is up; return its index."""
    while True:
        changed.clear()
        index = _index(name)
        if index and _interface(name, _SIOCGIFFLAGS) & _IFF_UP:
            return index
        await changed.wait()


def _index(name: str) -> int:
    try:
        return socket.if_nametoindex(name)
    except OSError:
        return 0


def _interface(name: str, request: int) -> int:
    """Return an interface's flags or MTU; 0 when it does not exist."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as query:
        try:
            data = fcntl.ioctl(query, request, struct.pack("16s16x", name.encode()))
        except OSError:
            return 0
    (number,) = struct.unpack_from("H" if request == _SIOCGIFFLAGS else "i", data, 16)
    return int(number)


@contextlib.contextmanager
def _watch_links() -> Iterator[asyncio.Event]:
    """Yield an event that is set whenever a link of this network namespace changes."""
    changed = asyncio.Event()
    loop = asyncio.get_running_loop()
    kind = socket.SOCK_RAW | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
    with socket.socket(socket.AF_NETLINK, kind, socket.NETLINK_ROUTE) as link:
        link.bind((0, _LINK_GROUP))

        def on_message() -> None:
            with contextlib.suppress(OSError):  # messages were lost, so something changed
                link.recv(65536)
            changed.set()

        loop.add_reader(link, on_message)
        try:
            yield changed
        finally:
            loop.remove_reader(link)


@contextlib.contextmanager
def _serve_on(bridge: str, lease: Lease) -> Iterator[None]:
    """Serve packets on the bridge inside the block."""
    loop = asyncio.get_running_loop()
    limit = RateLimit(PACKETS_PER_SECOND, loop.time())
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC) as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, bridge.encode() + b"\0")
        server.bind(("", _SERVER_PORT))  # a guest without an address broadcasts

        def on_packet() -> None:
            try:
                packet = server.recv(_DATAGRAM_LIMIT)
                reply = reply_to(packet, lease) if limit.allows(loop.time()) else None
                if reply is not None:
                    server.sendto(reply.packet, (socket.inet_ntoa(reply.destination), _CLIENT_PORT))
            except OSError as error:  # the bridge is down, or its queue is full: the guest retries
                log.debug("dhcp packet lost", extra={"error": str(error)})

        loop.add_reader(server, on_packet)
        try:
            yield
        finally:
            loop.remove_reader(server)
