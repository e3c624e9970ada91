# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request in, one response out: find the route, identify the caller, read the body, hand over.

Every request is limited in size and time before anything decodes it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial

from aiohttp import web
from prometheus_client import CollectorRegistry

from controlplane.engine.ports import Clock
from controlplane.http_server.listener import Listener
from controlplane.http_server.metrics_page import MetricsPage
from controlplane.http_server.quotas import BusyError, Quota
from controlplane.http_server.responses import response_scope
from controlplane.kube.access_review import User
from controlplane.virt_api.admission.eviction_review import MAX_EVICTION_BYTES, EvictionReviews
from controlplane.virt_api.admission.migration_review import MAX_MIGRATION_BYTES, MigrationReviews
from controlplane.virt_api.admission.webhook import MAX_REVIEW_BYTES, Admission
from controlplane.virt_api.concurrency import WorkerThreads
from controlplane.virt_api.http import discovery
from controlplane.virt_api.http.console_page import ConsolePage, read_page
from controlplane.virt_api.http.identity import (
    FrontProxy,
    UnauthenticatedError,
    WebhookClients,
    check_webhook_client,
    identify,
)
from controlplane.virt_api.http.response import Response, failure, metrics
from controlplane.virt_api.http.routes import (
    STREAMS,
    DocumentRoute,
    MetricsRoute,
    NoRoute,
    PageRoute,
    Stage,
    SubresourceRoute,
    WebhookRoute,
    find_route,
)
from controlplane.virt_api.http.tls import ServingTls, verified_chain
from controlplane.virt_api.streams.serve import Streams
from controlplane.virt_api.subresources.dispatch import Subresources

log = logging.getLogger(__name__)

MAX_OPTIONS_BYTES = 64 * 1024
MAX_BYTES: dict[Stage, int] = {
    "mutate": MAX_REVIEW_BYTES,
    "validate": MAX_REVIEW_BYTES,
    "evict": MAX_EVICTION_BYTES,
    "migrate": MAX_MIGRATION_BYTES,
}
BODY_SECONDS = 10.0
SHUTDOWN_SECONDS = 10.0
CONNECTIONS = 512
"""An API server opens one for each request under way, at most some hundreds. Each costs a third of a MiB, mostly for
TLS."""
REVIEW_BYTES = 48 * 1024 * 1024
"""All reviews that are read or decided, and their responses."""
REVIEW_BYTES_OF_PEER = 36 * 1024 * 1024
REVIEW_THREADS = 2
"""A small review need not wait for a large one. More threads would only share one interpreter."""


class BadBodyError(Exception):
    """The body is too large, or of unknown length."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Server:
    """Answers requests."""

    admission: Admission
    evictions: EvictionReviews
    migrations: MigrationReviews
    subresources: Subresources
    streams: Streams
    tls: ServingTls
    front_proxy: Callable[[], FrontProxy | None]
    clock: Clock
    webhook_clients: WebhookClients | None = None
    """The clients that may send reviews; None where API servers do not authenticate to webhooks."""
    config_version: Callable[[], str] = lambda: ""
    metrics: MetricsPage = field(default_factory=lambda: MetricsPage(CollectorRegistry()))
    page: ConsolePage = field(default_factory=read_page)
    review_memory: Quota = field(default_factory=lambda: Quota(REVIEW_BYTES, REVIEW_BYTES_OF_PEER))
    review_threads: WorkerThreads = field(default_factory=lambda: WorkerThreads(REVIEW_THREADS))

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; a bug becomes a plain 500."""
        try:
            answer = await self._answer(request)
        except Exception:
            log.exception("request failed", extra={"method": request.method})
            answer = failure(500, "virt-api failed by an internal error; see its log")
        if isinstance(answer, web.StreamResponse):  # a stream that was accepted and has ended
            return answer
        return _written(answer)

    async def _answer(self, request: web.BaseRequest) -> Response | web.StreamResponse:
        # The raw path: a router that normalises first would take one path for another.
        route = find_route(request.method, request.raw_path.partition("?")[0])
        if isinstance(route, NoRoute):
            allow = {"Allow": ", ".join(route.allow)} if route.allow else None
            return failure(route.code, route.message, headers=allow)
        if isinstance(route, DocumentRoute | PageRoute | MetricsRoute):
            return await self._show(route, request)
        try:
            return await self._hand_over(route, request)
        except (UnauthenticatedError, BusyError) as error:
            log.warning("request refused", extra={"because": error, "peer": request.remote})
            return _refused(error)
        except BadBodyError as error:
            return failure(error.code, str(error))
        except TimeoutError:
            return failure(408, f"the body did not arrive within {BODY_SECONDS:.0f} s")

    async def _show(self, route: DocumentRoute | PageRoute | MetricsRoute, request: web.BaseRequest) -> Response:
        if isinstance(route, PageRoute):
            headers = request.headers
            return self.page.answer(route, headers.get("If-None-Match", ""), headers.get("Accept-Encoding", ""))
        if isinstance(route, MetricsRoute):
            return metrics(await self.metrics.render())
        return discovery.answer(route, self.config_version())

    async def _hand_over(
        self, route: WebhookRoute | SubresourceRoute, request: web.BaseRequest
    ) -> Response | web.StreamResponse:
        connection = request.get_extra_info("ssl_object")
        if not isinstance(connection, ssl.SSLObject):
            raise UnauthenticatedError("the connection has ended")
        if isinstance(route, WebhookRoute):
            check_webhook_client(self.webhook_clients, verified_chain(connection), self.clock.now())
            return await self._review(route, request)
        user = self._identify(request, connection)
        if route.row.action in STREAMS:
            return await self.streams.serve(route, user, request)
        body = await _read_body(request, MAX_OPTIONS_BYTES)
        return await self.subresources.answer(route, user, body, response_scope(request))

    async def _review(self, route: WebhookRoute, request: web.BaseRequest) -> Response:
        peer, length = request.remote or "", request.content_length
        if length is None:
            raise BadBodyError(411, "a review needs a Content-Length")
        limit = MAX_BYTES[route.stage]
        _check_length(length, limit)
        self._reserve(request, peer, length)
        body = await _read_body(request, limit)
        is_authenticated = self.webhook_clients is not None
        if route.stage == "evict":
            return await self.evictions.answer(peer, body, is_authenticated=is_authenticated)
        if route.stage == "migrate":
            return await self.migrations.answer(peer, body, is_authenticated=is_authenticated)
        response = await self.review_threads.run(partial(self.admission.answer, route, body))
        self._reserve(request, peer, max(0, len(response.body) - length))
        return response

    def _reserve(self, request: web.BaseRequest, peer: str, amount: int) -> None:
        """Reserve memory until the response is written. Raises BusyError."""
        reservation = self.review_memory.reserve(peer, amount, "too many reviews of this peer are held in memory")
        response_scope(request).enter_context(reservation)

    def _identify(self, request: web.BaseRequest, connection: ssl.SSLObject) -> User:
        if not self.tls.is_current(connection.context):
            raise UnauthenticatedError("the front proxy's CA has changed since this connection began; connect again")
        return identify(self.front_proxy(), verified_chain(connection), request.raw_headers, self.clock.now())


@asynccontextmanager
async def listening(server: Server, address: str, port: int) -> AsyncIterator[int]:
    """Listen with TLS; yields the port. On exit, requests under way get SHUTDOWN_SECONDS to end."""
    listener = Listener(server.handle, CONNECTIONS, server.tls.listening)
    try:
        yield await listener.listen(address, port)
    finally:
        await listener.close(SHUTDOWN_SECONDS)
        server.review_threads.close()
        server.subresources.threads.close()


def _written(answer: Response) -> web.Response:
    response = web.Response(
        status=answer.code,
        body=answer.body,
        content_type=answer.content_type,
        charset=answer.charset,
        headers=dict(answer.headers),
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    response.headers.setdefault("Cache-Control", "no-store")
    if answer.code in {401, 411, 413, 429}:
        response.force_close()
    return response


def _refused(error: UnauthenticatedError | BusyError) -> Response:
    if isinstance(error, UnauthenticatedError):
        return failure(401, str(error))
    return failure(429, str(error), headers={"Retry-After": "1"})


def _check_length(length: int, limit: int) -> None:
    if length > limit:
        raise BadBodyError(413, f"the body has {length} bytes, at most {limit} are allowed")


async def _read_body(request: web.BaseRequest, limit: int) -> bytes:
    """Read the body. Raises BadBodyError before it holds more than the limit in bytes, and TimeoutError."""
    _check_length(request.content_length or 0, limit)
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.content.iter_any():
            if len(body) + len(chunk) > limit:
                raise BadBodyError(413, f"the body has more than {limit} bytes")
            body += chunk
    return bytes(body)
