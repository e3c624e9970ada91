# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machines of a pool, and their names: pure.

The template is copied as it was stored, with fields that this version does not know.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from typing import Any

from controlplane.api.admission.identity import keep_identity
from controlplane.api.objects.owner import owner_reference
from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.resources import VIRTUAL_MACHINE
from controlplane.engine.patch import merge_patch
from controlplane.virt_controller.pool.revision import stamped

Json = dict[str, Any]
_CLOUD_INIT = ("cloudInitNoCloud", "cloudInitConfigDrive")
_CLOUD_INIT_SECRETS = ("secretRef", "userDataSecretRef", "networkDataSecretRef")


def name_of(pool: str, number: int) -> str:
    """Name a machine."""
    return f"{pool}-{number}"


def number_of(pool: str, name: str) -> int | None:
    """Return a machine's number; None for a name that the pool does not give."""
    digits = name.removeprefix(f"{pool}-")
    is_number = digits.isascii() and digits.isdecimal() and digits == str(int(digits[:10]))
    return int(digits) if is_number and digits != name else None


def build_vm(pool: VirtualMachinePool, template: Json, number: int) -> Json:
    """Build a machine's manifest from the template as stored; defaults are still to be filled in."""
    given = pool.spec.virtual_machine_template.metadata
    labels, annotations = stamped(pool.metadata.name, template)
    spec = numbered(template["spec"], pool, number)
    inside = spec["template"] = dict(spec["template"])
    meta = inside.get("metadata") or {}
    inside["metadata"] = {
        **meta,
        "labels": {**(meta.get("labels") or {}), **labels},
        "annotations": {**(meta.get("annotations") or {}), **annotations},
    }
    return {
        "apiVersion": VIRTUAL_MACHINE.api_version,
        "kind": VIRTUAL_MACHINE.kind,
        "metadata": {
            "name": name_of(pool.metadata.name, number),
            "namespace": pool.metadata.namespace,
            "labels": {**given.labels, **labels},
            "annotations": dict(given.annotations),
            "ownerReferences": [owner_reference(pool)],
        },
        "spec": spec,
    }


def numbered(spec: Json, pool: VirtualMachinePool, number: int) -> Json:
    """Return a machine's spec with its number at the end of the names that are to differ."""
    made, end = copy.deepcopy(spec), f"-{number}"
    own: set[str] = set()
    for one in made.get("dataVolumeTemplates") or ():
        own.add(one["metadata"]["name"])
        one["metadata"]["name"] += end
    how = pool.spec.name_generation
    for holder, field, kind in _references(made["template"]["spec"].get("volumes") or ()):
        is_meant = {
            "claim": holder.get(field) in own,
            "ConfigMap": how is not None and how.append_index_to_config_map_refs,
            "Secret": how is not None and how.append_index_to_secret_refs,
        }[kind]
        if is_meant and isinstance(holder.get(field), str) and holder[field]:
            holder[field] += end
    return made


def _references(volumes: Any) -> Iterator[tuple[Json, str, str]]:
    """Yield where volumes name something, and what."""
    for volume in volumes:
        for source, field, kind in (
            ("persistentVolumeClaim", "claimName", "claim"),
            ("dataVolume", "name", "claim"),
            ("configMap", "name", "ConfigMap"),
            ("secret", "secretName", "Secret"),
        ):
            if isinstance(volume.get(source), dict):
                yield volume[source], field, kind
        for source in _CLOUD_INIT:
            for reference in _CLOUD_INIT_SECRETS:
                found = (volume.get(source) or {}).get(reference)
                if isinstance(found, dict):
                    yield found, "name", "Secret"


def change(old: Json, wanted: Json) -> Json:
    """Return the patch that gives a machine the pool's template; who it is for its guest stays.

    Labels and annotations are the template's, as upstream has it: what others put there goes.
    """
    new = keep_identity(wanted, old)
    meta = {
        part: merge_patch(old["metadata"].get(part) or {}, new["metadata"].get(part) or {})
        for part in ("labels", "annotations")
    }
    return {"metadata": meta, "spec": merge_patch(old["spec"], new["spec"])}
