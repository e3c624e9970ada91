# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server accepts with each tlsConfiguration."""

from __future__ import annotations

import ssl
import time
from datetime import timedelta

import pytest

from controlplane.api.objects.kubevirt import TLSConfiguration
from controlplane.api.tls_ciphers import OPENSSL_NAMES
from controlplane.tls.certificates import Subject, make_self_signed
from controlplane.tls.contexts import load_pair, server_context
from controlplane.tls.policy import TlsPolicy, apply_policy, tls_policy
from tests.controlplane.tls.test_contexts import shake_hands

FIRST, OTHER = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


@pytest.fixture
def server() -> ssl.SSLContext:
    pair = make_self_signed(Subject("server", "server", ("server",)), time.time(), timedelta(days=1))
    context = server_context(ssl.TLSVersion.TLSv1_2, ssl.CERT_NONE)
    load_pair(context, pair.certificate, pair.key)
    return context


def negotiated(server: ssl.SSLContext, ciphers: str = "", version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2) -> str:
    """Return the cipher suite, or "refused". The client offers nothing newer than this version."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = version
    if ciphers:
        client.set_ciphers(ciphers)
    try:
        cipher = shake_hands(server, client).cipher()
    except ssl.SSLError:
        return "refused"
    return cipher[0] if cipher is not None else "refused"


@pytest.mark.parametrize("name", OPENSSL_NAMES)
def test_each_suite_that_has_an_effect_can_be_the_only_one(name: str, server: ssl.SSLContext) -> None:
    apply_policy(server, tls_policy(TLSConfiguration(min_tls_version="VersionTLS12", ciphers=(name,))))
    others = ":".join(set(OPENSSL_NAMES.values()) - {OPENSSL_NAMES[name]})
    assert (negotiated(server, OPENSSL_NAMES[name]), negotiated(server, others)) == (OPENSSL_NAMES[name], "refused")


def test_tls_1_3_is_accepted_with_and_without_suites_of_1_2(server: ssl.SSLContext) -> None:
    apply_policy(server, tls_policy(TLSConfiguration(min_tls_version="VersionTLS12", ciphers=(FIRST,))))
    assert negotiated(server, version=ssl.TLSVersion.TLSv1_3).startswith("TLS_")


def test_tls_1_2_is_refused_from_1_3_on_and_accepted_again_without_a_configuration(server: ssl.SSLContext) -> None:
    apply_policy(server, tls_policy(TLSConfiguration(min_tls_version="VersionTLS13")))
    assert negotiated(server) == "refused"
    apply_policy(server, tls_policy(TLSConfiguration()))
    assert negotiated(server) != "refused"


def test_the_default_suites_return(server: ssl.SSLContext) -> None:
    before = [cipher["name"] for cipher in server.get_ciphers()]
    for configuration in (TLSConfiguration(min_tls_version="VersionTLS12", ciphers=(FIRST,)), TLSConfiguration()):
        apply_policy(server, tls_policy(configuration))
    assert [cipher["name"] for cipher in server.get_ciphers()] == before


@pytest.mark.parametrize(
    ("ciphers", "used"),
    [
        ((OTHER, FIRST, OTHER), ("ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES256-GCM-SHA384")),
        (("TLS_RSA_WITH_AES_128_GCM_SHA256", FIRST), ("ECDHE-ECDSA-AES256-GCM-SHA384",)),
        (("NOT_VALID_CIPHER",), ()),
    ],
    ids=["in order", "of another key", "unknown"],
)
def test_suites_without_effect_are_left_out(ciphers: tuple[str, ...], used: tuple[str, ...]) -> None:
    """An object that no webhook has checked may name anything; a server must not stop for it."""
    assert tls_policy(TLSConfiguration(min_tls_version="VersionTLS12", ciphers=ciphers)) == TlsPolicy(ciphers=used)
