# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Client of virt-handlers: finds the one of a node, authenticates it, sends a question, reads the answer.

What can be asked is in controlplane.links.handler. A Node's annotations, which only that node's virt-handler may write,
hold its endpoint and its certificate. A VMI's status, which no virt-handler may write, names the node. So a compromised
node answers for its own machines only. An answer is limited in size and time.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from yarl import URL

from controlplane.api.objects.resources import NODE, Key
from controlplane.domain.screenshot import PNG_LIMIT_BYTES
from controlplane.engine.errors import NotFound
from controlplane.http_server.quotas import BusyError, Quota
from controlplane.kube.client import Client
from controlplane.links.handler import (
    ADDRESS,
    ANSWER_LIMIT_BYTES,
    ANSWER_SECONDS,
    CERTIFICATE,
    PATH,
    PNG_TYPE,
    Answer,
    LinkError,
    Question,
    TakeScreenshot,
    encode,
    read_answer,
    read_picture,
    server_name,
)
from controlplane.tls.certificates import KeyPair
from controlplane.tls.contexts import Address, can_be_another_host, client_context

CONNECT_SECONDS = 5.0
MAX_CONCURRENT_OF_NAMESPACE = 8
"""Questions of one kind to one node. The limits keep power verbs apart from questions about guests, and let machines
that do not answer delay only their own namespace."""
MAX_CONCURRENT = 32
"""Of all namespaces: a node that never answers must not hold all requests."""
_ADDRESS_LIMIT = 64
_CERTIFICATE_LIMIT = 4096


class NotSentError(Exception):
    """The question was not sent: a retry is safe. The text says why."""


class OutcomeUnknownError(Exception):
    """The question was sent, and its outcome is not known. The text says why."""


class NoAnswerInTimeError(OutcomeUnknownError):
    """No answer came within ANSWER_SECONDS."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where a node's virt-handler listens, and its certificate."""

    host: str
    port: int
    certificate: bytes
    """DER."""

    def url(self, path: str) -> URL:
        return URL.build(scheme="https", host=self.host, port=self.port, path=path)


def read_endpoint(node: Mapping[str, Any], is_allowed: Callable[[Address], bool] = can_be_another_host) -> Endpoint:
    """Read a Node's annotations. ValueError when they are not as virt-handler writes them.

    is_allowed: whether a virt-handler can have this address.
    """
    annotations = node.get("metadata", {}).get("annotations") or {}
    address, certificate = annotations.get(ADDRESS, ""), annotations.get(CERTIFICATE, "")
    if not address or not certificate:
        raise ValueError("its virt-handler has not published where it listens")
    if len(address) > _ADDRESS_LIMIT or len(certificate) > _CERTIFICATE_LIMIT:
        raise ValueError("the annotations of its virt-handler are too long")
    host, _unused, port = address.rpartition(":")
    try:
        ip_address = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port) if port.isascii() and port.isdecimal() else 0
        if not 0 < number < 65536:
            raise ValueError
        der = base64.b64decode(certificate, validate=True)
    except ValueError as error:
        message = f"annotation {ADDRESS} is no IP address and port, or annotation {CERTIFICATE} no certificate"
        raise ValueError(message) from error
    if not is_allowed(ip_address):
        raise ValueError(f"its virt-handler cannot listen at {ip_address}, which is no other host's address")
    return Endpoint(str(ip_address), number, der)


class HandlerClient:
    """Sends questions to virt-handlers, each on a connection of its own."""

    def __init__(
        self,
        client: Client,
        pair: Callable[[], KeyPair | None],
        is_allowed: Callable[[Address], bool] = can_be_another_host,
    ) -> None:
        """pair: our client pair; None while we have none. is_allowed: as in read_endpoint."""
        self._client = client
        self.is_allowed = is_allowed
        self._pair = pair
        self._quotas: dict[tuple[str, type[Any]], Quota] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
            middlewares=(_refuse_redirect,),
        )
        return self

    async def __aexit__(self, *_unused: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def call(self, namespace: str, question: Question) -> Answer:
        """Ask the virt-handler of the guest's node. Raises NotSentError, OutcomeUnknownError, ApiError.

        namespace: the guest's.
        """
        node = question.guest.node
        try:
            with self._reserve(namespace, node, type(question)):
                endpoint, context = await self.find(node)
                return await self._send(endpoint, context, question)
        except BusyError as error:
            raise NotSentError(str(error)) from error

    @contextmanager
    def _reserve(self, namespace: str, node: str, kind: type[Any]) -> Iterator[None]:
        quota = self._quotas.setdefault((node, kind), Quota(MAX_CONCURRENT, MAX_CONCURRENT_OF_NAMESPACE))
        try:
            with quota.reserve(namespace, 1, f"too many requests to virt-handler of node {node} are under way"):
                yield
        finally:
            if quota.is_unused:
                self._quotas.pop((node, kind), None)

    @property
    def session(self) -> aiohttp.ClientSession:
        """For connections that carry something else than a question."""
        if self._session is None:
            raise AssertionError("called outside of the block")
        return self._session

    async def find(self, node: str) -> tuple[Endpoint, ssl.SSLContext]:
        """Return the endpoint of a node, and a context that accepts no other. Raises NotSentError, ApiError."""
        pair = self._pair()
        if pair is None:
            raise NotSentError("virt-api has no client pair for virt-handlers yet")
        try:
            endpoint = read_endpoint(await self._client.get(NODE, Key("", node)), self.is_allowed)
            return endpoint, client_context(endpoint.certificate, pair.certificate, pair.key)
        except NotFound as error:
            raise NotSentError(f"there is no node {node}") from error
        except (ValueError, ssl.SSLError, OSError) as error:
            raise NotSentError(f"cannot ask virt-handler of node {node}: {error}") from error

    async def _send(self, endpoint: Endpoint, context: ssl.SSLContext, question: Question) -> Answer:
        node = question.guest.node
        handler, body = f"virt-handler of node {node}", encode(question)
        try:
            async with self.session.post(
                endpoint.url(PATH), data=body, ssl=context, server_hostname=server_name(node), allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise OutcomeUnknownError(f"{handler} did not take the question (HTTP {response.status})")
                if isinstance(question, TakeScreenshot) and response.content_type == PNG_TYPE:
                    return read_picture(await _read_bounded(response, PNG_LIMIT_BYTES))
                return read_answer(await _read_bounded(response, ANSWER_LIMIT_BYTES))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            why = "it does not listen there, or another process does"
            raise NotSentError(f"{handler} cannot be reached at {endpoint.host}:{endpoint.port}: {why}") from error
        except TimeoutError as error:
            raise NoAnswerInTimeError(f"{handler} did not answer within {ANSWER_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise OutcomeUnknownError(f"{handler} ended the connection without an answer") from error
        except (LinkError, ValueError) as error:
            raise OutcomeUnknownError(f"{handler} sent an invalid answer") from error


async def _refuse_redirect(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Take a redirect for an error: a compromised node would choose whom virt-api connects to. For WebSockets, which
    have no option for it.
    """
    response = await send(request)
    if request.method == "GET" and 300 <= response.status < 400:
        response.close()
        raise aiohttp.ClientError(f"it answers with a redirect (HTTP {response.status})")
    return response


async def _read_bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Read a body. LinkError when it has more bytes than the limit."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > limit:
            raise LinkError("too long")
    return bytes(body)
