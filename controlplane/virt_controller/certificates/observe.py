# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the caches hold, made into the World that decide wants. Pure; no writes."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable
from typing import Any

import msgspec

from controlplane.api.objects.resources import SECRET, Key, Resource
from controlplane.engine.ports import Cache
from controlplane.kube.certificates import KeyPair
from controlplane.virt_controller.certificates.decide import Held, Verifier, World

MUTATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "mutatingwebhookconfigurations",
    "MutatingWebhookConfiguration",
    namespaced=False,
)
VALIDATING = Resource(
    "admissionregistration.k8s.io",
    "v1",
    "validatingwebhookconfigurations",
    "ValidatingWebhookConfiguration",
    namespaced=False,
)
API_SERVICE = Resource("apiregistration.k8s.io", "v1", "apiservices", "APIService", namespaced=False)

AUTHORITY_SECRET = "kubevirt-ca"  # noqa: S105 -- the name of a Secret, not a secret
SERVING_SECRET = "kubevirt-virt-api-certs"  # noqa: S105

# Each is an object that the role's RBAC names; nothing else is read.
VERIFIERS: tuple[tuple[Resource, Key], ...] = (
    (MUTATING, Key("", "virt-api-mutator")),
    (VALIDATING, Key("", "virt-api-validator")),
    (API_SERVICE, Key("", "v1.subresources.kubevirt.io")),
    (API_SERVICE, Key("", "v1alpha3.subresources.kubevirt.io")),
)


def secrets(namespace: str) -> tuple[tuple[Resource, Key], ...]:
    """Return the two Secrets: authority, serving pair."""
    return (SECRET, Key(namespace, AUTHORITY_SECRET)), (SECRET, Key(namespace, SERVING_SECRET))


def serving_names(namespace: str) -> tuple[str, ...]:
    """Return the names by which API servers call virt-api."""
    return f"virt-api.{namespace}.svc", f"virt-api.{namespace}.svc.cluster.local"


def observe(caches: Iterable[tuple[Resource, Key, Cache]], namespace: str, now: float) -> World:
    """Read the caches; what they do not hold does not exist yet."""
    found = {(resource.plural, key): cache.get(key) for resource, key, cache in caches}
    authority, serving = (found.get((resource.plural, key)) for resource, key in secrets(namespace))
    verifiers = [
        _verifier(resource, key, raw) for resource, key in VERIFIERS if (raw := found.get((resource.plural, key)))
    ]
    return World(
        authority=_held(authority, "ca.crt", "ca.key"),
        serving=_held(serving, "tls.crt", "tls.key"),
        verifiers=tuple(verifiers),
        names=serving_names(namespace),
        now=now,
    )


def ca_bundles(obj: dict[str, Any]) -> tuple[bytes, ...]:
    """Return the bundles of a webhook configuration or an APIService."""
    if "webhooks" in obj:
        configs = [hook.get("clientConfig") or {} for hook in obj["webhooks"] or ()]
    else:
        configs = [obj.get("spec") or {}]
    return tuple(_decoded(config.get("caBundle")) for config in configs)


def _verifier(resource: Resource, key: Key, raw: bytes) -> Verifier:
    obj = msgspec.json.decode(raw)
    return Verifier(resource, key, obj["metadata"]["resourceVersion"], ca_bundles(obj))


def _held(raw: bytes | None, certificate: str, key: str) -> Held | None:
    if raw is None:
        return None
    obj = msgspec.json.decode(raw)
    meta, data = obj["metadata"], obj.get("data") or {}
    pair = KeyPair(_decoded(data.get(certificate)), _decoded(data.get(key)))
    return Held(Key(meta["namespace"], meta["name"]), meta["resourceVersion"], pair)


def _decoded(value: object) -> bytes:
    """Decode base64; what is none counts as nothing there."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except binascii.Error:
        return b""
