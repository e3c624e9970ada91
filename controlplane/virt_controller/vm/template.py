# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template of a VM as its user stored it, not as our types see it: pure.

What a newer virt-api admitted must survive an older controller, and a control plane that learns a field or a default
must not look like a change of everybody's template.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from controlplane.api.objects.decode import drop_nulls

Json = dict[str, Any]


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


def template_hash(template: bytes) -> str:
    """Say in one word what a template is. Order, spacing and nulls make no difference.

    Stored on running instances: another way to compute it needs another annotation, or all of them ask for a restart.
    """
    canonical = msgspec.json.encode(plain_template(template), order="deterministic")
    return hashlib.sha256(canonical).hexdigest()[:32]
