# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How the virt-handlers at both ends of a migration authenticate each other.

Each process makes a key pair for migrations and publishes its certificate on its own Node, which no other node's
virt-handler can write. So a captured node can only impersonate itself, and no key is shared.
"""

from __future__ import annotations

import base64
import ssl
from collections.abc import Mapping
from typing import Any

from controlplane.api.objects.resources import NODE, Key
from controlplane.engine.errors import Invalid
from controlplane.engine.ports import Api
from controlplane.tls.contexts import client_context, load_pair, server_context
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair

CERTIFICATE = "kubevirt.io/migration-certificate"
"""Annotation of a Node: the only certificate of its virt-handler that is accepted for migrations (DER, base64)."""
_CERTIFICATE_LIMIT = 4096


def certificate_annotation(pair: SelfSignedPair) -> dict[str, str]:
    """Return the annotation that publishes this process's certificate."""
    return {CERTIFICATE: base64.b64encode(pair.der).decode("ascii")}


async def read_peer_certificate(api: Api, node: str) -> bytes:
    """Read the certificate of another node's virt-handler (DER). ApiError; Invalid when the Node has none."""
    return peer_certificate(await api.get(NODE, Key("", node)), node)


def peer_certificate(node: Mapping[str, Any], name: str) -> bytes:
    """Return the certificate (DER) of a Node object. Invalid if it has none."""
    encoded = (node.get("metadata", {}).get("annotations") or {}).get(CERTIFICATE, "")
    if not encoded or len(encoded) > _CERTIFICATE_LIMIT:
        raise Invalid(f"virt-handler of node {name} has not published its migration certificate")
    try:
        return base64.b64decode(encoded, validate=True)
    except ValueError as error:
        raise Invalid(f"the migration certificate of node {name} is invalid") from error


def server_tls_context(pair: SelfSignedPair, peer: bytes) -> ssl.SSLContext:
    """Return a TLS context that accepts one peer, by its certificate (DER). Invalid."""
    context = server_context(ssl.TLSVersion.TLSv1_3, ssl.CERT_REQUIRED)
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the trust anchor is the peer's certificate itself
    try:
        context.load_verify_locations(cadata=peer)
        load_pair(context, pair.certificate, pair.key)
    except (ssl.SSLError, OSError, ValueError) as error:
        raise Invalid(f"cannot listen for the other virt-handler: {error}") from error
    return context


def client_tls_context(pair: SelfSignedPair, peer: bytes) -> ssl.SSLContext:
    """Return a TLS context to connect to one peer, authenticated by its certificate (DER). Invalid."""
    try:
        context = client_context(peer, pair.certificate, pair.key)
        context.set_alpn_protocols(["http/1.1"])
    except (ssl.SSLError, OSError, ValueError) as error:
        raise Invalid(f"cannot connect to the other virt-handler: {error}") from error
    return context
