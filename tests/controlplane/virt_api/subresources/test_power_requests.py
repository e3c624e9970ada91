# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""User requests from virt-api to a node's virt-handler and back, over real TLS, on a fake API server."""

from __future__ import annotations

import asyncio
import base64
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from controlplane.links import handler as link
from controlplane.links.handler import Answer, Done, Guest, NotDone, Power
from controlplane.tls.certificates import KeyPair, Subject, issue
from controlplane.tls.contexts import VIRT_API_CLIENT, load_pair, role_uri
from controlplane.virt_api.subresources import handler_client
from controlplane.virt_api.subresources.handler_client import HandlerClient, NotSentError, read_endpoint
from controlplane.virt_handler.api_endpoint.server import ApiEndpoint, EndpointTls
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair
from controlplane.virt_handler.node.labels import endpoint_annotations
from tests.controlplane.kube.fake_api import a_client
from tests.controlplane.virt_api.served import (
    CLIENTS,
    DAY,
    USER,
    Json,
    Served,
    a_client_pair,
    an_authority,
    now,
    secret,
    serving,
)
from tests.controlplane.virt_handler.streams.stage import NoStreams

NODE = "/api/v1/nodes/node-1"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"
VERBS = ("pause", "unpause", "reset", "softreboot", "unfreeze")


def a_vmi(phase: str = "Running", paused: str = "", **status: Any) -> Json:
    conditions = [{"type": "Paused", "status": "True", "reason": paused}] if paused else []
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "spec": {"domain": {"devices": {}}},
        "status": {
            "phase": phase,
            "nodeName": "node-1",
            "activePods": {"pod-1": "node-1"},
            "conditions": conditions,
            **status,
        },
    }


class Stage:
    """A virt-api, and the API endpoint of a virt-handler."""

    def __init__(self, served: Served, pair: SelfSignedPair) -> None:
        self.served = served
        self.pair = pair
        self.authority = an_authority("ours")
        self.proxy = a_client_pair(served.proxy_authority, usage=CLIENTS)
        self.questions: list[Power] = []
        self.response: Answer = Done()
        self.tls = EndpointTls(pair)
        self.tls.use_authority(self.authority.certificate)
        self.endpoint = ApiEndpoint(self.tls, "virt", {Power: self._answer}, NoStreams())

    async def _answer(self, question: Power) -> Answer:
        self.questions.append(question)
        return self.response

    async def open(self) -> None:
        self.port = await self.endpoint.open("127.0.0.1", 0)
        self.announce(self.port)
        self.give_client_pair(self.authority)

    def announce(self, port: int, certificate: bytes | None = None) -> None:
        annotations = endpoint_annotations("127.0.0.1", port, certificate or self.pair.der)
        self.served.api.put(NODE, {"metadata": {"name": "node-1", "annotations": annotations}})

    def give_client_pair(self, authority: KeyPair) -> None:
        """Give virt-api a client pair."""
        subject = Subject("virt-api/client", "client", (), role_uri("virt", VIRT_API_CLIENT))
        self.served.cluster.take_client_pair(None, None, secret(issue(authority, subject, now(), DAY)))  # type: ignore[arg-type]

    async def call(self, verb: str, body: bytes = b"{}", namespace: str = "ns") -> tuple[int, Any]:
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/web/{verb}"
        return await self.served.call("PUT", path, pair=self.proxy, headers=USER, body=body)

    async def is_to_be_repeated(self, verb: str) -> bool:
        """Return whether the response makes clients retry automatically."""
        path = f"/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/{verb}"
        async with self.served.session(self.proxy) as session:
            url = f"https://127.0.0.1:{self.served.port}{path}"
            async with session.put(url, headers=USER, server_hostname="virt-api.kubevirt.svc") as response:
                return "Retry-After" in response.headers

    async def get_guest_info(self) -> tuple[int, Any]:
        path = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web/userlist"
        return await self.served.call("GET", path, pair=self.proxy, headers=USER)


@pytest.fixture
async def stage(tmp_path: Path, pair: SelfSignedPair) -> AsyncIterator[Stage]:
    async with serving(tmp_path) as served:
        stage = Stage(served, pair)
        await stage.open()
        yield stage
        await stage.endpoint.close()


@pytest.mark.parametrize("verb", VERBS)
async def test_a_verb_reaches_the_guest(stage: Stage, verb: Any) -> None:
    uid = stage.served.api.put(VMI, a_vmi())["metadata"]["uid"]

    assert await stage.call(verb, b"") == (200, "")

    assert stage.questions == [Power(Guest("node-1", uid, "pod-1"), verb)]
    assert [review["resourceAttributes"]["subresource"] for review in stage.served.reviews] == [verb]


@pytest.mark.parametrize(
    ("answer", "code", "text"),
    [
        (NotDone("refused", "VMI is already paused"), 409, '"web": VMI is already paused'),
        (NotDone("absent", "not here"), 404, "cannot pause virtualmachineinstance ns/web: not here"),
        (NotDone("busy", "a start"), 503, "cannot pause virtualmachineinstance ns/web: a start"),
        (NotDone("lost", "it broke"), 503, "it broke; whether it happened is not known"),
        (NotDone("overdue", "20 s"), 504, "cannot pause virtualmachineinstance ns/web: 20 s"),
        (NotDone("refused", ""), 409, "its virt-handler gives no reason"),
    ],
)
async def test_virt_handlers_answer_is_the_response(stage: Stage, answer: Answer, code: int, text: str) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.response = answer

    answered, status = await stage.call("pause")

    assert (answered, status["kind"], status["status"], status["code"]) == (code, "Status", "Failure", code)
    assert text in status["message"]


async def test_a_freeze_has_a_time_limit(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    assert await stage.call("freeze", b'{"unfreezeTimeout": "1m30s"}') == (200, "")
    assert [(question.verb, question.thaw_after_seconds) for question in stage.questions] == [("freeze", 90)]


async def test_only_an_untried_request_has_retry_after(stage: Stage) -> None:
    """Clients retry automatically after a response with Retry-After."""
    stage.served.api.put(VMI, a_vmi())
    again = {}
    for kind in ("busy", "lost", "overdue"):
        stage.response = NotDone(kind, "x")  # type: ignore[arg-type]
        again[kind] = await stage.is_to_be_repeated("reset")
    stage.served.api.put(NODE, {"metadata": {"name": "node-1"}})
    again["not asked"] = await stage.is_to_be_repeated("reset")
    async with captured(stage, saying(b"no json")):
        again["no answer"] = await stage.is_to_be_repeated("reset")

    assert again == {"busy": True, "lost": False, "overdue": False, "not asked": True, "no answer": False}


@pytest.mark.parametrize(
    ("verb", "phase", "code"),
    [
        ("pause", "Scheduled", 409),
        ("freeze", "Succeeded", 409),
        ("reset", "Scheduling", 400),
        ("reset", "Failed", 400),
        ("reset", "Scheduled", 200),
    ],
)
async def test_a_stopped_vmi_is_refused_with_upstreams_code(stage: Stage, verb: str, phase: str, code: int) -> None:
    stage.served.api.put(VMI, a_vmi(phase))

    answered, status = await stage.call(verb)

    assert answered == code
    assert len(stage.questions) == (code == 200)
    if code != 200:
        assert "VMI is not running" in status["message"]


HTTP = {"httpGet": {"port": 80}}


@pytest.mark.parametrize(
    ("verb", "probe", "code"),
    [("pause", HTTP, 403), ("pause", {"guestAgentPing": {}}, 200), ("unpause", HTTP, 200), ("reset", HTTP, 200)],
)
async def test_a_guest_with_a_liveness_probe_is_not_paused(stage: Stage, verb: str, probe: Json, code: int) -> None:
    stage.served.api.put(VMI, a_vmi() | {"spec": {"domain": {"devices": {}}, "livenessProbe": probe}})
    assert (await stage.call(verb))[0] == code
    assert len(stage.questions) == (code == 200)


@pytest.mark.parametrize(
    "status",
    [
        {"nodeName": ""},
        {"activePods": {}},
        {"activePods": {"a": "node-2"}},
        {"activePods": {"a": "node-1", "b": "node-1"}},
    ],
    ids=str,
)
async def test_a_vmi_without_one_active_pod_is_refused(stage: Stage, status: Json) -> None:
    stage.served.api.put(VMI, a_vmi(**status))
    assert (await stage.call("pause"))[0] == 409
    assert stage.questions == []


async def test_a_missing_vmi_is_404_and_an_unreadable_one_422(stage: Stage) -> None:
    assert (await stage.call("pause"))[0] == 404
    stage.served.api.put(VMI, a_vmi() | {"spec": 7})
    assert (await stage.call("pause"))[0] == 422


@pytest.mark.parametrize(
    ("verb", "paused", "code"),
    [
        ("pause", "", 200),
        ("pause", "PausedIOError", 200),
        ("pause", "PausedByUser", 409),
        ("unpause", "", 409),
        ("unpause", "PausedIOError", 409),
        ("unpause", "PausedByUser", 200),
    ],
)
async def test_a_dry_run_is_checked_and_not_executed(stage: Stage, verb: str, paused: str, code: int) -> None:
    stage.served.api.put(VMI, a_vmi(paused=paused))
    assert (await stage.call(verb, b'{"dryRun": ["All"]}'))[0] == code
    assert stage.questions == []


async def test_unknown_options_are_refused_before_a_question_is_sent(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    code, status = await stage.call("reset", b'{"hard": true}')
    assert (code, stage.questions) == (400, [])
    assert "'hard': unknown option" in status["message"]


async def unused_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as free:
        return int(free.getsockname()[1])


async def test_a_virt_handler_that_cannot_be_reached_is_503(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.announce(await unused_port())

    code, status = await stage.call("reset")

    assert code == 503
    assert "virt-handler of node node-1 cannot be reached at 127.0.0.1:" in status["message"]

    stage.served.api.drop(NODE)
    code, status = await stage.call("reset")
    assert (code, "there is no node node-1" in status["message"]) == (503, True)

    stage.served.api.put(NODE, {"metadata": {"name": "node-1"}})
    code, status = await stage.call("reset")
    assert (code, "has not published where it listens" in status["message"]) == (503, True)


async def test_without_a_client_pair_no_question_is_sent(tmp_path: Path, pair: SelfSignedPair) -> None:
    async with serving(tmp_path) as served:
        stage = Stage(served, pair)
        served.api.put(VMI, a_vmi())
        served.cluster.take_client_pair(None, None, None)  # type: ignore[arg-type]
        code, status = await stage.call("pause")
    assert (code, "has no client pair for virt-handlers yet" in status["message"]) == (503, True)


async def test_no_question_is_sent_to_a_virt_handler_with_another_certificate(stage: Stage) -> None:
    """A compromised node may listen at the address of another node's virt-handler."""
    stage.served.api.put(VMI, a_vmi())
    stage.announce(stage.port, (await make_self_signed_pair("node-1")).der)

    assert (await stage.call("reset"))[0] == 503
    assert stage.questions == []


async def test_a_virt_handler_that_refuses_our_certificate_is_503(stage: Stage) -> None:
    stage.served.api.put(VMI, a_vmi())
    stage.give_client_pair(an_authority("another"))
    assert (await stage.call("reset"))[0] == 503
    assert stage.questions == []


Speak = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def captured(stage: Stage, speak: Speak) -> AsyncIterator[None]:
    """Replace the node's virt-handler by another program."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    load_pair(context, stage.pair.certificate, stage.pair.key)
    server = await asyncio.start_server(speak, "127.0.0.1", 0, ssl=context)
    stage.announce(server.sockets[0].getsockname()[1])
    stage.served.api.put(VMI, a_vmi())
    try:
        yield
    finally:
        server.close()
        await server.wait_closed()


async def leave(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):  # the peer may have closed first
        await writer.wait_closed()


def saying(body: bytes, head: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n") -> Speak:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"reset"}')
        writer.write((head % len(body) if b"%d" in head else head) + body)
        await leave(writer)

    return speak


@pytest.mark.parametrize(
    "speak",
    [
        saying(b"no json"),
        saying(b'{"type": "NotDone", "kind": "odd", "text": ""}'),
        saying(b'{"type": "NotDone", "kind": "refused", "text": "' + b"x" * 2000 + b'"}'),
        saying(b" " * (link.ANSWER_LIMIT_BYTES + 1)),
        saying(b'{"type": "Done"}', b"HTTP/1.1 500 Oops\r\nContent-Length: %d\r\n\r\n"),
        saying(b"x", b"HTTP/1.1 200 OK\r\n" + b"A: " + b"b" * 200_000 + b"\r\n\r\n"),
        saying(b'{"type": "Done"', b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\n"),
    ],
)
async def test_an_invalid_answer_is_503(stage: Stage, speak: Speak) -> None:
    async with captured(stage, speak):
        code, status = await stage.call("reset")

    assert (code, status["reason"]) == (503, "ServiceUnavailable")
    assert "virt-handler of node node-1" in status["message"]
    assert len(status["message"]) < 400


async def test_a_redirect_is_not_followed(stage: Stage) -> None:
    head = b"HTTP/1.1 307 Go on\r\nLocation: https://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    async with captured(stage, saying(b"", head)):
        _unused, status = await stage.call("reset")
    assert "did not take the question (HTTP 307)" in status["message"]


async def test_an_endless_answer_is_503(stage: Stage) -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b'"reset"}')
        writer.write(b"HTTP/1.1 200 OK\r\n\r\n")
        with suppress(OSError):
            while not writer.is_closing():
                writer.write(b" " * 4096)
                await writer.drain()
                await asyncio.sleep(0)
        await leave(writer)

    async with captured(stage, speak):
        code, status = await stage.call("reset")
    assert (code, "sent an invalid answer" in status["message"]) == (503, True)


async def test_a_compromised_node_cannot_inject_text(stage: Stage) -> None:
    words = 'gone\x1b[2J\r\n{"kind":"Status","status":"Success"}\u202e'
    body = json.dumps({"type": "NotDone", "kind": "refused", "text": words, "metadata": {"x": 1}, "code": 200})
    async with captured(stage, saying(body.encode())):
        code, status = await stage.call("reset")

    assert (code, status["status"], status["kind"], status["metadata"]) == (409, "Failure", "Status", {})
    assert status["message"].isprintable()
    assert status.keys() == {"kind", "apiVersion", "metadata", "status", "message", "reason", "code", "details"}


class Silent:
    """A node that takes questions and never answers."""

    def __init__(self) -> None:
        self.arrived, self.over = asyncio.Semaphore(0), asyncio.Event()

    async def speak(self, _reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.arrived.release()
        await self.over.wait()
        await leave(writer)


async def test_a_namespace_with_silent_vmis_delays_no_other(stage: Stage) -> None:
    """The quotas are per namespace and per kind of question."""
    other = VMI.replace("/ns/", "/other/")
    stage.served.api.put(other, a_vmi())
    node = Silent()
    async with captured(stage, node.speak):
        waiting = [
            asyncio.create_task(stage.call("reset")) for _unused in range(handler_client.MAX_CONCURRENT_OF_NAMESPACE)
        ]
        for _unused in waiting:
            await node.arrived.acquire()
        others = (
            asyncio.create_task(stage.call("reset", namespace="other")),
            asyncio.create_task(stage.get_guest_info()),
        )
        for _unused in others:
            await node.arrived.acquire()
        assert (await stage.call("reset"))[0] == 503
        node.over.set()
        await asyncio.gather(*waiting, *others)


async def test_a_silent_node_is_504(tmp_path: Path, pair: SelfSignedPair, monkeypatch: Any) -> None:
    monkeypatch.setattr(handler_client, "ANSWER_SECONDS", 0.2)
    node = Silent()
    async with serving(tmp_path) as served:
        stage = Stage(served, pair)
        await stage.open()
        async with captured(stage, node.speak):
            code, status = await stage.call("reset")
            node.over.set()
        await stage.endpoint.close()
    assert (code, "did not answer within" in status["message"]) == (504, True)


GOOD = base64.b64encode(b"certificate").decode()


def a_node(address: Any = "10.0.0.7:8186", certificate: Any = GOOD) -> Json:
    return {
        "metadata": {
            "annotations": {"kubevirt.io/handler-address": address, "kubevirt.io/handler-certificate": certificate}
        }
    }


@pytest.mark.parametrize(
    "address", ["10.0.0.7:8186", "100.64.0.7:8186", "240.0.0.7:8186", "[fd00::7]:8186", "[2001:db8::7]:8186"]
)
def test_an_endpoint_is_an_ip_address_and_a_port(address: str) -> None:
    endpoint = read_endpoint(a_node(address))
    assert (endpoint.port, endpoint.certificate) == (8186, b"certificate")
    assert str(endpoint.url(link.PATH)) == f"https://{address}/v1/ask"


@pytest.mark.parametrize(
    "node",
    [
        {},
        {"metadata": {"annotations": None}},
        a_node(""),
        a_node(certificate=""),
        *(
            a_node(address)
            for address in (
                "evil.example:8186",
                "10.0.0.7",
                "10.0.0.7:0",
                "10.0.0.7:65536",
                "10.0.0.7:1@x:8186",
                "10.0.0.7:" + "1" * 99,
                "[fd00::7",
                "127.0.0.1:8186",
                "0.0.0.0:8186",
                "169.254.169.254:80",
                "224.0.0.1:8186",
                "255.255.255.255:8186",
                "[::1]:8186",
                "[::]:8186",
                "[fe80::1]:8186",
                "[ff02::1]:8186",
                "[::ffff:127.0.0.1]:8186",
                "[64:ff9b::7f00:1]:8186",
                "[::127.0.0.1]:8186",
                "[2002:7f00:1::]:8186",
                "[2001::1]:8186",
                "[fd00:ec2::254]:80",
                "[fd20:ce::254]:80",
                "100.100.100.200:80",
                "168.63.129.16:80",
                "192.0.0.192:80",
            )
        ),
        a_node(certificate="%%%"),
        a_node(certificate="A" * 5000),
    ],
    ids=lambda node: str(node)[-60:],
)
def test_an_invalid_endpoint_is_refused(node: Json) -> None:
    with pytest.raises(ValueError, match=r"virt-handler|certificate"):
        read_endpoint(node)


async def test_an_address_of_virt_apis_own_host_is_refused(tmp_path: Path, pair: SelfSignedPair) -> None:
    """The other tests allow it, because all their nodes are on this host."""
    async with serving(tmp_path) as served, a_client(served.api) as client:
        Stage(served, pair).announce(8186)
        mine = a_client_pair(served.proxy_authority, usage=CLIENTS)
        with pytest.raises(
            NotSentError, match=r"node node-1: its virt-handler cannot listen at 127\.0\.0\.1, which is no other"
        ):
            await HandlerClient(client, lambda: mine).call("ns", Power(Guest("node-1", "v", "p"), "reset"))
