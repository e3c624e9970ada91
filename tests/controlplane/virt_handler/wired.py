# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole virt-handler process with an API server in this process and a real virt-node."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controlplane.api.objects.resources import (
    NODE,
    VIRTUAL_MACHINE_INSTANCE,
    Key,
)
from controlplane.virt_handler import __main__ as virt_handler
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.settings import Settings
from tests.controlplane.kube.fake_api import Json, a_client
from tests.controlplane.kube.late_api import LateApi, until
from tests.controlplane.virt_handler.builders import NODE as NAME
from tests.controlplane.virt_handler.fakes import FakeLibvirtd, LauncherFiles
from tests.controlplane.virt_handler.node.virt_node import VirtNode
from tests.support.tasks import cancel_task

WEB, POD_KEY, NODE_KEY = Key("default", "web"), Key("default", "pod"), Key("", NAME)
INSTALL_NAMESPACE = "kubevirt"
TUN = "devices.kubevirt.io/tun"


@dataclass
class Stage:
    """A node with one launcher, an API server and virt-handler."""

    api: LateApi
    virt_node: VirtNode
    files: LauncherFiles
    libvirtd: FakeLibvirtd
    settings: Settings
    pair: SelfSignedPair
    task: asyncio.Task[None] | None = None
    handler: virt_handler.Handler | None = None

    async def until(self, holds: Callable[[], object]) -> None:
        assert self.task is not None
        await until(holds, self.task)

    @property
    def phase(self) -> str:
        return str((self.api.find(VIRTUAL_MACHINE_INSTANCE, WEB) or {})["status"]["phase"])

    @property
    def node(self) -> Json:
        return self.api.find(NODE, NODE_KEY) or {}

    def be_heard_again(self) -> None:
        """Act as after a silence: virt-handler checks the Node's labels."""
        assert self.handler is not None
        self.handler._heartbeat.resumed.set()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with a_client(self.api) as client:
            self.handler = virt_handler.Handler(self.settings, client, self.pair, self.pair)
            self.task = asyncio.create_task(self.handler.run())
            try:
                await self.until(lambda: self.api.seen)
                yield
            finally:
                await cancel_task(self.task)
                self.libvirtd.hang_up()
