# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reviews of evictions over real TLS, on a fake API server."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
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
from tests.controlplane.virt_api.served import (
    CLIENTS,
    USER,
    Json,
    Served,
    a_client_pair,
    an_authority,
    meanwhile,
    serving,
)

PROXY = "front-proxy-client"
POD = "/api/v1/namespaces/ns/pods/virt-launcher-web-u-1"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


def have(served: Served, strategy: str) -> None:
    spec = {"domain": {"devices": {}}, "evictionStrategy": strategy}
    served.api.put(VMI, {"spec": spec, "status": {"phase": "Running", "nodeName": "node-1"}})
    uid = served.api.objects[VMI]["metadata"]["uid"]
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "uid": uid}
    meta = {"name": "virt-launcher-web-u-1", "namespace": "ns", "ownerReferences": [owner | {"controller": True}]}
    served.api.put(POD, {"metadata": meta, "spec": {"nodeName": "node-1"}, "status": {"phase": "Running"}})


async def evict(served: Served, pair: KeyPair | None = None, **fields: Any) -> Json:
    request = {"uid": "1", "name": "virt-launcher-web-u-1", "namespace": "ns", "operation": "CREATE", **fields}
    code, review = await served.call("POST", EVICTION, pair=pair, body=json.dumps({"request": request}).encode())
    assert (code, review["response"]["uid"]) == (200, "1")
    response: Json = review["response"]
    return response


def mark(served: Served) -> str:
    node: str = served.api.objects[VMI]["status"].get("evacuationNodeName", "")
    return node


async def test_strategy_none_allows_the_eviction(served: Served) -> None:
    have(served, "None")

    assert (await evict(served))["allowed"] is True
    assert not mark(served)


async def test_a_denial_is_429_which_drains_retry(served: Served) -> None:
    have(served, "LiveMigrate")

    response = await evict(served)

    assert (response["allowed"], response["status"]["code"], response["status"]["reason"]) == (
        False,
        429,
        "TooManyRequests",
    )
    assert response["status"]["message"] == DENIED
    assert not mark(served)


async def test_an_external_evacuation_is_marked_once(served: Served) -> None:
    have(served, "External")

    first, second = await evict(served), await evict(served)

    assert mark(served) == "node-1"
    assert first["status"]["message"] == "Eviction triggered evacuation of VMI of this Pod"
    assert second["status"]["message"] == "Evacuation in progress: Eviction triggered evacuation of VMI of this Pod"
    assert {first["status"]["code"], second["status"]["code"]} == {429}
    written = [path for method, path, *_unused in served.api.seen if method == "PATCH"]
    assert written == [f"{VMI}/status?fieldManager=test"]


MESSAGES = {
    "LiveMigrate": ["VMI ns/web is configured with an eviction strategy but is not live-migratable"],
    "Teleport": ["VMI ns/web has the eviction strategy 'Teleport'"],
    "External": ['triggered evacuation of VMI "ns/web"', 'in progress: Eviction triggered evacuation of VMI "ns/web"'],
}


@pytest.mark.parametrize("strategy", MESSAGES)
async def test_only_an_authenticated_api_server_learns_about_the_vmi(tmp_path: Path, strategy: str) -> None:
    """Without webhook clients any peer may send reviews; the response shows no more than the Pod's name."""
    reviewers = an_authority("reviewers")
    pair, clients = a_client_pair(reviewers, usage=CLIENTS), WebhookClients(reviewers.certificate, frozenset({PROXY}))
    for client_pair in (pair, None):
        async with serving(tmp_path, webhook_clients=clients if client_pair else None) as served:
            have(served, strategy)
            for words in MESSAGES[strategy]:
                message = (await evict(served, client_pair))["status"]["message"]
                assert (words in message) == bool(client_pair)
                assert client_pair or not {"ns/web", strategy} & set(re.findall(r"[\w/]+", message))


async def test_a_failed_review_does_not_name_the_vmi_to_others(served: Served) -> None:
    have(served, "None")
    served.api.faults.append(("GET", VMI, status(500, "InternalError", "etcd is away")))

    assert "web" not in (await evict(served))["status"]["message"]


DESCHEDULER: dict[str, Any] = {"object": {"metadata": {"annotations": {"requested-by": "sigs.k8s.io/descheduler"}}}}


def source(served: Served) -> str | None:
    annotation: str | None = (served.api.objects[VMI]["metadata"].get("annotations") or {}).get(
        "kubevirt.io/eviction-source"
    )
    return annotation


async def test_an_eviction_by_the_descheduler_is_annotated(served: Served) -> None:
    """Its migrations are less urgent than those of a user."""
    have(served, "External")

    await evict(served, **DESCHEDULER)

    assert (mark(served), source(served)) == ("node-1", "descheduler")


@pytest.mark.parametrize(
    "metadata", [{}, {"annotations": None}, {"annotations": {"requested-by": "somebody"}}], ids=str
)
async def test_another_eviction_removes_the_annotation(served: Served, metadata: Json) -> None:
    have(served, "External")
    await evict(served, **DESCHEDULER)
    assert (await cancel(served))[0] == 200

    await evict(served, object={"metadata": metadata})

    assert (mark(served), source(served)) == ("node-1", None)


@pytest.mark.parametrize(
    "fields", [{"dryRun": True}, {"object": {"deleteOptions": {"dryRun": ["All"]}}}], ids=["the request", "the delete"]
)
async def test_a_dry_run_marks_nothing(served: Served, fields: Json) -> None:
    have(served, "External")
    fields = {**fields, "object": {**DESCHEDULER["object"], **fields.get("object", {})}}

    assert (await evict(served, **fields))["status"]["code"] == 429
    assert not mark(served)
    assert not source(served)


@pytest.mark.parametrize("fields", [{}, DESCHEDULER], ids=["the mark", "its source"])
async def test_a_recreated_vmi_is_not_marked(served: Served, fields: Json) -> None:
    def recreate() -> None:
        before = served.api.objects[VMI]
        served.api.drop(VMI)
        served.api.put(VMI, {"spec": before["spec"], "status": before["status"]})

    have(served, "External")
    meanwhile(served, recreate)

    assert (await evict(served, **fields))["status"]["code"] == 429
    assert (mark(served), source(served)) == ("", None)
    assert (await evict(served))["allowed"] is True, "a retry is allowed"


async def test_a_missing_pod_or_vmi_allows_the_eviction(served: Served) -> None:
    assert (await evict(served))["allowed"] is True
    have(served, "LiveMigrate")
    served.api.drop(VMI)
    assert (await evict(served))["allowed"] is True


async def test_an_api_error_denies_the_eviction(served: Served) -> None:
    have(served, "None")
    for path in (POD, VMI):
        served.api.faults.append(("GET", path, status(500, "InternalError", "etcd is away")))
        response = await evict(served)

        assert (response["allowed"], response["status"]["code"]) == (False, 500)
        assert "cannot decide about this eviction" in response["status"]["message"]


@pytest.mark.parametrize("path", [POD, VMI], ids=["the Pod", "the instance"])
async def test_an_unreadable_object_denies_the_eviction(served: Served, path: str) -> None:
    """A newer version may have written the object; its strategy is unknown."""
    have(served, "None")
    served.api.put(path, served.api.objects[path] | {"spec": 7})

    response = await evict(served)

    assert (response["allowed"], response["status"]["code"]) == (False, 500)


async def test_an_invalid_review_is_refused(served: Served) -> None:
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
async def test_evacuate_cancel_removes_the_mark(served: Served, of: str) -> None:
    have(served, "External")
    assert await cancel(served, of=of) == (200, ""), "nothing to take off"
    assert [path for method, path, *_unused in served.api.seen if method == "PATCH"] == []
    await evict(served)

    assert await cancel(served, '{"evacuationNodeName": "node-1"}', of) == (200, "")
    assert not mark(served)
    assert (await evict(served))["status"]["message"].startswith("Eviction triggered"), "a new eviction sets it again"


async def test_evacuate_cancel_of_another_node_or_dry_run_keeps_the_mark(served: Served) -> None:
    have(served, "External")
    await evict(served)

    code, response = await cancel(served, '{"evacuationNodeName": "node-2"}')
    assert (code, "its evacuation is from node node-1, not node-2" in response["message"]) == (409, True)
    assert (await cancel(served, '{"dryRun": ["All"]}'))[0] == 200
    written = [path for method, path, *_unused in served.api.seen if method == "PATCH"]
    assert "dryRun=All" in written[-1]
    for body in ('{"evacuationNodeName": 7}', '{"node": "node-1"}'):
        assert (await cancel(served, body))[0] == 400


NODE = "/api/v1/nodes/node-1"
TAINT = {"key": "kubevirt.io/drain", "value": "x", "effect": "NoSchedule"}


@pytest.mark.parametrize("is_marked", [True, False], ids=["marked", "not marked"])
async def test_the_drain_taint_refuses_evacuate_cancel(served: Served, is_marked: bool) -> None:
    have(served, "External")
    if is_marked:
        await evict(served)
    served.api.put(NODE, {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}, TAINT]}})

    code, response = await cancel(served)

    assert code == 400
    assert 'Node "node-1" has NodeDrainTaintKey "kubevirt.io/drain:NoSchedule"' in response["message"]
    assert bool(mark(served)) is is_marked


@pytest.mark.parametrize("taint", [TAINT | {"effect": "NoExecute"}, TAINT | {"key": "a"}], ids=["effect", "key"])
async def test_another_taint_allows_evacuate_cancel(served: Served, taint: Json) -> None:
    have(served, "External")
    await evict(served)
    served.api.put(NODE, {"spec": {"taints": [taint]}})

    assert (await cancel(served))[0] == 200
    assert not mark(served)


async def test_a_conflict_repeats_evacuate_cancel(served: Served) -> None:
    have(served, "External")
    await evict(served)
    served.api.faults.append(("PATCH", VMI, status(409, "Conflict")))

    assert (await cancel(served))[0] == 200
    assert not mark(served)


async def test_a_newer_mark_of_another_node_stays(served: Served) -> None:
    """The VMI has migrated and is being evacuated from its new node; the user means the old one."""

    def move() -> None:
        status = {"phase": "Running", "nodeName": "node-2", "evacuationNodeName": "node-2"}
        served.api.put(VMI, served.api.objects[VMI] | {"status": status})

    have(served, "External")
    await evict(served)
    meanwhile(served, move)

    code, response = await cancel(served, '{"evacuationNodeName": "node-1"}')

    assert (code, "its evacuation is from node node-2, not node-1" in response["message"]) == (409, True)
    assert mark(served) == "node-2"


async def test_evacuate_cancel_of_a_missing_vmi_is_404(served: Served) -> None:
    assert (await cancel(served))[0] == 404
