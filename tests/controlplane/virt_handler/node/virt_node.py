# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-node in this process: the real service over real sockets. A test can kill and restart it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from controlplane.links.node.messages import NodeState
from controlplane.links.node.node_state import CurrentNodeState
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_node.capabilities import Capabilities
from controlplane.virt_node.inotify import Inotify
from controlplane.virt_node.launcher_dir import PodsDirectory
from controlplane.virt_node.server import serve_connection
from controlplane.virt_node.service import Service
from tests.controlplane.virt_handler.fakes import FakeNetwork, FakeProc
from tests.support.tasks import cancel_task


@asynccontextmanager
async def linked(client: NodeClient) -> AsyncIterator[None]:
    """Run the client meanwhile."""
    link = asyncio.create_task(client.run())
    try:
        yield
    finally:
        await cancel_task(link)


class VirtNode:
    """A virt-node that virt-handler can dial."""

    def __init__(self, directory: PodsDirectory, network: FakeNetwork, proc: FakeProc) -> None:
        self.offer = CurrentNodeState(NodeState())
        self.is_up = True
        self.dials = 0
        self.open = 0
        """Number of open connections."""
        self._inotify = Inotify()
        capabilities = Capabilities(without_kvm={"q.xml": b"<x/>"})
        self.service = Service(
            directory, self._inotify, capabilities, network.set_up, proc=str(proc.root), handler_gid=os.getgid()
        )
        self.conversations: list[asyncio.Task[None]] = []

    async def dial(self) -> socket.socket:
        self.dials += 1
        if not self.is_up:
            raise ConnectionRefusedError("virt-node is not up")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.open += 1
        self.conversations.append(asyncio.create_task(serve_connection(theirs, self.service, self.offer, self._left)))
        return ours

    def _left(self) -> None:
        self.open -= 1

    async def kill(self) -> None:
        """End all connections and refuse new ones."""
        self.is_up = False
        while self.conversations:
            task = self.conversations.pop()
            await cancel_task(task)

    async def close(self) -> None:
        await self.kill()
        self._inotify.close()
