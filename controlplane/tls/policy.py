# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Versions and cipher suites that our servers accept, by tlsConfiguration of the KubeVirt object.

A context is changed in place, so a listener needs no restart: connections that are open stay as they are. Connections
between our own processes are TLS 1.3 always and need no policy.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from functools import cache

from controlplane.api.objects.kubevirt import TLS13, TLSConfiguration
from controlplane.api.tls_ciphers import OPENSSL_NAMES


@dataclass(frozen=True, slots=True)
class TlsPolicy:
    minimum: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
    ciphers: tuple[str, ...] = ()
    """Suites of TLS 1.2, by OpenSSL's names; empty: Python's default."""


def tls_policy(configuration: TLSConfiguration) -> TlsPolicy:
    """Return the policy. Suites that have no effect are left out; admission refuses a list of nothing else."""
    if configuration.min_tls_version == TLS13:
        return TlsPolicy(ssl.TLSVersion.TLSv1_3)
    named = dict.fromkeys(configuration.ciphers)
    return TlsPolicy(ciphers=tuple(OPENSSL_NAMES[name] for name in named if name in OPENSSL_NAMES))


def apply_policy(context: ssl.SSLContext, policy: TlsPolicy) -> None:
    """Make the context of a server accept what the policy says, from its next handshake on."""
    context.minimum_version = policy.minimum
    context.set_ciphers(":".join(policy.ciphers or _default_ciphers()))


@cache
def _default_ciphers() -> tuple[str, ...]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    return tuple(cipher["name"] for cipher in context.get_ciphers() if cipher["protocol"] != "TLSv1.3")
