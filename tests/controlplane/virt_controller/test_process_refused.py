# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The process while RBAC temporarily refuses reads of CDI's objects, e.g. during an update of roles."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from aiohttp import web
from kubevirt_api.names import VM_FINALIZER

from controlplane.api.objects.data_volume import DEFINITION
from controlplane.api.objects.resources import (
    CUSTOM_RESOURCE_DEFINITION,
    DATA_VOLUME,
    VIRTUAL_MACHINE,
    Key,
    Resource,
)
from tests.controlplane.kube.fake_api import Json, status
from tests.controlplane.kube.late_api import LateApi
from tests.controlplane.virt_controller.data_volumes import DISK, SPEC
from tests.controlplane.virt_controller.running import SERVED, WEB, Running, running

DISK_KEY = Key("default", "disk")
WITH_TEMPLATE: Json = {
    "metadata": {"finalizers": [VM_FINALIZER], "generation": 1},
    "spec": {
        "runStrategy": "Always",
        "template": {"spec": {"domain": {"memory": {"guest": "64Mi"}}, "volumes": [DISK]}},
        "dataVolumeTemplates": [{"metadata": {"name": "disk"}, "spec": SPEC}],
    },
}


@dataclass
class RefusingApi(LateApi):
    """Refuses to list or watch one kind."""

    refused: str = ""
    refusals: int = 0

    async def handle(self, request: web.Request) -> web.StreamResponse:
        if request.method == "GET" and request.path.rsplit("/", 1)[1] == self.refused:
            self.refusals += 1
            return web.json_response(status(403, "Forbidden"), status=403)
        return await super().handle(request)

    def refuse(self, resource: Resource) -> None:
        self.refused, self.refusals = resource.plural, 0
        self.cut()

    @property
    def failures(self) -> list[str]:
        """Reasons of the VM's condition Failure."""
        body = self.find(VIRTUAL_MACHINE, WEB) or {}
        return [
            condition["reason"]
            for condition in body.get("status", {}).get("conditions", [])
            if condition["type"] == "Failure"
        ]

    @property
    def is_reconciled(self) -> bool:
        return "status" in (self.find(VIRTUAL_MACHINE, WEB) or {})


async def _watching(virt_controller: Running) -> None:
    await virt_controller.until_leading()
    await virt_controller.until(lambda: any(DATA_VOLUME.plural in path for path in virt_controller.api.watched()))
    await virt_controller.settle()


@pytest.mark.parametrize("resource", [CUSTOM_RESOURCE_DEFINITION, DATA_VOLUME], ids=lambda resource: resource.plural)
async def test_a_vm_that_was_created_while_a_watch_was_refused_gets_its_data_volume(resource: Resource) -> None:
    """No object changes when the watch recovers: the change of support has to enqueue the VM."""
    api = RefusingApi()
    api.set(CUSTOM_RESOURCE_DEFINITION, Key("", DEFINITION), SERVED)
    async with running(api) as virt_controller:
        await _watching(virt_controller)
        api.refuse(resource)
        await virt_controller.until(lambda: api.refusals)
        await virt_controller.settle()
        api.set(VIRTUAL_MACHINE, WEB, WITH_TEMPLATE)
        await virt_controller.until(lambda: api.is_reconciled)
        await virt_controller.settle()
        assert api.failures == []
        api.refused = ""
        await virt_controller.until(lambda: api.find(DATA_VOLUME, DISK_KEY))


async def test_a_missing_cdi_is_reported_only_once_its_absence_is_known() -> None:
    api = RefusingApi(refused=CUSTOM_RESOURCE_DEFINITION.plural)
    async with running(api) as virt_controller:
        await virt_controller.until_leading()
        api.set(VIRTUAL_MACHINE, WEB, WITH_TEMPLATE)
        await virt_controller.until(lambda: api.is_reconciled)
        await virt_controller.settle()
        assert api.failures == []
        api.refused = ""
        await virt_controller.until(lambda: api.failures == ["FailedDataVolumeCreate"])
