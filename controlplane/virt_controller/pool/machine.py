# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Manifests and names of a pool's VMs. Pure.

The template is copied as stored, including fields that this version does not know.
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
from controlplane.virt_controller.pool.revision import revision_metadata

Json = dict[str, Any]
_CLOUD_INIT = ("cloudInitNoCloud", "cloudInitConfigDrive")
_CLOUD_INIT_SECRETS = ("secretRef", "userDataSecretRef", "networkDataSecretRef")


def name_of(pool: str, number: int) -> str:
    return f"{pool}-{number}"


def number_of(pool: str, name: str) -> int | None:
    """Return the number in a VM's name; None for a name that the pool does not generate."""
    digits = name.removeprefix(f"{pool}-")
    is_number = digits.isascii() and digits.isdecimal() and digits == str(int(digits[:10]))
    return int(digits) if is_number and digits != name else None


def build_vm(pool: VirtualMachinePool, template: Json, number: int) -> Json:
    """Build a VM's manifest from the stored template, without defaults."""
    metadata = pool.spec.virtual_machine_template.metadata
    labels, annotations = revision_metadata(pool.metadata.name, template)
    spec = _numbered(template["spec"], pool, number)
    vmi_template = spec["template"] = dict(spec["template"])
    meta = vmi_template.get("metadata") or {}
    vmi_template["metadata"] = {
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
            "labels": {**metadata.labels, **labels},
            "annotations": dict(metadata.annotations),
            "ownerReferences": [owner_reference(pool)],
        },
        "spec": spec,
    }


def _numbered(spec: Json, pool: VirtualMachinePool, number: int) -> Json:
    """Return a VM's spec with its number appended to the names that differ between members."""
    numbered, suffix = copy.deepcopy(spec), f"-{number}"
    data_volumes: set[str] = set()
    for data_volume in numbered.get("dataVolumeTemplates") or ():
        data_volumes.add(data_volume["metadata"]["name"])
        data_volume["metadata"]["name"] += suffix
    generation = pool.spec.name_generation
    for source, field, kind in _references(numbered["template"]["spec"].get("volumes") or ()):
        has_number = {
            "claim": source.get(field) in data_volumes,
            "ConfigMap": generation is not None and generation.append_index_to_config_map_refs,
            "Secret": generation is not None and generation.append_index_to_secret_refs,
        }[kind]
        if has_number and isinstance(source.get(field), str) and source[field]:
            source[field] += suffix
    return numbered


def _references(volumes: Any) -> Iterator[tuple[Json, str, str]]:
    """Yield each reference of the volumes: the object that has the name, the name's field, and the kind it refers
    to.
    """
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
            for secret in _CLOUD_INIT_SECRETS:
                reference = (volume.get(source) or {}).get(secret)
                if isinstance(reference, dict):
                    yield reference, "name", "Secret"


def change(old: Json, wanted: Json) -> Json:
    """Return the patch that gives a VM the pool's template and keeps its identity (UUID, serial number, MAC addresses).

    Labels and annotations are replaced by the template's, as in KubeVirt: those that users added are removed.
    """
    new = keep_identity(wanted, old)
    meta = {
        part: merge_patch(old["metadata"].get(part) or {}, new["metadata"].get(part) or {})
        for part in ("labels", "annotations")
    }
    return {"metadata": meta, "spec": merge_patch(old["spec"], new["spec"])}
