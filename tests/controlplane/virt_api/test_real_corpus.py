# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The corpus of invalid input on a real API server, for each kind with a VMI template: the errors that users see."""

from __future__ import annotations

import asyncio
import json
import subprocess
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from controlplane.api.objects.resources import VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Resource
from controlplane.engine.errors import ApiError, Invalid
from controlplane.kube.client import Client, Selection, collection_path
from controlplane.kube.transport import Request
from tests.controlplane.api import golden
from tests.controlplane.api.corpus import ROWS, Row
from tests.controlplane.api.corpus_of_sets import GOOD, SET_ROWS
from tests.controlplane.api.relocated import KINDS, SET, field, fits, machine, relocated
from tests.controlplane.virt_api import test_real_api
from tests.controlplane.virt_api.test_real_api import Installed, a_client

pytestmark = pytest.mark.component
installed = test_real_api.installed

AT_ONCE = 8
"""The number of concurrent requests."""
DRY = "?dryRun=All"
STRICT = f"{DRY}&fieldValidation=Strict"
WHOLE = json.dumps(machine(VIRTUAL_MACHINE))
BOUNDED = {
    "cores beyond 64 bits": "must be a whole number, got 1.18",
    "10000 features": "has 10000 items, at most 1000 are allowed",
    "affinity without end": "nesting deeper than 64",
}
"""Messages for values that the API server changes, or that are not parsed to their end."""
LABEL_WITH_A_NEWLINE = '"metadata": {"labels": {"x": "a\\nb"}, '
BINARY = "\x01\x02: [\n\t- %"


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as connected:
        yield connected


async def offer(client: Client, resource: Resource, body: Any, query: str = DRY, **how: Any) -> ApiError | None:
    """Create an object, given as body or bytes, as a dry run. Return the error."""
    data = body if isinstance(body, bytes) else json.dumps(body).encode()
    path = collection_path(resource, "default") + query
    try:
        await client.transport.send(Request("POST", path, f"create a {resource.kind}", data, **how))
    except ApiError as error:
        return error
    return None


def create(installed: Installed, body: Any) -> subprocess.CompletedProcess[str]:
    return installed.run_kubectl("create", "--dry-run=server", "-f", "-", stdin=json.dumps(body))


async def stored(client: Client) -> list[bytes]:
    return [raw for kind in KINDS for raw in (await client.list_page(Selection(kind, "default"))).items]


def answered(row: Row, resource: Resource, error: ApiError | None) -> bool:
    """Return whether the error is Invalid with a cause that has the field and the words of the row."""
    if not isinstance(error, Invalid):
        return False
    causes: Any = error.details.get("causes", [])
    if row.title in BOUNDED:
        return any(
            field(row, resource) in cause["field"] and BOUNDED[row.title] in cause["message"] for cause in causes
        )
    has_cause = any(cause["field"].endswith(field(row, resource)) and row.words in cause["message"] for cause in causes)
    return has_cause and error.reason == "Invalid"


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_each_malformed_object_is_refused_with_field_and_remedy(client: Client, resource: Resource) -> None:
    turns = asyncio.Semaphore(AT_ONCE)

    async def wrong(row: Row) -> str:
        async with turns:
            error = await offer(client, resource, relocated(row, resource))
        return "" if answered(row, resource, error) else f"{row.title}: {error!r}"

    answers = await asyncio.gather(*(wrong(row) for row in ROWS if fits(row, resource)))

    assert [answer for answer in answers if answer] == []
    assert await offer(client, resource, machine(resource)) is None, "nothing else is wrong with it"
    assert await stored(client) == []


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (lambda _whole: "[]", "cannot unmarshal array"),
        (lambda whole: whole[:-20], "unexpected"),
        (lambda whole: whole[:-1] + ', "spec": {}}', 'duplicate field "spec"'),
        (lambda whole: whole.replace('"metadata": {', '"metadata": {"lables": {}, ', 1), "metadata.lables"),
        (lambda whole: whole.replace('"metadata": {', LABEL_WITH_A_NEWLINE, 1), "metadata.labels"),
    ],
    ids=["a list", "truncated", "a key twice", "misspelt labels", "a label with a newline"],
)
async def test_malformed_json_is_refused_by_the_api_server(
    client: Client, resource: Resource, spoil: Callable[[str], str], words: str
) -> None:
    whole = json.dumps(golden.changed(machine(resource), "metadata", {"name": "whole"}))

    error = await offer(client, resource, spoil(whole).encode(), STRICT)

    assert isinstance(error, Invalid)
    assert words in str(error)
    assert error.reason in ("BadRequest", "Invalid")


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_deep_nesting_is_refused(client: Client, resource: Resource) -> None:
    """Ten thousand nested objects. virt-api answers the next request as before."""
    place = "spec/affinity" if resource == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec/affinity"
    whole = json.dumps(golden.changed(machine(resource), place, "DEEP"))
    error = await offer(client, resource, whole.replace('"DEEP"', '{"a": ' * 10_000 + "{}" + "}" * 10_000).encode())

    assert isinstance(error, Invalid)
    assert await offer(client, resource, machine(resource)) is None


async def test_yaml_with_a_duplicate_key_is_refused(client: Client) -> None:
    body = f"{WHOLE[:-1]},\n spec: {{}}}}".encode()

    error = await offer(client, VIRTUAL_MACHINE, body, STRICT, content_type="application/yaml")

    assert isinstance(error, Invalid)
    assert 'key "spec" already set' in str(error)


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
def test_a_too_large_object_is_refused_with_its_size(installed: Installed, resource: Resource) -> None:
    """1.6 MB of annotations."""
    notes = {f"example.com/{number}": "x" * 100_000 for number in range(16)}

    refused = create(installed, golden.changed(machine(resource), "metadata/annotations", notes))

    assert refused.returncode == 1
    assert "bytes, at most 524288 are allowed" in refused.stderr


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_unusual_valid_values_are_accepted(client: Client, resource: Resource) -> None:
    """A name longer than a label, and binary network data, which only the guest reads."""
    prefix = "spec/volumes" if resource == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec/volumes"
    odd = golden.changed(machine(resource), f"{prefix}/2/cloudInitNoCloud/networkData", BINARY)

    assert await offer(client, resource, golden.changed(odd, "metadata/name", "a" * 64)) is None


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
def test_an_unknown_kind_is_refused(installed: Installed, resource: Resource) -> None:
    """kubectl refuses it: the API server uses the path."""
    misspelt = resource.kind[:-1]

    refused = create(installed, {**machine(resource), "kind": misspelt})

    assert refused.returncode == 1
    assert f'no matches for kind "{misspelt}" in version "kubevirt.io/v1"' in refused.stderr


async def test_each_malformed_set_is_refused_with_field_and_remedy(client: Client) -> None:
    errors = {row.title: await offer(client, SET, golden.changed(GOOD, row.set, row.value)) for row in SET_ROWS}

    assert [row.title for row in SET_ROWS if not answered(row, SET, errors[row.title])] == [], errors
    assert await offer(client, SET, GOOD) is None


def test_a_set_whose_replicas_share_a_claim_is_accepted_with_a_warning(installed: Installed) -> None:
    writable = golden.changed(machine(SET), "spec/template/spec/volumes/3/persistentVolumeClaim/readOnly", ...)

    completed = create(installed, golden.changed(writable, "spec/replicas", 2))

    assert completed.returncode == 0, completed.stderr
    assert completed.stderr.count("Warning: spec.template.spec.volumes[3].persistentVolumeClaim: claim") == 1
