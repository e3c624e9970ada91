# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over plain HTTP: /healthz, /readyz, /metrics. Nothing here acts on anything.

healthz: the event loop turns. readyz: the caches are filled, on the leader and on standbys alike. A slow or absent API
server makes neither false: restarting virt-controller would help nobody. Labels of metrics name only fixed things.
"""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

from controlplane.engine.plan import Outcome


class Metrics:
    """What is counted."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._passes = Counter(
            "virtops_reconcile_passes",
            "Passes over keys, by controller and result",
            ["controller", "result"],
            registry=self.registry,
        )
        self._seconds = Histogram(
            "virtops_reconcile_seconds",
            "Duration of a pass",
            ["controller"],
            buckets=(0.001, 0.005, 0.02, 0.1, 0.5, 1.0, 5.0, 30.0),
            registry=self.registry,
        )

    def gauge(self, name: str, text: str, value: Callable[[], float]) -> None:
        """Show a number that is asked for when somebody looks."""
        Gauge(name, text, registry=self.registry).set_function(value)

    def observed(self, controller: str, outcome: Outcome, seconds: float) -> None:
        """Count a pass; fits engine.runner.Runner."""
        self._passes.labels(controller, "error" if outcome.error is not None else "ok").inc()
        self._seconds.labels(controller).observe(seconds)


class Health:
    """Serves until closed."""

    def __init__(self, port: int, metrics: Metrics, waiting_for: Callable[[], list[str]]) -> None:
        """waiting_for: what is still missing before we are ready, in words."""
        self._port = port
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
        await web.TCPSite(self._runner, port=self._port).start()

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _healthz(self, _unused: web.Request) -> web.Response:
        return web.Response(text="ok\n")

    async def _readyz(self, _unused: web.Request) -> web.Response:
        missing = self._waiting_for()
        text = f"waiting for {', '.join(missing)}\n" if missing else "ok\n"
        return web.Response(text=text, status=503 if missing else 200)

    async def _show_metrics(self, _unused: web.Request) -> web.Response:
        body = generate_latest(self._metrics.registry)
        return web.Response(body=body, headers={"Content-Type": CONTENT_TYPE_LATEST})
