# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template of a VM as stored, not as our types decode it: pure.

Fields that a newer virt-api admitted must survive an older controller, and a new field or default of the control plane
must not look like a change of the template.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from controlplane.api.objects.decode import drop_nulls

Json = dict[str, Any]

PLACEMENT = ("nodeSelector", "affinity", "tolerations")
"""Fields that constrain the nodes."""
CACHED_HASHES = 256
"""Entries of each hash cache."""


class _Template(msgspec.Struct):
    spec: msgspec.Raw


class _Spec(msgspec.Struct):
    template: _Template


class _Stored(msgspec.Struct):
    spec: _Spec


_decoder = msgspec.json.Decoder(_Stored)


def stored_template(vm: bytes) -> bytes:
    """Return spec.template.spec of a valid VM, as JSON."""
    return bytes(_decoder.decode(vm).spec.template.spec)


def plain_template(template: bytes) -> Json:
    """Decode a template with all of its fields; nulls count as absent."""
    plain: Json = msgspec.json.decode(template)
    if b"null" in template:  # rare, and ten times as expensive as the rest
        plain = drop_nulls(plain)
    return plain


@lru_cache(maxsize=CACHED_HASHES)
def template_hash(template: bytes) -> str:
    """Hash a template. Order, spacing and nulls make no difference.

    Running VMIs store it: another algorithm needs another annotation, or all VMs would report that they need a restart.
    """
    return _hash(plain_template(template))


@lru_cache(maxsize=CACHED_HASHES)
def fixed_hash(template: bytes) -> str:
    """Hash the fields of a template that cannot change while the machine runs. Stored like template_hash."""
    return _hash(_fixed(template, {"cpu": "sockets", "memory": "guest"}))


@lru_cache(maxsize=CACHED_HASHES)
def former_fixed_hash(template: bytes) -> str:
    """Hash as the version did in which memory could not change, for VMIs that it created."""
    return _hash(_fixed(template, {"cpu": "sockets"}))


def _fixed(template: bytes, live: Mapping[str, str]) -> Json:
    """Return the fields that cannot change live. live: part of the domain -> its field that can."""
    plain = plain_template(template)
    fixed = {name: value for name, value in plain.items() if name not in PLACEMENT}
    domain = dict(plain.get("domain") or {})
    for part, field in live.items():
        rest = {name: value for name, value in (domain.pop(part, None) or {}).items() if name != field}
        domain |= {part: rest} if rest else {}
    return {**fixed, "domain": domain}


def _hash(plain: Json) -> str:
    canonical = msgspec.json.encode(plain, order="deterministic")
    return hashlib.sha256(canonical).hexdigest()[:32]
