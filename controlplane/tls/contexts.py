# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Mutual TLS: contexts, key pairs, and the role that a certificate names.

virt-controller defines the roles and issues their pairs; virt_api.http.identity checks the certificates of API servers.
Sessions are never resumed: that would skip the check of the client's certificate, whose trust may have ended.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from typing import Any

VIRT_API_CLIENT = "virt-api/client"
"""The role of virt-api as a client of virt-handlers."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NEVER_ANOTHER_HOST = tuple(
    ipaddress.ip_network(network)
    for network in (
        # This network, this host, this link, multicast, broadcast. Not all of 240.0.0.0/4: clusters have Pods there.
        "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
        "fe80::/10", "ff00::/8",
        # ::, ::1, and IPv6 forms of IPv4 addresses: mapped, compatible, NAT64; Teredo; 6to4.
        "::/8", "2001::/32", "2002::/16",
        # Metadata services with other addresses: Alibaba Cloud, Azure, Oracle Cloud, AWS, Google Cloud.
        "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128",
    )
)  # fmt: skip
"""Networks in which no virt-handler listens."""


def can_be_another_host(address: Address) -> bool:
    """Tell whether another host can have this address.

    A compromised node could otherwise make others call themselves, or the metadata service of their cloud.
    """
    return not any(address in network for network in _NEVER_ANOTHER_HOST)


def role_uri(namespace: str, role: str) -> str:
    """Return the URI of a role in the certificates of the control plane in this namespace."""
    return f"spiffe://kubevirt.{namespace}/{role}"


def names_role(connection: ssl.SSLObject, uri: str) -> bool:
    """Tell whether the peer's certificate, which the handshake verified, names this role and no other."""
    names: Any = (connection.getpeercert() or {}).get("subjectAltName", ())
    return [value for kind, value in names if kind == "URI"] == [uri]


def server_context(minimum: ssl.TLSVersion, client: ssl.VerifyMode) -> ssl.SSLContext:
    """Return a context to listen with, without a pair. client: whether clients must show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.verify_mode = client
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


def client_context(server: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return a context to call one server, which has this certificate (DER). Raises SSLError, OSError, ValueError.

    certificate, key: the client's pair (PEM). TLS 1.3 only: older versions send the certificate in the clear.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # verifies the certificate and the host name
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the server's certificate itself is trusted
    context.load_verify_locations(cadata=server)
    load_pair(context, certificate, key)
    return context


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a pair (PEM) from memory: OpenSSL needs a path, and a key must not be on a disk. Raises SSLError,
    OSError.
    """
    descriptor = os.memfd_create("pair")
    try:
        os.write(descriptor, certificate + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
