# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over a real socket."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from datetime import timedelta

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from controlplane.engine.plan import Outcome
from controlplane.http_server import health
from controlplane.http_server.health import METRICS_AT_ONCE, METRICS_OF_PEER, Health, tls_context
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.process.metrics import Metrics
from controlplane.tls.certificates import Subject, make_self_signed
from controlplane.tls.policy import TlsPolicy
from tests.controlplane.asked_over_http import accepts_tls_1_2, fetch, free_port
from tests.controlplane.http_server.peers import trusting


def self_signed() -> ssl.SSLContext:
    pair = make_self_signed(Subject("virt-handler", "server", ("node-1",)), time.time(), timedelta(days=1))
    return tls_context(pair.certificate, pair.key)


@pytest.fixture
def missing() -> list[str]:
    return []


@pytest.fixture
async def url(missing: list[str]) -> AsyncIterator[str]:
    port = free_port()
    metrics = Metrics()
    metrics.gauge("virtops_launchers", "Launchers", lambda: 3)
    metrics.observed("vmi", Outcome(error=ValueError("x")), 0.2)
    page, version = MetricsPage(metrics.registry), lambda: "" if missing else "7"
    server = Health(port, page, lambda: missing, self_signed(), config_version=version, address="127.0.0.1")
    await server.start()
    yield f"https://127.0.0.1:{port}"
    await server.close()


async def test_readiness_names_what_is_missing(url: str, missing: list[str]) -> None:
    assert await fetch(f"{url}/readyz") == (200, "ok\n")
    missing += ["devices.kubevirt.io/tun", "VMIs"]
    assert await fetch(f"{url}/readyz") == (503, "waiting for devices.kubevirt.io/tun, VMIs\n")
    assert (await fetch(f"{url}/healthz"))[0] == 200


async def test_health_says_which_configuration_the_process_works_with(url: str, missing: list[str]) -> None:
    assert await fetch(f"{url}/healthz") == (200, '{"config-resource-version": "7"}')
    missing += ["VMIs"]
    assert await fetch(f"{url}/healthz") == (200, '{"config-resource-version": ""}')


async def test_a_new_policy_applies_without_another_listener() -> None:
    port = free_port()
    server = Health(port, MetricsPage(Metrics().registry), list, self_signed(), config_version=str, address="127.0.0.1")
    await server.start()
    try:
        assert await accepts_tls_1_2(port)
        server.use_policy(TlsPolicy(ssl.TLSVersion.TLSv1_3))
        assert not await accepts_tls_1_2(port)
    finally:
        await server.close()


async def test_metrics_are_served(url: str) -> None:
    status, text = await fetch(f"{url}/metrics")
    assert status == 200
    assert "virtops_launchers 3.0" in text
    assert 'virtops_reconcile_passes_total{controller="vmi",result="error"} 1.0' in text


async def test_frequent_requests_render_the_metrics_once(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered: list[CollectorRegistry] = []

    def render(registry: CollectorRegistry) -> bytes:
        rendered.append(registry)
        return b"some text"

    monkeypatch.setattr("controlplane.http_server.metrics_page.generate_latest", render)

    for _repeatedly in range(5):
        pages = await asyncio.gather(*(fetch(f"{url}/metrics") for _unused in range(METRICS_OF_PEER)))
        assert set(pages) == {(200, "some text")}
    assert len(rendered) == 1


class Slow:
    """A server whose metrics take long to read, and its clients."""

    def __init__(self) -> None:
        self.may_end = asyncio.Event()
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        page = MetricsPage(CollectorRegistry(), self._refresh)
        self.health = Health(self.port, page, list, self_signed(), config_version=str, address="127.0.0.1")
        self._writers: list[asyncio.StreamWriter] = []

    async def _refresh(self) -> None:
        await self.may_end.wait()

    async def ask(self, address: str) -> asyncio.StreamReader:
        """Request the metrics from an address."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trusting(), local_addr=(address, 0))
        writer.write(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n")
        self._writers.append(writer)
        return reader

    async def close(self) -> None:
        self.may_end.set()
        for writer in self._writers:
            writer.transport.abort()
        await self.health.close()


@pytest.fixture
async def slow(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Slow]:
    monkeypatch.setattr(health, "CONNECTIONS", 2 * METRICS_AT_ONCE)
    slow = Slow()
    await slow.health.start()
    yield slow
    await slow.close()


async def test_probes_are_answered_while_others_wait_for_metrics(slow: Slow) -> None:
    """Everybody may request them, from several addresses, and a launcher may delay them."""
    async with asyncio.timeout(60):
        for address in ("127.0.0.2", "127.0.0.3"):
            for _unused in range(METRICS_AT_ONCE):
                await slow.ask(address)

        assert await fetch(f"{slow.url}/readyz") == (200, "ok\n")
        assert (await fetch(f"{slow.url}/healthz"))[0] == 200


async def test_one_peer_cannot_keep_monitoring_from_the_metrics(slow: Slow) -> None:
    async with asyncio.timeout(60):
        waiting = [await slow.ask("127.0.0.2") for _unused in range(METRICS_OF_PEER)]
        refused = await slow.ask("127.0.0.2")
        assert await refused.readline() == b"HTTP/1.1 503 Service Unavailable\r\n"

        waiting += [await slow.ask("127.0.0.3")]
        slow.may_end.set()
        for reader in waiting:
            assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"


async def test_the_server_listens_only_on_the_given_address(url: str) -> None:
    port = int(url.rpartition(":")[2])

    with pytest.raises(ConnectionRefusedError):
        await asyncio.open_connection("127.0.0.2", port)


async def test_an_unknown_path_is_404(url: str) -> None:
    assert await fetch(f"{url}/debug") == (404, "not found\n")


async def test_only_reading_methods_are_allowed(url: str) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.post(f"{url}/healthz", ssl=False) as response:
            assert (response.status, response.headers["Allow"]) == (405, "GET, HEAD")
        async with session.head(f"{url}/healthz", ssl=False) as response:
            assert response.status == 200
