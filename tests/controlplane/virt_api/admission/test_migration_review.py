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
    async with serving(tmp_path, webhook_clients=reviewer[1]) as one:
        yield one


def body(migration: Any = None, namespace: str = "ns") -> bytes:
    given = golden.load("vmi-migration") if migration is None else migration
    request = {"uid": "1", "operation": "CREATE", "namespace": namespace, "object": given}
    return json.dumps({"request": request}).encode()


async def review(served: Served, pair: KeyPair | None, migration: Any = None) -> Json:
    code, said = await served.call("POST", MIGRATION, pair=pair, body=body(migration))
    assert (code, said["response"]["uid"]) == (200, "1")
    answer: Json = said["response"]
    return answer


async def test_one_of_an_instance_that_can_move_is_let_in(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    put_vmi(served.api)

    assert (await review(served, reviewer[0]))["allowed"] is True


async def test_one_that_cannot_be_is_refused_by_upstreams_code_and_words(
    served: Served, reviewer: tuple[KeyPair, Any]
) -> None:
    pair, _unused = reviewer
    told = [(await review(served, pair))["status"]]
    put_vmi(served.api, conditions=[UNFIT])
    told.append((await review(served, pair))["status"])
    put_vmi(served.api)
    put_migration(served.api, "first")
    told.append((await review(served, pair))["status"])

    assert {(one["code"], one["reason"], one["status"]) for one in told} == {(400, "BadRequest", "Failure")}
    for one, words in zip(told, ("does not exist", "Cannot migrate VMI, Reason", "in-flight migration"), strict=True):
        assert words in one["message"]


async def test_who_has_not_proven_to_ask_learns_nothing_of_anybodys_machine(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        said = [(await review(served, None))["status"]["message"]]
        put_vmi(served.api, conditions=[UNFIT])
        said.append((await review(served, None))["status"]["message"])
        served.api.faults.append(("GET", VMI, status(500, "InternalError", "etcd is away")))
        unknown = (await review(served, None))["status"]

    assert said == [DENIED, DENIED]
    assert (unknown["code"], "web" in unknown["message"]) == (500, False)


@pytest.mark.parametrize(
    "migration",
    [{}, {"spec": None}, {"spec": {}}, {"spec": {"vmiName": 7}}, {"spec": {"vmiName": ".."}}, [], 7,
     {"spec": {"vmiName": "a" * 254}}],
    ids=repr,
)  # fmt: skip
async def test_what_names_no_instance_is_left_to_the_hook_that_says_so(
    served: Served, reviewer: tuple[KeyPair, Any], migration: Any
) -> None:
    assert (await review(served, reviewer[0], migration))["allowed"] is True
    assert served.api.seen == []


async def test_who_cannot_be_asked_about_is_not_let_in(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
    put_vmi(served.api)
    served.api.faults.append(("GET", MIGRATIONS, status(500, "InternalError", "etcd is away")))
    said = (await review(served, reviewer[0]))["status"]

    assert (said["code"], "etcd is away" in said["message"]) == (500, True)


async def test_what_is_no_review_is_not_taken(served: Served, reviewer: tuple[KeyPair, Any]) -> None:
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
