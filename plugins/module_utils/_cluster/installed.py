# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decide which control plane a cluster has, and what its removal would leave behind. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

MANAGER = "virtops.kubevirt"
MANAGED_BY = "app.kubernetes.io/managed-by"
VERSION = "app.kubernetes.io/version"
MIGRATION = "VirtualMachineInstanceMigration"
NODE_DOMAINS = ("kubevirt.io", "node.kubevirt.io", "virtops.kubevirt")

Object = Mapping[str, Any]


@dataclass(frozen=True)
class Installed:
    """The control plane and the machines of a cluster."""

    owner: str
    """none, ours or other."""
    evidence: str
    version: str | None
    """Version of the components, or of the CRDs without components."""
    definitions_version: str | None
    """Version of the CRDs. Newer than the components after an older version was installed over a newer one."""
    namespace: str | None
    namespace_owner: str
    """Owner of the requested namespace: none, ours or other."""
    namespace_terminating: bool
    """The requested namespace is being deleted: nothing can be created in it."""
    workloads: list[str]
    """namespace/name of every VM, pool and replica set, and of every VMI without a VM."""
    workload_objects: list[dict[str, Any]]
    """The same as objects to delete, and their migrations."""
    node_patches: list[dict[str, Any]]
    """Merge patches that remove our labels and annotations from the nodes."""

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
    """Decide from the CRD of the configuration, a namespace, virt-controller Deployments, machines with their
    migrations, and nodes.
    """
    owner = _owner(definition)
    if definition is None:
        evidence, definitions_version = "", None
    else:
        labels = definition["metadata"].get("labels") or {}
        manager = labels.get(MANAGED_BY, "")
        evidence = (
            f"CustomResourceDefinition {definition['metadata']['name']}, managed by {manager or 'an unknown installer'}"
        )
        definitions_version = labels.get(VERSION) if owner == "ours" else None
    own_deployments = [deployment for deployment in deployments if _owner(deployment) == "ours"]
    loose = [workload for workload in workloads if workload["kind"] == "VirtualMachine" or not _has_owner(workload)]
    return Installed(
        owner=owner,
        evidence=evidence,
        version=_newest(own_deployments) or definitions_version if owner == "ours" else None,
        definitions_version=definitions_version,
        namespace=own_deployments[0]["metadata"]["namespace"] if own_deployments else None,
        namespace_owner=_owner(namespace),
        namespace_terminating=namespace is not None and "deletionTimestamp" in namespace["metadata"],
        workloads=sorted(
            f"{workload['metadata']['namespace']}/{workload['metadata']['name']}"
            for workload in loose
            if workload["kind"] != MIGRATION
        ),
        workload_objects=[identity(workload) for workload in loose],
        node_patches=[patch for patch in map(_node_patch, nodes) if patch is not None],
    )


def _owner(obj: Object | None) -> str:
    if obj is None:
        return "none"
    return "ours" if (obj["metadata"].get("labels") or {}).get(MANAGED_BY) == MANAGER else "other"


def _newest(components: Sequence[Object]) -> str | None:
    """Return the newest version of the components; they differ when an upgrade was interrupted."""
    versions = [
        component["metadata"]["labels"][VERSION]
        for component in components
        if VERSION in component["metadata"]["labels"]
    ]
    return max(versions, key=lambda text: [int(part) for part in re.findall(r"\d+", text)], default=None)


def _has_owner(obj: Object) -> bool:
    return any(ref.get("kind") == "VirtualMachine" for ref in obj["metadata"].get("ownerReferences") or ())


def identity(obj: Object) -> dict[str, Any]:
    """Return the part of an object that identifies it."""
    metadata = {name: obj["metadata"][name] for name in ("namespace", "name") if obj["metadata"].get(name)}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


def _is_ours(key: str) -> bool:
    domain = key.partition("/")[0]
    return domain in NODE_DOMAINS or domain.endswith(".node.kubevirt.io")


def _node_patch(node: Object) -> dict[str, Any] | None:
    metadata = node["metadata"]
    removals = {
        part: {key: None for key in sorted(metadata.get(part) or {}) if _is_ours(key)}
        for part in ("labels", "annotations")
    }
    if not any(removals.values()):
        return None
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": metadata["name"], **{k: v for k, v in removals.items() if v}},
    }
