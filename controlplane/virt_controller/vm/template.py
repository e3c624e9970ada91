# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template of a VM as its user stored it, not as our types see it: pure.

What a newer virt-api admitted must survive an older controller, and a control plane that learns a field or a default
must not look like a change of everybody's template.
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
"""Fields that say on which nodes a machine may be."""
KEPT = 256
"""Of so many templates the hash is not computed anew."""


class _Template(msgspec.Struct):
    spec: msgspec.Raw


class _Spec(msgspec.Struct):
    template: _Template


class _Stored(msgspec.Struct):
    spec: _Spec


_decoder = msgspec.json.Decoder(_Stored)


def stored_template(vm: bytes) -> bytes:
    """Cut spec.template.spec out of a VM that decodes, as JSON."""
    return bytes(_decoder.decode(vm).spec.template.spec)


def plain_template(template: bytes) -> Json:
    """Read a template with every field that is in it; nulls count as absent."""
    plain: Json = msgspec.json.decode(template)
    if b"null" in template:  # rare, and the walk costs ten times the rest
        plain = drop_nulls(plain)
    return plain


@lru_cache(maxsize=KEPT)
def template_hash(template: bytes) -> str:
    """Say in one word what a template is. Order, spacing and nulls make no difference.

    Stored on running instances: another way to compute it needs another annotation, or all of them ask for a restart.
    """
    return _hash(plain_template(template))


@lru_cache(maxsize=KEPT)
def fixed_hash(template: bytes) -> str:
    """Say in one word what a template is beside what may change while its machine runs. Stored as template_hash is."""
    return _hash(_fixed(template, {"cpu": "sockets", "memory": "guest"}))


@lru_cache(maxsize=KEPT)
def former_fixed_hash(template: bytes) -> str:
    """Say the same as it was said when memory could not change: of instances that were begun then."""
    return _hash(_fixed(template, {"cpu": "sockets"}))


def _fixed(template: bytes, live: Mapping[str, str]) -> Json:
    """Return what of a template stays. live: a field of each of these parts of its domain does not."""
    plain = plain_template(template)
    kept = {name: value for name, value in plain.items() if name not in PLACEMENT}
    domain = dict(plain.get("domain") or {})
    for part, field in live.items():
        rest = {name: value for name, value in (domain.pop(part, None) or {}).items() if name != field}
        domain |= {part: rest} if rest else {}
    return {**kept, "domain": domain}


def _hash(plain: Json) -> str:
    canonical = msgspec.json.encode(plain, order="deterministic")
    return hashlib.sha256(canonical).hexdigest()[:32]
