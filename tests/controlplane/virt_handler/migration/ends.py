# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Both ends of a migration on this machine: key pairs, a target launcher, and a tunnel over TLS on the loopback."""

from __future__ import annotations

import asyncio
import os
import pathlib
import socket
import threading
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from functools import cache

from controlplane.links.handler import server_name
from controlplane.tls.certificates import Subject, make_self_signed
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.migration.handshake import Channel, MigrationIdentity
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket

BINDING = MigrationIdentity("migration", "source-pod", "target-pod")
SOURCE, TARGET, OTHER = "node-a", "node-b", "node-c"
SECONDS = 10.0
"""Timeout of every wait in a test."""


@cache
def pair_of(node: str) -> SelfSignedPair:
    subject = Subject("virt-handler", "peer", (server_name(node),))
    pair = make_self_signed(subject, time.time() - 60, timedelta(days=1))
    return SelfSignedPair(pair.certificate, pair.key)


def listen_at(path: pathlib.Path, backlog: int = 16) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen(backlog)
    return server


def open_things() -> tuple[int, int, int]:
    """Count what may leak: descriptors, threads, tasks of this event loop."""
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(asyncio.all_tasks())


class Launcher:
    """A target launcher that answers everything in capitals."""

    def __init__(self, home: pathlib.Path) -> None:
        self.path = home / "launcher.sock"
        self.dialled: list[Channel] = []

    async def open(self, stack: AsyncExitStack) -> None:
        server = await asyncio.start_unix_server(self._answer, self.path)
        stack.callback(server.close)

    async def dial(self, channel: Channel) -> socket.socket:
        self.dialled.append(channel)
        return await dial_socket(str(self.path))

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                writer.write(data.upper())
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


class TunnelSockets:
    """A tunnel server and the clients that connect to it."""

    def __init__(self, home: pathlib.Path, launcher: Launcher, entrance: TunnelServer, port: int) -> None:
        self.home = home
        self.launcher = launcher
        self.entrance = entrance
        self.port = port
        self.control = ""

    def target(self, *, shows: str = SOURCE, knows: str = TARGET, name: str = TARGET) -> Target:
        """shows: whose key pair the client has. knows, name: the certificate and name that it expects."""
        context = client_tls_context(pair_of(shows), pair_of(knows).der)
        return Target("127.0.0.1", self.port, context, server_name(name))

    @asynccontextmanager
    async def passage(
        self, target: Target | None = None, binding: MigrationIdentity = BINDING
    ) -> AsyncIterator[TunnelClient]:
        client = TunnelClient(binding, target or self.target(), str(self.home))
        listening: dict[Channel, socket.socket] = {
            "memory": listen_at(self.home / "memory.sock"),
            "disks": listen_at(self.home / "disks.sock"),
        }
        try:
            self.control = await client.open(listening)
            yield client
        finally:
            await client.close()
            for path in self.home.glob("*s.sock"):
                path.unlink()
            (self.home / "memory.sock").unlink()

    async def dial(self, channel: Channel) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        path = self.control if channel == "control" else str(self.home / f"{channel}.sock")
        return await asyncio.open_unix_connection(path)


@asynccontextmanager
async def an_entrance(home: pathlib.Path, launcher: Launcher | None = None) -> AsyncIterator[TunnelSockets]:
    async with AsyncExitStack() as stack:
        launcher = launcher or Launcher(home)
        await launcher.open(stack)
        context = server_tls_context(pair_of(TARGET), pair_of(SOURCE).der)
        entrance = TunnelServer(BINDING, context, launcher.dial)
        port = await entrance.open("127.0.0.1")
        stack.push_async_callback(entrance.close)
        yield TunnelSockets(home, launcher, entrance, port)
