# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Forbidden changes of existing objects, and invalid subresource requests, on a real API server."""

from __future__ import annotations

import itertools
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Any

import pytest

from controlplane.api.objects.resources import KUBEVIRT, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Resource
from controlplane.engine.errors import ApiError, Conflict, Forbidden, Invalid, NotFound
from controlplane.kube.client import Client
from controlplane.kube.transport import Request
from tests.controlplane.api import golden
from tests.controlplane.api.corpus_of_sets import GOOD
from tests.controlplane.api.relocated import KINDS, SET, machine
from tests.controlplane.virt_api import test_real_api
from tests.controlplane.virt_api.test_real_api import GROUP, Installed, a_client, key_of

pytestmark = pytest.mark.component
installed = test_real_api.installed

NAMESPACED = f"{GROUP}/namespaces/default"
HELD = (VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE)
"""Kinds with our finalizer: their objects stay until the domain is gone."""
SLOW = {"tokenBucketRateLimiter": {"qps": 1, "burst": 1}}
ANOTHER_UID = "5d307ca9-0000-0000-0000-000000000000"

_numbers = itertools.count(1)
Make = Callable[[Resource], Any]


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def make(client: Client) -> Make:
    """Make a valid object of a kind for one test."""
    name = f"own-{next(_numbers)}"

    async def make_one(resource: Resource) -> dict[str, Any]:
        return await client.create(resource, "default", golden.changed(machine(resource), "metadata/name", name))

    return make_one


each_kind = partial(pytest.mark.parametrize, "resource")


@each_kind(KINDS, ids=[kind.kind for kind in KINDS])
async def test_an_object_of_another_uid_is_not_deleted(client: Client, make: Make, resource: Resource) -> None:
    created = await make(resource)

    with pytest.raises(Conflict):
        await client.delete(resource, key_of(created), uid=ANOTHER_UID)

    assert "deletionTimestamp" not in (await client.get(resource, key_of(created)))["metadata"]


@each_kind(KINDS, ids=[kind.kind for kind in KINDS])
async def test_users_may_not_write_a_status(client: Client, make: Make, resource: Resource) -> None:
    """Not even users with all rights."""
    created = await make(resource)

    with pytest.raises(Forbidden, match="is written by the control plane only"):
        await client.patch(
            resource, key_of(created), {"status": {"phase": "Failed", "replicas": 7}}, subresource="status"
        )

    assert (await client.get(resource, key_of(created))).get("status") == created.get("status")


@each_kind(HELD, ids=[kind.kind for kind in HELD])
async def test_users_may_not_remove_our_finalizer(client: Client, make: Make, resource: Resource) -> None:
    created = await make(resource)
    await client.patch(resource, key_of(created), {"metadata": {"finalizers": None}})
    kept = await client.get(resource, key_of(created))
    assert kept["metadata"]["finalizers"] == created["metadata"]["finalizers"], "a live object gets them back"
    await client.delete(resource, key_of(created), uid=created["metadata"]["uid"])

    with pytest.raises(Forbidden, match="is removed by the control plane once the machine is gone"):
        await client.patch(resource, key_of(created), {"metadata": {"finalizers": None}})

    assert (await client.get(resource, key_of(created)))["metadata"]["deletionTimestamp"]


async def test_users_may_not_set_the_owner_of_a_vmi(client: Client, make: Make) -> None:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a", "uid": ANOTHER_UID}
    created = await make(VIRTUAL_MACHINE_INSTANCE)
    owned = golden.changed(machine(VIRTUAL_MACHINE_INSTANCE), "metadata/ownerReferences", [owner])

    for write in (
        client.create(VIRTUAL_MACHINE_INSTANCE, "default", owned),
        client.patch(VIRTUAL_MACHINE_INSTANCE, key_of(created), {"metadata": {"ownerReferences": [owner]}}),
        client.patch(
            VIRTUAL_MACHINE_INSTANCE, key_of(created), {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}}
        ),
    ):
        with pytest.raises(ApiError, match=r"set by the control plane only|reserved"):
            await write


async def test_the_selector_of_a_set_must_match_its_template(client: Client) -> None:
    created = await client.create(SET, "default", golden.changed(GOOD, "metadata/name", "selects"))

    with pytest.raises(Invalid, match="does not select"):
        await client.patch(SET, key_of(created), {"spec": {"selector": {"matchLabels": {"app": "other"}}}})


@pytest.mark.parametrize(
    ("configuration", "field"),
    [
        ({"controllerConfiguration": {"restClient": {"rateLimiter": SLOW}}}, "configuration.controllerConfiguration"),
        ({"developerConfiguration": {"diskVerification": {"memoryLimit": "1M"}}}, "diskVerification"),
    ],
    ids=["clients that ask less often", "disks that are verified with less memory"],
)
async def test_unimplemented_configuration_is_refused(
    client: Client, configuration: dict[str, Any], field: str
) -> None:
    about = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}}

    with pytest.raises(Invalid, match=f"{field}: known to KubeVirt, not built in this version"):
        await client.create(KUBEVIRT, "virt", about | {"spec": {"configuration": configuration}})


@pytest.mark.parametrize(
    ("method", "path", "body", "error", "words"),
    [
        ("PUT", "virtualmachines/{}/start", '{"paused": "yes"}', Invalid, 'paused: must be true or false, not "yes"'),
        ("PUT", "virtualmachines/{}/stop", '{"gracePeriod": -1}', Invalid, "gracePeriod: must be a whole number"),
        ("PUT", "virtualmachines/{}/restart", '{"gracePeriodSeconds": 30}', Invalid, "must be 0"),
        ("PUT", "virtualmachines/{}/start", "[]", Invalid, "must be a JSON object"),
        ("GET", "virtualmachineinstances/{}/vnc/screenshot/../../y", "", NotFound, ""),
        ("GET", "virtualmachineinstances/{}/vnc/screenshot/%2e%2e/y", "", NotFound, ""),
        ("GET", "virtualmachineinstances/{}/portforward/99999/tcp", "", ApiError, ""),
    ],
)
async def test_an_invalid_subresource_request_changes_nothing(
    client: Client, make: Make, method: str, path: str, body: str, error: type[ApiError], words: str
) -> None:
    created = await make(VIRTUAL_MACHINE)
    full = f"{NAMESPACED}/{path.format(created['metadata']['name'])}"

    with pytest.raises(error) as refused:
        await client.transport.send(Request(method, full, "ask", body.encode() or None))

    assert words in str(refused.value)
    assert await client.get(VIRTUAL_MACHINE, key_of(created)) == created


def test_user_headers_without_the_front_proxys_certificate_are_refused(installed: Installed) -> None:
    """A request directly to virt-api, not through the API server."""
    host, port = str(installed.lab.describe().addresses.host), (installed.controller.parent / "port").read_text()
    url = f"https://{host}:{port}{NAMESPACED}/virtualmachines/a/start"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    claims = {"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"}

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(
            urllib.request.Request(url, json.dumps({}).encode(), claims, method="PUT"), context=context, timeout=20
        )

    assert refused.value.code == 401
    refused.value.close()
