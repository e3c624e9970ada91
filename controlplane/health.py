# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over plain HTTP: /healthz, /readyz, /metrics. Nothing here acts on anything.

healthz: the event loop turns. readyz: nothing is missing that the process named. A slow or absent API server makes
neither false: restarting or unlisting a component would help nobody.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest


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
        self._runner: web.AppRunner | None = None

    async def start(self) -> None:
        """Listen; OSError when the port is taken."""
        app = web.Application()
        app.router.add_get("/healthz", self._healthz)
        app.router.add_get("/readyz", self._readyz)
        app.router.add_get("/metrics", self._show_metrics)
        self._runner = web.AppRunner(app, access_log=None)
        await self._runner.setup()
        await web.TCPSite(self._runner, self._address or None, self._port).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _unused: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _unused: web.Request) -> web.Response:
        missing = self._waiting_for()
        return web.Response(
            text="ok\n" if not missing else f"waiting for {', '.join(missing)}\n", status=503 if missing else 200
        )

    async def _show_metrics(self, _unused: web.Request) -> web.Response:
        return web.Response(body=generate_latest(self._metrics), headers={"Content-Type": CONTENT_TYPE_LATEST})
