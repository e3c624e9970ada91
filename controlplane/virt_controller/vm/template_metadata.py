# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which labels and annotations of a VM's template apply at its next start only: pure.

An instance and its Pod keep those that they were created with. All labels count, because Services, policies and budgets
select by any of them; of the annotations those that the Pod gets. Annotations for the next start alone, and notes of
users and tools, need no restart.
"""

from __future__ import annotations

import hashlib

import msgspec
from kubevirt_api.names import OUTDATED_LAUNCHER, POOL_REVISION, RESERVED_LABELS, TEMPLATE_METADATA_HASH

from controlplane.api.objects.meta import ObjectMeta
from controlplane.api.pod_metadata import is_passed_annotation

LABELS_OF_CONTROL_PLANE = frozenset({*RESERVED_LABELS, OUTDATED_LAUNCHER, POOL_REVISION})
"""Labels that the control plane changes on running instances."""
HASH_CHARACTERS = 16
_SEPARATOR = "-"


def metadata_hash(template: ObjectMeta) -> str:
    """Hash the labels, and the annotations, that apply at a start. Running VMIs store it."""
    return _SEPARATOR.join(_hash(part) for part in _parts(template).values())


def changed_metadata(template: ObjectMeta, own: ObjectMeta) -> list[str]:
    """Return "labels", "annotations" or both if the template has others than its VMI was created from.

    A VMI of an older version has no hash: nothing is reported.
    """
    made_from = own.annotations.get(TEMPLATE_METADATA_HASH)
    if made_from is None:
        return []
    pairs = zip(_parts(template).items(), made_from.split(_SEPARATOR), strict=False)
    return [name for (name, part), before in pairs if _hash(part) != before]


def _parts(template: ObjectMeta) -> dict[str, dict[str, str]]:
    return {
        "labels": {key: value for key, value in template.labels.items() if key not in LABELS_OF_CONTROL_PLANE},
        "annotations": {key: value for key, value in template.annotations.items() if is_passed_annotation(key)},
    }


def _hash(part: dict[str, str]) -> str:
    canonical = msgspec.json.encode(part, order="deterministic")
    return hashlib.sha256(canonical).hexdigest()[:HASH_CHARACTERS]
