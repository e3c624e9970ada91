# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from controlplane.virt_api.http.identity import (
    FrontProxy,
    UnauthenticatedError,
    WebhookClients,
    check_webhook_client,
    identify,
    parse_front_proxy,
)
from tests.controlplane.virt_api.served import CLIENTS, SERVERS, KeyPair, a_client_pair, an_authority, now


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return an_authority("proxy")


def der(pair: KeyPair) -> bytes:
    return x509.load_pem_x509_certificate(pair.certificate).public_bytes(Encoding.DER)


def chain(authority: KeyPair, name: str = "front-proxy-client", usage: Any = CLIENTS) -> tuple[bytes, bytes]:
    """Return the chain that a handshake has verified: a new certificate and its CA."""
    return der(a_client_pair(authority, name, usage=usage)), der(authority)


def data(authority: KeyPair, **others: str) -> dict[str, str]:
    return {"requestheader-client-ca-file": authority.certificate.decode(), **others}


@pytest.fixture(scope="module")
def proxy(authority: KeyPair) -> FrontProxy:
    parsed = parse_front_proxy(data(authority, **{"requestheader-allowed-names": '["front-proxy-client"]'}))
    assert parsed is not None
    return parsed


HEADERS = [(b"X-Remote-User", b"jane"), (b"X-Remote-Group", b"dev"), (b"Host", b"x")]


def test_configured_headers_add_to_the_default_ones(authority: KeyPair) -> None:
    proxy = parse_front_proxy(data(authority, **{"requestheader-username-headers": '["X-User"]'}))

    assert proxy is not None
    assert proxy.user_headers == ("x-remote-user", "x-user")
    assert proxy.allowed_names == frozenset()


@pytest.mark.parametrize(
    "broken",
    [
        {"requestheader-client-ca-file": ""},
        {"requestheader-client-ca-file": "nonsense"},
        {"requestheader-allowed-names": "front-proxy-client"},
        {"requestheader-allowed-names": '"front-proxy-client"'},
        {"requestheader-allowed-names": "[1]"},
    ],
    ids=["no CA", "no certificate", "not JSON", "no list", "no strings"],
)
def test_an_invalid_configuration_trusts_no_client(authority: KeyPair, broken: dict[str, str]) -> None:
    assert parse_front_proxy(data(authority) | broken) is None


def test_a_user_has_groups_uid_and_extras(authority: KeyPair, proxy: FrontProxy) -> None:
    headers = [
        *HEADERS,
        (b"x-remote-group", b"ops"),
        (b"X-Remote-Uid", b"42"),
        (b"X-Remote-Extra-Scopes", b"a"),
        (b"X-Remote-Extra-scopes", b"b"),
    ]

    user = identify(proxy, chain(authority), headers, now())

    assert (user.name, user.groups, user.uid) == ("jane", ("dev", "ops"), "42")
    assert user.extra == {"scopes": ("a", "b")}


@pytest.mark.parametrize(
    ("headers", "because"),
    [
        ([], "no user name"),
        ([(b"X-Remote-User", b"jane")], "no groups"),
        ([*HEADERS, (b"x-remote-user", b"root")], "more than one user name"),
        ([(b"X-Remote-User", b""), *HEADERS[1:]], "empty user name"),
        ([*HEADERS, (b"X-Remote-Group", b"")], "an empty one"),
        ([*HEADERS, (b"X-Remote-Uid", b"1"), (b"X-Remote-Uid", b"2")], "more than one user UID"),
        ([*HEADERS, (b"X-Remote-Uid", b"")], "an empty user UID"),
        ([*HEADERS, (b"X-Remote-Extra-a%2", b"1")], "malformed extra"),
        ([*HEADERS, (b"X-Remote-Extra-%ff", b"1")], "malformed extra"),
        ([(b"X-Remote-User", b"\xff"), *HEADERS[1:]], "not UTF-8"),
    ],
    ids=lambda value: value if isinstance(value, str) else None,
)
def test_malformed_headers_are_refused(authority: KeyPair, proxy: FrontProxy, headers: Any, because: str) -> None:
    with pytest.raises(UnauthenticatedError, match=because):
        identify(proxy, chain(authority), headers, now())


def test_without_configuration_or_certificate_every_request_is_refused(authority: KeyPair, proxy: FrontProxy) -> None:
    with pytest.raises(UnauthenticatedError, match="not known yet"):
        identify(None, chain(authority), HEADERS, now())
    with pytest.raises(UnauthenticatedError, match="no client certificate"):
        identify(proxy, (), HEADERS, now())


@pytest.mark.parametrize(
    ("name", "usage", "later", "because"),
    [
        ("other", CLIENTS, 0, "common name"),
        ("front-proxy-client", SERVERS, 0, "not for client"),
        ("front-proxy-client", None, 0, "not for client"),
        ("front-proxy-client", CLIENTS, 7200, "not valid"),
        ("front-proxy-client", CLIENTS, -7200, "not valid"),
    ],
    ids=["name", "server's", "no usage", "ended", "not begun"],
)
def test_an_unsuitable_certificate_is_refused(
    authority: KeyPair, proxy: FrontProxy, name: str, usage: Any, later: float, because: str
) -> None:
    with pytest.raises(UnauthenticatedError, match=because):
        identify(proxy, chain(authority, name, usage), HEADERS, now() + later)


def test_a_certificate_with_two_common_names_is_refused(authority: KeyPair, proxy: FrontProxy) -> None:
    """A CA that signs for one of the names would also sign for the other."""
    both = a_client_pair(authority, usage=CLIENTS, also="somebody")
    with pytest.raises(UnauthenticatedError, match="common name"):
        identify(proxy, (der(both), der(authority)), HEADERS, now())


def test_an_empty_list_of_allowed_names_allows_no_client(authority: KeyPair) -> None:
    """An empty list must not allow every client with a certificate of that CA."""
    proxy = parse_front_proxy(data(authority))
    with pytest.raises(UnauthenticatedError, match="--requestheader-allowed-names"):
        identify(proxy, chain(authority), HEADERS, now())


def test_a_certificate_of_the_webhook_client_ca_is_refused(authority: KeyPair, proxy: FrontProxy) -> None:
    """The handshake also accepts the CA of the webhook clients, which can sign any name."""
    with pytest.raises(UnauthenticatedError, match="another CA"):
        identify(proxy, chain(an_authority("reviewers")), HEADERS, now())


@pytest.mark.parametrize(
    ("name", "usage", "later", "because"),
    [
        ("apiserver", CLIENTS, 0, None),
        ("front-proxy-client", CLIENTS, 0, "common name"),
        ("apiserver", SERVERS, 0, "not for client"),
        ("apiserver", CLIENTS, 7200, "not valid"),
    ],
    ids=["right", "name", "server's", "ended"],
)
def test_webhook_clients_need_the_right_certificate(name: str, usage: Any, later: float, because: str | None) -> None:
    reviewers = an_authority("reviewers")
    clients = WebhookClients(reviewers.certificate, frozenset({"apiserver"}))

    if because is None:
        check_webhook_client(clients, chain(reviewers, name, usage), now() + later)
    else:
        with pytest.raises(UnauthenticatedError, match=because):
            check_webhook_client(clients, chain(reviewers, name, usage), now() + later)


def test_only_configured_webhook_clients_may_send_reviews(authority: KeyPair) -> None:
    clients = WebhookClients(an_authority("reviewers").certificate, frozenset({"front-proxy-client"}))

    with pytest.raises(UnauthenticatedError, match="no client certificate"):
        check_webhook_client(clients, (), now())
    with pytest.raises(UnauthenticatedError, match="another CA"):
        check_webhook_client(clients, chain(authority), now())
    check_webhook_client(None, (), now())


def test_an_unreadable_certificate_is_refused(proxy: FrontProxy) -> None:
    with pytest.raises(UnauthenticatedError, match="cannot be read"):
        identify(proxy, (b"nonsense",), HEADERS, now())


def test_a_refusal_does_not_repeat_headers(authority: KeyPair, proxy: FrontProxy) -> None:
    with pytest.raises(UnauthenticatedError) as refused:
        identify(proxy, (), [(b"X-Remote-User", json.dumps("evil").encode())], now())

    assert "evil" not in str(refused.value)
