# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The door over real TLS: who is let in, what is read, what is answered."""

from __future__ import annotations

import asyncio
import base64
import json
import ssl
import sys
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
from controlplane.virt_handler.api_endpoint import server as door_module
from controlplane.virt_handler.api_endpoint import serving_certificate as own_pair
from controlplane.virt_handler.api_endpoint.client_ca import use_client_ca
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import PairError, SelfSignedPair, make_self_signed_pair
from tests.controlplane.virt_api.served import DAY, an_authority, now

NAMESPACE, NODE = "virt", "node-1"
QUESTION = Power(Guest(NODE, "vmi", "pod"), "pause")


def a_caller(authority: KeyPair, uri: str = role_uri(NAMESPACE, VIRT_API_CLIENT), usage: Any = "client") -> KeyPair:
    return issue(authority, Subject("virt-api/client", usage, (), uri), now(), DAY)


@pytest.fixture(scope="module")
def pair() -> SelfSignedPair:
    return asyncio.run(make_self_signed_pair(NODE))


class Opened:
    """A door with what is behind it, and ways to knock."""

    def __init__(self, pair: SelfSignedPair) -> None:
        self.pair = pair
        self.tls = EndpointTls(pair)
        self.authority = an_authority("ours")
        self.asked: list[Any] = []
        self.answer: Answer = Done()
        self.may_end = asyncio.Event()
        self.may_end.set()
        self.door = ApiEndpoint(self.tls, NAMESPACE, {Power: self._answer})
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
        """Ask once; the code, the body, and whether the connection is to be closed."""
        connector = aiohttp.TCPConnector(ssl=context or self.context())
        async with aiohttp.ClientSession(connector=connector) as session:
            url = f"https://127.0.0.1:{self.port}{path}"
            name = link.server_name(node)
            async with session.request(method, url, data=body, server_hostname=name) as response:
                return response.status, await response.read(), response.headers.get("Connection") == "close"


@pytest.fixture
async def opened(pair: SelfSignedPair) -> AsyncIterator[Opened]:
    one = Opened(pair)
    one.tls.use_authority(one.authority.certificate)
    one.port = await one.door.open("127.0.0.1", 0)
    yield one
    await one.door.close()


async def test_virt_api_asks_and_is_answered(opened: Opened) -> None:
    opened.answer = NotDone("refused", "VMI is already paused")

    code, body, is_closed = await opened.call()

    assert (code, link.read_answer(body)) == (200, opened.answer)
    assert opened.asked == [QUESTION]
    assert is_closed, "one connection, one question: no connection outlives what it was let in by"


@pytest.mark.parametrize(
    "uri",
    [
        "",
        role_uri(NAMESPACE, "virt-api/server"),
        role_uri(NAMESPACE, "virt-handler/client"),
        role_uri("other", VIRT_API_CLIENT),
        f"{role_uri(NAMESPACE, VIRT_API_CLIENT)}x",
    ],
)
async def test_a_certificate_of_our_authority_with_another_name_is_turned_away(opened: Opened, uri: str) -> None:
    code, _unused, _unused = await opened.call(context=opened.context(a_caller(opened.authority, uri)))

    assert (code, opened.asked) == (403, [])


async def turned_away(opened: Opened, context: ssl.SSLContext) -> None:
    with pytest.raises((aiohttp.ClientError, ConnectionError, ssl.SSLError)):
        await opened.call(context=context)
    assert opened.asked == []


async def test_whoever_shows_no_certificate_is_turned_away(opened: Opened) -> None:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    await turned_away(opened, context)


async def test_a_certificate_of_another_authority_is_turned_away(opened: Opened) -> None:
    await turned_away(opened, opened.context(a_caller(an_authority("theirs"))))


async def test_a_servers_certificate_is_turned_away(opened: Opened) -> None:
    await turned_away(opened, opened.context(a_caller(opened.authority, usage="server")))


async def test_tls_before_1_3_is_turned_away(opened: Opened) -> None:
    context = opened.context()
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_2
    await turned_away(opened, context)


async def test_before_the_authority_is_known_nobody_is_let_in(pair: SelfSignedPair) -> None:
    one = Opened(pair)
    one.port = await one.door.open("127.0.0.1", 0)
    assert not one.tls.is_ready
    await turned_away(one, one.context())
    await one.door.close()


async def test_an_authority_that_is_exchanged_counts_from_then_on(opened: Opened) -> None:
    before = opened.context()
    assert (await opened.call(context=before))[0] == 200
    opened.asked.clear()
    other = an_authority("new")

    opened.tls.use_authority(other.certificate)

    await turned_away(opened, before)
    assert (await opened.call(context=opened.context(a_caller(other))))[0] == 200


async def test_no_session_is_resumed(opened: Opened) -> None:
    """A resumed session would skip the certificate, which may have ceased to count."""
    context = opened.context()
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", opened.port, ssl=context, server_hostname=link.server_name(NODE)
    )
    writer.write(b"POST /v1/ask HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n")
    await reader.read()
    session = writer.get_extra_info("ssl_object").session
    writer.close()
    assert session is None or not session.has_ticket


async def test_another_server_is_not_taken_for_it(opened: Opened) -> None:
    other = await make_self_signed_pair("node-2")
    with pytest.raises(aiohttp.ClientConnectorCertificateError):
        await opened.call(context=opened.context(server=other.der))
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
async def test_what_is_no_question_is_not_asked(opened: Opened, body: bytes, code: int) -> None:
    assert (await opened.call(body))[0] == code
    assert opened.asked == []


@pytest.mark.parametrize(
    ("method", "path"), [("GET", link.PATH), ("POST", "/"), ("POST", f"{link.PATH}/x"), ("POST", f"{link.PATH}?x")]
)
async def test_there_is_one_path(opened: Opened, method: str, path: str) -> None:
    assert (await opened.call(method=method, path=path))[0] == 404
    assert opened.asked == []


async def test_a_verb_that_takes_long_is_answered_in_time(opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_module, "CARRY_OUT_SECONDS", 0.01)
    opened.may_end.clear()

    _unused, body, _unused = await opened.call()

    answer = link.read_answer(body)
    assert isinstance(answer, NotDone)
    assert answer.kind == "overdue"


async def test_a_bug_costs_its_question(opened: Opened) -> None:
    async def fail(_unused: Power) -> Answer:
        raise RuntimeError("a bug")

    opened.door._answers = {Power: fail}
    assert (await opened.call())[0] == 500
    opened.door._answers = {}
    answer = link.read_answer((await opened.call())[1])
    assert answer == NotDone("refused", "this virt-handler does not answer such questions")


async def test_many_peers_that_say_nothing_do_not_keep_virt_api_out(opened: Opened) -> None:
    silent = []
    for number in range(door_module.CONNECTIONS + 8):
        address = (f"127.0.1.{number + 1}", 0)
        silent.append(await asyncio.open_connection("127.0.0.1", opened.port, local_addr=address))

    assert (await opened.call())[0] == 200

    for _reader, writer in silent:
        writer.transport.abort()


def an_api_service(bundle: Any) -> bytes:
    return json.dumps({"metadata": {"name": "v1.subresources.kubevirt.io"}, "spec": {"caBundle": bundle}}).encode()


def test_callers_are_known_by_the_bundle_of_the_api_service(
    pair: SelfSignedPair, caplog: pytest.LogCaptureFixture
) -> None:
    tls = EndpointTls(pair)
    for raw in (None, an_api_service(""), b'{"metadata": {}}'):
        use_client_ca(tls, raw)
    assert (tls.is_ready, caplog.records) == (False, [])

    use_client_ca(tls, an_api_service(base64.b64encode(an_authority("ours").certificate).decode()))
    good = tls._current
    assert tls.is_ready

    for broken in (7, "%%%", base64.b64encode(b"no certificate").decode()):
        use_client_ca(tls, an_api_service(broken))
        assert tls._current is good
    assert len(caplog.records) == 3


def test_a_pair_is_this_processs_alone(pair: SelfSignedPair) -> None:
    other = asyncio.run(make_self_signed_pair(NODE))
    assert other.key != pair.key
    assert "PRIVATE" not in repr(pair)
    assert len(base64.b64encode(asyncio.run(make_self_signed_pair("n" * 253)).der)) <= 1024, (
        "what an annotation may have"
    )


@pytest.mark.parametrize("begins", [0.0, 1_750_000_000.0, 4_000_000_000.0], ids=["1970", "2025", "2096"])
def test_a_pair_counts_whatever_the_clock_said_when_it_was_made(
    begins: float, monkeypatch: pytest.MonkeyPatch, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    """A virt-handler that began while its clock was far ahead could not be asked until it began anew."""
    monkeypatch.setattr(time, "time", lambda: begins)
    own_pair.main(NODE, "server")
    made = validity(capsysbinary.readouterr().out)

    assert made.begins <= 0
    assert made.ends >= datetime(9999, 12, 31, tzinfo=UTC).timestamp()


def test_a_pair_that_cannot_be_made_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(PairError, match="could not be made: exit code 1"):
        asyncio.run(make_self_signed_pair(NODE))
