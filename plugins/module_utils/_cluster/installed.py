# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide from what a cluster has whose control plane runs there, and what would be left behind. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MANAGER = "virtops.kubevirt"
MANAGED_BY = "app.kubernetes.io/managed-by"
VERSION = "app.kubernetes.io/version"
NODE_DOMAINS = ("kubevirt.io", "node.kubevirt.io", "virtops.kubevirt")

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Installed:
    """What a cluster has."""

    owner: str
    """none, ours or other."""
    evidence: str
    version: str | None
    """Of the components; of the definitions, where there are no components."""
    definitions_version: str | None
    """Of the definitions: newer than the components' when an older version was installed over a newer one."""
    namespace: str | None
    namespace_owner: str
    """Whose the namespace is that was asked about: none, ours or other."""
    namespace_terminating: bool
    """Whether that one is being deleted: nothing new can be made in it."""
    workloads: list[str]
    """namespace/name of every VM, pool and set, and of every VMI that has no VM: a set does not wait for its own."""
    workload_objects: list[dict[str, Any]]
    """The same as objects to delete."""
    node_patches: list[dict[str, Any]]
    """Merge patches that take our labels and annotations off the nodes."""

    def to_result(self) -> dict[str, Any]:
        """Return the module's result."""
        return asdict(self)


def assess(
    definition: Object | None,
    *,
    namespace: Object | None = None,
    deployments: Sequence[Object] = (),
    workloads: Sequence[Object] = (),
    nodes: Sequence[Object] = (),
) -> Installed:
    """Decide from the CRD of the configuration, a namespace, virt-controller Deployments, machines, and nodes."""
    owner = _owner(definition)
    if definition is None:
        evidence, of_definitions = "", None
    else:
        labels = definition["metadata"].get("labels") or {}
        manager = labels.get(MANAGED_BY, "")
        evidence = (
            f"CustomResourceDefinition {definition['metadata']['name']}, managed by {manager or 'an unknown installer'}"
        )
        of_definitions = labels.get(VERSION) if owner == "ours" else None
    mine = [one for one in deployments if _owner(one) == "ours"]
    loose = [one for one in workloads if one["kind"] == "VirtualMachine" or not _has_owner(one)]
    return Installed(
        owner=owner,
        evidence=evidence,
        version=_newest(mine) or of_definitions if owner == "ours" else None,
        definitions_version=of_definitions,
        namespace=mine[0]["metadata"]["namespace"] if mine else None,
        namespace_owner=_owner(namespace),
        namespace_terminating=namespace is not None and "deletionTimestamp" in namespace["metadata"],
        workloads=sorted(f"{one['metadata']['namespace']}/{one['metadata']['name']}" for one in loose),
        workload_objects=[identity(one) for one in loose],
        node_patches=[patch for patch in map(_node_patch, nodes) if patch is not None],
    )


def _owner(obj: Object | None) -> str:
    if obj is None:
        return "none"
    return "ours" if (obj["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER else "other"


def _newest(components: Sequence[Object]) -> str | None:
    """Return the newest version of components; they differ when an upgrade was broken off."""
    versions = [one["metadata"]["labels"][VERSION] for one in components if VERSION in one["metadata"]["labels"]]
    return max(versions, key=lambda text: [int(part) for part in re.findall(r"\d+", text)], default=None)


def _has_owner(obj: Object) -> bool:
    return any(ref.get("kind") == "VirtualMachine" for ref in obj["metadata"].get("ownerReferences") or ())


def identity(obj: Object) -> dict[str, Any]:
    """Return as much of an object as it takes to delete it."""
    metadata = {name: obj["metadata"][name] for name in ("namespace", "name") if obj["metadata"].get(name)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _is_ours(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain in NODE_DOMAINS or domain.endswith(".node.kubevirt.io")


def _node_patch(node: Object) -> dict[str, Any] | None:
    metadata = node["metadata"]
    ours = {
        part: {key: None for key in sorted(metadata.get(part) or {}) if _is_ours(key)}
        for part in ("labels", "annotations")
    }
    if not any(ours.values()):
        return None
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": metadata["name"], **{k: v for k, v in ours.items() if v}},
    }
