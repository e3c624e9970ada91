# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the source of one migration opens: sockets that QEMU and libvirt dial here, each carried to the target.

It runs in the lane. QEMU's are in its launcher, made by virt-node; libvirt's control connection is virt-handler's own,
and in a directory that no launcher sees.
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
"""In all, for each that there may be at a time: QEMU calls once for each. Each has the target called, and proven."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where the target's virt-handler listens for this migration, and how it is proven."""

    host: str
    port: int
    context: ssl.SSLContext
    name: str
    """In its certificate."""


class TunnelClient:
    """Of one migration."""

    def __init__(self, binding: MigrationIdentity, target: Target, directory: str) -> None:
        """directory: where virt-handler may make files that nobody else sees."""
        self._binding = binding
        self._target = target
        self._home = directory
        self._own = ""
        self._receptions: list[Acceptor] = []
        self._ends = TunnelSockets()

    async def open(self, listening: dict[Channel, socket.socket]) -> str:
        """Serve sockets that listen in the launcher, by channel, and one of our own; return that one's path. OSError.

        They are closed in the end, whatever comes of it.
        """
        try:
            path = self._own = f"{self._home}/{uuid4().hex[:8]}"
            own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
            listening = {**listening, "control": own}
            own.bind(path)
            own.listen(MOST["control"])
            for channel, one in listening.items():
                most = MOST[channel]
                self._receptions.append(Acceptor(one, partial(self._carry, channel), most=most, in_all=most * CALLS))
        except BaseException:
            await self.close()
            for one in listening.values():
                one.close()
            raise
        return path

    def cut(self) -> None:
        """End what is connected to the target, from any thread: the lane may be held up by what comes from there."""
        self._ends.cut()

    async def close(self) -> None:
        """Listen no more, and end what is connected."""
        for reception in self._receptions:
            await reception.close()
        if self._own:
            with suppress(OSError):
                os.unlink(self._own)

    async def _carry(self, channel: Channel, connection: socket.socket) -> None:
        caller = TunnelSocket(connection)
        try:
            there = await self._call()
            try:
                await there.send(memoryview(render(Handshake(self._binding, channel))))
                await copy_both_ways(caller, there)
            finally:
                self._ends.discard(there)
                there.close()
        except (OSError, TimeoutError) as error:
            log.warning("a migration's connection broke", extra={"uid": self._binding.migration, "because": str(error)})
        finally:
            caller.close()

    async def _call(self) -> TunnelSocket:
        """Reach the target's virt-handler, and know that it is. OSError, TimeoutError."""
        target = self._target
        async with asyncio.timeout(CONNECT_SECONDS):
            connection = await dial_address(target.host, target.port)
        there = secure(connection, target.context, server_name=target.name)
        self._ends.add(there)
        try:
            async with asyncio.timeout(CONNECT_SECONDS):
                await there.prove()
        except BaseException:
            self._ends.discard(there)
            there.close()
            raise
        return there


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
