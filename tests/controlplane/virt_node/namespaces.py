# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces for tests: made by a thread, removed with its descriptor, without a name on the machine."""

from __future__ import annotations

import ctypes
import os
import socket
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from pyroute2 import IPRoute

T = TypeVar("T")


class Namespace:
    """A namespace with a thread inside it. Sockets that the thread opens work in every thread."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1)
        self.fd: int = self._thread.submit(self._enter).result()

    def close(self) -> None:
        os.close(self.fd)
        self._thread.shutdown()

    def run(self, work: Callable[[], T]) -> T:
        return self._thread.submit(work).result(timeout=20)

    def _enter(self) -> int:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.unshare(0x40000000) != 0:
            raise OSError(ctypes.get_errno(), "unshare")
        with IPRoute() as route:
            route.link("set", index=1, state="up")
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    def address(self, interface: str, cidr: str, *, gateway: str | None = None) -> None:
        def work() -> None:
            host, _unused, length = cidr.partition("/")
            with IPRoute() as route:
                index = route.link_lookup(ifname=interface)[0]
                route.addr("add", index=index, address=host, prefixlen=int(length))
                route.link("set", index=index, state="up")
                if gateway:
                    route.route("add", dst="default", gateway=gateway)

        self.run(work)

    def enslave(self, interface: str, bridge: str) -> None:
        def work() -> None:
            with IPRoute() as route:
                index, master = (route.link_lookup(ifname=name)[0] for name in (interface, bridge))
                route.link("set", index=index, master=master, state="up")

        self.run(work)

    def listen(self, port: int, kind: int = socket.SOCK_STREAM) -> socket.socket:
        def work() -> socket.socket:
            server = socket.socket(socket.AF_INET, kind)
            server.settimeout(5)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("0.0.0.0", port))
            if kind == socket.SOCK_STREAM:
                server.listen()
            return server

        return self.run(work)

    def connect(self, host: str, port: int, source: str | None = None, timeout: float = 5) -> socket.socket:
        return self.run(
            lambda: socket.create_connection((host, port), timeout, (source, 0) if source else None)  # type: ignore[arg-type]
        )


def cable(first: Namespace, name: str, second: Namespace, peer: str, mtu: int = 1500) -> None:
    """Connect two namespaces with a veth pair."""

    def work() -> None:
        with IPRoute() as route:
            route.link(
                "add", ifname=name, kind="veth", mtu=mtu, peer={"ifname": peer, "net_ns_fd": second.fd, "mtu": mtu}
            )

    first.run(work)
