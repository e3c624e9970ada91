# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the World of decide from the objects in the caches. Pure."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from controlplane.api.certificate_lifetimes import DEFAULTS, Lifetimes
from controlplane.api.objects.resources import API_SERVICE, SECRET, Key, Resource
from controlplane.engine.ports import Cache
from controlplane.tls.certificates import KeyPair
from controlplane.virt_controller.certificates.decide import Issued, PairSecret, Verifier, World
from controlplane.virt_controller.certificates.roles import ROLES, Role, subject

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

AUTHORITY_SECRET = "kubevirt-ca"  # noqa: S105 -- the name of a Secret, not a secret

# The role's RBAC names each of these objects; nothing else is read.
VERIFIERS: tuple[tuple[Resource, Key], ...] = (
    (MUTATING, Key("", "virt-api-mutator")),
    (VALIDATING, Key("", "virt-api-validator")),
    (API_SERVICE, Key("", "v1.subresources.kubevirt.io")),
    (API_SERVICE, Key("", "v1alpha3.subresources.kubevirt.io")),
)


def secrets(namespace: str) -> tuple[tuple[Resource, Key], ...]:
    """Return the Secrets: the authority's, then each role's."""
    return tuple((SECRET, Key(namespace, name)) for name in (AUTHORITY_SECRET, *(role.secret for role in ROLES)))


def observe(
    caches: Iterable[tuple[Resource, Key, Cache]], namespace: str, now: float, lifetimes: Lifetimes = DEFAULTS
) -> World:
    """Read the synced caches: an object that they do not have does not exist."""
    objects = {(resource.plural, key): cache.get(key) for resource, key, cache in caches}
    verifiers = [
        _verifier(resource, key, raw) for resource, key in VERIFIERS if (raw := objects.get((resource.plural, key)))
    ]
    authority = Key(namespace, AUTHORITY_SECRET)
    return World(
        authority=_read_secret(authority, objects.get((SECRET.plural, authority)), ("ca.crt", "ca.key")),
        pairs=tuple(_issued(role, namespace, objects) for role in ROLES),
        verifiers=tuple(verifiers),
        now=now,
        lifetimes=lifetimes,
    )


def _issued(role: Role, namespace: str, objects: Mapping[tuple[str, Key], bytes | None]) -> Issued:
    key = Key(namespace, role.secret)
    raw = objects.get((SECRET.plural, key))
    bundle = _read_secret(key, raw, ("ca.crt", "")).pair.certificate if role.trusts else None
    return Issued(_read_secret(key, raw, ("tls.crt", "tls.key")), subject(role, namespace), bundle)


def ca_bundles(obj: dict[str, Any], *, is_webhooks: bool) -> tuple[bytes, ...]:
    """Return the bundle of each hook of a webhook configuration, or the one of an APIService."""
    if is_webhooks:
        configs = [hook.get("clientConfig") or {} for hook in obj.get("webhooks") or ()]
    else:
        configs = [obj.get("spec") or {}]
    return tuple(_decoded(config.get("caBundle")) for config in configs)


def _verifier(resource: Resource, key: Key, raw: bytes) -> Verifier:
    obj = msgspec.json.decode(raw)
    bundles = ca_bundles(obj, is_webhooks=resource != API_SERVICE)
    return Verifier(resource, key, obj["metadata"]["resourceVersion"], bundles)


def _read_secret(key: Key, raw: bytes | None, names: tuple[str, str]) -> PairSecret:
    obj = msgspec.json.decode(raw) if raw is not None else {}
    data = obj.get("data") or {}
    certificate, key_pem = (_decoded(data.get(name)) for name in names)
    return PairSecret(key, (obj.get("metadata") or {}).get("resourceVersion", ""), KeyPair(certificate, key_pem))


def _decoded(value: object) -> bytes:
    """Decode base64; invalid data counts as empty."""
    try:
        return base64.b64decode(value, validate=True) if isinstance(value, str) else b""
    except ValueError:
        return b""
