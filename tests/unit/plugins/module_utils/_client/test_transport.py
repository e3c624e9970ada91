# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Responses of a server that is not, or not quite, an API server."""

from __future__ import annotations

import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import failures, streams
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import transport as transport_module
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.endpoint import Endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.errors import Silent, Unavailable
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.transport import Transport

SILENCE = b"(silence)"


@contextmanager
def answering(*answers: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Serve one canned response per connection (SILENCE: none, and no end); yield address and request heads."""
    heads: list[bytes] = []
    remaining = list(answers)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            head = b""
            while not head.endswith(b"\r\n\r\n"):
                line = self.rfile.readline()
                if not line:
                    return
                head += line
            heads.append(head)
            reply = remaining.pop(0)
            self.wfile.write(reply.removesuffix(SILENCE))
            if reply.endswith(SILENCE):
                self.rfile.read()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", heads
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def _in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "PAUSES_SECONDS", (0.0, 0.0, 0.0))


def answer(status: str, body: bytes = b"", *headers: str) -> bytes:
    head = "".join(f"{item}\r\n" for item in (*headers, f"Content-Length: {len(body)}"))
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        pytest.param(
            answer("502 Bad Gateway", b"<html>", "Content-Type: text/html"),
            "status 502, content type text/html",
            id="html",
        ),
        pytest.param(answer("200 OK", b"<html>", "Content-Type: text/html"), "is this the address", id="a web site"),
        pytest.param(
            answer("302 Found", b"", "Location: https://elsewhere/"),
            "a redirect (302) to https://elsewhere",
            id="redirect",
        ),
        pytest.param(answer("200 OK", b"{", "Content-Type: application/json"), "unexpected response", id="half JSON"),
        pytest.param(b"nonsense\r\n\r\n", "cannot talk to", id="no HTTP"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n{}\r\n",
            "cannot talk to",
            id="a chunk of less than nothing",
        ),
        pytest.param(b"", "cannot talk to", id="closed at once"),
    ],
)
def test_malformed_responses_are_named(reply: bytes, words: str) -> None:
    with answering(*[reply] * 8) as (url, _heads):
        transport = Transport(Endpoint(server=url))
        with closing(transport), pytest.raises(Unavailable) as caught:
            transport.request("GET", "/x")
    assert words in caught.value.message


def test_the_origin_is_the_address_without_its_path() -> None:
    """A proxy may serve the API below a path."""
    transport = Transport(Endpoint(server="https://proxy.example:8443/clusters/one"))
    assert transport.origin == "https://proxy.example:8443"


def test_a_refused_connection_is_named() -> None:
    with pytest.raises(Unavailable, match="Connection refused; check host and kubeconfig"):
        Transport(Endpoint(server="http://127.0.0.1:1")).request("GET", "/")


@pytest.mark.parametrize(
    ("proxy", "words"),
    [
        pytest.param(
            "http://u:canary@127.0.0.1:1",
            "cannot talk to https://api.invalid:6443 through the proxy 127.0.0.1:1: Connection refused; check proxy",
            id="nobody listens",
        ),
        pytest.param("http://proxy.invalid", "the proxy proxy.invalid is not known", id="no such host"),
    ],
)
def test_an_unreachable_proxy_is_named_without_its_password(proxy: str, words: str) -> None:
    with pytest.raises(Unavailable) as caught:
        Transport(Endpoint(server="https://api.invalid:6443", proxy=proxy)).request("GET", "/")
    assert words in caught.value.message
    assert "canary" not in caught.value.message


def test_a_proxy_that_refuses_is_named() -> None:
    refusal = answer("407 Proxy Authentication Required", b"", CLOSE)
    with answering(refusal) as (url, heads), pytest.raises(Unavailable) as caught:
        Transport(Endpoint(server="https://api.invalid:6443", proxy=url)).request("GET", "/")
    assert heads[0].startswith(b"CONNECT api.invalid:6443 ")
    assert f"through the proxy {url.removeprefix('http://')}: Tunnel connection failed: 407" in caught.value.message


def test_headers_carry_identity_and_impersonation() -> None:
    ok: Any = answer("200 OK", b"{}", "Content-Type: application/json")
    with answering(ok) as (url, heads):
        transport = Transport(
            Endpoint(server=f"{url}/prefix", token="t", headers={"Impersonate-User": "u"}, groups=("a", "b"))
        )
        assert transport.request("PUT", "/x", {"k": 1}) == (200, {})
        transport.close()
    head = heads[0].decode()
    assert head.startswith("PUT /prefix/x HTTP/1.1\r\n")
    assert "Authorization: Bearer t\r\n" in head
    assert head.count("Impersonate-Group: ") == 2
    assert "Content-Length: 7\r\n" in head


CLOSE = "Connection: close"
OK = answer("200 OK", b'{"a": 1}', "Content-Type: application/json", CLOSE)
BUSY = answer("429 Too Many Requests", b"Too many requests", "Content-Type: text/plain", CLOSE)
BROKEN = answer("502 Bad Gateway", b"<html>", "Content-Type: text/html", CLOSE)


@pytest.mark.parametrize(
    ("method", "refusal"),
    [
        pytest.param(
            "GET",
            answer("429 Too Many Requests", b"{}", "Content-Type: application/json", "Retry-After: 0", CLOSE),
            id="it says when",
        ),
        pytest.param("GET", BUSY, id="it does not"),
        pytest.param("POST", BUSY, id="nothing was carried out"),
        pytest.param("GET", BROKEN, id="a proxy's page"),
        pytest.param("PATCH", BROKEN, id="a patch says how it should be"),
        pytest.param("GET", b"", id="hung up"),
        pytest.param("GET", BROKEN[:-3], id="hung up half-way"),
    ],
)
def test_a_transient_refusal_is_retried(method: str, refusal: bytes) -> None:
    with answering(refusal, refusal, refusal, OK) as (url, heads):
        transport = Transport(Endpoint(server=url))
        assert transport.request(method, "/") == (200, {"a": 1})
        transport.close()
    assert len(heads) == 4


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
@pytest.mark.parametrize("refusal", [BROKEN, b"", SILENCE], ids=["a proxy's page", "hung up", "silence"])
def test_a_request_that_may_have_been_applied_is_not_sent_again(
    method: str, refusal: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transport_module, "TIMEOUT_SECONDS", 0.4)
    with answering(refusal, OK) as (url, heads):
        transport = Transport(Endpoint(server=url))
        with closing(transport), pytest.raises(Unavailable):
            transport.request(method, "/")
    assert len(heads) == 1


@pytest.mark.parametrize(
    ("method", "lost"),
    [
        pytest.param("GET", SILENCE, id="a read"),
        pytest.param("PATCH", SILENCE, id="a patch says how it should be"),
        pytest.param("GET", OK[:-2] + SILENCE, id="half of an answer"),
    ],
)
def test_a_request_lost_in_a_silent_connection_is_sent_again(
    method: str, lost: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = iter([0.4, 0.4, 60.0])
    monkeypatch.setattr(Transport, "_seconds", lambda _self: next(times))
    with answering(lost, lost, OK) as (url, heads):
        transport = Transport(Endpoint(server=url))
        assert transport.request(method, "/") == (200, {"a": 1})
        transport.close()
    assert len(heads) == 3


def test_a_silent_server_gets_fewer_retries_than_a_refusing_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transport_module, "TIMEOUT_SECONDS", 0.4)
    with answering(*[SILENCE] * 4) as (url, heads):
        transport = Transport(Endpoint(server=url))
        with closing(transport), pytest.raises(Silent, match="does not respond"):
            transport.request("GET", "/")
    assert len(heads) == 3


def test_an_unreachable_address_is_tried_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing comes back, not even a refusal: there was no established connection to lose."""
    tried: list[float] = []

    def connect(_at: object, timeout: float, _source: object = None) -> None:
        tried.append(timeout)
        raise TimeoutError

    monkeypatch.setattr(socket, "create_connection", connect)
    with pytest.raises(Unavailable, match="does not respond"):
        Transport(Endpoint(server="http://192.0.2.1")).request("GET", "/")
    assert len(tried) == 1


def test_retries_are_bounded() -> None:
    with answering(*[BUSY] * 8) as (url, heads):
        transport = Transport(Endpoint(server=url))
        assert transport.request("GET", "/") == (429, "Too many requests")
        transport.close()
    assert len(heads) == 4


@pytest.mark.parametrize(("refusal", "words"), [(BROKEN, "status 502"), (BUSY, None)])
def test_the_refusal_of_a_watch_is_reported(refusal: bytes, words: str | None) -> None:
    with answering(refusal) as (url, _heads):
        transport = Transport(Endpoint(server=url))
        if words is None:
            assert streams.lines(transport, "/", 5) == (429, "Too many requests")
        else:
            with pytest.raises(Unavailable, match=words):
                streams.lines(transport, "/", 5)
        transport.close()


def test_a_stream_that_ends_with_its_connection_closes_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    requests = []
    plain = Transport.ask

    def ask(*arguments: Any) -> Any:
        requests.append(plain(*arguments))
        return requests[-1]

    monkeypatch.setattr(Transport, "ask", ask)
    with answering(b"HTTP/1.1 200 OK\r\n\r\none\n") as (url, _heads):
        transport = Transport(Endpoint(server=url))
        _status, lines = streams.lines(transport, "/", 5)
        assert next(lines) == b"one\n"
        lines.close()
        transport.close()
    assert requests[0].isclosed()


def test_the_plain_text_of_a_refusal_is_kept() -> None:
    refusal = answer("503 Unavailable", b"service unavailable\n", "Content-Type: text/plain")
    with answering(*[refusal] * 8) as (url, _heads):
        transport = Transport(Endpoint(server=url))
        assert transport.request("GET", "/") == (503, "service unavailable")
        transport.close()


@pytest.mark.parametrize("asked", ["\u00b2", "Fri, 31 Dec 2027 23:59:59 GMT", "-1", "1.5", "9" * 5000, "0", ""])
def test_an_unreadable_retry_after_gets_our_own_pause(asked: str) -> None:
    assert 0.5 <= transport_module._spread(1.0, asked) <= 1.5


@pytest.mark.parametrize(
    ("code", "message", "remedy"),
    [
        pytest.param(20, "unable to get local issuer certificate", "give the cluster's CA in ca_cert", id="unknown CA"),
        pytest.param(10, "certificate has expired", "have the cluster's certificates renewed", id="expired"),
        pytest.param(9, "certificate is not yet valid", "set the clock of the host", id="not yet valid"),
        pytest.param(62, "Hostname mismatch", "give an address of the server that its certificate names", id="host"),
        pytest.param(
            64, "IP address mismatch", "give an address of the server that its certificate names", id="address"
        ),
    ],
)
def test_the_remedy_for_a_certificate_fits_its_problem(code: int, message: str, remedy: str) -> None:
    error = ssl.SSLCertVerificationError(1, "certificate verify failed")
    error.verify_code, error.verify_message = code, message

    text = failures.unavailable("https://api:6443", None, error).message

    assert message in text
    assert remedy in text
    assert ("ca_cert" in text) == (code == 20)
