# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Invalid objects, changes and requests on a real API server: one path through each way of refusing them.

The tables of tests/controlplane/api/admission name every rule.
"""

from __future__ import annotations

import itertools
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controlplane.api.objects.resources import KUBEVIRT, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Resource
from controlplane.engine.errors import ApiError, Conflict, Invalid, NotFound
from controlplane.kube.client import Client, Selection, collection_path
from controlplane.kube.transport import Request
from tests.controlplane.api import golden
from tests.controlplane.api.golden import KINDS, SET, machine
from tests.controlplane.virt_api import test_real_api
from tests.controlplane.virt_api.test_real_api import GROUP, Installed, a_client, key_of

pytestmark = pytest.mark.component
installed = test_real_api.installed

NAMESPACED = f"{GROUP}/namespaces/default"
DRY = "?dryRun=All"
STRICT = f"{DRY}&fieldValidation=Strict"
ANOTHER_UID = "5d307ca9-0000-0000-0000-000000000000"
LABEL_WITH_A_NEWLINE = '"metadata": {"labels": {"x": "a\\nb"}, '
BINARY = "\x01\x02: [\n\t- %"

_numbers = itertools.count(1)
Make = Callable[[Resource], Any]
each_kind = pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


@pytest.fixture
async def make(client: Client) -> Make:
    """Make a valid object of a kind for one test."""
    name = f"own-{next(_numbers)}"

    async def make_object(resource: Resource) -> dict[str, Any]:
        return await client.create(resource, "default", golden.changed(machine(resource), "metadata/name", name))

    return make_object


def with_spec(resource: Resource, path: str, value: Any) -> dict[str, Any]:
    """Return a good object of a kind with one field of its VMI spec changed."""
    prefix = "spec" if resource == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec"
    return golden.changed(machine(resource), f"{prefix}/{path}", value)


async def offer(client: Client, resource: Resource, body: Any, query: str = DRY, **how: Any) -> ApiError | None:
    """Create an object, given as body or bytes, as a dry run. Return the error."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = collection_path(resource, "default") + query
    try:
        await client.transport.send(Request("POST", path, f"create a {resource.kind}", data, **how))
    except ApiError as error:
        return error
    return None


@each_kind
@pytest.mark.parametrize(
    ("path", "value", "field", "words"),
    [
        pytest.param("domain/cpu/cores", 0, "domain.cpu.cores", "from 1 to 1024", id="one field"),
        pytest.param("volumes/0/name", "other", "disks[0].name", "no volume is called", id="two fields"),
        pytest.param("domian", {}, "spec.domian", "did you mean domain", id="misspelt"),
        pytest.param("domain/cpu/cores", 2**70, "cpu.cores", "must be a whole number, got 1.18", id="beyond 64 bits"),
        pytest.param("domain/cpu/features", [{}] * 10_000, "cpu.features", "has 10000 items", id="too many items"),
        pytest.param("affinity", {"nodeAffinity": {"a": [[]] * 1}}, "nodeAffinity.a", "no such field", id="affinity"),
    ],
)
async def test_a_malformed_object_is_refused_with_field_and_remedy(
    client: Client, resource: Resource, path: str, value: Any, field: str, words: str
) -> None:
    error = await offer(client, resource, with_spec(resource, path, value))

    assert isinstance(error, Invalid)
    causes: Any = error.details.get("causes", [])
    assert any(field in cause["field"] and words in cause["message"] for cause in causes), causes
    assert await offer(client, resource, machine(resource)) is None, "nothing else is wrong with it"
    assert (await client.list_page(Selection(resource, "default"))).items == []


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda whole: whole[:-1] + ', "spec": {}}', 'duplicate field "spec"'),
        (lambda whole: whole.replace('"metadata": {', '"metadata": {"lables": {}, ', 1), "metadata.lables"),
        (lambda whole: whole.replace('"metadata": {', LABEL_WITH_A_NEWLINE, 1), "metadata.labels"),
    ],
    ids=["a key twice", "misspelt labels", "a label with a newline"],
)
async def test_malformed_json_is_refused_by_the_api_server(
    client: Client, spoil: Callable[[str], str], words: str
) -> None:
    whole = json.dumps(golden.changed(machine(VIRTUAL_MACHINE), "metadata", {"name": "whole"}))

    error = await offer(client, VIRTUAL_MACHINE, spoil(whole).encode(), STRICT)

    assert isinstance(error, Invalid)
    assert words in str(error)
    assert error.reason in ("BadRequest", "Invalid")


async def test_deep_nesting_is_refused(client: Client) -> None:
    """Ten thousand nested objects. virt-api answers the next request as before."""
    whole = json.dumps(with_spec(VIRTUAL_MACHINE, "affinity", "DEEP"))
    nested = '{"a": ' * 10_000 + "{}" + "}" * 10_000

    assert isinstance(await offer(client, VIRTUAL_MACHINE, whole.replace('"DEEP"', nested).encode()), Invalid)
    assert await offer(client, VIRTUAL_MACHINE, machine(VIRTUAL_MACHINE)) is None


async def test_a_too_large_object_is_refused_with_its_size(client: Client) -> None:
    """800 kB of annotations."""
    notes = {f"example.com/{number}": "x" * 100_000 for number in range(8)}

    error = await offer(
        client, VIRTUAL_MACHINE, golden.changed(machine(VIRTUAL_MACHINE), "metadata/annotations", notes)
    )

    assert "bytes, at most 524288 are allowed" in str(error)


@each_kind
async def test_unusual_valid_values_are_accepted(client: Client, resource: Resource) -> None:
    """A name longer than a label, and binary network data, which only the guest reads."""
    odd = with_spec(resource, "volumes/2/cloudInitNoCloud/networkData", BINARY)

    assert await offer(client, resource, golden.changed(odd, "metadata/name", "a" * 64)) is None


def test_a_set_whose_replicas_share_a_claim_is_accepted_with_a_warning(installed: Installed) -> None:
    writable = with_spec(SET, "volumes/3/persistentVolumeClaim/readOnly", ...)
    body = json.dumps(golden.changed(writable, "spec/replicas", 2))

    completed = installed.run_kubectl("create", "--dry-run=server", "-f", "-", stdin=body)

    assert completed.returncode == 0, completed.stderr
    assert completed.stderr.count("Warning: spec.template.spec.volumes[3].persistentVolumeClaim: claim") == 1


async def test_only_a_write_of_the_finalizers_of_a_deleted_object_removes_ours(client: Client, make: Make) -> None:
    created = await make(VIRTUAL_MACHINE)
    await client.patch(VIRTUAL_MACHINE, key_of(created), {"metadata": {"finalizers": None}})
    kept = await client.get(VIRTUAL_MACHINE, key_of(created))
    assert kept["metadata"]["finalizers"] == created["metadata"]["finalizers"], "a live object gets them back"
    await client.delete(VIRTUAL_MACHINE, key_of(created), uid=created["metadata"]["uid"])

    both = {"metadata": {"finalizers": None, "labels": {"a": "b"}}}
    kept = await client.patch(VIRTUAL_MACHINE, key_of(created), both)
    assert kept["metadata"]["finalizers"] == created["metadata"]["finalizers"], "which a replace would do, too"
    await client.patch(VIRTUAL_MACHINE, key_of(created), {"metadata": {"finalizers": None}})
    with pytest.raises(NotFound):
        await client.get(VIRTUAL_MACHINE, key_of(created))


@pytest.mark.parametrize("dry_run", [False, True])
async def test_a_stale_write_is_a_conflict(client: Client, make: Make, dry_run: bool) -> None:
    """Whatever it breaks: a client that reads 409 reads the object again."""
    created = await make(VIRTUAL_MACHINE_INSTANCE)
    await client.patch(VIRTUAL_MACHINE_INSTANCE, key_of(created), {"metadata": {"labels": {"a": "b"}}})
    patch = {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}}

    with pytest.raises(Conflict):
        await client.patch(
            VIRTUAL_MACHINE_INSTANCE,
            key_of(created),
            patch,
            resource_version=created["metadata"]["resourceVersion"],
            dry_run=dry_run,
        )


async def test_another_spelling_of_the_stored_version_evades_no_rule(client: Client, make: Make) -> None:
    created = await make(VIRTUAL_MACHINE_INSTANCE)
    patch = {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}}

    with pytest.raises(ApiError, match="reserved"):
        await client.patch(
            VIRTUAL_MACHINE_INSTANCE,
            key_of(created),
            patch,
            resource_version=f"0{created['metadata']['resourceVersion']}",
        )


async def test_users_may_not_set_the_owner_of_a_vmi(client: Client, make: Make) -> None:
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "name": "a", "uid": ANOTHER_UID}
    created = await make(VIRTUAL_MACHINE_INSTANCE)

    with pytest.raises(ApiError, match="set by the control plane only"):
        await client.patch(VIRTUAL_MACHINE_INSTANCE, key_of(created), {"metadata": {"ownerReferences": [owner]}})
    labels = {"metadata": {"labels": {"kubevirt.io/nodeName": "n"}}}
    with pytest.raises(ApiError, match="reserved"):
        await client.patch(VIRTUAL_MACHINE_INSTANCE, key_of(created), labels)


async def test_unimplemented_configuration_is_refused(client: Client) -> None:
    configuration = {"developerConfiguration": {"diskVerification": {"memoryLimit": "1M"}}}
    body = {"apiVersion": "kubevirt.io/v1", "kind": "KubeVirt", "metadata": {"name": "kubevirt"}}

    with pytest.raises(Invalid, match="diskVerification: known to KubeVirt, not built in this version"):
        await client.create(KUBEVIRT, "virt", body | {"spec": {"configuration": configuration}})


async def test_an_invalid_subresource_request_changes_nothing(client: Client, make: Make) -> None:
    created = await make(VIRTUAL_MACHINE)
    path = f"{NAMESPACED}/virtualmachines/{created['metadata']['name']}/start"

    with pytest.raises(Invalid, match='paused: must be true or false, not "yes"'):
        await client.transport.send(Request("PUT", path, "start", b'{"paused": "yes"}'))

    assert await client.get(VIRTUAL_MACHINE, key_of(created)) == created


def test_user_headers_without_the_front_proxys_certificate_are_refused(installed: Installed) -> None:
    """A request directly to virt-api, not through the API server."""
    host, port = str(installed.lab.describe().addresses.host), (installed.controller.parent / "port").read_text()
    url = f"https://{host}:{port}{NAMESPACED}/virtualmachines/a/start"
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    claims = {"X-Remote-User": "system:admin", "X-Remote-Group": "system:masters"}

    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, b"{}", claims, method="PUT"), context=context, timeout=300)

    assert refused.value.code == 401
    refused.value.close()
