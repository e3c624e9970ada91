# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which template a machine was made from, in a word: pure.

Upstream keeps each template that machines were made from, in ControllerRevisions, and compares them. What is asked of
them, whether two are the same, and in which part they differ, hashes say as well.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from kubevirt_api.names import POOL_REVISION, POOL_TEMPLATE

from controlplane.api.objects.decode import drop_nulls

Json = dict[str, Any]
DIGITS = 16
LONGEST_NAME = 40
"""Characters of the pool's name in a revision, which is a label's value."""


class _Spec(msgspec.Struct, rename="camel"):
    virtual_machine_template: Json


class _Stored(msgspec.Struct):
    spec: _Spec


_decoder = msgspec.json.Decoder(_Stored)


def stored_template(pool: bytes) -> Json:
    """Cut spec.virtualMachineTemplate out of a pool that decodes, as it was stored; nulls count as absent."""
    found: Json = drop_nulls(_decoder.decode(pool).spec.virtual_machine_template)
    return found


def revision(name: str, template: Json) -> str:
    """Say which template a pool has."""
    return f"{name[:LONGEST_NAME]}-{_hash(template)}"


def parts(template: Json) -> str:
    """Say what the instances are made of, and what their DataVolumes."""
    spec = template["spec"]
    return f"{_hash(spec.get('template'))}.{_hash(spec.get('dataVolumeTemplates') or [])}"


def has_other_volumes(made_of: str, wanted: str) -> bool:
    """Tell whether what runs has other DataVolumes than its machine would make; what says nothing does not."""
    before, after = made_of.partition(".")[2], wanted.partition(".")[2]
    return bool(before and after) and before != after


def stamped(name: str, template: Json) -> tuple[dict[str, str], dict[str, str]]:
    """Return the labels and the annotations that say it."""
    return {POOL_REVISION: revision(name, template)}, {POOL_TEMPLATE: parts(template)}


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:DIGITS]
