# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS of the listener: our serving pair and the client CAs, both replaced without closing connections.

A listening socket keeps the SSLContext that it started with. That context only chooses, at each handshake, the current
one: a new context is made for every change, so a pair that cannot be loaded leaves the old one in use, one that is not
valid yet waits (key_pairs), and a removed CA is trusted no more. A connection that was verified by an older CA is
refused at its next request (`is_current`). Sessions are never resumed: that would skip the client's certificate.

Client certificates may be of two CAs: the front proxy's, and that of API servers that send reviews. The handshake
accepts both; `verified_chain` tells which one it was, and identity decides who the client is.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

from controlplane.tls.certificates import KeyPair
from controlplane.tls.contexts import load_pair, server_context
from controlplane.tls.policy import TlsPolicy, apply_policy
from controlplane.virt_api.http.key_pairs import KeyPairInUse


class TlsError(Exception):
    """A key pair or CA that cannot be used; the previous one stays in use."""


class ServingTls:
    """The context to listen with, and the contexts that it chooses from."""

    def __init__(self, webhook_authority: bytes = b"", now: Callable[[], float] = time.time) -> None:
        """webhook_authority: the CA (PEM) of the clients that send reviews; it does not change."""
        self._webhook_authority = webhook_authority
        self.listening = _empty_context()
        self.listening.sni_callback = self._choose_context
        self._pairs = KeyPairInUse(now)
        self._authority: bytes = b""
        self._contexts: dict[KeyPair, ssl.SSLContext] = {}
        self._trusted: list[ssl.SSLContext] = []
        self._policy = TlsPolicy()

    @property
    def is_ready(self) -> bool:
        return self.current is not None

    @property
    def current(self) -> ssl.SSLContext | None:
        """The context of a handshake at this moment; None before there is a pair."""
        pair = self._pairs.current
        return self._contexts[pair] if pair is not None else None

    def use_pair(self, pair: KeyPair) -> bool:
        """Serve with this pair from now on; False while it is not valid and the previous one is. Raises TlsError."""
        if pair not in self._contexts:
            self._contexts[pair] = self._make(pair, self._authority)
            self._trusted.append(self._contexts[pair])
        is_used = self._pairs.take(pair)
        self._contexts = {pair: self._contexts[pair] for pair in self._pairs.pairs}
        return is_used

    def use_authority(self, authority: bytes) -> None:
        """Accept client certificates of this CA (PEM) only; b"" for none. Raises TlsError."""
        if authority == self._authority:
            return
        self._contexts = {pair: self._make(pair, authority) for pair in self._pairs.pairs}
        self._trusted = list(self._contexts.values())
        self._authority = authority

    def use_policy(self, policy: TlsPolicy) -> None:
        """Accept these versions and cipher suites from the next handshake on."""
        self._policy = policy
        # The version is chosen before the context is, the cipher suite after it.
        for context in (self.listening, *self._contexts.values()):
            apply_policy(context, policy)

    def is_current(self, context: ssl.SSLContext) -> bool:
        """Tell whether a connection was verified against the current CA."""
        return any(context is trusted for trusted in self._trusted)

    def _choose_context(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        del name, context
        current = self.current
        if current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = current
        return None

    def _make(self, pair: KeyPair, authority: bytes) -> ssl.SSLContext:
        context = _empty_context()
        apply_policy(context, self._policy)
        try:
            load_pair(context, pair.certificate, pair.key)
            for bundle in filter(None, (authority, self._webhook_authority)):
                context.load_verify_locations(cadata=bundle.decode("ascii"))
        except (ssl.SSLError, OSError, ValueError) as error:
            raise TlsError(f"cannot use the certificates: {error}") from error
        return context


def verified_chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates (DER) that verified the peer, its own first; none if it has shown none."""
    if connection.getpeercert(binary_form=True) is None:
        return ()
    # Public since Python 3.13, where it returns bytes; older ones have it in the object below.
    inner: Any = connection if hasattr(connection, "get_verified_chain") else connection._sslobj  # type: ignore[attr-defined]
    chain = inner.get_verified_chain() or ()
    return tuple(
        certificate if isinstance(certificate, bytes) else ssl.PEM_cert_to_DER_cert(certificate.public_bytes())
        for certificate in chain
    )


def _empty_context() -> ssl.SSLContext:
    return server_context(ssl.TLSVersion.TLSv1_2, ssl.CERT_OPTIONAL)
