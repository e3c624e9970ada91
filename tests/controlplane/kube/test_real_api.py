# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client and the caches on a real API server: checks the assumptions of the fake one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any

import msgspec
import pytest

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.clock import SystemClock
from controlplane.engine.errors import AlreadyExists, Conflict, Forbidden, Gone, Invalid, NotFound, Unavailable
from controlplane.kube.client import Client, Selection
from controlplane.kube.credentials import from_kubeconfig
from controlplane.kube.errors import NOT_SERVED, RESOURCE_VERSION_TOO_LARGE, causes_reason, translate_event
from controlplane.kube.transport import Transport
from controlplane.kube.watch import Timing, WatchCache
from lab import Lab
from lab.cluster import faults
from tests.support.tasks import cancel_task

pytestmark = pytest.mark.component

CONFIG_MAP = Resource("", "v1", "configmaps", "ConfigMap")
NO_SUCH = Resource("nowhere.example", "v1", "things", "Thing")
CLOCK = SystemClock()


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab("kube-client").running(nodes=0, controllers=False) as made:
        yield made


@pytest.fixture
async def client(lab: Lab) -> AsyncIterator[Client]:
    async with Transport(await from_kubeconfig(lab.kubeconfig), "virtops-test") as transport:
        yield Client(transport, "test")


def a_map(name: str, **data: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, "labels": {"test": "yes"}},
        "data": data,
    }


@pytest.fixture
async def made(client: Client, request: pytest.FixtureRequest) -> AsyncIterator[dict[str, Any]]:
    """Create a ConfigMap for this test; delete it afterwards."""
    name = "t" + str(abs(hash(request.node.name)))
    yield await client.create(CONFIG_MAP, "default", a_map(name, a="1", b="2"))
    with suppress(NotFound):
        current = await client.get(CONFIG_MAP, Key("default", name))
        await client.delete(CONFIG_MAP, Key("default", name), uid=current["metadata"]["uid"])


def key_of(obj: dict[str, Any]) -> Key:
    return Key(obj["metadata"]["namespace"], obj["metadata"]["name"])


@pytest.mark.parametrize(
    "precondition",
    [{"uid": "00000000-0000-0000-0000-000000000000"}, {"resource_version": "1"}],
    ids=["another uid", "an old version"],
)
async def test_a_failed_precondition_is_a_conflict(
    client: Client, made: dict[str, Any], precondition: dict[str, str]
) -> None:
    with pytest.raises(Conflict):
        await client.patch(CONFIG_MAP, key_of(made), {"data": {"a": "x"}}, **precondition)  # type: ignore[arg-type]
    with pytest.raises(Conflict):
        await client.delete(
            CONFIG_MAP,
            key_of(made),
            **({"uid": made["metadata"]["uid"]} | precondition),  # type: ignore[arg-type]
        )

    assert (await client.get(CONFIG_MAP, key_of(made)))["data"]["a"] == "1"


async def test_the_usual_refusals(client: Client, made: dict[str, Any]) -> None:
    with pytest.raises(AlreadyExists):
        await client.create(CONFIG_MAP, "default", a_map(made["metadata"]["name"]))
    with pytest.raises(Invalid):
        await client.create(CONFIG_MAP, "default", a_map("Not_A_Name"))
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, Key("default", "missing"))
    with pytest.raises(NotFound):
        await client.get(CONFIG_MAP, Key("default", "../../../api/v1/nodes"))
    with pytest.raises(NotFound):
        await client.create(CONFIG_MAP, "no-such-namespace", a_map("x"))
    with pytest.raises(Unavailable) as not_served:
        await client.list_page(Selection(NO_SUCH))
    assert not_served.value.reason == NOT_SERVED


@asynccontextmanager
async def cached(client: Client, **timing: float) -> AsyncIterator[WatchCache]:
    cache = WatchCache(
        client,
        Selection(CONFIG_MAP, "default", "test=yes"),
        CLOCK,
        timing=Timing(**timing),  # type: ignore[arg-type]
    )
    running = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(10):
            await cache.wait_synced()
        yield cache
    finally:
        await cancel_task(running)


async def until(cache: WatchCache, is_so: Callable[[], bool], seconds: float = 20) -> None:
    changed = asyncio.Event()
    cache.subscribe(lambda *_unused: changed.set())
    async with asyncio.timeout(seconds):
        while not is_so():
            changed.clear()
            await changed.wait()


async def test_a_cache_follows_and_drops_objects_that_leave_its_selection(client: Client, made: dict[str, Any]) -> None:
    key = key_of(made)
    async with cached(client) as cache:
        assert b'"kind":"ConfigMap"' in (cache.get(key) or b"")
        assert b"managedFields" not in (cache.get(key) or b"")

        await client.patch(CONFIG_MAP, key, {"metadata": {"labels": {"test": "no"}}})
        await until(cache, lambda: cache.get(key) is None)
        await client.patch(CONFIG_MAP, key, {"metadata": {"labels": {"test": "yes"}}})
        await until(cache, lambda: cache.get(key) is not None)


async def test_a_list_is_at_least_as_new_as_asked_and_a_future_version_is_an_error(
    client: Client, made: dict[str, Any]
) -> None:
    selection = Selection(CONFIG_MAP, "default", "test=yes")
    resource_version = int((await client.list_page(selection)).resource_version)

    again = await client.list_page(selection, limit=10, not_older_than=resource_version)

    assert int(again.resource_version) >= resource_version
    assert any(made["metadata"]["uid"].encode() in item for item in again.items)
    with pytest.raises(Unavailable) as ahead:
        await client.list_page(selection, limit=10, not_older_than=resource_version + 1_000_000)
    assert causes_reason(ahead.value, RESOURCE_VERSION_TOO_LARGE)


async def test_a_deletion_has_its_own_version(client: Client, made: dict[str, Any]) -> None:
    key, announced = key_of(made), []
    async with cached(client) as cache:
        cache.subscribe(lambda _key, before, after: announced.append((before, after)))
        await client.delete(CONFIG_MAP, key, uid=made["metadata"]["uid"])
        await until(cache, lambda: cache.get(key) is None)

    ((before, after),) = announced
    last = int(msgspec.json.decode(before)["metadata"]["resourceVersion"])
    assert after is None
    assert int(made["metadata"]["resourceVersion"]) < last <= cache.resource_version


async def test_a_cache_survives_a_restart_of_the_api_server(lab: Lab, client: Client, made: dict[str, Any]) -> None:
    key = key_of(made)
    async with cached(client) as cache:
        version = cache.version(key)
        faults.kill_program(lab, "kube-apiserver")
        await patch_again(client, key)
        await until(cache, lambda: cache.version(key) != version, seconds=10)

        assert cache.synced
        assert cache.counters.repaired == 0

    # The history of the new server begins here.
    with pytest.raises(Gone):
        await first_event(client, "1")


async def patch_again(client: Client, key: Key) -> None:
    """Patch as soon as the API server is back."""
    async with asyncio.timeout(30):
        while True:
            try:
                await client.patch(CONFIG_MAP, key, {"data": {"after": "restart"}})
                return
            except (Unavailable, Forbidden):  # no response, or RBAC is not loaded yet
                await asyncio.sleep(0.05)


async def first_event(client: Client, version: str) -> None:
    stream = client.watch(Selection(CONFIG_MAP, "default"), version, timeout_seconds=5, silence_seconds=5)
    async with stream as lines:
        async for line in lines:
            event = msgspec.json.decode(line)
            if event["type"] == "ERROR":
                raise translate_event(msgspec.json.encode(event["object"]), "watch")
            return
