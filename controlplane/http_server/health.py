# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health and metrics over HTTPS: /healthz, /readyz, /metrics. All of them only read.

Everybody may read them, and the certificate proves nothing: kubelets do not verify it, and upstream's monitors neither.

healthz: the event loop runs; its body says which version of the KubeVirt object the process works with.
readyz: the process waits for nothing. A slow or absent API server makes neither fail: to restart a component, or to
remove it from its Service, would not help.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable

from aiohttp import web
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from controlplane.http_server.listener import Listener
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.http_server.quotas import BusyError, Quota
from controlplane.http_server.responses import response_scope
from controlplane.tls.contexts import load_pair, server_context
from controlplane.tls.policy import TlsPolicy, apply_policy

CONNECTIONS = 64
"""A kubelet opens one for each probe, a monitoring system keeps one."""
METRICS_AT_ONCE, METRICS_OF_PEER = 8, 4
"""Requests of metrics in all and of one peer, until their responses are written. That may take seconds, and a busy
connection is not closed for a probe's."""
SHUTDOWN_SECONDS = 10.0


class Health:
    """Serves until closed."""

    def __init__(
        self,
        port: int,
        metrics: MetricsPage,
        waiting_for: Callable[[], list[str]],
        tls: ssl.SSLContext,
        *,
        config_version: Callable[[], str],
        address: str = "",
    ) -> None:
        """waiting_for: names what the process still waits for before it is ready. address: "" is every address.

        config_version: the resourceVersion of the KubeVirt object that the process works with; "" while there is none.
        """
        self._port = port
        self._address = address
        self._metrics = metrics
        self._waiting_for = waiting_for
        self._config_version = config_version
        self._handlers = {"/healthz": self._healthz, "/readyz": self._readyz, "/metrics": self._serve_metrics}
        self._metrics_requests = Quota(METRICS_AT_ONCE, METRICS_OF_PEER)
        self._tls = tls
        self._listener = Listener(self._answer, CONNECTIONS, tls)

    def use_policy(self, policy: TlsPolicy) -> None:
        """Accept these versions and cipher suites from the next handshake on."""
        apply_policy(self._tls, policy)

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
        return await handler(request)

    async def _healthz(self, _request: web.BaseRequest) -> web.Response:
        return web.json_response(describe_health(self._config_version()))

    async def _readyz(self, _request: web.BaseRequest) -> web.Response:
        waiting_for = self._waiting_for()
        return web.Response(
            text="ok\n" if not waiting_for else f"waiting for {', '.join(waiting_for)}\n",
            status=503 if waiting_for else 200,
        )

    async def _serve_metrics(self, request: web.BaseRequest) -> web.Response:
        reservation = self._metrics_requests.reserve(request.remote or "", 1, "too many requests of metrics")
        try:
            response_scope(request).enter_context(reservation)
        except BusyError as error:
            return web.Response(status=503, text=f"{error}; try again later\n")
        return web.Response(body=await self._metrics.render(), headers={"Content-Type": CONTENT_TYPE_LATEST})


def describe_health(config_version: str) -> dict[str, str]:
    """Return the body of /healthz. Clients that change the configuration wait until each process has it."""
    return {"config-resource-version": config_version}


def tls_context(certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return the context for Health with this pair (PEM). Raises SSLError, OSError."""
    context = server_context(ssl.TLSVersion.TLSv1_2, ssl.CERT_NONE)
    load_pair(context, certificate, key)
    return context
