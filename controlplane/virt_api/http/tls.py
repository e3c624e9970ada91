# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS of the listener: our serving pair and the CA of the front proxy, both exchanged without a cut.

A listening socket keeps the context it began with. That one only answers each handshake with the
context that is current at the moment: a new one is made for every change, so that a pair that cannot be
loaded leaves the old one in place, one that is not valid yet waits (pairs), and a CA that was taken back
is gone. Who connected under another CA is refused at the next request (`is_current`) and connects anew.
No session is ever resumed: resuming would skip the client's certificate.

Client certificates may be of two CAs, the front proxy's and that of API servers that send reviews. The handshake takes
both; `verified_chain` tells which it was, and identity who that makes the client.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Callable
from typing import Any

from controlplane.kube.certificates import KeyPair
from controlplane.tls.contexts import load_pair, server_context
from controlplane.virt_api.http.key_pairs import PairInUse


class TlsError(Exception):
    """A key pair or CA that cannot be used; the one before stays in use."""


class ServingTls:
    """The context to listen with, and what it currently answers with."""

    def __init__(self, hook_authority: bytes = b"", now: Callable[[], float] = time.time) -> None:
        """hook_authority: the CA (PEM) of the clients that send reviews; it stays what it is."""
        self._hook_authority = hook_authority
        self.listening = _empty_context()
        self.listening.sni_callback = self._answer
        self._pairs = PairInUse(now)
        self._authority: bytes = b""
        self._contexts: dict[KeyPair, ssl.SSLContext] = {}
        self._trusted: list[ssl.SSLContext] = []

    @property
    def is_ready(self) -> bool:
        return self.current is not None

    @property
    def current(self) -> ssl.SSLContext | None:
        """What a handshake at this moment is answered with; None before there is a pair."""
        pair = self._pairs.current
        return self._contexts[pair] if pair is not None else None

    def use_pair(self, pair: KeyPair) -> bool:
        """Serve with this pair from now on; False when it waits, not valid while the one before is. Raises TlsError."""
        if pair not in self._contexts:
            self._contexts[pair] = self._make(pair, self._authority)
            self._trusted.append(self._contexts[pair])
        is_used = self._pairs.take(pair)
        self._contexts = {known: self._contexts[known] for known in self._pairs.known}
        return is_used

    def use_authority(self, authority: bytes) -> None:
        """Accept client certificates of this CA (PEM) only; b"" for none. Raises TlsError."""
        if authority == self._authority:
            return
        self._contexts = {pair: self._make(pair, authority) for pair in self._pairs.known}
        self._trusted = list(self._contexts.values())
        self._authority = authority

    def is_current(self, context: ssl.SSLContext) -> bool:
        """Tell whether a connection was verified against the CA that counts now."""
        return any(context is trusted for trusted in self._trusted)

    def _answer(self, connection: ssl.SSLObject, name: str | None, context: ssl.SSLContext) -> int | None:
        del name, context
        current = self.current
        if current is None:
            return ssl.ALERT_DESCRIPTION_INTERNAL_ERROR
        connection.context = current
        return None

    def _make(self, pair: KeyPair, authority: bytes) -> ssl.SSLContext:
        context = _empty_context()
        try:
            load_pair(context, pair.certificate, pair.key)
            for one in filter(None, (authority, self._hook_authority)):
                context.load_verify_locations(cadata=one.decode("ascii"))
        except (ssl.SSLError, OSError, ValueError) as error:
            raise TlsError(f"cannot use the certificates: {error}") from error
        return context


def verified_chain(connection: ssl.SSLObject) -> tuple[bytes, ...]:
    """Return the certificates (DER) by which the peer was verified, its own first; none if it showed none."""
    if connection.getpeercert(binary_form=True) is None:
        return ()
    # Public from Python 3.13 on, where it returns bytes; before, the same of the object below.
    inner: Any = connection if hasattr(connection, "get_verified_chain") else connection._sslobj  # type: ignore[attr-defined]
    chain = inner.get_verified_chain() or ()
    return tuple(one if isinstance(one, bytes) else ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in chain)


def _empty_context() -> ssl.SSLContext:
    return server_context(ssl.TLSVersion.TLSv1_2, ssl.CERT_OPTIONAL)
