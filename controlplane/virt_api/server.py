# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One HTTP request in, one answer out: route, identify, hand over. What is answered is decided elsewhere.

Every request is bounded in size and time before anything looks at it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial

from aiohttp import web

from controlplane.engine.ports import Clock
from controlplane.http_server.listener import Listener
from controlplane.http_server.response_writer import until_written
from controlplane.kube.access_review import User
from controlplane.virt_api.admission.eviction_review import MAX_EVICTION_BYTES, Evictions
from controlplane.virt_api.admission.migration_review import MAX_MIGRATION_BYTES, Migrations
from controlplane.virt_api.admission.reviews import Charge, Reviews
from controlplane.virt_api.admission.webhook import MAX_REVIEW_BYTES
from controlplane.virt_api.concurrency import BusyError
from controlplane.virt_api.http import discovery
from controlplane.virt_api.http.identity import FrontProxy, HookClients, UnauthenticatedError, check_reviewer, identify
from controlplane.virt_api.http.response import Answer, failure
from controlplane.virt_api.http.routes import NoRoute, ToDocument, ToHook, ToSubresource, match
from controlplane.virt_api.http.tls import ServingTls, verified_chain
from controlplane.virt_api.subresources.dispatch import Subresources

log = logging.getLogger(__name__)

MAX_OPTIONS_BYTES = 64 * 1024
BODY_SECONDS = 10.0
SHUTDOWN_SECONDS = 10.0
CONNECTIONS = 512
"""An API server opens one for each request that it has under way, at most some hundreds. Each costs a seventh of a
MiB, most of it for TLS: what peers may hold of them fits in the memory limit of the container."""


class TooLargeError(Exception):
    """The body is larger than such a request may be."""


@dataclass(frozen=True, slots=True)
class Server:
    """What is needed to answer."""

    reviews: Reviews
    evictions: Evictions
    migrations: Migrations
    subresources: Subresources
    tls: ServingTls
    front_proxy: Callable[[], FrontProxy | None]
    clock: Clock
    hook_clients: HookClients | None = None
    """Who may send reviews; None where API servers do not prove themselves to webhooks."""

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request; a bug becomes a plain 500."""
        try:
            answer = await self._answer(request)
        except Exception:
            log.exception("request failed", extra={"method": request.method})
            answer = failure(500, "virt-api failed by an error of its own; its log says more")
        response = web.Response(
            status=answer.code, body=answer.body, content_type=answer.content_type, headers=dict(answer.headers)
        )
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Cache-Control"] = "no-store"
        if answer.code in {401, 413, 429}:
            response.force_close()
        return response

    async def _answer(self, request: web.BaseRequest) -> Answer:
        # As it came: a router that normalises first would let one path pass as another.
        route = match(request.method, request.raw_path.partition("?")[0])
        if isinstance(route, NoRoute):
            allow = {"Allow": ", ".join(route.allow)} if route.allow else None
            return failure(route.code, route.message, headers=allow)
        if isinstance(route, ToDocument):
            return discovery.answer(route)
        try:
            return await self._hand_over(route, request)
        except (UnauthenticatedError, BusyError) as error:
            log.warning("turned away", extra={"because": error, "peer": request.remote})
            return _turned_away(error)
        except TooLargeError as error:
            return failure(413, str(error))
        except TimeoutError:
            return failure(408, "the body did not arrive in time")

    async def _hand_over(self, route: ToHook | ToSubresource, request: web.BaseRequest) -> Answer:
        connection = request.get_extra_info("ssl_object")
        if not isinstance(connection, ssl.SSLObject):
            raise UnauthenticatedError("the connection has ended")
        if isinstance(route, ToHook):
            check_reviewer(self.hook_clients, verified_chain(connection), self.clock.now())
            peer = request.remote or ""
            is_proven = self.hook_clients is not None
            if route.stage == "evict":
                body = await _body(request, MAX_EVICTION_BYTES)
                return await self.evictions.answer(peer, body, is_proven=is_proven)
            if route.stage == "migrate":
                read_small = partial(_body, request, MAX_MIGRATION_BYTES)
                return await self.migrations.answer(peer, read_small, is_proven=is_proven)
            read = partial(_body, request, MAX_REVIEW_BYTES)
            return await self.reviews.answer(peer, route, read, until_written(request))
        user = self._identify(request, connection)
        return await self.subresources.answer(route, user, await _body(request, MAX_OPTIONS_BYTES))

    def _identify(self, request: web.BaseRequest, connection: ssl.SSLObject) -> User:
        if not self.tls.is_current(connection.context):
            raise UnauthenticatedError("the front proxy's CA has changed since this connection began; connect anew")
        return identify(self.front_proxy(), verified_chain(connection), request.raw_headers, self.clock.now())


@asynccontextmanager
async def listening(server: Server, address: str, port: int) -> AsyncIterator[int]:
    """Listen with TLS; yields the port. On leaving, requests under way get a moment to end."""
    listener = Listener(server.handle, CONNECTIONS, server.tls.listening)
    try:
        yield await listener.listen(address, port)
    finally:
        await listener.close(SHUTDOWN_SECONDS)
        server.reviews.close()
        server.subresources.judges.close()


def _turned_away(error: UnauthenticatedError | BusyError) -> Answer:
    if isinstance(error, UnauthenticatedError):
        return failure(401, str(error))
    return failure(429, str(error), headers={"Retry-After": "1"})


def _free(amount: int) -> None:
    """Charge nothing: who asks for a subresource has proved to be the front proxy."""
    del amount


async def _body(request: web.BaseRequest, limit: int, charge: Charge = _free) -> bytes:
    """Read the body. Raises TooLargeError before more than limit bytes are held, TimeoutError, and what charge does."""
    if (request.content_length or 0) > limit:
        raise TooLargeError(f"the body has {request.content_length} bytes, at most {limit} are allowed")
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.content.iter_any():
            if len(body) + len(chunk) > limit:
                raise TooLargeError(f"the body has more than {limit} bytes")
            charge(len(chunk))
            body += chunk
    return bytes(body)
