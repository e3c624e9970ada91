# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS between two processes of the control plane."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta

import pytest

from controlplane.tls.certificates import KeyPair, Subject, issue, make_ca
from controlplane.tls.contexts import client_context, load_pair, server_context

DAY = timedelta(days=1)


@pytest.fixture(scope="module")
def authority() -> KeyPair:
    return make_ca("test", time.time(), DAY)


@pytest.fixture
def server(authority: KeyPair) -> Iterator[ssl.SSLContext]:
    pair = issue(authority, Subject("server", "server", ("server",)), time.time(), DAY)
    context = server_context(ssl.TLSVersion.TLSv1_2, ssl.CERT_OPTIONAL)
    load_pair(context, pair.certificate, pair.key)
    context.load_verify_locations(cadata=authority.certificate.decode())
    return context


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext) -> ssl.SSLObject:
    """Return the client's end. Raises ssl.SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="server")
    theirs = server.wrap_bio(to_server, to_client, server_side=True)
    for _unused in range(4):
        for end in (ours, theirs):
            with suppress(ssl.SSLWantReadError):
                end.do_handshake()
    with suppress(ssl.SSLWantReadError):
        ours.read()  # a session ticket would arrive with this read
    return ours


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=lambda version: version.name)
def test_sessions_cannot_be_resumed(version: ssl.TLSVersion, server: ssl.SSLContext, authority: KeyPair) -> None:
    """A resumed session would skip the check of the certificate."""
    client = ssl.create_default_context(cadata=authority.certificate.decode())
    client.minimum_version = client.maximum_version = version
    session = shake_hands(server, client).session
    assert session is None or not session.has_ticket


def test_a_client_certificate_is_never_sent_in_the_clear(server: ssl.SSLContext, authority: KeyPair) -> None:
    pair = issue(authority, Subject("caller", "client"), time.time(), DAY)
    client = client_context(ssl.PEM_cert_to_DER_cert(authority.certificate.decode()), pair.certificate, pair.key)
    assert shake_hands(server, client).version() == "TLSv1.3"
    server.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError, match="unsupported protocol"):
        shake_hands(server, client)
