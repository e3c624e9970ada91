# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole process on a fake API server, from its first watch to its end."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from controlplane.kube import credentials
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api import __main__ as process
from controlplane.virt_api.cluster import AUTHENTICATION, Cluster
from controlplane.virt_api.http.identity import WebhookClients
from controlplane.virt_api.http.routes import EVICTION
from controlplane.virt_api.settings import SECRET_NAME, Settings
from tests.controlplane.kube import fake_api
from tests.controlplane.kube.fake_api import FakeApi
from tests.controlplane.virt_api.served import (
    CLIENTS,
    USER,
    Served,
    a_client_pair,
    an_authority,
    authentication,
    secret,
)
from tests.support.tasks import cancel_task

PAIR = f"/api/v1/namespaces/kubevirt/secrets/{SECRET_NAME}"
CONFIG_MAP = f"/api/v1/namespaces/kube-system/configmaps/{AUTHENTICATION.name}"
CONFIGURATION = "/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/kubevirt"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"
POD = "/api/v1/namespaces/ns/pods/virt-launcher-web-u-1"
EVICTED = {"request": {"uid": "1", "name": "virt-launcher-web-u-1", "namespace": "ns", "operation": "CREATE"}}
SETTINGS = Settings("kubevirt", "pod", "INFO", address="127.0.0.1", port=0, drain_seconds=0)


class Process:
    """virt-api, started as in its container."""

    def __init__(self, served: Served, caplog: pytest.LogCaptureFixture) -> None:
        self.served, self.caplog = served, caplog
        self.task: asyncio.Task[None] | None = None

    def begin(self, settings: Settings = SETTINGS) -> asyncio.Task[None]:
        self.task = asyncio.create_task(process.serve(settings))
        return self.task

    async def is_serving(self) -> None:
        """Wait until the log says that it serves, and take the port from there."""
        async with asyncio.timeout(10):
            while not (records := [record for record in self.caplog.records if record.message == "serving"]):  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        self.served.port = records[0].port  # type: ignore[attr-defined]

    async def is_allowed(self) -> bool:
        """Return whether the launcher may be evicted."""
        _unused, review = await self.served.call("POST", EVICTION, body=json.dumps(EVICTED).encode())
        allowed: bool = review["response"]["allowed"]
        return allowed


@pytest.fixture
async def virt_api(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> AsyncIterator[Process]:
    caplog.set_level(logging.INFO, "controlplane.virt_api")
    api, ours = FakeApi(), an_authority("ours")
    served = Served(api, Cluster("kubevirt"), tmp_path, ours, an_authority("proxy"))
    served.answer_reviews()
    api.put(PAIR, json.loads(secret(served.serving_pair())))
    async with fake_api.serving(api) as url:
        anonymous = credentials.anonymous(url)

        async def load(*_unused: object) -> credentials.Credentials:
            return anonymous

        monkeypatch.setattr(credentials, "load", load)
        started = Process(served, caplog)
        yield started
        if started.task is not None:
            await cancel_task(started.task)


async def test_only_configured_webhook_clients_may_send_reviews(virt_api: Process) -> None:
    reviewers = an_authority("reviewers")
    clients = WebhookClients(reviewers.certificate, frozenset({"apiserver"}))
    virt_api.begin(replace(SETTINGS, webhook_clients=clients))
    await virt_api.is_serving()

    async def code(pair: KeyPair | None) -> int:
        return (await virt_api.served.call("POST", EVICTION, pair=pair, body=json.dumps(EVICTED).encode()))[0]

    assert await code(None) == 401
    assert await code(a_client_pair(reviewers, "somebody", usage=CLIENTS)) == 401
    assert await code(a_client_pair(reviewers, "apiserver", usage=CLIENTS)) == 200


async def test_changes_of_the_configuration_apply_at_once(virt_api: Process) -> None:
    """The configuration and the front proxy may change at any time."""
    served = virt_api.served
    served.api.put(VMI, {"spec": {"domain": {"devices": {}}}, "status": {"phase": "Running", "nodeName": "node-1"}})
    owner = {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "name": "web", "controller": True}
    owner["uid"] = served.api.objects[VMI]["metadata"]["uid"]
    served.api.put(POD, {"metadata": {"ownerReferences": [owner]}, "spec": {"nodeName": "node-1"}})
    proxy = a_client_pair(served.proxy_authority, usage=CLIENTS)
    path = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/evacuate/cancel"
    virt_api.begin()
    await virt_api.is_serving()
    assert await virt_api.is_allowed()
    assert (await served.call("PUT", path, headers=USER))[0] == 401

    served.api.put(CONFIGURATION, {"spec": {"configuration": {"evictionStrategy": "External"}}})
    served.api.put(CONFIG_MAP, json.loads(authentication(served.proxy_authority, "front-proxy-client")))

    async with asyncio.timeout(10):
        while await virt_api.is_allowed():
            pass
        while (await served.call("PUT", path, pair=proxy, headers=USER))[0] != 200:
            pass


async def test_health_says_which_configuration_is_in_use(virt_api: Process) -> None:
    virt_api.served.api.put(CONFIGURATION, {"spec": {"configuration": {"cpuModel": "Haswell"}}})
    stored = virt_api.served.api.objects[CONFIGURATION]["metadata"]["resourceVersion"]
    virt_api.begin()
    await virt_api.is_serving()

    async with asyncio.timeout(10):
        while (await virt_api.served.call("GET", "/healthz"))[1] != {"config-resource-version": stored}:
            pass


async def test_after_sigterm_it_serves_for_the_drain_time(virt_api: Process) -> None:
    task = virt_api.begin(replace(SETTINGS, drain_seconds=3600))
    await virt_api.is_serving()

    os.kill(os.getpid(), signal.SIGTERM)
    for _unused in range(3):
        assert (await virt_api.served.call("GET", "/healthz"))[0] == 200
    assert not task.done()


async def test_sigterm_before_the_first_pair_ends_it(virt_api: Process) -> None:
    virt_api.served.api.drop(PAIR)
    task = virt_api.begin()
    async with asyncio.timeout(10):
        while not any("/secrets" in path for _method, path, *_unused in virt_api.served.api.seen):  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        os.kill(os.getpid(), signal.SIGTERM)
        await task
    assert "serving" not in virt_api.caplog.messages


def test_missing_settings_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.delenv("POD_NAMESPACE", raising=False)
    assert process.main() == 2
    assert "POD_NAMESPACE" in capsys.readouterr().err
