# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wiring of virt-api: settings, client, caches, server, shutdown."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Coroutine
from contextlib import AsyncExitStack

import uvloop

from controlplane.api.version import KUBEVIRT_VERSION, VERSION
from controlplane.engine.clock import SystemClock
from controlplane.engine.ports import Clock
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.kube import credentials
from controlplane.kube.client import Client
from controlplane.kube.transport import Transport
from controlplane.process import logs
from controlplane.process.descriptors import raise_descriptor_limit
from controlplane.process.log_level import LogLevel
from controlplane.process.metrics import Metrics
from controlplane.virt_api.admission.eviction_review import EvictionReviews
from controlplane.virt_api.admission.migration_review import MigrationReviews
from controlplane.virt_api.admission.webhook import Admission
from controlplane.virt_api.cluster import Cluster, wait_ready
from controlplane.virt_api.concurrency import ConcurrencyLimit, WorkerThreads
from controlplane.virt_api.http.tls import ServingTls
from controlplane.virt_api.server import Server, listening
from controlplane.virt_api.settings import Settings, SettingsError, parse
from controlplane.virt_api.streams.serve import Streams
from controlplane.virt_api.subresources.dispatch import EXPANSION_THREADS, MAX_CONCURRENT, Subresources
from controlplane.virt_api.subresources.handler_client import HandlerClient
from controlplane.virt_api.subresources.power_requests import PowerRequests
from controlplane.virt_api.subresources.screenshot import Screenshots

log = logging.getLogger("controlplane.virt_api")

SWITCH_SECONDS = 0.001
"""How long a worker thread keeps the interpreter. The event loop needs it several times for one response, and waits so
long each time."""


def main() -> int:
    """Run until SIGTERM. Returns the exit code."""
    try:
        settings = parse(os.environ)
        logs.configure("virt-api", settings.log_level)
        raise_descriptor_limit()
        sys.setswitchinterval(SWITCH_SECONDS)
        uvloop.run(serve(settings))
    except (SettingsError, credentials.CredentialsError, ValueError) as error:
        print(f"virt-api: {error}", file=sys.stderr)
        return 2
    return 0


async def serve(settings: Settings) -> None:
    """Watch, wait for the key pair, serve until SIGTERM or SIGINT."""
    clock, ended = SystemClock(), asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, ended.set)
    loaded = await credentials.load(os.environ, clock.monotonic)
    async with AsyncExitStack() as stack:
        transport = await stack.enter_async_context(Transport(loaded, f"virtops-virt-api/{VERSION}"))
        tls = ServingTls(settings.webhook_clients.authority if settings.webhook_clients is not None else b"")
        client, cluster = Client(transport, "virt-api"), Cluster(settings.namespace, tls)
        cluster.followers.append(LogLevel("virt-api", settings.log_level, settings.node))
        tasks = await stack.enter_async_context(asyncio.TaskGroup())
        caches = cluster.caches(client, clock)
        for cache in caches:
            stack.callback(tasks.create_task(cache.run()).cancel)
        if not await _is_ready(wait_ready(cluster, caches), ended):
            return
        handlers = await stack.enter_async_context(HandlerClient(client, lambda: cluster.client_pair))
        server = make_server(settings, cluster, client, handlers, clock)
        async with listening(server, settings.address, settings.port) as port:
            log.info("serving", extra={"port": port, "pod": settings.pod_name, "version": VERSION})
            await ended.wait()
            await asyncio.sleep(settings.drain_seconds)
    log.info("ended")


def make_server(settings: Settings, cluster: Cluster, client: Client, handlers: HandlerClient, clock: Clock) -> Server:
    """Connect the parts that answer requests."""
    subresources = Subresources(
        client,
        PowerRequests(client, handlers),
        Screenshots(client, handlers),
        cluster.admission_settings,
        WorkerThreads(EXPANSION_THREADS),
        ConcurrencyLimit(MAX_CONCURRENT),
    )
    return Server(
        Admission(cluster.admission_settings),
        EvictionReviews(client, lambda: cluster.configuration.eviction_strategy),
        MigrationReviews(client),
        subresources,
        Streams(client, handlers, lambda: cluster.console_origins),
        cluster.tls,
        lambda: cluster.front_proxy,
        clock,
        settings.webhook_clients,
        lambda: cluster.config_version,
        MetricsPage(make_metrics().registry),
    )


def make_metrics() -> Metrics:
    """Return the metrics of a virt-api that serves."""
    metrics = Metrics()
    metrics.version(KUBEVIRT_VERSION)
    text = "Indication for a virt-api server that is ready to serve requests."
    metrics.gauge("kubevirt_virt_api_ready_status", text, lambda: 1.0)
    return metrics


async def _is_ready(ready: Coroutine[None, None, None], ended: asyncio.Event) -> bool:
    """Wait for one of the two; True when it is the first."""
    racers = {asyncio.create_task(ready), asyncio.create_task(_wait(ended))}
    await asyncio.wait(racers, return_when=asyncio.FIRST_COMPLETED)
    for racer in racers:
        racer.cancel()
    return not ended.is_set()


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


if __name__ == "__main__":
    sys.exit(main())
