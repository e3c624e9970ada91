# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of evictions over real TLS, on a fake API server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from controlplane.engine.errors import NotFound
from controlplane.http_server.quotas import BusyError
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.admission.eviction_decision import DENIED
from controlplane.virt_api.admission.eviction_review import (
    MAX_CONCURRENT_OF_PEER,
    MAX_EVICTION_BYTES,
    EvictionReviews,
)
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.response import Response
from controlplane.virt_api.http.routes import EVICTION
from tests.controlplane.kube.fake_api import status
from tests.controlplane.virt_api.served import CLIENTS, USER, Json, Served, a_client_pair, an_authority, serving

PROXY = "front-proxy-client"
POD = "/api/v1/namespaces/ns/pods/virt-launcher-web-u-1"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as one:
        yield one


def have(served: Served, strategy: str) -> None:
    spec = {"domain": {"devices": {}}, "evictionStrategy": strategy}
    served.api.put(VMI, {"spec": spec, "status": {"phase": "Running", "nodeName": "node-1"}})
    uid = served.api.objects[VMI]["metadata"]["uid"]
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": uid}
    meta = {"name": "virt-launcher-web-u-1", "namespace": "ns", "ownerReferences": [owner | {"controller": True}]}
    served.api.put(POD, {"metadata": meta, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}})


async def evict(served: Served, pair: KeyPair | None = None, **asked: Any) -> Json:
    request = {"uid": "1", "name": "virt-launcher-web-u-1", "namespace": "ns", "operation": "CREATE", **asked}
    code, review = await served.call("POST", EVICTION, pair=pair, body=json.dumps({"request": request}).encode())
    assert (code, review["response"]["uid"]) == (200, "1")
    answer: Json = review["response"]
    return answer


def mark(served: Served) -> str:
    word: str = served.api.objects[VMI]["status"].get("evacuationNodeName", "")
    return word


async def test_one_that_may_be_stopped_may_be_evicted(served: Served) -> None:
    have(served, "None")

    assert (await evict(served))["allowed"] is True
    assert not mark(served)


async def test_one_that_is_to_stay_is_refused_with_the_code_that_drains_come_back_upon(served: Served) -> None:
    have(served, "LiveMigrate")

    answer = await evict(served)

    assert (answer["allowed"], answer["status"]["code"], answer["status"]["reason"]) == (False, 429, "TooManyRequests")
    assert answer["status"]["message"] == DENIED
    assert not mark(served)


async def test_one_that_somebody_else_moves_is_marked_once(served: Served) -> None:
    have(served, "External")

    first, second = await evict(served), await evict(served)

    assert mark(served) == "node-1"
    assert first["status"]["message"] == "Eviction triggered evacuation of VMI of this Pod"
    assert second["status"]["message"] == "Evacuation in progress: Eviction triggered evacuation of VMI of this Pod"
    assert {first["status"]["code"], second["status"]["code"]} == {429}
    written = [path for method, path, *_unused in served.api.seen if method == "PATCH"]
    assert written == [f"{VMI}/status?fieldManager=test"]


SAID = {
    "LiveMigrate": ["VMI ns/web is configured with an eviction strategy but is not live-migratable"],
    "Teleport": ["VMI ns/web has the eviction strategy 'Teleport'"],
    "External": ['triggered evacuation of VMI "ns/web"', 'in progress: Eviction triggered evacuation of VMI "ns/web"'],
}


@pytest.mark.parametrize("strategy", SAID)
async def test_whose_machine_it_is_and_how_it_is_made_is_told_to_who_has_proven_to_ask(
    tmp_path: Path, strategy: str
) -> None:
    """With nobody configured whoever reaches the port asks about any Pod, and learns what its name says and no more."""
    reviewers = an_authority("reviewers")
    pair, clients = a_client_pair(reviewers, usage=CLIENTS), WebhookClients(reviewers.certificate, frozenset({PROXY}))
    for proven in (pair, None):
        async with serving(tmp_path, webhook_clients=clients if proven else None) as served:
            have(served, strategy)
            for words in SAID[strategy]:
                told = (await evict(served, proven))["status"]["message"]
                assert (words in told) == bool(proven)
                assert proven or not {"ns/web", strategy} & set(re.findall(r"[\w/]+", told))


async def test_what_nobody_could_be_asked_about_is_not_named_to_whoever_asks(served: Served) -> None:
    have(served, "None")
    served.api.faults.append(("GET", VMI, status(500, "InternalError", "etcd is away")))

    assert "web" not in (await evict(served))["status"]["message"]


def meanwhile(served: Served, happens: Callable[[], object]) -> None:
    """Let something happen between virt-api's look and its first write."""
    patch = served.api._patch

    def patch_later(path: str, body: Json) -> Any:
        served.api._patch = patch  # type: ignore[method-assign]
        happens()
        return patch(path, body)

    served.api._patch = patch_later  # type: ignore[method-assign]


DESCHEDULER = {"object": {"metadata": {"annotations": {"requested-by": "sigs.k8s.io/descheduler"}}}}


def source(served: Served) -> str | None:
    word: str | None = (served.api.objects[VMI]["metadata"].get("annotations") or {}).get("kubevirt.io/eviction-source")
    return word


async def test_that_the_descheduler_has_asked_is_noted_with_the_mark(served: Served) -> None:
    """A migration for its sake is less urgent than one for a person's."""
    have(served, "External")

    await evict(served, **DESCHEDULER)

    assert (mark(served), source(served)) == ("node-1", "descheduler")


@pytest.mark.parametrize(
    "metadata", [{}, {"annotations": None}, {"annotations": {"requested-by": "somebody"}}], ids=str
)
async def test_what_somebody_else_asks_for_is_not_the_descheduler_s(served: Served, metadata: Json) -> None:
    have(served, "External")
    await evict(served, **DESCHEDULER)
    assert (await cancel(served))[0] == 200

    await evict(served, object={"metadata": metadata})

    assert (mark(served), source(served)) == ("node-1", None)


@pytest.mark.parametrize(
    "asked", [{"dryRun": True}, {"object": {"deleteOptions": {"dryRun": ["All"]}}}], ids=["the request", "the delete"]
)
async def test_a_dry_run_marks_nothing(served: Served, asked: Json) -> None:
    have(served, "External")
    asked = {**asked, "object": {**DESCHEDULER["object"], **asked.get("object", {})}}

    assert (await evict(served, **asked))["status"]["code"] == 429
    assert not mark(served)
    assert not source(served)


@pytest.mark.parametrize("asked", [{}, DESCHEDULER], ids=["the mark", "its source"])
async def test_the_next_run_of_a_machine_is_not_marked_for_the_one_before_it(served: Served, asked: Json) -> None:
    def run_anew() -> None:
        before = served.api.objects[VMI]
        served.api.drop(VMI)
        served.api.put(VMI, {"spec": before["spec"], "status": before["status"]})

    have(served, "External")
    meanwhile(served, run_anew)

    assert (await evict(served, **asked))["status"]["code"] == 429
    assert (mark(served), source(served)) == ("", None)
    assert (await evict(served))["allowed"] is True, "asked again it may go"


async def test_what_is_gone_may_go(served: Served) -> None:
    assert (await evict(served))["allowed"] is True
    have(served, "LiveMigrate")
    served.api.drop(VMI)
    assert (await evict(served))["allowed"] is True


async def test_a_guest_is_not_given_up_because_nobody_could_be_asked(served: Served) -> None:
    have(served, "None")
    for path in (POD, VMI):
        served.api.faults.append(("GET", path, status(500, "InternalError", "etcd is away")))
        answer = await evict(served)

        assert (answer["allowed"], answer["status"]["code"]) == (False, 500)
        assert "cannot decide about this eviction" in answer["status"]["message"]


@pytest.mark.parametrize("path", [POD, VMI], ids=["the Pod", "the instance"])
async def test_a_guest_is_not_given_up_because_something_cannot_be_read(served: Served, path: str) -> None:
    """Somebody's newer version may have written it; what it says of its strategy is not known here."""
    have(served, "None")
    served.api.put(path, served.api.objects[path] | {"spec": 7})

    answer = await evict(served)

    assert (answer["allowed"], answer["status"]["code"]) == (False, 500)


async def test_what_is_no_review_is_refused(served: Served) -> None:
    assert (await served.call("POST", EVICTION, body=b"[]"))[0] == 400
    assert (await served.call("POST", EVICTION, body=b"x" * (MAX_EVICTION_BYTES + 1)))[0] == 413
    assert (await served.call("GET", EVICTION))[0] == 405


class StoppedApi:
    """An API server that does not answer until it is resumed."""

    def __init__(self) -> None:
        self.resumed = asyncio.Event()

    async def get(self, *_unused: object) -> Json:
        await self.resumed.wait()
        raise NotFound("gone")


def ask(reviews: EvictionReviews, peer: str = "api-server") -> asyncio.Task[Response]:
    review = {"request": {"uid": "1", "name": "virt-launcher-a", "namespace": "ns"}}
    return asyncio.create_task(reviews.answer(peer, json.dumps(review).encode(), is_authenticated=True))


async def test_one_peer_cannot_take_all_reviews_at_once() -> None:
    api = StoppedApi()
    reviews = EvictionReviews(api, lambda: None)  # type: ignore[arg-type]
    waiting = [ask(reviews) for _unused in range(MAX_CONCURRENT_OF_PEER)]
    await asyncio.sleep(0)
    with pytest.raises(BusyError, match="too many reviews of evictions"):
        await ask(reviews)
    other = ask(reviews, peer="other")
    api.resumed.set()

    assert {response.code for response in await asyncio.gather(*waiting, other)} == {200}
    assert (await ask(reviews)).code == 200, "the quota is given back"


async def cancel(served: Served, body: str = "", of: str = "virtualmachineinstances") -> tuple[int, Any]:
    path = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/{of}/web/evacuate/cancel"
    pair = a_client_pair(served.proxy_authority, usage=CLIENTS)
    return await served.call("PUT", path, pair=pair, headers=USER, body=body.encode())


@pytest.mark.parametrize("of", ["virtualmachines", "virtualmachineinstances"])
async def test_a_mark_is_taken_off_by_a_person(served: Served, of: str) -> None:
    have(served, "External")
    assert await cancel(served, of=of) == (200, ""), "nothing to take off"
    assert [path for method, path, *_unused in served.api.seen if method == "PATCH"] == []
    await evict(served)

    assert await cancel(served, '{"evacuationNodeName": "node-1"}', of) == (200, "")
    assert not mark(served)
    assert (await evict(served))["status"]["message"].startswith("Eviction triggered"), "and comes again when asked"


async def test_a_mark_stays_where_another_is_meant_or_nothing_is_to_be_written(served: Served) -> None:
    have(served, "External")
    await evict(served)

    code, answer = await cancel(served, '{"evacuationNodeName": "node-2"}')
    assert (code, "its evacuation is from node node-1, not node-2" in answer["message"]) == (409, True)
    assert (await cancel(served, '{"dryRun": ["All"]}'))[0] == 200
    written = [path for method, path, *_unused in served.api.seen if method == "PATCH"]
    assert "dryRun=All" in written[-1]
    for body in ('{"evacuationNodeName": 7}', '{"node": "node-1"}'):
        assert (await cancel(served, body))[0] == 400


NODE = "/api/v1/nodes/node-1"
TAINT = {"key": "kubevirt.io/drain", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "not marked"])
async def test_of_a_node_that_all_are_to_leave_nobody_is_told_that_he_may_stay(served: Served, is_marked: bool) -> None:
    have(served, "External")
    if is_marked:
        await evict(served)
    served.api.put(NODE, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, TAINT]}})

    code, answer = await cancel(served)

    assert code == 400
    assert 'Node "node-1" has NodeDrainTaintKey "kubevirt.io/drain:NoSchedule"' in answer["message"]
    assert bool(mark(served)) is is_marked


@pytest.mark.parametrize("taint", [TAINT | {"effect": "NoExecute"}, TAINT | {"key": "a"}], ids=["effect", "key"])
async def test_another_taint_is_no_such_word(served: Served, taint: Json) -> None:
    have(served, "External")
    await evict(served)
    served.api.put(NODE, {"spec": {"taints": [taint]}})

    assert (await cancel(served))[0] == 200
    assert not mark(served)


async def test_a_mark_that_is_set_meanwhile_is_looked_at_again(served: Served) -> None:
    have(served, "External")
    await evict(served)
    served.api.faults.append(("PATCH", VMI, status(409, "Conflict")))

    assert (await cancel(served))[0] == 200
    assert not mark(served)


async def test_a_mark_of_another_node_that_is_set_meanwhile_stays(served: Served) -> None:
    """It has moved, and is to leave its new node by now: that is not what a person has taken back."""

    def move() -> None:
        status = {"phase": "Running", "nodeName": "node-2", "evacuationNodeName": "node-2"}
        served.api.put(VMI, served.api.objects[VMI] | {"status": status})

    have(served, "External")
    await evict(served)
    meanwhile(served, move)

    code, answer = await cancel(served, '{"evacuationNodeName": "node-1"}')

    assert (code, "its evacuation is from node node-2, not node-1" in answer["message"]) == (409, True)
    assert mark(served) == "node-2"


async def test_there_is_no_mark_of_what_is_not_there(served: Served) -> None:
    assert (await cancel(served))[0] == 404
