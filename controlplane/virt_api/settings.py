# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings of virt-api, parsed once from the environment."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography import x509

from controlplane.virt_api.http.identity import WebhookClients

SECRET_NAME = "kubevirt-virt-api-certs"  # noqa: S105 -- the name of a Secret, not a secret
CLIENT_SECRET_NAME = "kubevirt-virt-api-client-certs"  # noqa: S105 -- of the pair that we show to virt-handlers


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of one virt-api process."""

    namespace: str
    """Where the control plane is installed, and so our serving certificate."""
    pod_name: str
    log_level: str
    node: str = ""
    """Name of the Node of this process."""
    address: str = ""
    """Where to listen; "" is every address."""
    port: int = 8443
    drain_seconds: float = 3.0
    """How long to serve after SIGTERM, until no API server sends new requests to this Pod."""
    webhook_clients: WebhookClients | None = None
    """The clients that may send reviews; None lets every peer send them."""


class SettingsError(Exception):
    """The environment lacks a value; the text names it and the remedy."""


def parse(environment: Mapping[str, str]) -> Settings:
    """Read the environment. Raises SettingsError."""
    namespace = environment.get("POD_NAMESPACE", "")
    if not namespace:
        raise SettingsError("POD_NAMESPACE is not set: give the container the Pod's metadata.namespace")
    port = environment.get("LISTEN_PORT", "8443")
    if not port.isdigit() or not 0 <= int(port) <= 65535:
        raise SettingsError(f"LISTEN_PORT is {port!r}: it must be a port, 0 to 65535")
    return Settings(
        namespace=namespace,
        pod_name=environment.get("POD_NAME", "virt-api"),
        log_level=environment.get("LOG_LEVEL", "INFO"),
        node=environment.get("NODE_NAME", ""),
        address=environment.get("LISTEN_ADDRESS", ""),
        port=int(port),
        webhook_clients=_webhook_clients(environment),
    )


def _webhook_clients(environment: Mapping[str, str]) -> WebhookClients | None:
    """Read the CA and the names. One without the other is an error: it must not let every peer send reviews."""
    authority, listed = (environment.get(name, "") for name in ("WEBHOOK_CLIENT_CA", "WEBHOOK_CLIENT_NAMES"))
    if not authority and listed in {"", "[]"}:
        return None
    try:
        x509.load_pem_x509_certificates(authority.encode("ascii"))
    except (ValueError, UnicodeEncodeError) as error:
        raise SettingsError("WEBHOOK_CLIENT_CA holds no certificate: it must be those of the CA, as PEM") from error
    try:
        names = json.loads(listed or "[]")
    except ValueError:
        names = []
    if not names or not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
        raise SettingsError("WEBHOOK_CLIENT_NAMES is empty: it must be a JSON list of common names")
    return WebhookClients(authority.encode("ascii"), frozenset(names))
