# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""TLS that both ends of a connection prove themselves by: contexts, pairs, and the role that a certificate names.

Which roles there are and who issues their pairs is virt-controller's; whom API servers send is virt_api.identity's.
Nothing here resumes a session: resuming skips the client's certificate, which may have ceased to count meanwhile.
"""

from __future__ import annotations

import ipaddress
import os
import ssl
from typing import Any

VIRT_API_CLIENT = "virt-api/client"
"""The role that virt-api plays towards virt-handlers."""

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_NOBODYS = tuple(
    ipaddress.ip_network(one)
    for one in (
        # This network, this host, this link, groups, everybody. Not all of 240.0.0.0/4: clusters have Pods there.
        "0.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "255.255.255.255/32",
        "fe80::/10", "ff00::/8",
        # ::, ::1, and what is an IPv4 address in another spelling: mapped, compatible, NAT64; Teredo; 6to4.
        "::/8", "2001::/32", "2002::/16",
        # Metadata beyond the link: Alibaba Cloud, Azure, Oracle Cloud, AWS, Google Cloud.
        "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128",
    )
)  # fmt: skip
"""Where no virt-handler is."""


def is_anothers(address: Address) -> bool:
    """Whether another host can have this address, of those that there are.

    Where it means this one, or what is next to it (a cloud's metadata), a captured node would have others call there.
    """
    return not any(address in network for network in _NOBODYS)


def role_uri(namespace: str, role: str) -> str:
    """Return how a certificate of the control plane in this namespace names a role."""
    return f"spiffe://kubevirt.{namespace}/{role}"


def names_role(connection: ssl.SSLObject, uri: str) -> bool:
    """Tell whether the peer has shown a certificate, verified by the handshake, that names this role and no other."""
    names: Any = (connection.getpeercert() or {}).get("subjectAltName", ())
    return [value for kind, value in names if kind == "URI"] == [uri]


def server_context(minimum: ssl.TLSVersion, client: ssl.VerifyMode) -> ssl.SSLContext:
    """Return a context to listen with that has no pair yet. client: whether clients must show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = minimum
    context.verify_mode = client
    context.options |= ssl.OP_NO_TICKET | ssl.OP_NO_COMPRESSION | ssl.OP_NO_RENEGOTIATION
    context.num_tickets = 0
    context.set_alpn_protocols(["http/1.1"])
    return context


def client_context(server: bytes, certificate: bytes, key: bytes) -> ssl.SSLContext:
    """Return a context to call one server with, known by its own certificate (DER). SSLError, OSError, ValueError.

    certificate, key: what the caller shows (PEM). TLS 1.3 only: in older ones the certificate goes in the clear.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # which verifies, and compares the host's name
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # what is trusted is the server's certificate itself
    context.load_verify_locations(cadata=server)
    load_pair(context, certificate, key)
    return context


def load_pair(context: ssl.SSLContext, certificate: bytes, key: bytes) -> None:
    """Load a pair (PEM) from memory; OpenSSL wants a path, and a key has no business on a disk. SSLError, OSError."""
    descriptor = os.memfd_create("pair")
    try:
        os.write(descriptor, certificate + b"\n" + key)
        context.load_cert_chain(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)
