# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over plain HTTP: /healthz, /readyz, /metrics. All of them only read.

healthz: the event loop runs. readyz: the process waits for nothing. A slow or absent API server makes neither fail:
to restart a component, or to remove it from its Service, would not help.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controlplane.http_server.listener import Listener

CONNECTIONS = 64
"""A kubelet opens one for each probe, a monitoring system keeps one."""
SHUTDOWN_SECONDS = 10.0
METRICS_SECONDS = 5.0
"""How long a rendered page of metrics is served: frequent requests cost no more than one in this time."""


class Health:
    """Serves until closed."""

    def __init__(
        self, port: int, metrics: CollectorRegistry, waiting_for: Callable[[], list[str]], *, address: str = ""
    ) -> None:
        """waiting_for: names what the process still waits for before it is ready. address: "" is every address."""
        self._port = port
        self._address = address
        self._metrics = metrics
        self._waiting_for = waiting_for
        self._handlers = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._serve_metrics}
        self._listener = Listener(self._answer, CONNECTIONS)
        self._metrics_page = b""
        self._metrics_expire = 0.0
        self._rendering = asyncio.Lock()

    async def start(self) -> None:
        """Listen; OSError when the port is taken."""
        await self._listener.listen(self._address, self._port)

    async def close(self) -> None:
        await self._listener.close(SHUTDOWN_SECONDS)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        handler = self._handlers.get(request.path)
        if handler is None:
            return web.Response(status=404, text="not found\n")
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="only GET\n", headers={"Allow": "GET, HEAD"})
        return await handler()

    async def _healthz(self) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        waiting_for = self._waiting_for()
        return web.Response(
            text="ok\n" if not waiting_for else f"waiting for {', '.join(waiting_for)}\n",
            status=503 if waiting_for else 200,
        )

    async def _serve_metrics(self) -> web.Response:
        """Render in a thread: thousands of machines make megabytes of text, and other requests must not wait for it."""
        loop = asyncio.get_running_loop()
        async with self._rendering:
            if loop.time() >= self._metrics_expire:
                self._metrics_page = await asyncio.to_thread(generate_latest, self._metrics)
                self._metrics_expire = loop.time() + METRICS_SECONDS
        return web.Response(body=self._metrics_page, headers={"Content-Type": CONTENT_TYPE_LATEST})
