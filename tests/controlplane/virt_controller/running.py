# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A whole virt-controller process on a fake API server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from controlplane.api.objects.resources import LEASE, Key
from controlplane.virt_controller.process import COMPONENT, Process
from controlplane.virt_controller.settings import Settings
from tests.controlplane.kube.fake_api import Json, a_client
from tests.controlplane.kube.late_api import LateApi, settle, until
from tests.controlplane.kube.virtual import VirtualTime
from tests.support.tasks import cancel_task

INSTALL_NAMESPACE = "kubevirt"
SETTINGS = Settings(
    namespace=INSTALL_NAMESPACE,
    launcher_image="registry.example/launcher:1",
    image_pull_secrets=("pull",),
    pod_name="virt-controller-1",
    port=0,
    address="127.0.0.1",
)
WEB = Key("default", "web")
SERVED: Json = {
    "spec": {"versions": [{"name": "v1beta1", "served": True}]},
    "status": {"conditions": [{"type": "Established", "status": "True"}]},
}
"""CDI's CustomResourceDefinition of DataVolumes, with the fields that are read."""


@dataclass
class Running:
    """A running virt-controller."""

    api: LateApi
    clock: VirtualTime
    task: asyncio.Task[None]

    async def until(self, holds: Callable[[], object]) -> None:
        await until(holds, self.task)

    async def until_leading(self) -> None:
        await self.until(lambda: self.api.find(LEASE, Key(INSTALL_NAMESPACE, COMPONENT)))

    async def settle(self) -> None:
        await settle()


@asynccontextmanager
async def running(api: LateApi, settings: Settings = SETTINGS) -> AsyncIterator[Running]:
    """Run virt-controller as __main__ does. Its clock moves only when a test advances it."""
    clock = VirtualTime()
    async with a_client(api) as client:
        task = asyncio.create_task(Process(settings, client, clock).run())
        try:
            virt_controller = Running(api, clock, task)
            await virt_controller.until(lambda: api.seen)  # a thread starts the listeners
            yield virt_controller
        finally:
            await cancel_task(task)
