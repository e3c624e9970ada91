# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides which volumes to create and to remove, and builds their objects. Pure; provisioner.py carries it out.

A volume is a directory below the lab's state: in a node's own part or, for ReadWriteMany, in the part of all nodes.
A Block volume is a sparse file there, with a device node of its loop device beside it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from lab.cluster.manifests import PROVISIONER, SHARED_CLASS
from lab.paths import State

Object = dict[str, Any]

_PROVISIONER_KEYS = ("volume.kubernetes.io/storage-provisioner", "volume.beta.kubernetes.io/storage-provisioner")
_SELECTED_NODE = "volume.kubernetes.io/selected-node"
_PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
_FACTORS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


@dataclass(frozen=True, kw_only=True)
class Provision:
    """Create a volume for a claim."""

    name: str
    claim: Object
    node: str | None
    """None: the volume is on all nodes."""
    size_bytes: int
    is_block: bool


@dataclass(frozen=True, kw_only=True)
class Reclaim:
    """Remove the volume of a deleted claim."""

    name: str
    path: Path


def parse_quantity(text: str) -> int:
    """Return the bytes of a Kubernetes quantity. Raises ValueError for other texts."""
    suffix = next((unit for unit in sorted(_FACTORS, key=len, reverse=True) if text.endswith(unit)), "")
    try:
        return int(Decimal(text.removesuffix(suffix)) * _FACTORS.get(suffix, 1))
    except InvalidOperation as error:
        raise ValueError(f"{text!r} is not a quantity such as 512Mi or 10Gi") from error


def decide(claims: Iterable[Object], volumes: Iterable[Object], state: State) -> list[Provision | Reclaim]:
    volumes = list(volumes)
    existing = {volume["metadata"]["name"] for volume in volumes}
    provisions = [provision for claim in claims if (provision := _provision(claim)) and provision.name not in existing]
    reclaims = [reclaim for volume in volumes if (reclaim := _reclaim(volume, state))]
    return [*provisions, *reclaims]


def _provision(claim: Object) -> Provision | None:
    annotations, spec = claim["metadata"].get("annotations", {}), claim["spec"]
    # The controller manager sets this annotation when the claim needs a volume.
    is_ours = any(annotations.get(key) == PROVISIONER for key in _PROVISIONER_KEYS)
    if not is_ours or spec.get("volumeName") or claim["metadata"].get("deletionTimestamp"):
        return None
    is_shared = spec.get("storageClassName") == SHARED_CLASS or "ReadWriteMany" in spec["accessModes"]
    node = annotations.get(_SELECTED_NODE)
    if node is None and not is_shared:
        return None
    return Provision(
        name=f"pvc-{claim['metadata']['uid']}",
        claim=claim,
        node=None if is_shared else node,
        size_bytes=parse_quantity(spec["resources"]["requests"]["storage"]),
        is_block=spec.get("volumeMode") == "Block",
    )


def _reclaim(volume: Object, state: State) -> Reclaim | None:
    if volume["metadata"].get("annotations", {}).get(_PROVISIONED_BY) != PROVISIONER:
        return None
    is_free = volume.get("status", {}).get("phase") == "Released"
    if not is_free or volume["spec"].get("persistentVolumeReclaimPolicy") != "Delete":
        return None
    path = volume_directory(volume["metadata"]["name"], node_of(volume), state)
    return Reclaim(name=volume["metadata"]["name"], path=path)


def volume_directory(name: str, node: str | None, state: State) -> Path:
    return (state.shared_volumes if node is None else state.node(node).volumes) / name


def node_of(volume: Object) -> str | None:
    """Return the node of the volume, None if all nodes can use it."""
    for term in volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]:
        for expression in term["matchExpressions"]:
            if expression["key"] == "kubernetes.io/hostname":
                return str(expression["values"][0])
    return None


def device_path(directory: Path) -> Path:
    return directory / "device"


def disk_path(directory: Path) -> Path:
    return directory / "disk"


def content_path(directory: Path) -> Path:
    return directory / "files"


def build_volume(provision: Provision, state: State) -> Object:
    directory = volume_directory(provision.name, provision.node, state)
    metadata, spec = provision.claim["metadata"], provision.claim["spec"]
    key, value = ("kubernetes.io/os", "linux") if provision.node is None else ("kubernetes.io/hostname", provision.node)
    expression = {"key": key, "operator": "In", "values": [value]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": provision.name, "annotations": {_PROVISIONED_BY: PROVISIONER}},
        "spec": {
            "capacity": {"storage": spec["resources"]["requests"]["storage"]},
            "accessModes": spec["accessModes"],
            "volumeMode": "Block" if provision.is_block else "Filesystem",
            "storageClassName": spec["storageClassName"],
            "persistentVolumeReclaimPolicy": "Delete",
            "local": {"path": str(device_path(directory) if provision.is_block else content_path(directory))},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            "claimRef": {
                "apiVersion": "v1",
                "kind": "PersistentVolumeClaim",
                "namespace": metadata["namespace"],
                "name": metadata["name"],
                "uid": metadata["uid"],
            },
        },
    }
