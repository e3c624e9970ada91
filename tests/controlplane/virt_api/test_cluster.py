# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster state that virt-api watches, and its behaviour while objects are missing or unreadable."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from kubevirt_api.names import CONSOLE_ORIGINS

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.resources import CUSTOM_RESOURCE_DEFINITION, Key
from controlplane.engine.clock import SystemClock
from controlplane.kube.cache import Store
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api.cluster import AUTHENTICATION, Cluster, serves_data_volumes
from controlplane.virt_api.settings import CLIENT_SECRET_NAME, SECRET_NAME
from tests.controlplane.kube.fake_api import FakeApi, a_client
from tests.controlplane.virt_api.served import an_authority, authentication, encoded, secret

CONFIGURATION = Key("kubevirt", "kubevirt")
CLIENT_PAIR = Key("kubevirt", CLIENT_SECRET_NAME)
PAIR = KeyPair(b"certificate", b"key")


def a_kubevirt(**configuration: Any) -> bytes:
    return json.dumps({"metadata": {"name": "kubevirt"}, "spec": {"configuration": configuration}}).encode()


def at_version(version: str, body: bytes) -> bytes:
    kubevirt = json.loads(body)
    kubevirt["metadata"]["resourceVersion"] = version
    return json.dumps(kubevirt).encode()


def a_secret(**data: str) -> bytes:
    return json.dumps(
        {"data": {name.replace("_", "."): encoded(text.encode()) for name, text in data.items()}}
    ).encode()


def test_the_configuration_comes_from_the_object_or_is_the_default() -> None:
    cluster = Cluster("kubevirt")

    cluster.take_configuration(CONFIGURATION, None, a_kubevirt(cpuModel="Haswell"))
    assert cluster.admission_settings().configuration.cpu_model == "Haswell"

    cluster.take_configuration(CONFIGURATION, a_kubevirt(cpuModel="Haswell"), None)
    assert cluster.admission_settings().configuration == KubeVirtConfiguration()


def test_the_origins_of_web_pages_follow_the_object() -> None:
    cluster = Cluster("kubevirt")
    annotations = {CONSOLE_ORIGINS: "https://api.example.com:6443"}
    kubevirt = json.dumps({"metadata": {"name": "kubevirt", "annotations": annotations}}).encode()

    cluster.take_configuration(CONFIGURATION, None, kubevirt)
    assert cluster.console_origins == {"https://api.example.com:6443"}

    cluster.take_configuration(CONFIGURATION, kubevirt, None)
    assert cluster.console_origins == frozenset()


def test_an_unreadable_configuration_keeps_the_old_one() -> None:
    cluster = Cluster("kubevirt")
    followed: list[str] = []
    cluster.followers.append(lambda configuration: followed.append(configuration.cpu_model))
    cluster.take_configuration(CONFIGURATION, None, a_kubevirt(cpuModel="Haswell"))

    cluster.take_configuration(CONFIGURATION, None, b'{"spec": 7}')

    assert followed == ["Haswell"]
    assert cluster.configuration.cpu_model == "Haswell"


def test_the_version_is_that_of_the_configuration_in_use() -> None:
    cluster = Cluster("kubevirt")
    versions = [cluster.config_version]
    for after in (at_version("7", a_kubevirt()), b'{"spec": 7}', None):
        cluster.take_configuration(CONFIGURATION, None, after)
        versions.append(cluster.config_version)
    assert versions == ["", "7", "7", ""]


@pytest.mark.parametrize(
    "after",
    [
        None,
        b'{"data": 7}',
        a_secret(),
        a_secret(tls_crt="certificate"),
        a_secret(tls_key="key"),
        b'{"data": {"tls.crt": "x", "tls.key": "x"}}',
        b'{"data": {"tls.crt": 7, "tls.key": 7}}',
    ],
    ids=["deleted", "no data", "empty", "no key", "no certificate", "no base64", "no text"],
)
def test_an_incomplete_client_pair_keeps_the_old_one(after: bytes | None) -> None:
    cluster = Cluster("kubevirt")
    cluster.take_client_pair(CLIENT_PAIR, None, secret(PAIR))

    cluster.take_client_pair(CLIENT_PAIR, None, after)
    assert cluster.client_pair == PAIR

    newer = KeyPair(b"newer", b"newer")
    cluster.take_client_pair(CLIENT_PAIR, None, secret(newer))
    assert cluster.client_pair == newer


def test_an_unusable_front_proxy_ca_trusts_no_client(monkeypatch: pytest.MonkeyPatch) -> None:
    """The old CA was replaced, so its clients are not trusted either."""
    cluster = Cluster("kubevirt")
    pair, proxy = an_authority("ours"), an_authority("proxy")
    cluster.take_pair(Key("kubevirt", SECRET_NAME), None, secret(pair))
    cluster.take_authentication(AUTHENTICATION, None, authentication(proxy, "front-proxy-client"))
    assert cluster.front_proxy is not None

    monkeypatch.setattr("controlplane.virt_api.http.tls.load_pair", _refuse)
    cluster.take_authentication(AUTHENTICATION, None, authentication(an_authority("other"), "front-proxy-client"))

    assert cluster.front_proxy is None


def _refuse(*_unused: object) -> None:
    raise ValueError("not in this mode")


def test_data_volumes_are_unknown_until_the_watch_is_synced() -> None:
    """Until then a VM must not be refused for good."""
    definitions = Store(CUSTOM_RESOURCE_DEFINITION)
    assert serves_data_volumes(None) is None
    assert serves_data_volumes(definitions) is None

    definitions.synced = True
    assert serves_data_volumes(definitions) is False

    served = {"versions": [{"name": "v1beta1", "served": True}]}
    established = {"conditions": [{"type": "Established", "status": "True"}]}
    name = {"name": "datavolumes.cdi.kubevirt.io", "resourceVersion": "1"}
    definitions.put(json.dumps({"metadata": name, "spec": served, "status": established}).encode())
    assert serves_data_volumes(definitions) is True

    definitions.synced = False
    assert serves_data_volumes(definitions) is None


async def test_only_its_own_objects_are_watched() -> None:
    """The role allows only these Secrets, and a KubeVirt object of another namespace does not count."""
    api, cluster = FakeApi(), Cluster("kubevirt")
    api.put("/apis/kubevirt.io/v1/namespaces/tenant/kubevirts/theirs", json.loads(a_kubevirt(cpuModel="theirs")))
    api.put("/apis/kubevirt.io/v1/namespaces/kubevirt/kubevirts/ours", json.loads(a_kubevirt(cpuModel="ours")))
    async with a_client(api) as client, asyncio.timeout(10), asyncio.TaskGroup() as group:
        caches = cluster.caches(client, SystemClock())
        tasks = [group.create_task(cache.run()) for cache in caches]
        for cache in caches:
            await cache.wait_synced()
        for task in tasks:
            task.cancel()

    assert cluster.configuration.cpu_model == "ours"
    single = [path for _method, path, *_unused in api.seen if "/kubevirts" not in path]
    assert {"/secrets", "/configmaps", "/customresourcedefinitions"} == {"/" + _plural(path) for path in single}
    assert [path for path in single if "fieldSelector=metadata.name" not in path] == []
    assert [path for path in single if "/secrets" in path and "/namespaces/kubevirt/" not in path] == []


def _plural(path: str) -> str:
    return path.partition("?")[0].rpartition("/")[2]
