# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations by the object and by virtualmachines/migrate, on a real API server."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from kubevirt_api.names import MIGRATION_FINALIZER, VMI_NAME

from controlplane.api.objects.resources import (
    VIRTUAL_MACHINE,
    VIRTUAL_MACHINE_INSTANCE,
    VIRTUAL_MACHINE_INSTANCE_MIGRATION,
    Key,
)
from controlplane.api.vmi_label import vmi_label_value
from controlplane.engine.errors import ApiError, Forbidden, Invalid, NotFound
from controlplane.kube.client import Client, Selection
from controlplane.kube.transport import Request
from tests.controlplane.virt_api import test_real_api
from tests.controlplane.virt_api.test_real_api import GROUP, Installed, a_client, a_vm, key_of

pytestmark = pytest.mark.component
installed = test_real_api.installed

KIND = VIRTUAL_MACHINE_INSTANCE_MIGRATION
LONG = "a" * 200
UNFIT = {"type": "LiveMigratable", "status": "False", "reason": "DisksNotLiveMigratable", "message": "its disk stays"}


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def controller(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.controller) as connected:
        yield connected


async def have(client: Client, controller: Client, name: str, phase: str = "Running", *conditions: Any) -> None:
    """Make a VM and its VMI, in a phase."""
    vm = await client.create(VIRTUAL_MACHINE, "default", a_vm(name))
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": name, "uid": vm["metadata"]["uid"]}
    body = {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "metadata": {"name": name, "ownerReferences": [owner | {"controller": True}]},
        "spec": vm["spec"]["template"]["spec"],
    }
    await controller.create(VIRTUAL_MACHINE_INSTANCE, "default", body)
    status = {"status": {"phase": phase, "nodeName": "node-1", "conditions": list(conditions)}}
    await controller.patch(VIRTUAL_MACHINE_INSTANCE, Key("default", name), status, subresource="status")


def a_migration(vmi: str, **spec: Any) -> dict[str, Any]:
    meta = {"generateName": "by-hand-", "namespace": "default"}
    return {"apiVersion": "kubevirt.io/v1", "kind": KIND.kind, "metadata": meta, "spec": {"vmiName": vmi, **spec}}


async def migrate(client: Client, name: str, body: str = "") -> None:
    path = f"{GROUP}/namespaces/default/virtualmachines/{name}/migrate"
    await client.transport.send(Request("PUT", path, "migrate", body.encode() or None))


async def of(client: Client, vmi: str) -> list[dict[str, Any]]:
    selected = Selection(KIND, "default", label_selector=f"{VMI_NAME}={vmi_label_value(vmi)}")
    return [json.loads(raw) for raw in (await client.list_page(selected)).items]


@pytest.mark.parametrize("name", ["moves", LONG], ids=["short", "long"])
async def test_a_vmi_has_one_migration_at_a_time(client: Client, controller: Client, name: str) -> None:
    await have(client, controller, name)
    first = await client.create(KIND, "default", a_migration(name))

    assert first["metadata"]["labels"] == {VMI_NAME: vmi_label_value(name)}
    assert first["metadata"]["finalizers"] == [MIGRATION_FINALIZER]
    refusal = rf"in-flight migration detected\. Active migration job \({first['metadata']['uid']}\)"
    with pytest.raises(Invalid, match=refusal):
        await client.create(KIND, "default", a_migration(name))
    with pytest.raises(ApiError, match=refusal):
        await migrate(client, name)
    await controller.patch(KIND, key_of(first), {"status": {"phase": "Failed"}}, subresource="status")

    await migrate(client, name, '{"dryRun": ["All"]}')
    assert len(await of(client, name)) == 1
    await migrate(client, name, '{"addedNodeSelector": {"zone": "a"}}')
    (second,) = [
        migration for migration in await of(client, name) if migration["metadata"]["uid"] != first["metadata"]["uid"]
    ]
    assert second["metadata"]["name"].startswith("kubevirt-migrate-vm-")
    assert second["metadata"]["finalizers"] == [MIGRATION_FINALIZER]
    assert second["spec"] == {"vmiName": name, "addedNodeSelector": {"zone": "a"}}


async def test_users_may_not_change_a_migration(client: Client, controller: Client) -> None:
    await have(client, controller, "held")
    migration = await client.create(KIND, "default", a_migration("held"))
    key = key_of(migration)

    with pytest.raises(Invalid, match="does not change after creation"):
        await client.patch(KIND, key, {"spec": {"vmiName": "other"}})
    with pytest.raises(Invalid, match="leave it as it was"):
        await client.patch(KIND, key, {"metadata": {"labels": {VMI_NAME: "other"}}})
    with pytest.raises(Forbidden, match="is written by the control plane only"):
        await client.patch(KIND, key, {"status": {"phase": "Failed"}}, subresource="status")
    await client.patch(KIND, key, {"metadata": {"labels": None, "finalizers": None}})
    kept = (await client.get(KIND, key))["metadata"]
    assert (kept["labels"], kept["finalizers"]) == (
        migration["metadata"]["labels"],
        migration["metadata"]["finalizers"],
    )
    await client.delete(KIND, key, uid=migration["metadata"]["uid"])
    await client.patch(KIND, key, {"metadata": {"finalizers": None}})  # a way out when virt-controller is gone
    with pytest.raises(NotFound):
        await client.get(KIND, key)


async def test_virt_controller_may_set_a_priority_and_delete_migrations(client: Client, controller: Client) -> None:
    body = a_migration("anything", priority="system-critical")
    migration = await controller.create(KIND, "default", body)
    await controller.delete(KIND, key_of(migration), uid=migration["metadata"]["uid"])

    with pytest.raises(NotFound):
        await client.get(KIND, key_of(migration))
