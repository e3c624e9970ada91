# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bad-input corpus on a real API server, for each kind that holds a machine: what users are told, row by row."""

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
"""Of one answer: no measure of speed, which depends on the machine."""
DRY = "?dryRun=All"
STRICT = f"{DRY}&fieldValidation=Strict"
WHOLE = json.dumps(machine(VIRTUAL_MACHINE))
BOUNDED = {
    "cores beyond 64 bits": "must be a whole number, got 1.18",
    "10000 features": "has 10000 items, at most 1000 are allowed",
    "affinity without end": "nesting deeper than 64",
}
"""What the API server has made another number of, or nobody reads to its end: what is said of those."""
LABEL_WITH_A_NEWLINE = '"metadata": {"labels": {"x": "a\\nb"}, '
BINARY = "\x01\x02: [\n\t- %"


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with a_client(installed.kubeconfig) as made:
        yield made


async def offer(client: Client, resource: Resource, body: Any, query: str = DRY, **how: Any) -> ApiError | None:
    """Offer an object, or the bytes of one, for the answer alone."""
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
    return [item for kind in KINDS for item in (await client.list_page(Selection(kind, "default"))).items]


def answered(row: Row, resource: Resource, error: ApiError | None) -> bool:
    """Tell whether it was a 422 with a cause that names the field in our words; or 400, of what is not read."""
    if not isinstance(error, Invalid):
        return False
    causes: Any = error.details.get("causes", [])
    if row.title in BOUNDED:
        return any(
            field(row, resource) in cause["field"] and BOUNDED[row.title] in cause["message"] for cause in causes
        )
    told = any(cause["field"].endswith(field(row, resource)) and row.words in cause["message"] for cause in causes)
    return told and error.reason == "Invalid"


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_each_malformed_machine_is_refused_with_field_and_remedy_and_nothing_is_stored(
    client: Client, resource: Resource
) -> None:
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
async def test_what_is_no_machine_is_refused_by_the_api_server(
    client: Client, resource: Resource, spoil: Callable[[str], str], words: str
) -> None:
    whole = json.dumps(golden.changed(machine(resource), "metadata", {"name": "whole"}))

    error = await offer(client, resource, spoil(whole).encode(), STRICT)

    assert isinstance(error, Invalid)
    assert words in str(error)
    assert error.reason in ("BadRequest", "Invalid")


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_what_never_ends_is_refused_before_anybody_falls(client: Client, resource: Resource) -> None:
    """Ten thousand objects, one in the other; and virt-api answers as before."""
    place = "spec/affinity" if resource == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec/affinity"
    whole = json.dumps(golden.changed(machine(resource), place, "DEEP"))
    error = await offer(client, resource, whole.replace('"DEEP"', '{"a": ' * 10_000 + "{}" + "}" * 10_000).encode())

    assert isinstance(error, Invalid)
    assert await offer(client, resource, machine(resource)) is None


async def test_yaml_with_a_key_twice_is_refused(client: Client) -> None:
    body = f"{WHOLE[:-1]},\n spec: {{}}}}".encode()

    error = await offer(client, VIRTUAL_MACHINE, body, STRICT, content_type="application/yaml")

    assert isinstance(error, Invalid)
    assert 'key "spec" already set' in str(error)


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
def test_an_object_that_is_too_large_is_refused_with_its_size(installed: Installed, resource: Resource) -> None:
    """1.6 MB of annotations; nobody reads on."""
    notes = {f"example.com/{number}": "x" * 100_000 for number in range(16)}

    refused = create(installed, golden.changed(machine(resource), "metadata/annotations", notes))

    assert refused.returncode == 1
    assert "bytes, at most 524288 are allowed" in refused.stderr


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
async def test_what_is_odd_and_good_is_accepted(client: Client, resource: Resource) -> None:
    """A name that is longer than a label, and network data that is nobody's business but the guest's."""
    prefix = "spec/volumes" if resource == VIRTUAL_MACHINE_INSTANCE else "spec/template/spec/volumes"
    odd = golden.changed(machine(resource), f"{prefix}/2/cloudInitNoCloud/networkData", BINARY)

    assert await offer(client, resource, golden.changed(odd, "metadata/name", "a" * 64)) is None


@pytest.mark.parametrize("resource", KINDS, ids=[kind.kind for kind in KINDS])
def test_a_kind_that_nobody_has_is_refused(installed: Installed, resource: Resource) -> None:
    """By kubectl: the API server goes by the path."""
    misspelt = resource.kind[:-1]

    refused = create(installed, {**machine(resource), "kind": misspelt})

    assert refused.returncode == 1
    assert f'no matches for kind "{misspelt}" in version "kubevirt.io/v1"' in refused.stderr


async def test_each_malformed_set_is_refused_with_field_and_remedy(client: Client) -> None:
    errors = {row.title: await offer(client, SET, golden.changed(GOOD, row.set, row.value)) for row in SET_ROWS}

    assert [row.title for row in SET_ROWS if not answered(row, SET, errors[row.title])] == [], errors
    assert await offer(client, SET, GOOD) is None


def test_a_set_whose_replicas_are_to_share_a_claim_is_taken_with_a_warning(installed: Installed) -> None:
    writable = golden.changed(machine(SET), "spec/template/spec/volumes/3/persistentVolumeClaim/readOnly", ...)

    taken = create(installed, golden.changed(writable, "spec/replicas", 2))

    assert taken.returncode == 0, taken.stderr
    assert taken.stderr.count("Warning: spec.template.spec.volumes[3].persistentVolumeClaim: claim") == 1
