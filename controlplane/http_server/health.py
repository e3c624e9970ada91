# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over plain HTTP: /healthz, /readyz, /metrics. Nothing here acts on anything.

healthz: the event loop turns. readyz: nothing is missing that the process named. A slow or absent API server makes
neither false: restarting or unlisting a component would help nobody.
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
SHOWN_SECONDS = 5.0
"""What was made of the metrics is shown so long: whoever asks without end costs no more than who asks that often."""


class Health:
    """Serves until closed."""

    def __init__(
        self, port: int, metrics: CollectorRegistry, waiting_for: Callable[[], list[str]], *, address: str = ""
    ) -> None:
        """waiting_for: what is still missing before we are ready, in words. address: "" is every address."""
        self._port = port
        self._address = address
        self._metrics = metrics
        self._waiting_for = waiting_for
        self._answers = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._show_metrics}
        self._listener = Listener(self._answer, CONNECTIONS)
        self._shown = b""
        self._shown_until = 0.0
        self._showing = asyncio.Lock()

    async def start(self) -> None:
        """Listen; OSError when the port is taken."""
        await self._listener.listen(self._address, self._port)

    async def close(self) -> None:
        await self._listener.close(SHUTDOWN_SECONDS)

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = self._answers.get(request.path)
        if answer is None:
            return web.Response(status=404, text="not found\n")
        if request.method not in {"GET", "HEAD"}:
            return web.Response(status=405, text="only GET\n", headers={"Allow": "GET, HEAD"})
        return await answer()

    async def _healthz(self) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self) -> web.Response:
        missing = self._waiting_for()
        return web.Response(
            text="ok\n" if not missing else f"waiting for {', '.join(missing)}\n", status=503 if missing else 200
        )

    async def _show_metrics(self) -> web.Response:
        """Answer from a thread's work: thousands of machines make megabytes of text, and nobody else waits for them."""
        loop = asyncio.get_running_loop()
        async with self._showing:
            if loop.time() >= self._shown_until:
                self._shown = await asyncio.to_thread(generate_latest, self._metrics)
                self._shown_until = loop.time() + SHOWN_SECONDS
        return web.Response(body=self._shown, headers={"Content-Type": CONTENT_TYPE_LATEST})
