# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The API endpoint over real TLS: which clients it admits, what it reads, what it answers."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import pytest

from controlplane.links import handler as link
from controlplane.links.handler import Answer, Done, Guest, NotDone, Power
from controlplane.tls.certificates import KeyPair, Subject, issue, validity
from controlplane.tls.contexts import VIRT_API_CLIENT, client_context, role_uri
from controlplane.virt_handler.api_endpoint import server as server_module
from controlplane.virt_handler.api_endpoint import serving_certificate as certificate_module
from controlplane.virt_handler.api_endpoint.client_ca import use_client_ca
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from tests.controlplane.virt_api.served import DAY, an_authority, now
from tests.controlplane.virt_handler.streams.stage import NoStreams

INSTALL_NAMESPACE, NODE = "virt", "node-1"
QUESTION = Power(Guest(NODE, "vmi", "pod"), "pause")


def a_caller(
    authority: KeyPair, uri: str = role_uri(INSTALL_NAMESPACE, VIRT_API_CLIENT), usage: Any = "client"
) -> KeyPair:
    return issue(authority, Subject("virt-api/client", usage, (), uri), now(), DAY)


class Opened:
    """An open endpoint, and a client for it."""

    def __init__(self, pair: SelfSignedPair) -> None:
        self.pair = pair
        self.tls = EndpointTls(pair)
        self.authority = an_authority("ours")
        self.asked: list[Any] = []
        self.answer: Answer = Done()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.endpoint = ApiEndpoint(self.tls, INSTALL_NAMESPACE, {Power: self._answer}, NoStreams())
        self.port = 0

    async def _answer(self, asked: Power) -> Answer:
        self.asked.append(asked)
        await self.may_end.wait()
        return self.answer

    def context(self, caller: KeyPair | None = None, server: bytes | None = None) -> ssl.SSLContext:
        caller = caller or a_caller(self.authority)
        return client_context(server or self.pair.der, caller.certificate, caller.key)

    async def call(
        self,
        body: bytes = link.encode(QUESTION),
        *,
        context: ssl.SSLContext | None = None,
        method: str = "POST",
        path: str = link.PATH,
        node: str = NODE,
    ) -> tuple[int, bytes, bool]:
        """Send one request. Return the status code, the body, and whether the server closes the connection."""
        connector = aiohttp.TCPConnector(ssl=context or self.context())
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://127.0.0.1:{self.port}{path}"
            name = link.server_name(node)
            async with session.request(method, url, data=body, server_hostname=name) as response:
                return response.status, await response.read(), response.headers.get("Connection") == "close"


@pytest.fixture
async def opened(pair: SelfSignedPair) -> AsyncIterator[Opened]:
    opened = Opened(pair)
    opened.tls.use_authority(opened.authority.certificate)
    opened.port = await opened.endpoint.open("127.0.0.1", 0)
    yield opened
    await opened.endpoint.close()


async def test_virt_api_gets_an_answer(opened: Opened) -> None:
    opened.answer = NotDone("refused", "VMI is already paused")

    code, body, is_closed = await opened.call()

    assert (code, link.read_answer(body)) == (200, opened.answer)
    assert opened.asked == [QUESTION]
    assert is_closed, "one connection, one question: no connection outlives what it was let in by"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        role_uri(INSTALL_NAMESPACE, "virt-api/server"),
        role_uri(INSTALL_NAMESPACE, "virt-handler/client"),
        role_uri("other", VIRT_API_CLIENT),
        f"{role_uri(INSTALL_NAMESPACE, VIRT_API_CLIENT)}x",
    ],
)
async def test_a_client_certificate_with_another_role_is_forbidden(opened: Opened, uri: str) -> None:
    code, _unused, _unused = await opened.call(context=opened.context(a_caller(opened.authority, uri)))

    assert (code, opened.asked) == (403, [])


async def turned_away(opened: Opened, context: ssl.SSLContext) -> None:
    with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
        await opened.call(context=context)
    assert opened.asked == []


async def test_a_client_without_a_certificate_is_rejected(opened: Opened) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await turned_away(opened, context)


async def test_without_a_client_ca_every_client_is_rejected(pair: SelfSignedPair) -> None:
    opened = Opened(pair)
    opened.port = await opened.endpoint.open("127.0.0.1", 0)
    assert not opened.tls.is_ready
    await turned_away(opened, opened.context())
    await opened.endpoint.close()


async def test_a_new_client_ca_replaces_the_old_one(opened: Opened) -> None:
    before = opened.context()
    assert (await opened.call(context=before))[0] == 200
    opened.asked.clear()
    authority = an_authority("new")

    opened.tls.use_authority(authority.certificate)

    await turned_away(opened, before)
    assert (await opened.call(context=opened.context(a_caller(authority))))[0] == 200


async def test_tls_sessions_are_not_resumed(opened: Opened) -> None:
    """A resumed session would skip the check of the client certificate."""
    context = opened.context()
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", opened.port, ssl=context, server_hostname=link.server_name(NODE)
    )
    writer.write(b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    await reader.read()
    session = writer.get_extra_info("ssl_object").session
    writer.close()
    assert session is None or not session.has_ticket


async def test_a_client_rejects_the_certificate_of_another_node(opened: Opened) -> None:
    with pytest.raises(aiohttp.ClientConnectorCertificateError, match=r"[Hh]ostname"):
        await opened.call(node="node-2")
    assert opened.asked == []


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", 400),
        (b"{}", 400),
        (b'{"type": "Reboot"}', 400),
        (b"\xff", 400),
        (b"[" * 4000, 400),
        (msgspec.json.encode({"type": "Power", "guest": {"node": "n"}, "verb": "pause"}), 400),
        (link.encode(QUESTION).replace(b"pause", b"melt"), 400),
        (link.encode(QUESTION) + b" " * link.QUESTION_LIMIT_BYTES, 400),
    ],
)
async def test_an_invalid_body_is_rejected(opened: Opened, body: bytes, code: int) -> None:
    assert (await opened.call(body))[0] == code
    assert opened.asked == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", link.PATH), ("POST", "/"), ("POST", f"{link.PATH}/x"), ("POST", f"{link.PATH}?x")]
)
async def test_other_paths_and_methods_are_not_found(opened: Opened, method: str, path: str) -> None:
    assert (await opened.call(method=method, path=path))[0] == 404
    assert opened.asked == []


async def test_a_slow_request_is_answered_as_overdue(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CARRY_OUT_SECONDS", 0.01)
    opened.may_end.clear()

    _unused, body, _unused = await opened.call()

    answer = link.read_answer(body)
    assert isinstance(answer, NotDone)
    assert answer.kind == "overdue"


async def test_a_bug_fails_only_its_own_request(opened: Opened) -> None:
    async def fail(_unused: Power) -> Answer:
        raise RuntimeError("a bug")

    opened.endpoint._answers = {Power: fail}
    assert (await opened.call())[0] == 500
    opened.endpoint._answers = {}
    answer = link.read_answer((await opened.call())[1])
    assert answer == NotDone("refused", "this virt-handler does not support the request")


async def test_silent_peers_do_not_lock_virt_api_out(opened: Opened) -> None:
    silent = []
    for number in range(server_module.CONNECTIONS + 8):
        address = (f"127.0.{number // 200 + 1}.{number % 200 + 1}", 0)
        silent.append(await asyncio.open_connection("127.0.0.1", opened.port, local_addr=address))

    assert (await opened.call())[0] == 200

    for _reader, writer in silent:
        writer.transport.abort()


def an_api_service(bundle: Any) -> bytes:
    return json.dumps({"metadata": {"name": "v1.subresources.kubevirt.io"}, "spec": {"caBundle": bundle}}).encode()


def test_the_client_ca_comes_from_the_api_service(pair: SelfSignedPair, caplog: pytest.LogCaptureFixture) -> None:
    tls = EndpointTls(pair)
    for raw in (None, an_api_service(""), b'{"metadata": {}}'):
        use_client_ca(tls, raw)
    assert (tls.is_ready, caplog.records) == (False, [])

    use_client_ca(tls, an_api_service(base64.b64encode(an_authority("ours").certificate).decode()))
    good = tls._current
    assert tls.is_ready
    for context in (good, tls.listening):
        assert context is not None
        assert (context.minimum_version, context.verify_mode) == (ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)

    for broken in (7, "%%%", base64.b64encode(b"no certificate").decode()):
        use_client_ca(tls, an_api_service(broken))
        assert tls._current is good
    assert len(caplog.records) == 3


@pytest.mark.parametrize("begins", [0.0, 4_000_000_000.0], ids=["1970", "2096"])
def test_a_key_pair_is_valid_whatever_the_clock_shows(
    begins: float, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """Otherwise a key pair made while the clock was far ahead would be unusable until a restart."""
    monkeypatch.setattr(time, "time", lambda: begins)
    certificate_module.main(NODE, "server")
    dates = validity(capsysbinary.readouterr().out)

    assert dates.begins <= 0
    assert dates.ends >= datetime(9999, 12, 31, tzinfo=UTC).timestamp()
