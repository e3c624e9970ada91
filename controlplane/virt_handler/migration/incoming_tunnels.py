# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens and closes the tunnel servers of this node. Each serves one migration, for a bounded time."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from socket import socket

from controlplane.api.objects.migration_state import MigrationState
from controlplane.engine.errors import Unavailable
from controlplane.engine.ports import Api
from controlplane.process.loop_thread import LoopThread
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.incoming.world import TunnelAddress
from controlplane.virt_handler.launchers.ports import Node, NodeError
from controlplane.virt_handler.migration.handshake import Channel, migration_identity
from controlplane.virt_handler.migration.peer import read_peer_certificate, server_tls_context
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket

log = logging.getLogger(__name__)

SOCKET_SECONDS = 30.0
"""How long to wait until QEMU listens: it starts while the source connects."""
OPEN_SECONDS = 86400.0
"""Limit for an open tunnel server, even if its migration has not ended."""


@dataclass(frozen=True, slots=True)
class _Open:
    vmi_uid: str
    address: TunnelAddress
    server: TunnelServer
    thread: LoopThread
    timer: asyncio.TimerHandle


class IncomingTunnels:
    """Implements incoming.ports.Tunnels."""

    def __init__(
        self,
        pair: SelfSignedPair,
        address: Callable[[], str],
        node: Node,
        api: Api,
        *,
        changed: Callable[[str], None],
    ) -> None:
        """address: returns the address to listen on and to publish (NoMigrationAddress). changed: called with the VMI's
        UID when the timer closes a tunnel."""
        self._pair = pair
        self._address = address
        self._node = node
        self._api = api
        self._changed = changed
        self._open: dict[str, _Open] = {}

    def address(self, migration_uid: str) -> TunnelAddress | None:
        tunnel = self._open.get(migration_uid)
        return None if tunnel is None else tunnel.address

    def open_for(self, vmi_uid: str) -> frozenset[str]:
        return frozenset(uid for uid, tunnel in self._open.items() if tunnel.vmi_uid == vmi_uid)

    async def open(self, vmi_uid: str, migration: MigrationState) -> None:
        """Listen for the source that the migration names. ApiError when its certificate cannot be read;
        NoMigrationAddress when this node has no address for migrations."""
        uid, address = migration.migration_uid, self._address()
        peer = await read_peer_certificate(self._api, migration.source_node)
        context, thread = server_tls_context(self._pair, peer), LoopThread("migration")

        async def dial(channel: Channel) -> socket:
            return await thread.run_in_main_loop(self._dial(migration.target_pod_uid, channel))

        server = TunnelServer(migration_identity(migration), context, dial)
        try:
            port = await thread.run(server.open(address))
        except OSError as error:
            thread.end()
            raise Unavailable(f"cannot listen for a migration: {error}") from error
        timer = asyncio.get_running_loop().call_later(OPEN_SECONDS, self._end, uid)
        self._open[uid] = _Open(vmi_uid, TunnelAddress(address, port), server, thread, timer)
        log.info("waiting for a migration", extra={"uid": uid, "port": port})

    async def close(self, migration_uid: str) -> None:
        tunnel = self._open.pop(migration_uid, None)
        if tunnel is not None:
            tunnel.timer.cancel()  # it would close the next tunnel of this migration
            tunnel.server.cut()
            try:
                await tunnel.thread.run(tunnel.server.close())
            finally:
                tunnel.thread.end()

    def _end(self, migration_uid: str) -> None:
        tunnel = self._open.get(migration_uid)
        if tunnel is not None:
            asyncio.get_running_loop().create_task(self.close(migration_uid))
            self._changed(tunnel.vmi_uid)

    async def _dial(self, pod_uid: str, channel: Channel) -> socket:
        """Connect to the socket of a channel in the target's launcher. OSError, TimeoutError."""
        try:
            async with asyncio.timeout(SOCKET_SECONDS):
                if channel == "control":
                    launcher_socket = await self._node.open_socket(pod_uid)
                else:
                    launcher_socket = await self._node.open_migration_socket(pod_uid, channel)
        except NodeError as error:
            raise OSError(str(error)) from error
        try:
            return await dial_socket(launcher_socket.path)
        finally:
            with suppress(OSError):
                launcher_socket.close()
