# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A session with a fake node and a fake libvirtd: no socket, no directory."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from controlplane.domain.state import State
from controlplane.links.node.messages import Masquerade, PodInterface
from controlplane.virt_handler.launchers.ports import LauncherSocket, NodeError
from controlplane.virt_handler.launchers.session import Session
from controlplane.virt_handler.launchers.tools import Tools
from controlplane.virt_handler.node.virt_node_client import NodeClient
from controlplane.virt_handler.vmi.ports import NO_INPUTS, OperationInputs
from controlplane.virt_handler.vmi.world import LauncherStatus, Operation
from tests.controlplane.virt_handler.builders import RUNNING, VMI_UID, a_pod, domain_text
from tests.controlplane.virt_handler.fakes import FakeClock, FakeConnection, FakeGuest, FakeLibvirtd
from tests.support.tasks import cancel_task


async def nowhere() -> socket.socket:
    raise ConnectionRefusedError


class FakeNode(NodeClient):
    """A node with one launcher. `error`: raised by each request."""

    def __init__(self) -> None:
        super().__init__(nowhere)
        self.error: NodeError | None = None
        self.is_tap_open: bool | None = None
        self.has_launcher = asyncio.Event()
        self.has_launcher.set()
        self.opened: list[int] = []
        self.networks: list[Masquerade] = []
        self.capabilities: list[tuple[str, bool]] = []

    async def open_socket(self, pod_uid: str) -> LauncherSocket:
        await self.has_launcher.wait()
        self.opened.append(os.open("/dev/null", os.O_PATH | os.O_CLOEXEC))
        return LauncherSocket(self.opened[-1])

    async def give_capabilities(self, pod_uid: str, *, with_kvm: bool) -> None:
        self.capabilities.append((pod_uid, with_kvm))

    async def set_up_network(self, pod_uid: str, wanted: Masquerade) -> PodInterface:
        self.networks.append(wanted)
        if self.error is not None:
            raise self.error
        return PodInterface(("10.244.0.7",), 1450, self.is_tap_open)

    async def read_report(self, pod_uid: str) -> bytes:
        if self.error is not None:
            raise self.error
        disks = [{"volume": "root", "path": "/img/volumes/root/disk/disk.img", "format": "raw"}]
        return json.dumps({"version": 1, "container_disks": disks}).encode()


class SessionStage:
    """A session, its node and its libvirtd."""

    def __init__(self, **tools: Any) -> None:
        self.node, self.clock, self.libvirtd = FakeNode(), FakeClock(), FakeLibvirtd(VMI_UID)
        changed: Callable[[], None] = lambda: None  # noqa: E731
        self.session = Session(
            a_pod(),
            VMI_UID,
            Tools(self.node, self.clock, self.libvirtd.connect, **tools),
            changed,
            spawn=asyncio.create_task,
        )

    @property
    def status(self) -> LauncherStatus:
        return self.session.launcher().status

    def connect(self) -> FakeConnection:
        """Set an open connection, without the task that observes it."""
        connection = self.session.connection.current = FakeConnection(self.libvirtd)
        return connection

    async def define(self, xml: str = "", life: State = RUNNING) -> FakeGuest:
        """Connect, and define a domain in this state."""
        guest = await self.connect().define(xml or domain_text())
        guest.life = life
        return guest

    async def look(self) -> None:
        await self.session.connection.refresh()

    async def perform(self, action: Operation, inputs: OperationInputs = NO_INPUTS) -> None:
        await self.session.operations.perform(action, inputs)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Run the session's task."""
        task = asyncio.create_task(self.session.run())
        try:
            yield
        finally:
            await cancel_task(task)
