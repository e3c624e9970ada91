# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""virt-api without its watches, over real TLS and HTTP, on a fake API server."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import ssl
import threading
import warnings
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from controlplane.api.admission.verdict import Settings
from controlplane.api.objects.resources import Key
from controlplane.api.tls_ciphers import OPENSSL_NAMES
from controlplane.http_server.quotas import Quota
from controlplane.tls.certificates import KeyPair
from controlplane.virt_api import server as server_module
from controlplane.virt_api.http.identity import WebhookClients
from tests.controlplane.virt_api.served import (
    CLIENTS,
    USER,
    Json,
    Served,
    a_client_pair,
    an_authority,
    meanwhile,
    serving,
)

START = "/apis/subresources.kubevirt.io/v1/namespaces/ns/virtualmachines/web/start"
VM = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachines/web"
VMI = "/apis/kubevirt.io/v1/namespaces/ns/virtualmachineinstances/web"


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    async with serving(tmp_path) as served:
        yield served


@pytest.fixture
def proxy(served: Served) -> KeyPair:
    return a_client_pair(served.proxy_authority, usage=CLIENTS)


def a_vm(strategy: str = "Halted") -> Json:
    spec = {"runStrategy": strategy, "template": {"spec": {"domain": {"devices": {}}}}}
    return {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine", "spec": spec}


def a_vmi(phase: str = "Running") -> Json:
    return {
        "apiVersion": "kubevirt.io/v1",
        "kind": "VirtualMachineInstance",
        "spec": {"domain": {"devices": {}}},
        "status": {"phase": phase},
    }


async def test_a_proxied_start_is_authorised_and_writes_the_spec(served: Served, proxy: KeyPair) -> None:
    served.api.put(VM, a_vm())

    headers = [*USER.items(), ("X-Remote-Group", "ops"), ("X-Remote-Extra-Acme.io%2FProject", "p1")]
    code, body = await served.call("PUT", START, pair=proxy, headers=headers)

    assert (code, body) == (202, "")
    assert served.api.objects[VM]["spec"]["runStrategy"] == "Always"
    assert served.reviews == [
        {
            "user": "jane",
            "groups": ["dev", "ops"],
            "extra": {"acme.io/project": ["p1"]},
            "resourceAttributes": {
                "verb": "update",
                "group": "subresources.kubevirt.io",
                "version": "v1",
                "resource": "virtualmachines",
                "subresource": "start",
                "namespace": "ns",
                "name": "web",
            },
        }
    ]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_a_file_of_the_console_page_is_kept_by_browsers_that_validate_it(served: Served, method: str) -> None:
    url = f"https://127.0.0.1:{served.port}/apis/subresources.kubevirt.io/v1/console/"
    name = "virt-api.kubevirt.svc"

    async with served.session() as session, session.request(method, url, server_hostname=name) as response:
        headers, body = response.headers, await response.text()
    async with (
        served.session() as session,
        session.get(url, server_hostname=name, headers={"If-None-Match": headers["ETag"]}) as response,
    ):
        assert (response.status, response.headers["ETag"], await response.read()) == (304, headers["ETag"], b"")

    assert (headers["Content-Type"], headers["Cache-Control"]) == ("text/html; charset=utf-8", "no-cache")
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert body.startswith("<!doctype html>") == (method == "GET")
    assert int(headers["Content-Length"]) > 0


async def test_a_user_with_many_long_groups_is_accepted(served: Served, proxy: KeyPair) -> None:
    """Each group is a header."""
    served.api.put(VM, a_vm())
    groups = [f"{number:03}-{'g' * 400}" for number in range(100)]

    headers = [("X-Remote-User", "jane"), *(("X-Remote-Group", group) for group in groups)]
    code, _unused = await served.call("PUT", START, pair=proxy, headers=headers)

    assert code == 202
    assert served.reviews[0]["groups"] == groups


@pytest.mark.parametrize("version", ["v1", "v1alpha3"])
async def test_stop_and_restart_of_a_running_vm(served: Served, proxy: KeyPair, version: str) -> None:
    served.api.put(VM, a_vm("Always"))
    vmi = served.api.put(VMI, a_vmi())
    base = START.replace("v1/", f"{version}/").removesuffix("start")

    code, _unused = await served.call(
        "PUT", base + "restart", pair=proxy, headers=USER, body=b'{"gracePeriodSeconds": 0, "dryRun": null}'
    )

    assert code == 202
    assert served.api.objects[VM]["status"]["stateChangeRequests"] == [
        {"action": "Stop", "uid": vmi["metadata"]["uid"]},
        {"action": "Start"},
    ]
    assert served.api.objects[VMI]["spec"]["terminationGracePeriodSeconds"] == 1

    code, _unused = await served.call("PUT", base + "stop", pair=proxy, headers=USER)

    assert code == 202
    assert served.api.objects[VM]["spec"]["runStrategy"] == "Halted"


@pytest.mark.parametrize("strategy", ["Halted", "Manual"], ids=["in the spec", "in the queue"])
async def test_a_conflicting_write_repeats_the_decision(served: Served, proxy: KeyPair, strategy: str) -> None:
    """Another run strategy is set between read and write; the start must not overwrite it."""
    served.api.put(VM, a_vm(strategy))
    meanwhile(served, lambda: served.api.put(VM, a_vm("Once")))

    code, status = await served.call("PUT", START, pair=proxy, headers=USER)

    assert (code, status["reason"]) == (409, "Conflict")
    assert "Once does not support manual start requests" in status["message"]
    assert served.api.objects[VM]["spec"] == a_vm("Once")["spec"]
    assert "status" not in served.api.objects[VM]


async def test_a_stop_applies_to_the_vmi_at_the_time_of_the_write(served: Served, proxy: KeyPair) -> None:
    """The VM is restarted between read and write: the new VMI is stopped."""

    def restart() -> None:
        served.api.drop(VMI)
        served.api.put(VMI, a_vmi())

    served.api.put(VM, a_vm("Manual"))
    served.api.put(VMI, a_vmi())
    meanwhile(served, restart)

    body = b'{"gracePeriod": 1}'
    code, _unused = await served.call("PUT", START.replace("start", "stop"), pair=proxy, headers=USER, body=body)

    assert code == 202
    uid = served.api.objects[VMI]["metadata"]["uid"]
    assert served.api.objects[VM]["status"]["stateChangeRequests"] == [{"action": "Stop", "uid": uid}]
    assert served.api.objects[VMI]["spec"]["terminationGracePeriodSeconds"] == 1


async def test_an_unauthorized_user_gets_403_and_nothing_is_read(tmp_path: Path) -> None:
    async with serving(tmp_path, allowed=False) as served:
        served.api.put(VM, a_vm())
        pair = a_client_pair(served.proxy_authority, usage=CLIENTS)

        code, status = await served.call("PUT", START, pair=pair, headers=USER)

    assert code == 403
    assert status["reason"] == "Forbidden"
    assert 'User "jane" cannot update resource "virtualmachines/start"' in status["message"]
    assert served.api.seen == []


async def test_failures_are_status_objects(served: Served, proxy: KeyPair) -> None:
    code, status = await served.call("PUT", START, pair=proxy, headers=USER)
    assert code == 404
    assert status["message"] == 'virtualmachine.kubevirt.io "web" not found'

    served.api.put(VM, a_vm("Always"))
    code, status = await served.call("PUT", START, pair=proxy, headers=USER)
    assert code == 409
    assert status["kind"] == "Status"
    assert "Always does not support manual start requests" in status["message"]

    code, status = await served.call("PUT", START, pair=proxy, headers=USER, body=b'{"paused": "yes", "x": 1}')
    assert code == 400
    assert "paused: must be true or false" in status["message"]
    assert "'x': unknown option" in status["message"]


async def test_an_unimplemented_subresource_is_named_after_authorization(served: Served, proxy: KeyPair) -> None:
    path = START.replace("virtualmachines/web/start", "virtualmachineinstances/web/sev/fetchcertchain")

    code, status = await served.call("GET", path, pair=proxy, headers=USER)

    assert code == 501
    assert status["message"] == "virtualmachineinstances/sev/fetchcertchain is not implemented by this control plane"
    assert served.reviews[0]["resourceAttributes"]["subresource"] == "sev/fetchcertchain"


@pytest.mark.parametrize("headers", [{}, {"X-Remote-User": "jane"}, {**USER, "X-Remote-Extra-%ff": "1"}], ids=str)
async def test_malformed_user_headers_are_401(served: Served, proxy: KeyPair, headers: object) -> None:
    code, status = await served.call("PUT", START, pair=proxy, headers=headers)

    assert (code, status["reason"]) == (401, "Unauthorized")
    assert served.reviews == []


async def test_headers_without_the_front_proxys_certificate_are_401(served: Served) -> None:
    code, _unused = await served.call("PUT", START, headers=USER | {"X-Remote-User": "system:admin"})

    assert code == 401
    assert served.reviews == []


async def test_a_certificate_of_another_ca_fails_the_handshake(served: Served) -> None:
    pair = a_client_pair(an_authority("proxy"), usage=CLIENTS)

    with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
        await served.call("PUT", START, pair=pair, headers=USER)


async def test_a_new_front_proxy_ca_applies_to_open_connections(served: Served, proxy: KeyPair) -> None:
    served.api.put(VM, a_vm())
    async with served.session(proxy) as session:
        assert (await served.call("PUT", START, session=session, headers=USER))[0] == 202

        new = an_authority("new proxy")
        served.trust(new, "front-proxy-client")
        assert (await served.call("PUT", START, session=session, headers=USER))[0] == 401

    code, _unused = await served.call("PUT", START, pair=a_client_pair(new, usage=CLIENTS), headers=USER)
    assert code == 409


async def test_a_new_serving_pair_keeps_open_connections(served: Served, proxy: KeyPair) -> None:
    async with served.session(proxy) as session:
        assert (await served.call("GET", "/healthz", session=session))[0] == 200
        before = await serial(served)

        served.take_pair(served.serving_pair())

        assert await serial(served) != before
        assert (await served.call("PUT", START, session=session, headers=USER))[0] == 404


async def test_an_invalid_pair_keeps_the_old_one(served: Served) -> None:
    good, other = served.serving_pair(), served.serving_pair()
    before = await serial(served)

    served.take_pair(KeyPair(good.certificate, other.key))
    served.take_pair(KeyPair(b"nonsense", b"nonsense"))
    served.take_pair(KeyPair(b"", b""))

    assert await serial(served) == before


async def test_an_invalid_front_proxy_configuration_trusts_no_client(served: Served, proxy: KeyPair) -> None:
    served.cluster.take_authentication(("kube-system", "x"), None, b'{"metadata": {}, "data": {}}')  # type: ignore[arg-type]

    with pytest.raises((aiohttp.ClientError, ssl.SSLError)):
        await served.call("PUT", START, pair=proxy, headers=USER)
    assert (await served.call("PUT", START, headers=USER))[0] == 401


async def test_old_tls_is_refused(served: Served) -> None:
    context = ssl.create_default_context(cadata=served.serving_authority.certificate.decode())
    with warnings.catch_warnings(action="ignore", category=DeprecationWarning):
        context.maximum_version = ssl.TLSVersion.TLSv1_1
        context.minimum_version = ssl.TLSVersion.TLSv1

    def shake_hands() -> None:
        with socket.create_connection(("127.0.0.1", served.port)) as connection:
            context.wrap_socket(connection, server_hostname="virt-api.kubevirt.svc").close()

    with pytest.raises(ssl.SSLError):
        await asyncio.to_thread(shake_hands)


async def test_the_configured_tls_applies_to_new_connections(served: Served) -> None:
    context = ssl.create_default_context(cadata=served.serving_authority.certificate.decode())
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    name = "virt-api.kubevirt.svc"

    async def cipher() -> str:
        _reader, writer = await asyncio.open_connection("127.0.0.1", served.port, ssl=context, server_hostname=name)
        writer.close()
        return str(writer.get_extra_info("cipher")[0])

    for suite in ("TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256", "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256"):
        configure(served, minTLSVersion="VersionTLS12", ciphers=[suite])
        assert await cipher() == OPENSSL_NAMES[suite]
    configure(served, minTLSVersion="VersionTLS13")
    with pytest.raises(OSError):  # noqa: PT011 - a TLS alert or a reset
        await cipher()
    served.take_pair(served.serving_pair())
    with pytest.raises(OSError):  # noqa: PT011
        await cipher()


def configure(served: Served, **tls: Any) -> None:
    kubevirt = {"metadata": {"name": "kubevirt"}, "spec": {"configuration": {"tlsConfiguration": tls}}}
    served.cluster.take_configuration(Key("kubevirt", "kubevirt"), None, json.dumps(kubevirt).encode())


@pytest.mark.parametrize(
    ("method", "path", "code"),
    [
        ("GET", "/healthz", 200),
        ("GET", "/metrics", 200),
        ("PUT", "/metrics", 405),
        ("GET", "/nothing", 404),
        ("DELETE", "/healthz", 405),
        ("PUT", START.replace("/web/", "/x/../web/"), 404),
        ("PUT", START.replace("/web/", "/x%2Fweb/"), 404),
    ],
)
async def test_paths_and_methods_have_their_codes(
    served: Served, proxy: KeyPair, method: str, path: str, code: int
) -> None:
    answered, _unused = await served.call(method, path, pair=proxy, headers=USER)

    assert answered == code
    assert served.reviews == []


async def test_too_large_options_are_413(served: Served, proxy: KeyPair) -> None:
    code, status = await served.call("PUT", START, pair=proxy, headers=USER, body=b" " * 70_000)

    assert (code, status["reason"]) == (413, "RequestEntityTooLarge")


async def test_reviews_need_no_client_certificate_by_default(served: Served) -> None:
    code, review = await served.call("POST", "/virtualmachines-validate", body=a_review(a_vm("Sometimes")))

    assert code == 200
    assert review["response"]["uid"] == "request-1"
    assert review["response"]["allowed"] is False
    assert review["response"]["status"]["code"] == 422
    assert any(cause["field"] == "spec.runStrategy" for cause in review["response"]["status"]["details"]["causes"])


@pytest.mark.parametrize("body", [b"", b"{}", b"\xff"], ids=repr)
async def test_an_unreadable_review_is_400(served: Served, body: bytes) -> None:
    code, response = await served.call("POST", "/virtualmachines-mutate", body=body)

    if code == 200:
        assert response["response"]["allowed"] is False
    else:
        assert (code, response["kind"]) == (400, "Status")


async def test_webhook_clients_may_send_reviews_and_nothing_else(tmp_path: Path) -> None:
    """Each of two CAs also signs the names of the other: a CA counts only for its own clients."""
    reviewers = an_authority("reviewers")
    clients = WebhookClients(reviewers.certificate, frozenset({"apiserver"}))
    async with serving(tmp_path, webhook_clients=clients) as served:
        served.api.put(VM, a_vm())
        certificates = {
            "nobody": None,
            "reviewer": a_client_pair(reviewers, "apiserver", usage=CLIENTS),
            "reviewers' CA": a_client_pair(reviewers, usage=CLIENTS),
            "proxy": a_client_pair(served.proxy_authority, usage=CLIENTS),
            "proxy's CA": a_client_pair(served.proxy_authority, "apiserver", usage=CLIENTS),
        }
        codes = {}
        for name, pair in certificates.items():
            review, _unused = await served.call(
                "POST", "/virtualmachines-validate", pair=pair, body=a_review(a_vm("Sometimes"))
            )
            start, _unused = await served.call("PUT", START + "?x", pair=pair, headers=USER)
            codes[name] = (review, start)

    assert codes == {
        "nobody": (401, 401),
        "reviewer": (200, 401),
        "reviewers' CA": (401, 401),
        "proxy": (401, 202),
        "proxy's CA": (401, 401),
    }


async def test_other_requests_are_answered_during_a_review(tmp_path: Path) -> None:
    """A review of a large object takes half a second; this one takes until another request is answered."""
    reviewing, answered = threading.Event(), threading.Event()

    def settings() -> Settings:
        reviewing.set()
        assert answered.wait(20), "no other request was answered"
        return Settings()

    async with serving(tmp_path, settings=settings) as served:
        review = asyncio.create_task(served.call("POST", "/virtualmachines-validate", body=a_review(a_vm("Sometimes"))))
        assert await asyncio.to_thread(reviewing.wait, 20)

        code, _unused = await served.call("GET", "/healthz")
        answered.set()

        assert code == 200
        assert (await review)[1]["response"]["status"]["code"] == 422


async def test_the_memory_for_reviews_is_limited(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Quota, "take", lambda self, peer, amount=1: amount < 1000)

    header_lines = await head_of_answer(served, b"POST /virtualmachines-validate HTTP/1.1", b"", length=1000)

    assert header_lines[0].split()[1] == "429", "before the body is read"
    assert {"Retry-After: 1", "Connection: close"} <= set(header_lines)


async def test_memory_is_reserved_until_the_response_is_written(served: Served) -> None:
    assert served.server is not None
    memory, body = served.server.review_memory, a_review(a_vm("Sometimes"))
    reserved: list[int] = []
    take = memory.take

    def note(peer: str, amount: int = 1) -> bool:
        reserved.append(amount)
        return take(peer, amount)

    memory.take = note  # type: ignore[method-assign]
    async with served.session() as session:
        url = f"https://127.0.0.1:{served.port}/virtualmachines-validate"
        async with session.post(url, data=body, server_hostname="virt-api.kubevirt.svc") as response:
            size = len(await response.read())
        assert reserved == [len(body), max(0, size - len(body))], "the review, and what its response has more"
        assert (await served.call("GET", "/healthz", session=session))[0] == 200
    assert memory.is_unused


async def test_a_review_without_a_length_is_refused(served: Served) -> None:
    """One-byte chunks would keep a CPU busy with parsing."""
    reader, writer = await connected(served)
    writer.write(b"POST /virtualmachines-validate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n")
    async with asyncio.timeout(10):
        header = await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()
    assert header.startswith(b"HTTP/1.1 411 Length Required\r\n")


async def test_options_may_be_sent_in_chunks(served: Served, proxy: KeyPair) -> None:
    """The front proxy forwards the body as the user sends it."""
    served.api.put(VM, a_vm("Manual"))

    async def chunks() -> AsyncIterator[bytes]:
        yield b'{"paused": '
        yield b"true}"

    async with served.session(proxy) as session:
        url = f"https://127.0.0.1:{served.port}{START}"
        async with session.put(url, headers=USER, data=chunks(), server_hostname="virt-api.kubevirt.svc") as response:
            assert response.status == 202
    queued = [{"action": "Start", "data": {"paused": "true"}}]
    assert served.api.objects[VM]["status"]["stateChangeRequests"] == queued


@pytest.mark.parametrize(
    ("length", "code"), [(3 * 1024 * 1024 + 1, 413), (1000, 408)], ids=["too large", "never whole"]
)
async def test_a_body_is_limited_in_size_and_time(
    served: Served, monkeypatch: pytest.MonkeyPatch, length: int, code: int
) -> None:
    """A too large Content-Length is refused before the body is read."""
    monkeypatch.setattr(server_module, "BODY_SECONDS", 0.05 if code == 408 else 3600)
    header_lines = await head_of_answer(served, b"POST /virtualmachines-validate HTTP/1.1", b"{", length=length)
    assert header_lines[0].split()[1] == str(code)


async def test_a_compressed_review_is_not_decompressed(served: Served) -> None:
    """A few KB can expand to gigabytes. API servers do not compress reviews."""
    body = gzip.compress(a_review(a_vm("Sometimes")))

    code, status = await served.call(
        "POST", "/virtualmachines-validate", headers={"Content-Encoding": "gzip"}, body=body
    )

    assert (code, status["reason"]) == (400, "BadRequest")


def a_review(obj: Json) -> bytes:
    obj = {**obj, "metadata": {"name": "web", "namespace": "ns"}}
    request = {
        "uid": "request-1",
        "kind": {"group": "kubevirt.io", "version": "v1", "kind": obj["kind"]},
        "operation": "CREATE",
        "userInfo": {"username": "jane"},
        "object": obj,
    }
    return json.dumps({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).encode()


async def head_of_answer(served: Served, request: bytes, body: bytes, *, length: int | None = None) -> list[str]:
    """Send a raw request and return the header lines of the response. length: the Content-Length."""
    reader, writer = await connected(served)
    size = len(body) if length is None else length
    writer.write(request + b"\r\nHost: virt-api\r\nContent-Length: %d\r\n\r\n" % size + body)
    async with asyncio.timeout(10):
        header = await reader.readuntil(b"\r\n\r\n")
    writer.close()
    await writer.wait_closed()
    return header.decode().splitlines()


async def connected(served: Served) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    context = ssl.create_default_context(cadata=served.serving_authority.certificate.decode())
    name = "virt-api.kubevirt.svc"
    return await asyncio.open_connection("127.0.0.1", served.port, ssl=context, server_hostname=name)


async def serial(served: Served) -> int:
    """Return the serial number of the certificate that a new connection sees."""
    _reader, writer = await connected(served)
    number = int(writer.get_extra_info("peercert")["serialNumber"], 16)
    writer.close()
    await writer.wait_closed()
    return number
