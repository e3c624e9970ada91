# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The source's end of one migration's tunnel: forwards local sockets of QEMU and libvirt to the target.

It runs in the copy thread. virt-node creates QEMU's sockets in the launcher. The socket of libvirt's control connection
belongs to virt-handler and is in a directory that no launcher sees.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from uuid import uuid4

from controlplane.virt_handler.migration.acceptor import Acceptor
from controlplane.virt_handler.migration.byte_copy import TunnelSocket, TunnelSockets, copy_both_ways, secure
from controlplane.virt_handler.migration.handshake import MOST, Channel, Handshake, MigrationIdentity, render

log = logging.getLogger(__name__)

CONNECT_SECONDS = 5.0
CALLS = 8
"""Limit of connections in total, as a multiple of the limit at a time. QEMU needs one. Each costs a TLS handshake."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the target's virt-handler listens for this migration, and how it is authenticated."""

    host: str
    port: int
    context: ssl.SSLContext
    name: str
    """The host name in its certificate."""


class TunnelClient:
    """The tunnel's end at the source of one migration."""

    def __init__(self, identity: MigrationIdentity, target: Target, directory: str) -> None:
        """directory: for sockets that only virt-handler sees."""
        self._identity = identity
        self._target = target
        self._directory = directory
        self._control_path = ""
        self._acceptors: list[Acceptor] = []
        self._sockets = TunnelSockets()

    async def open(self, listening: dict[Channel, socket.socket]) -> str:
        """Serve the launcher's listening sockets, by channel, and a control socket. Return its path. OSError.

        All sockets are closed at the end, also on an error.
        """
        try:
            path = self._control_path = f"{self._directory}/{uuid4().hex[:8]}"
            control = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            listening = {**listening, "control": control}
            control.bind(path)
            control.listen(MOST["control"])
            for channel, listener in listening.items():
                limit = MOST[channel]
                self._acceptors.append(
                    Acceptor(listener, partial(self._forward, channel), most=limit, in_all=limit * CALLS)
                )
        except BaseException:
            await self.close()
            for listener in listening.values():
                listener.close()
            raise
        return path

    def cut(self) -> None:
        """End the connections to the target, from any thread: the target can block the copy thread."""
        self._sockets.cut()

    async def close(self) -> None:
        """Stop listening, and end all connections."""
        for acceptor in self._acceptors:
            await acceptor.close()
        if self._control_path:
            with suppress(OSError):
                os.unlink(self._control_path)

    async def _forward(self, channel: Channel, connection: socket.socket) -> None:
        local = TunnelSocket(connection)
        try:
            remote = await self._connect()
            try:
                await remote.send(memoryview(render(Handshake(self._identity, channel))))
                await copy_both_ways(local, remote)
            finally:
                self._sockets.discard(remote)
                remote.close()
        except (OSError, TimeoutError) as error:
            log.warning(
                "a migration's connection broke", extra={"uid": self._identity.migration, "because": str(error)}
            )
        finally:
            local.close()

    async def _connect(self) -> TunnelSocket:
        """Connect to the target's virt-handler and authenticate it. OSError, TimeoutError."""
        target = self._target
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await dial_address(target.host, target.port)
        remote = secure(connection, target.context, server_name=target.name)
        self._sockets.add(remote)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await remote.prove()
        except BaseException:
            self._sockets.discard(remote)
            remote.close()
            raise
        return remote


async def dial_address(host: str, port: int) -> socket.socket:
    """Connect by TCP to an address. OSError."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    connection = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    connection.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(connection, (host, port))
    except BaseException:
        connection.close()
        raise
    return connection
