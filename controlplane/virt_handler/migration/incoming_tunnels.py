# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Opens and closes the tunnel servers of this node, each for one migration and for a bounded time."""

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
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.incoming.world import TunnelAddress
from controlplane.virt_handler.launchers.ports import Node, NodeError
from controlplane.virt_handler.migration.copy_thread import CopyThread
from controlplane.virt_handler.migration.handshake import Channel, migration_identity
from controlplane.virt_handler.migration.peer import read_peer_certificate, server_tls_context
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket

log = logging.getLogger(__name__)

SOCKET_SECONDS = 30.0
"""For QEMU to listen: it is being started while the source is about to call."""
DOOR_SECONDS = 86400.0
"""The longest that one is open, whatever becomes of its migration."""


@dataclass(frozen=True, slots=True)
class _Open:
    vmi_uid: str
    door: TunnelAddress
    entrance: TunnelServer
    lane: CopyThread
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
        """address: says where to listen, and what is told to sources; NoPlace. changed: told the UID of the instance
        of a door."""
        self._pair = pair
        self._address = address
        self._node = node
        self._api = api
        self._changed = changed
        self._open: dict[str, _Open] = {}

    def door(self, migration_uid: str) -> TunnelAddress | None:
        found = self._open.get(migration_uid)
        return None if found is None else found.door

    def open_for(self, vmi_uid: str) -> frozenset[str]:
        return frozenset(uid for uid, one in self._open.items() if one.vmi_uid == vmi_uid)

    async def open(self, vmi_uid: str, moving: MigrationState) -> None:
        """Open a door to the source that the migration names. ApiError when that one is not known; NoPlace when
        this node has none for it."""
        uid, address = moving.migration_uid, self._address()
        peer = await read_peer_certificate(self._api, moving.source_node)
        context, lane = server_tls_context(self._pair, peer), CopyThread()

        async def dial(channel: Channel) -> socket:
            return await lane.home(self._dial(moving.target_pod_uid, channel))

        entrance = TunnelServer(migration_identity(moving), context, dial)
        try:
            port = await lane.run(entrance.open(address))
        except OSError as error:
            lane.end()
            raise Unavailable(f"cannot listen for a migration: {error}") from error
        timer = asyncio.get_running_loop().call_later(DOOR_SECONDS, self._end, uid)
        self._open[uid] = _Open(vmi_uid, TunnelAddress(address, port), entrance, lane, timer)
        log.info("waiting for a migration", extra={"uid": uid, "port": port})

    async def close(self, migration_uid: str) -> None:
        found = self._open.pop(migration_uid, None)
        if found is not None:
            found.timer.cancel()
            found.entrance.cut()
            try:
                await found.lane.run(found.entrance.close())
            finally:
                found.lane.end()

    def _end(self, migration_uid: str) -> None:
        found = self._open.get(migration_uid)
        if found is not None:
            asyncio.get_running_loop().create_task(self.close(migration_uid))
            self._changed(found.vmi_uid)

    async def _dial(self, pod_uid: str, channel: Channel) -> socket:
        """Connect to what listens in the target's launcher. OSError, TimeoutError."""
        try:
            async with asyncio.timeout(SOCKET_SECONDS):
                if channel == "control":
                    found = await self._node.open_socket(pod_uid)
                else:
                    found = await self._node.open_migration_socket(pod_uid, channel)
        except NodeError as error:
            raise OSError(str(error)) from error
        try:
            return await dial_socket(found.path)
        finally:
            with suppress(OSError):
                found.close()
