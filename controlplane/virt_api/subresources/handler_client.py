# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to virt-handlers: finds a node's, proves it, asks it, and reads the answer. What is asked: handler_link.

Where it is and by which certificate it is known stands in its Node's annotations, which that node's virt-handler alone
writes; a machine's node in its VMI's status, which no virt-handler can write. So a captured node answers for its own
machines, and for no other's. Its answer is bounded, typed and in time, or is none.
"""

from __future__ import annotations

import base64
import ipaddress
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Self

import aiohttp
from yarl import URL

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import NotFound
from controlplane.http_server.quotas import Shares
from controlplane.kube.certificates import KeyPair
from controlplane.kube.client import Client
from controlplane.links.handler import (
    ADDRESS,
    ANSWER_LIMIT_BYTES,
    ANSWER_SECONDS,
    CERTIFICATE,
    PATH,
    Answer,
    LinkError,
    Question,
    encode,
    read_answer,
    server_name,
)
from controlplane.tls.contexts import Address, client_context, is_anothers

CONNECT_SECONDS = 5.0
AT_ONCE = 8
"""Questions of one kind to one node, shared by namespace: who asks machines of their own that do not answer keeps no
others from that node, nor a question a power verb."""
AT_MOST = 32
"""Of one kind, of however many namespaces: a node that answers none does not hold everybody's."""
_ADDRESS_LIMIT = 64
_CERTIFICATE_LIMIT = 4096


class NotAskedError(Exception):
    """It was not asked: asking again does no harm. The text says why."""


class NotAnsweredError(Exception):
    """It was asked, and what became of that is not known. The text says why."""


class OverdueError(NotAnsweredError):
    """No answer came in time."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a node's virt-handler listens, and what it is known by."""

    host: str
    port: int
    certificate: bytes
    """DER."""

    @property
    def url(self) -> URL:
        return URL.build(scheme="https", host=self.host, port=self.port, path=PATH)


def find_place(node: Mapping[str, Any], admits: Callable[[Address], bool] = is_anothers) -> Place:
    """Read a Node's annotations. ValueError when they are not as virt-handler writes them.

    admits: where virt-handlers can be.
    """
    annotations = node.get("metadata", {}).get("annotations") or {}
    address, certificate = annotations.get(ADDRESS, ""), annotations.get(CERTIFICATE, "")
    if not address or not certificate:
        raise ValueError("its virt-handler has not said where it listens")
    if len(address) > _ADDRESS_LIMIT or len(certificate) > _CERTIFICATE_LIMIT:
        raise ValueError("what it says of where its virt-handler listens is too long")
    host, _unused, port = address.rpartition(":")
    try:
        place = ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))
        number = int(port) if port.isascii() and port.isdecimal() else 0
        if not 0 < number < 65536:
            raise ValueError
        proof = base64.b64decode(certificate, validate=True)
    except ValueError as error:
        raise ValueError("where its virt-handler listens is no IP address and port, or its certificate none") from error
    if not admits(place):
        raise ValueError(f"it says that its virt-handler listens at {place}, which is no other host's address")
    return Place(str(place), number, proof)


class Handlers:
    """Asks virt-handlers. Each question has a connection of its own."""

    def __init__(
        self, client: Client, pair: Callable[[], KeyPair | None], admits: Callable[[Address], bool] = is_anothers
    ) -> None:
        """pair: what we show; None while we have none. admits: where virt-handlers can be."""
        self._client = client
        self._admits = admits
        self._pair = pair
        self._asking: dict[tuple[str, type[Any]], Shares] = {}
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            timeout=aiohttp.ClientTimeout(total=ANSWER_SECONDS, sock_connect=CONNECT_SECONDS),
            auto_decompress=False,
            cookie_jar=aiohttp.DummyCookieJar(),
        )
        return self

    async def __aexit__(self, *_unused: object) -> None:
        if self._session is not None:
            await self._session.close()

    async def ask(self, namespace: str, question: Question) -> Answer:
        """Ask the virt-handler of the guest's node. NotAskedError, NotAnsweredError, ApiError.

        namespace: the guest's.
        """
        node, kind = question.guest.node, (question.guest.node, type(question))
        places = self._asking.setdefault(kind, Shares(AT_ONCE, least=1))
        if places.total >= AT_MOST or not places.take(namespace, 1):
            raise NotAskedError(f"virt-handler of node {node} is being asked too much at once")
        try:
            place, context = await self._find(node)
            return await self._call(node, place, context, encode(question))
        finally:
            places.give_back(namespace, 1)
            if places.is_empty:
                self._asking.pop(kind, None)

    async def _find(self, node: str) -> tuple[Place, ssl.SSLContext]:
        pair = self._pair()
        if pair is None:
            raise NotAskedError("virt-api has no pair yet to prove itself to virt-handlers by")
        try:
            place = find_place(await self._client.get(NODE, Key("", node)), self._admits)
            return place, client_context(place.certificate, pair.certificate, pair.key)
        except NotFound as error:
            raise NotAskedError(f"there is no node {node}") from error
        except (ValueError, ssl.SSLError, OSError) as error:
            raise NotAskedError(f"cannot ask virt-handler of node {node}: {error}") from error

    async def _call(self, node: str, place: Place, context: ssl.SSLContext, body: bytes) -> Answer:
        if self._session is None:
            raise AssertionError("asked outside of the block")
        who = f"virt-handler of node {node}"
        try:
            async with self._session.post(
                place.url, data=body, ssl=context, server_hostname=server_name(node), allow_redirects=False
            ) as response:
                if response.status != 200:
                    raise NotAnsweredError(f"{who} did not take the question (HTTP {response.status})")
                return read_answer(await _bounded(response))
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            why = "it is not there, or another answers in its place"
            raise NotAskedError(f"{who} cannot be reached at {place.host}:{place.port}: {why}") from error
        except TimeoutError as error:
            raise OverdueError(f"{who} did not answer within {ANSWER_SECONDS:.0f} s") from error
        except (aiohttp.ClientError, OSError) as error:
            raise NotAnsweredError(f"{who} ended the connection without an answer") from error
        except (LinkError, ValueError) as error:
            raise NotAnsweredError(f"{who} answered with what is no answer") from error


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    """Read a body. LinkError before more of it is held than an answer may have."""
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > ANSWER_LIMIT_BYTES:
            raise LinkError("too long")
    return bytes(body)
