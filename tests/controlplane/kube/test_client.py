# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from aiohttp import web

from controlplane.api.objects.resources import LEASE, NODE, POD, VIRTUAL_MACHINE, Key, Resource
from controlplane.engine.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    WebhookFailed,
)
from controlplane.kube.client import Client, Selection, object_path
from controlplane.kube.credentials import Credentials, anonymous
from controlplane.kube.transport import Request, Transport
from tests.controlplane.kube.fake_api import FakeApi, a_client, status

PODS = "/api/v1/namespaces/ns/pods"
KEY = Key("ns", "web")


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with a_client(api) as made:
        yield made


@pytest.mark.parametrize(
    ("resource", "key", "path"),
    [
        (POD, KEY, "/api/v1/namespaces/ns/pods/web"),
        (NODE, Key("", "n1"), "/api/v1/nodes/n1"),
        (VIRTUAL_MACHINE, KEY, "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/web"),
        (LEASE, Key("ns", "a/../b?c=1"), "/apis/coordination.k8s.io/v1/namespaces/ns/leases/a%2F..%2Fb%3Fc%3D1"),
    ],
    ids=["core", "cluster-wide", "custom", "hostile name"],
)
def test_the_path_of_an_object(resource: Resource, key: Key, path: str) -> None:
    assert object_path(resource, key) == path


@pytest.mark.parametrize("key", [Key("", "web"), Key("ns", ""), Key("..", "web"), Key("ns", "..")], ids=str)
def test_a_key_that_cannot_be_a_path_is_refused(key: Key) -> None:
    with pytest.raises(Invalid):
        object_path(POD, key)


async def test_create_get_patch_delete(api: FakeApi, client: Client) -> None:
    created = await client.create(POD, "ns", {"metadata": {"name": "web"}, "spec": {"a": 1, "b": 2}})
    uid, version = created["metadata"]["uid"], created["metadata"]["resourceVersion"]

    patched = await client.patch(POD, KEY, {"spec": {"a": None}}, resource_version=version, uid=uid)

    assert patched["spec"] == {"b": 2}
    assert (await client.get(POD, KEY))["spec"] == {"b": 2}

    await client.delete(POD, KEY, uid=uid)

    assert api.objects == {}


async def test_a_status_patch_uses_the_subresource_and_names_its_manager(api: FakeApi, client: Client) -> None:
    api.put(f"{PODS}/web", {})

    await client.patch(POD, KEY, {"status": {"phase": "x"}}, subresource="status", dry_run=True)

    assert api.seen[-1][1] == f"{PODS}/web/status?fieldManager=test&dryRun=All"


async def test_preconditions_do_not_change_the_callers_patch(api: FakeApi, client: Client) -> None:
    api.put(f"{PODS}/web", {})
    patch = {"metadata": {"labels": {"a": "b"}}}

    await client.patch(POD, KEY, patch, uid="uid-1")

    assert patch == {"metadata": {"labels": {"a": "b"}}}
    assert api.seen[-1][2] == {"metadata": {"labels": {"a": "b"}, "uid": "uid-1"}}


async def test_a_delete_has_uid_and_version_as_preconditions(api: FakeApi, client: Client) -> None:
    stored = api.put(f"{PODS}/web", {})
    version = stored["metadata"]["resourceVersion"]

    await client.delete(POD, KEY, uid="uid-1", resource_version=version)

    assert api.seen[-1][2] == {
        "kind": "DeleteOptions",
        "apiVersion": "v1",
        "preconditions": {"uid": "uid-1", "resourceVersion": version},
    }


@pytest.mark.parametrize(
    ("precondition", "value"), [("uid", "another"), ("resource_version", "1")], ids=["other object", "other version"]
)
async def test_a_patch_with_a_failed_precondition_is_a_conflict(
    api: FakeApi, client: Client, precondition: str, value: str
) -> None:
    api.put(f"{PODS}/web", {})

    with pytest.raises(Conflict):
        await client.patch(POD, KEY, {"spec": {}}, **{precondition: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (status(400, "BadRequest"), Invalid),
        (status(401, "Unauthorized"), Forbidden),
        (status(403, "Forbidden"), Forbidden),
        (status(404, "NotFound"), NotFound),
        (status(409, "AlreadyExists"), AlreadyExists),
        (status(409, "Conflict"), Conflict),
        (status(410, "Expired"), Gone),
        (status(413, "RequestEntityTooLarge"), Invalid),
        (status(422, "Invalid"), Invalid),
        (status(429, "TooManyRequests"), Throttled),
        (status(500, "InternalError"), Unavailable),
        (
            status(500, "InternalError") | {"message": 'failed calling webhook "x.example": connection refused'},
            WebhookFailed,
        ),
        (status(503, "ServiceUnavailable"), Unavailable),
        (web.Response(status=502, text="<html>bad gateway"), Unavailable),
        (web.Response(status=404, text="<html>no such site"), Unavailable),
        (web.Response(status=302, headers={"Location": "http://169.254.169.254/"}), Unavailable),
        (web.Response(status=200, text="<html>log in"), Unavailable),
        (web.Response(status=200, text="[]"), Unavailable),
        (b'{"metadata": {"na', Unavailable),
    ],
    ids=lambda value: str(value.get("code", "")) + value["reason"] if isinstance(value, dict) else None,
)
async def test_each_response_maps_to_one_error(
    api: FakeApi, client: Client, answer: object, expected: type[ApiError]
) -> None:
    api.faults += [("POST", PODS, answer), ("POST", PODS, answer)]  # type: ignore[list-item]

    with pytest.raises(ApiError) as caught:
        await client.create(POD, "ns", {"metadata": {"name": "web"}})

    assert caught.value.__class__ is expected
    assert str(caught.value).startswith("cannot create Pod ns/web: ")


async def test_retry_after_is_kept(api: FakeApi, client: Client) -> None:
    api.faults.append(("GET", PODS, status(429, "TooManyRequests") | {"retry_after": 7}))

    with pytest.raises(Throttled) as caught:
        await client.get(POD, KEY)

    assert caught.value.details["retryAfterSeconds"] == 7


async def test_retry_after_as_a_date_is_ignored(api: FakeApi, client: Client) -> None:
    """A proxy sends a date; the API server sends seconds."""
    until = {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}
    api.faults.append(("GET", PODS, web.Response(status=503, headers=until)))

    with pytest.raises(Unavailable) as caught:
        await client.get(POD, KEY)

    assert "retryAfterSeconds" not in caught.value.details


async def test_an_unreachable_server_is_unavailable() -> None:
    async with Transport(anonymous("http://127.0.0.1:1"), "test") as transport:
        with pytest.raises(Unavailable, match="cannot get Pod ns/web"):
            await Client(transport, "test").get(POD, KEY)


async def test_a_redirect_does_not_get_the_token(api: FakeApi, client: Client) -> None:
    """Otherwise one forged response would send the token to any server."""
    api.put(f"{PODS}/web", {})
    api.faults.append(("GET", PODS, web.Response(status=302, headers={"Location": f"{PODS}/web"})))
    with pytest.raises(Unavailable):
        await client.get(POD, KEY)
    assert len(api.seen) == 1


async def test_a_refused_token_is_read_again_once(api: FakeApi) -> None:
    async def token(refused: bool) -> str:
        return "Bearer new" if refused else "Bearer old"

    api.put(f"{PODS}/web", {})
    api.faults.append(("GET", PODS, status(401, "Unauthorized")))
    async with a_client(api, Credentials("", None, token)) as client:
        await client.get(POD, KEY)

    assert [authorization for *_unused, authorization in api.seen] == ["Bearer old", "Bearer new"]


@dataclass
class Leadership:
    held: bool = True
    asked: int = field(default=0)

    def require(self) -> None:
        self.asked += 1
        if not self.held:
            raise Forbidden("not the leader")


async def test_a_guarded_client_checks_before_each_write_and_never_before_reads(api: FakeApi, client: Client) -> None:
    api.put(f"{PODS}/web", {})
    leadership = Leadership()
    guarded = client.guarded(leadership.require)

    await guarded.patch(POD, KEY, {"spec": {}})
    leadership.held = False

    with pytest.raises(Forbidden):
        await guarded.patch(POD, KEY, {"spec": {}})
    with pytest.raises(Forbidden):
        await guarded.create(POD, "ns", {"metadata": {"name": "x"}})
    with pytest.raises(Forbidden):
        await guarded.delete(POD, KEY, uid="uid-1")
    with pytest.raises(Forbidden):
        await guarded.ensure(POD, KEY)
    await guarded.get(POD, KEY)

    assert leadership.asked == 5
    assert [method for method, *_unused in api.seen] == ["PATCH", "GET"]


async def test_a_quoted_response_is_bounded(api: FakeApi, client: Client) -> None:
    api.faults.append(("GET", "web", status(422, "Invalid", "x" * 100_000)))
    with pytest.raises(Invalid) as raised:
        await client.get(POD, KEY)
    assert len(str(raised.value)) < 3_000


async def test_a_watch_asks_for_bookmarks_after_its_version(api: FakeApi, client: Client) -> None:
    """Bookmarks advance the version of a quiet watch."""
    api.put(f"{PODS}/web", {})
    async with client.watch(Selection(POD, "ns"), "100", timeout_seconds=5, silence_seconds=5) as lines:
        await anext(lines)
    ((_unused, path, *_unused2),) = api.seen
    assert "allowWatchBookmarks=true" in path
    assert "resourceVersion=100" in path


async def test_a_list_comes_in_pages_of_one_version(api: FakeApi, client: Client) -> None:
    for number in range(5):
        api.put(f"{PODS}/p{number}", {})

    first = await client.list_page(Selection(POD, "ns"), limit=2, not_older_than=1)
    second = await client.list_page(Selection(POD, "ns"), first.continue_token, limit=2)
    third = await client.list_page(Selection(POD, "ns"), second.continue_token, limit=2)

    assert [len(page.items) for page in (first, second, third)] == [2, 2, 1]
    assert first.resource_version == third.resource_version == "105"
    assert third.continue_token == ""


async def test_selectors_are_escaped_in_the_query(api: FakeApi, client: Client) -> None:
    await client.list_page(Selection(POD, "", "kubevirt.io=virt-launcher", "spec.nodeName=n&1"))

    assert "labelSelector=kubevirt.io%3Dvirt-launcher&fieldSelector=spec.nodeName%3Dn%261" in api.seen[-1][1]


async def test_slow_requests_do_not_hold_up_a_lease(api: FakeApi) -> None:
    """A Lease is renewed even when every connection of the request pool is in use."""
    api.put("/apis/coordination.k8s.io/v1/namespaces/ns/leases/web", {})
    entered, release = asyncio.Event(), asyncio.Event()
    plain = api.handle

    async def handle(request: web.Request) -> web.StreamResponse:
        if "/pods/" in request.path:
            entered.set()
            await release.wait()
        return await plain(request)

    api.handle = handle  # type: ignore[method-assign]
    async with a_client(api) as client:
        narrow = replace(client, transport=replace(client.transport, connections=1, _sessions={}))
        async with narrow.transport, asyncio.TaskGroup() as tasks:
            held_up = tasks.create_task(narrow.create(POD, "ns", {"metadata": {"name": "x"}}))
            slow = tasks.create_task(get_or_none(narrow, KEY))
            await entered.wait()

            renewed = await narrow.patch(LEASE, KEY, {"spec": {"holderIdentity": "me"}})

            assert not slow.done()
            release.set()
            await held_up
    assert renewed["spec"]["holderIdentity"] == "me"


async def get_or_none(client: Client, key: Key) -> None:
    with suppress(NotFound):
        await client.get(POD, key)


async def test_ensure_names_the_object_in_the_path_so_that_rbac_can_limit_it() -> None:
    """On a real API server: tests/controlplane/virt_api/test_real_api.py."""
    sent: list[Request] = []

    class Sent:
        async def send(self, request: Request) -> bytes:
            sent.append(request)
            return b"{}"

    await Client(Sent(), "us").ensure(POD, KEY)  # type: ignore[arg-type]

    (request,) = sent
    assert (request.method, request.path) == ("PATCH", "/api/v1/namespaces/ns/pods/web?fieldManager=us")
    assert request.content_type == "application/apply-patch+yaml"
    assert json.loads(request.body or b"") == {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": "ns"},
    }
