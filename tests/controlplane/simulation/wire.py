# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection between a process and the API server: the real Transport on sessions that the schedule answers.

Each request is an exchange with a fate: applied with a response, applied without one, never arrived, or answered by a
proxy. The conclusions of the Transport are compared with those that are allowed.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self, cast

import aiohttp
from yarl import URL

from controlplane.engine.errors import ApiError, Forbidden, NotFound, Throttled, Unavailable, WebhookFailed
from controlplane.kube.credentials import Credentials
from controlplane.kube.transport import Request, Transport
from tests.controlplane.simulation.api_server import CODES, ApiServer, Reply, Target, status

HTML = b"<html><body><h1>404 Not Found</h1>nginx</body></html>"
AWAY_SECONDS = 3
"""The Retry-After of a server."""
BAD_WEBHOOK = 'Internal error occurred: failed calling webhook "deny.example.com": connection refused'
TOO_LARGE = {"causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}]}


@dataclass(frozen=True, slots=True)
class Fate:
    """The fate of a request. error: the allowed conclusion; None: the response of the server."""

    name: str
    error: type[ApiError] | None = Unavailable
    reply: Reply | None = None
    """The response of a proxy, or of a server that does nothing."""
    raised: type[Exception] | None = None
    is_done: bool = False
    of: str = ""
    """Which requests may get it: "write", "list", "collection" (list or watch); "": all."""


DONE = Fate("done", None, is_done=True)
FATES = (
    Fate("refused", raised=aiohttp.ClientOSError),
    Fate("cut", raised=aiohttp.ServerDisconnectedError, is_done=True),
    Fate("never answered", raised=TimeoutError),
    Fate("answered too late", raised=TimeoutError, is_done=True),
    Fate("a proxy's page", reply=Reply(502, HTML)),
    Fate("a proxy's 404", reply=Reply(404, HTML, {"Content-Type": "text/html"})),
    Fate("a plain 404", reply=Reply(404, b"404 page not found\n")),
    Fate("an empty 404", reply=Reply(404, b"")),
    Fate("another server's 404", reply=Reply(404, b'{"code":404,"message":"no such route"}')),
    Fate("elsewhere", reply=Reply(307, b"", {"Location": "https://example.com/"})),
    Fate("a page in its place", None, reply=Reply(200, HTML)),
    Fate("not now", reply=Reply(503, b"", {"Retry-After": str(AWAY_SECONDS)})),
    Fate("throttled", Throttled, Reply(429, b"too many", {"Retry-After": str(AWAY_SECONDS)})),
    Fate("forbidden", Forbidden, status(403, "Forbidden", "no")),
    Fate("expired token", Forbidden, status(401, "Unauthorized", "Unauthorized")),
    Fate("webhook", WebhookFailed, status(500, "InternalError", BAD_WEBHOOK), of="write"),
    Fate("behind", Unavailable, status(504, "Timeout", "Too large resource version", TOO_LARGE), of="list"),
    Fate("no such kind", NotFound, status(404, "NotFound", "the server could not find it"), of="collection"),
)


class Exchange:
    """A request in progress. settled: it has a response, or its caller has stopped waiting."""

    def __init__(self, by: Wire, lane: str, method: str, target: Target, body: bytes | None) -> None:
        self.by, self.lane, self.method, self.target, self.body = by, lane, method, target, body
        self.answer: asyncio.Future[Response] = asyncio.get_running_loop().create_future()
        self.fate = DONE
        self.error: type[ApiError] | None = None
        """The allowed conclusion from the response; None: it was applied."""
        self.reply: Reply | None = None
        """The response that has arrived."""

    @property
    def is_write(self) -> bool:
        return self.method != "GET"

    def meets(self, fate: Fate) -> bool:
        """Whether this fate is possible for the request."""
        is_collection = not self.is_write and self.target.key is None
        is_list = is_collection and not self.target.is_watch
        kinds = {"": True, "write": self.is_write, "list": is_list, "collection": is_collection}
        return kinds[fate.of]

    def carry_out(self, fate: Fate) -> None:
        """Let it meet its fate."""
        self.fate, reply = fate, fate.reply
        if fate.is_done and not self.target.is_watch:
            self.by.server.store.actor = "controller"
            reply = self.by.server.answer(self.method, self.target, self.body)
        elif fate is DONE:
            reply = self.by.server.open(self.target)
        self.error = fate.error
        if fate is DONE and reply is not None and not reply.is_ok:
            known = {(code, reason): kind for kind, (code, reason) in CODES.items()}
            self.error = next((kind for at, kind in known.items() if _says(reply, *at)), Unavailable)
        if self.answer.done():
            return
        if fate.raised is not None or reply is None:
            self.answer.set_exception((fate.raised or TimeoutError)())
        else:
            self.reply = reply
            stream = Stream(self) if self.target.is_watch and reply.is_ok else None
            if stream is not None and reply.body:
                stream.send(reply.body)
                stream.send(b"")
            self.answer.set_result(Response(reply, stream))


class Stream:
    """The open response of a watch. Implements what is needed of aiohttp.StreamReader."""

    def __init__(self, exchange: Exchange) -> None:
        self.by, self.target = exchange.by, exchange.target
        self.resource_version = int(exchange.target.query["resourceVersion"])
        self._chunks: list[bytes | Exception] = []
        self._reader: asyncio.Future[bytes] | None = None
        self.is_over = False
        self.by.streams.append(self)

    async def read(self, _unused: int) -> bytes:
        """Wait for the next bytes; b"" at the end."""
        if not self._chunks:
            self._reader = asyncio.get_running_loop().create_future()
            return await self._reader
        chunk = self._chunks.pop(0)
        if isinstance(chunk, Exception):
            raise chunk
        return chunk

    def send(self, chunk: bytes | Exception) -> None:
        """Deliver bytes, the end (b""), or a broken connection."""
        if self.is_over:
            return
        if not isinstance(chunk, bytes) or not chunk:
            self.close()
        reader, self._reader = self._reader, None
        if reader is None or reader.done():
            self._chunks.append(chunk)
        elif isinstance(chunk, bytes):
            reader.set_result(chunk)
        else:
            reader.set_exception(chunk)

    def close(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.by.streams.remove(self)


class Response:
    """Implements what is needed of aiohttp.ClientResponse."""

    connection = None

    def __init__(self, reply: Reply, stream: Stream | None) -> None:
        self.status, self.headers = reply.code, reply.headers
        self._body, self._stream = reply.body, stream

    @property
    def content(self) -> Self | Stream:
        return self if self._stream is None else self._stream

    async def read(self, size: int = -1) -> bytes:
        body, self._body = (self._body, b"") if size < 0 else (self._body[:size], self._body[size:])
        return body

    async def iter_chunked(self, size: int) -> AsyncIterator[bytes]:
        while chunk := await self.read(size):
            yield chunk

    def release(self) -> None:
        """There is nothing to release."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._stream is not None:
            self._stream.close()


class Session:
    """Implements what is needed of aiohttp.ClientSession: one connection pool."""

    def __init__(self, wire: Wire, lane: str) -> None:
        self._wire, self._lane = wire, lane

    async def request(
        self,
        method: str,
        url: URL,
        *,
        data: bytes | None,
        headers: Mapping[str, str],
        allow_redirects: bool,
        **limits: Any,
    ) -> Response:
        del limits
        if allow_redirects:
            self._wire.complain("it follows whoever sends it elsewhere, with its token")
        target = self._wire.server.target(url.raw_path, url.query)
        if headers.get("Authorization") != self._wire.token:
            self._wire.complain(f"{method} {url.path} is sent with a token that was refused")
        exchange = Exchange(self._wire, self._lane, method, target, data)
        self._wire.pending.append(exchange)
        OF_ONE.get([]).append(exchange)
        self._wire.asked(exchange)
        return await exchange.answer


OF_ONE: ContextVar[list[Exchange]] = ContextVar("exchanges of one request")


class JudgedTransport(Transport):
    """Reports to `complain` conclusions that a response does not allow."""

    complain: Callable[[str], None]

    async def send(self, request: Request) -> bytes:
        OF_ONE.set(made := [])
        try:
            body = await super().send(request)
        except ApiError as error:
            self._judge(request, made, error)
            raise
        self._judge(request, made, None)
        return body

    def _judge(self, request: Request, made: list[Exchange], error: ApiError | None) -> None:
        last = made[-1]
        if (None if error is None else error.__class__) is not last.error:
            self.complain(f"{request.attempt} met {last.fate.name}, and that is taken for {error!r}")
        is_refused = made[0].fate.name == "expired token"
        if len(made) != 1 + is_refused:
            self.complain(f"{request.attempt} met {made[0].fate.name}, and is sent {len(made)} times")
        has_word = "Retry-After" in (last.fate.reply.headers if last.fate.reply else {})
        if error is not None and has_word and error.details.get("retryAfterSeconds") != AWAY_SECONDS:
            self.complain(f"{request.attempt}: the server asks for time, and {error!r} does not say so")


class Wire:
    """Per process. asked: receives each request when it is sent."""

    def __init__(self, server: ApiServer, complain: Callable[[str], None], asked: Callable[[Exchange], None]) -> None:
        self.server, self.complain, self.asked = server, complain, asked
        self.pending: list[Exchange] = []
        self.streams: list[Stream] = []
        self._tokens = 1

    @property
    def token(self) -> str:
        return f"Bearer {self._tokens}"

    def transport(self) -> Transport:
        sessions = {
            lane: cast(aiohttp.ClientSession, Session(self, lane)) for lane in ("requests", "leases", "streams")
        }
        made = JudgedTransport(Credentials("http://kubernetes", None, self._authorize), "simulated", _sessions=sessions)
        made.complain = self.complain
        return made

    async def _authorize(self, was_refused: bool) -> str:
        self._tokens += was_refused
        return f"Bearer {self._tokens}"


def _says(reply: Reply, code: int, reason: str) -> bool:
    return reply.code == code and f'"reason":"{reason}"'.encode() in reply.body
