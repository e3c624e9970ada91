# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Evictions: the request to the API server, and the meaning of its responses."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import NotLeader
from controlplane.kube.client import Client
from controlplane.kube.eviction import evict
from tests.controlplane.kube.fake_api import FakeApi, a_client, status

KEY = Key("ns", "web")
PATH = "/api/v1/namespaces/ns/pods/web/eviction"


@pytest.fixture
def api() -> FakeApi:
    return FakeApi()


@pytest.fixture
async def client(api: FakeApi) -> AsyncIterator[Client]:
    async with a_client(api) as made:
        yield made


async def test_an_eviction_names_the_uid_of_the_pod(api: FakeApi, client: Client) -> None:
    api.faults.append(("POST", PATH, status(201, "Created")))
    await evict(client, KEY, "uid-1")
    method, path, body, _unused = api.seen[-1]
    assert (method, path) == ("POST", PATH)
    assert body == {
        "apiVersion": "policy/v1",
        "kind": "Eviction",
        "metadata": {"name": "web", "namespace": "ns"},
        "deleteOptions": {"preconditions": {"uid": "uid-1"}},
    }


async def test_without_the_leadership_nothing_is_evicted(api: FakeApi, client: Client) -> None:
    def refuse() -> None:
        raise NotLeader("another leads")

    with pytest.raises(NotLeader):
        await evict(client.guarded(refuse), KEY, "uid-1")
    assert api.seen == []
