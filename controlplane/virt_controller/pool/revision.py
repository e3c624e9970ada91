# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The template that a VM was created from, as a hash. Pure.

KubeVirt keeps every template in a ControllerRevision and compares them. Hashes are enough to tell whether two templates
are equal, and whether they differ in their DataVolumes.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec
from kubevirt_api.names import POOL_REVISION, POOL_TEMPLATE

from controlplane.api.objects.decode import drop_nulls

Json = dict[str, Any]
DIGITS = 16
MAX_NAME_LENGTH = 40
"""Limit of the pool's name in a revision, which is the value of a label."""


class _Spec(msgspec.Struct, rename="camel"):
    virtual_machine_template: Json


class _Pool(msgspec.Struct):
    spec: _Spec


_decoder = msgspec.json.Decoder(_Pool)


def stored_template(pool: bytes) -> Json:
    """Return spec.virtualMachineTemplate as stored, without nulls. Raises msgspec.DecodeError."""
    template: Json = drop_nulls(_decoder.decode(pool).spec.virtual_machine_template)
    return template


def revision(name: str, template: Json) -> str:
    """Return the revision of a pool's template. name: the name of the pool."""
    return f"{name[:MAX_NAME_LENGTH]}-{_hash(template)}"


def template_hash(template: Json) -> str:
    """Return the hashes of the VMI template and of the DataVolume templates."""
    spec = template["spec"]
    return f"{_hash(spec.get('template'))}.{_hash(spec.get('dataVolumeTemplates') or [])}"


def has_other_volumes(current: str, wanted: str) -> bool:
    """Tell whether two template hashes differ in the DataVolumes. A missing hash is no reason to delete a disk."""
    before, after = current.partition(".")[2], wanted.partition(".")[2]
    return bool(before and after) and before != after


def revision_metadata(name: str, template: Json) -> tuple[dict[str, str], dict[str, str]]:
    """Return the label and the annotation that record the template of a VM."""
    return {POOL_REVISION: revision(name, template)}, {POOL_TEMPLATE: template_hash(template)}


def _hash(value: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(value, order="deterministic")).hexdigest()[:DIGITS]
