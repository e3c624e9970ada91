# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The TLS endpoint for virt-api's requests about guests of this node. Other clients are rejected.

controlplane.links.handler defines the requests; a table maps each to its handler. controlplane.links.streams defines
streams. virt-api authenticates with a client certificate of the control plane's CA. One connection carries one request,
so that no connection outlives a CA.

TLS, HTTP and streams run in a thread of their own, and handlers in the main loop: bytes of a stream do not delay it.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import uvloop
from aiohttp import web

from controlplane.http_server.listener import Listener
from controlplane.http_server.websocket import NotAWebSocketError, accept_websocket
from controlplane.links import streams
from controlplane.links.handler import (
    CARRY_OUT_SECONDS,
    JSON_TYPE,
    PATH,
    PNG_TYPE,
    QUESTION_LIMIT_BYTES,
    Answer,
    LinkError,
    NotDone,
    Picture,
    Question,
    encode,
    read_question,
)
from controlplane.process.loop_thread import LoopThread
from controlplane.tls.contexts import VIRT_API_CLIENT, load_pair, names_role, role_uri, server_context
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.streams.sessions import Sockets, StreamSessions

log = logging.getLogger(__name__)

CONNECTIONS = 256
"""Limit of connections. A virt-api needs one for each user's request, and one for each stream (sessions.SESSIONS). Each
costs a third of a MiB."""
BODY_SECONDS = 5.0
CLOSE_SECONDS = 2.0

Answers = Mapping[type[Any], Callable[[Any], Coroutine[Any, Any, Answer]]]
"""Handlers by the type of the request. A failure of a launcher is a result, not an exception."""


class EndpointTls:
    """The TLS settings: the serving certificate, and the client CA, which is replaced without a new listener."""

    def __init__(self, pair: SelfSignedPair) -> None:
        self._pair = pair
        self._current: ssl.SSLContext | None = None
        self.listening = _context()
        # A listening socket keeps its context; this callback switches each handshake to the current one.
        self.listening.sni_callback = self._use_current

    @property
    def is_ready(self) -> bool:
        """Tell whether a client CA is set. Before that every handshake fails."""
        return self._current is not None

    def use_authority(self, authority: bytes) -> None:
        """Accept only clients of this CA (PEM). ValueError if it is invalid; then the former CA stays in use."""
        context = _context()
        try:
            load_pair(context, self._pair.certificate, self._pair.key)
            context.load_verify_locations(cadata=authority.decode("ascii"))
        except (ssl.SSLError, OSError, ValueError) as error:
            raise ValueError(f"cannot use the authority: {error}") from error
        self._current = context

    def _use_current(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        del name, context
        if self._current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = self._current
        return None


class ApiEndpoint:
    """Listens until closed."""

    def __init__(self, tls: EndpointTls, namespace: str, answers: Answers, sockets: Sockets) -> None:
        """namespace: the control plane's, whose virt-api may connect. answers, sockets: called in the main loop."""
        self._uri = role_uri(namespace, VIRT_API_CLIENT)
        self._tls = tls
        self._answers = answers
        self._thread = LoopThread("endpoint", uvloop.new_event_loop)
        self._sessions = StreamSessions(sockets, self._thread.run_in_main_loop)
        self._listener: Listener | None = None

    async def open(self, address: str, port: int) -> int:
        """Listen; return the port. OSError when it is in use."""
        return await self._thread.run(self._listen(address, port))

    async def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            await self._thread.run(listener.close(CLOSE_SECONDS))
            self._thread.end()

    async def _listen(self, address: str, port: int) -> int:
        self._listener = Listener(self._serve, CONNECTIONS, self._tls.listening)
        return await self._listener.listen(address, port)

    async def _serve(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            response = await self._respond(request)
        except Exception:
            log.exception("a request failed")
            response = web.Response(status=500)
        response.force_close()
        return response

    async def _respond(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = request.get_extra_info("ssl_object")
        if not isinstance(connection, ssl.SSLObject) or not names_role(connection, self._uri):
            log.warning("rejected a client that is not virt-api", extra={"peer": request.remote})
            return web.Response(status=403)
        if (request.method, request.raw_path) == ("GET", streams.PATH):
            return await self._stream(request)
        if (request.method, request.raw_path) != ("POST", PATH):
            return web.Response(status=404)
        try:
            parsed = read_question(await _body(request))
        except (LinkError, TimeoutError) as error:
            return web.Response(status=400, text=str(error))
        answer = await self._handle(parsed)
        if isinstance(answer, Picture):
            return web.Response(body=answer.png, content_type=PNG_TYPE)
        return web.Response(body=encode(answer), content_type=JSON_TYPE)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            websocket = await accept_websocket(request)
        except NotAWebSocketError as error:
            return web.Response(status=400, text=str(error))
        await self._sessions.serve(websocket)
        return websocket

    async def _handle(self, request: Question) -> Answer:
        handler = self._answers.get(type(request))
        if handler is None:
            return NotDone("refused", "this virt-handler does not support the request")
        try:
            async with asyncio.timeout(CARRY_OUT_SECONDS):
                return await self._thread.run_in_main_loop(handler(request))
        except TimeoutError:
            return NotDone("overdue", f"it was not done within {CARRY_OUT_SECONDS:.0f} s; virt-handler still tries")


def _context() -> ssl.SSLContext:
    return server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)


async def _body(request: web.BaseRequest) -> bytes:
    """Read the body. LinkError when it is longer than any request, TimeoutError."""
    body = bytearray()
    async with asyncio.timeout(BODY_SECONDS):
        async for chunk in request.content.iter_any():
            body += chunk
            if len(body) > QUESTION_LIMIT_BYTES:
                raise LinkError(f"a request of more than {QUESTION_LIMIT_BYTES} bytes")
    return bytes(body)
