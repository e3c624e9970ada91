# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes to and from the API server: sessions, connection limits, time-outs, tokens, error translation.

Which requests are made is up to client.py. Only one thing is retried here: after a 401 the token is read again.
"""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import aiohttp
from yarl import URL

from controlplane.engine.errors import Unavailable
from controlplane.kube.credentials import Credentials
from controlplane.kube.errors import ANSWER_TOO_LARGE, translate

CONNECTIONS = 16  # per process; the API server's fairness queues do not reward more
IDLE_SECONDS = 30.0  # short-lived idle connections spread over API servers again after one restarts
REQUEST_SECONDS = 30.0
CONNECT_SECONDS = 5.0
# Above any object: a request has at most 3 MiB, etcd holds 1.5, and Go writes each <, > and & in six bytes, which makes
# 18 MiB. The rest is for the event around it, and for aggregated API servers with larger objects.
MAX_LINE_BYTES = 32 * 1024 * 1024
CHUNK_BYTES = 64 * 1024

_JSON = "application/json"
# No compression: it costs the API server CPU, and lines of a watch would wait for a block to fill.
_HEADERS = {"Accept": _JSON, "Accept-Encoding": "identity"}


@dataclass(frozen=True, slots=True)
class Request:
    """One request. attempt names it in error messages, e.g. "get Pod ns/name"."""

    method: str
    path: str
    """Escaped path with query."""
    attempt: str
    body: bytes | None = None
    content_type: str = _JSON
    pool: str = "requests"
    """Connection pool. Leases have their own, so that a slow API server that blocks all other requests does not cost
    this process the leadership."""
    most_bytes: int = 0
    """A longer response is not read to its end; 0: no limit."""


@dataclass(slots=True)
class Transport:
    """Sessions to one API server: pools of connections for requests, and streams without a limit."""

    credentials: Credentials
    user_agent: str
    connections: int = CONNECTIONS
    request_seconds: float = REQUEST_SECONDS
    _sessions: dict[str, aiohttp.ClientSession] = field(default_factory=dict)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        while self._sessions:
            _unused, session = self._sessions.popitem()
            await session.close()

    async def send(self, request: Request) -> bytes:
        """Return the body of a 2xx response. Raises ApiError; Unavailable without a usable response."""
        limits = aiohttp.ClientTimeout(total=self.request_seconds, sock_connect=CONNECT_SECONDS)
        async with self._answer(request, request.pool, limits) as response:
            return await _read(response, request) if request.most_bytes else await response.read()

    @asynccontextmanager
    async def stream(self, request: Request, silence_seconds: float) -> AsyncIterator[AsyncIterator[bytes]]:
        """Yield the lines of a watch. Silence, a closed connection or half a line is Unavailable.

        A line above MAX_LINE_BYTES is Unavailable with ANSWER_TOO_LARGE: a watch from before it would end there again.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_SECONDS, sock_read=silence_seconds)
        async with self._answer(request, "streams", limits) as response:
            try:
                yield _lines(response.content, request.attempt)
            finally:
                # Do not wait for the peer's TLS goodbye, which may never come.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()

    @asynccontextmanager
    async def _answer(
        self, request: Request, kind: str, limits: aiohttp.ClientTimeout
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        try:
            response = await self._open(request, kind, limits, refused=False)
            if response.status == 401:
                response.release()
                response = await self._open(request, kind, limits, refused=True)
            async with response:
                if not 200 <= response.status < 300:
                    retry_after = response.headers.get("Retry-After")
                    raise translate(response.status, await response.read(), request.attempt, retry_after)
                yield response
        except aiohttp.ClientConnectorCertificateError as error:
            self.credentials.reload_trust()
            raise _unavailable(
                request, f"the server's certificate is not trusted ({error.certificate_error})"
            ) from error
        except TimeoutError as error:
            raise _unavailable(request, "no answer in time") from error
        except (aiohttp.ClientError, OSError) as error:
            raise _unavailable(request, f"{type(error).__name__}: {error}") from error

    async def _open(
        self, request: Request, kind: str, limits: aiohttp.ClientTimeout, *, refused: bool
    ) -> aiohttp.ClientResponse:
        headers = dict(_HEADERS)
        authorization = await self.credentials.authorization(refused)
        if authorization:
            headers["Authorization"] = authorization
        if request.body is not None:
            headers["Content-Type"] = request.content_type
        return await self._session(kind).request(
            request.method,
            URL(self.credentials.server + request.path, encoded=True),
            data=request.body,
            headers=headers,
            timeout=limits,
            allow_redirects=False,  # a redirect would send our token to another server
        )

    def _session(self, kind: str) -> aiohttp.ClientSession:
        session = self._sessions.get(kind)
        if session is None:
            connector = aiohttp.TCPConnector(
                limit=0 if kind == "streams" else self.connections,
                ssl=self.credentials.tls if self.credentials.tls is not None else True,
                keepalive_timeout=IDLE_SECONDS,
                socket_factory=_socket,
            )
            session = self._sessions[kind] = aiohttp.ClientSession(
                connector=connector, headers={"User-Agent": self.user_agent}, cookie_jar=aiohttp.DummyCookieJar()
            )
        return session


async def _read(response: aiohttp.ClientResponse, request: Request) -> bytes:
    """Read a response up to its limit. Leaving early closes the connection."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(CHUNK_BYTES):
        body += chunk
        if len(body) > request.most_bytes:
            why = f"the answer is larger than {request.most_bytes} bytes"
            raise Unavailable(f"cannot {request.attempt}: {why}", reason=ANSWER_TOO_LARGE)
    return bytes(body)


def _unavailable(request: Request, why: str) -> Unavailable:
    return Unavailable(f"cannot {request.attempt}: {why}")


def _socket(address: tuple[int, int, int, str, Mapping[str, object] | tuple[object, ...]]) -> socket.socket:
    """Create a socket that notices a half-open connection within about 30 s, for watches too."""
    family, kind, protocol, *_unused = address
    created = socket.socket(family=family, type=kind, proto=protocol)
    created.setblocking(False)
    created.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    created.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 15)
    created.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 5)
    created.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 3)
    created.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 30_000)
    return created


async def _lines(content: aiohttp.StreamReader, attempt: str) -> AsyncIterator[bytes]:
    """Split by newline. StreamReader.readline refuses lines above 64 KiB, and objects are larger."""
    rest = bytearray()
    while chunk := await content.read(CHUNK_BYTES):
        start = len(rest)
        rest += chunk
        if rest.find(b"\n", start) < 0:
            if len(rest) > MAX_LINE_BYTES:
                why = f"a line of the stream is longer than {MAX_LINE_BYTES} bytes"
                raise Unavailable(f"cannot {attempt}: {why}", reason=ANSWER_TOO_LARGE)
            continue
        *complete, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in complete:
            if line:
                yield line
    if rest:
        raise Unavailable(f"cannot {attempt}: the stream ended within a line")
