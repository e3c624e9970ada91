# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of new migrations over real TLS, on a fake API server."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import NotFound
from controlplane.http_server.quotas import BusyError
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.admission.migration_review import (
    DENIED,
    MAX_CONCURRENT_OF_PEER,
    MAX_MIGRATION_BYTES,
    MigrationReviews,
)
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.response import Response
from controlplane.virt_api.http.routes import MIGRATION
from tests.controlplane.api import golden
from tests.controlplane.kube.fake_api import status
from tests.controlplane.virt_api.moving import MIGRATIONS, UNFIT, VMI, put_migration, put_vmi
from tests.controlplane.virt_api.served import CLIENTS, Json, Served, a_client_pair, an_authority, serving

PROXY = "front-proxy-client"


@pytest.fixture
def reviewer() -> tuple[KeyPair, WebhookClients]:
    authority = an_authority("reviewers")
    return a_client_pair(authority, usage=CLIENTS), WebhookClients(authority.certificate, frozenset({PROXY}))


@pytest.fixture
async def served(tmp_path: Path, reviewer: tuple[KeyPair, WebhookClients]) -> AsyncIterator[Served]:
    async with serving(tmp_path, webhook_clients=reviewer[1]) as served:
        yield served


def body(migration: Any = None, namespace: str = "ns") -> bytes:
    obj = golden.load("vmi-migration") if migration is None else migration
    request = {"uid": "1", "operation": "CREATE", "namespace": namespace, "object": obj}
    return json.dumps({"request": request}).encode()


async def review(served: Served, pair: KeyPair | None, migration: Any = None) -> Json:
    code, response = await served.call("POST", MIGRATION, pair=pair, body=body(migration))
    assert (code, response["response"]["uid"]) == (200, "1")
    response_body: Json = response["response"]
    return response_body


async def test_a_migratable_vmi_is_allowed(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    put_vmi(served.api)

    assert (await review(served, reviewer[0]))["allowed"] is True


async def test_a_denial_has_upstreams_code_and_words(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    pair, _unused = reviewer
    denials = [(await review(served, pair))["status"]]
    put_vmi(served.api, conditions=[UNFIT])
    denials.append((await review(served, pair))["status"])
    put_vmi(served.api)
    put_migration(served.api, "first")
    denials.append((await review(served, pair))["status"])

    assert {(denial["code"], denial["reason"], denial["status"]) for denial in denials} == {
        (400, "BadRequest", "Failure")
    }
    for denial, words in zip(
        denials, ("does not exist", "Cannot migrate VMI, Reason", "in-flight migration"), strict=True
    ):
        assert words in denial["message"]


async def test_only_an_authenticated_api_server_learns_the_reason(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        messages = [(await review(served, None))["status"]["message"]]
        put_vmi(served.api, conditions=[UNFIT])
        messages.append((await review(served, None))["status"]["message"])
        served.api.faults.append(("GET", VMI, status(500, "InternalError", "etcd is away")))
        unknown = (await review(served, None))["status"]

    assert messages == [DENIED, DENIED]
    assert (unknown["code"], "web" in unknown["message"]) == (500, False)


@pytest.mark.parametrize(
    "migration",
    [{}, {"spec": None}, {"spec": {}}, {"spec": {"vmiName": 7}}, {"spec": {"vmiName": ".."}}, [], 7,
     {"spec": {"vmiName": "a" * 254}}],
    ids=repr,
)  # fmt: skip
async def test_an_invalid_name_is_left_to_the_other_webhook(
    served: Served, reviewer: tuple[KeyPair, Any], migration: Any
) -> None:
    assert (await review(served, reviewer[0], migration))["allowed"] is True
    assert served.api.seen == []


async def test_an_api_error_denies_the_migration(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    put_vmi(served.api)
    served.api.faults.append(("GET", MIGRATIONS, status(500, "InternalError", "etcd is away")))
    response = (await review(served, reviewer[0]))["status"]

    assert (response["code"], "etcd is away" in response["message"]) == (500, True)


async def test_an_invalid_review_is_refused(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    pair, _unused = reviewer
    assert (await served.call("POST", MIGRATION, pair=pair, body=b"[]"))[0] == 400
    assert (await served.call("POST", MIGRATION, pair=pair, body=b"x" * (MAX_MIGRATION_BYTES + 1)))[0] == 413
    assert (await served.call("GET", MIGRATION, pair=pair))[0] == 405
    assert (await served.call("POST", MIGRATION, body=body()))[0] == 401


class StoppedApi:
    """An API server that does not answer until it is resumed."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()

    async def get(self, _unused: object, key: Key) -> Json:
        await self.resumed.wait()
        raise NotFound(f"{key} is gone")


def ask(reviews: MigrationReviews, peer: str = "api-server") -> asyncio.Task[Response]:
    return asyncio.create_task(reviews.answer(peer, body(), is_authenticated=True))


async def test_one_peer_cannot_take_all_reviews_at_once() -> None:
    api = StoppedApi()
    reviews = MigrationReviews(api)  # type: ignore[arg-type]
    waiting = [ask(reviews) for _unused in range(MAX_CONCURRENT_OF_PEER)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="too many reviews of migrations"):
        await ask(reviews)
    other = ask(reviews, peer="other")
    api.resumed.set()

    assert {response.code for response in await asyncio.gather(*waiting, other)} == {200}
    assert (await ask(reviews)).code == 200, "the quota is given back"
