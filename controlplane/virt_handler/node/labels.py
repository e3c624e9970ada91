# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The labels and annotations that this process writes to its Node. Pure; heartbeat.py and __main__ send them.

A Lease (controlplane.kube.lease) shows liveness, not the Node: many components watch Nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Any

from kubevirt_api.names import CONTROL_PLANE_ROLE, RESERVING_TAINTS, SCHEDULABLE

from controlplane.api.cpu_labels import label_processor, of_processor
from controlplane.api.timestamps import format_timestamp
from controlplane.links.handler import ADDRESS, CERTIFICATE
from controlplane.links.node.messages import HostCpu, KvmFinding

KVM_USABLE = "kubevirt.io/kvm-usable"
"""Label: "true" if virt-node could run a virtual CPU."""
KVM_REASON = "kubevirt.io/kvm-unusable-reason"
"""Annotation: why KVM is not usable."""
SKIP = "node-labeller.kubevirt.io/skip-node"
"""Annotation that an administrator sets, with any value: the labels of processor and boards stay as they are."""
HEARTBEAT = "kubevirt.io/heartbeat"
"""Annotation for upstream's tools: when virt-handler began to serve this node."""


def is_for_control_plane(node: Mapping[str, Any]) -> bool:
    """Tell whether a Node is reserved for the cluster's control plane. Tenants can tolerate the taint."""
    labels, taints = node.get("metadata", {}).get("labels") or {}, node.get("spec", {}).get("taints") or ()
    is_reserved = any(
        taint.get("key") in RESERVING_TAINTS and taint.get("effect") in ("NoSchedule", "NoExecute") for taint in taints
    )
    return CONTROL_PLANE_ROLE in labels and is_reserved


def serving_patch(
    kvm: KvmFinding,
    now: float,
    endpoint: Mapping[str, str],
    *,
    takes_machines: bool = True,
    processor: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the patch of a serving node: whether it is schedulable, its CPU, and the address of the endpoint.

    endpoint: its annotations (endpoint_annotations). processor: see processor_labels.
    """
    return {
        "metadata": {
            "labels": {
                **processor,
                SCHEDULABLE: "true" if takes_machines else "false",
                KVM_USABLE: "true" if kvm.is_usable else "false",
            },
            "annotations": {
                HEARTBEAT: format_timestamp(now),
                KVM_REASON: None if kvm.is_usable else kvm.reason,
                **endpoint,
            },
        }
    }


def processor_labels(node: Mapping[str, Any], cpu: HostCpu | None) -> dict[str, str | None]:
    """Return the labels of the node's CPU and boards, with None for labels to delete."""
    meta = node.get("metadata", {})
    if SKIP in (meta.get("annotations") or {}):
        return {}
    current = of_processor(meta.get("labels") or {})
    wanted = (
        {}
        if cpu is None
        else label_processor(
            model=cpu.model,
            vendor=cpu.vendor,
            models=cpu.models,
            required=cpu.required,
            features=cpu.features,
            machines=cpu.machines,
        )
    )
    return {**dict.fromkeys(current), **wanted}


def unschedulable(patch: dict[str, Any]) -> dict[str, Any]:
    """Return the same patch, but with the node unschedulable."""
    meta = patch["metadata"]
    return {"metadata": {**meta, "labels": {**meta["labels"], SCHEDULABLE: "false"}}}


def endpoint_annotations(address: str, port: int, certificate: bytes) -> dict[str, str]:
    """Return the annotations with the endpoint's address and certificate (DER). address: an IP address."""
    host = f"[{address}]" if ":" in address else address
    return {ADDRESS: f"{host}:{port}", CERTIFICATE: base64.b64encode(certificate).decode("ascii")}


def leaving_patch() -> dict[str, Any]:
    """Return the patch that makes the node unschedulable.

    It does not affect running guests, unless the node's kubelet restarts meanwhile, which checks node selectors again.
    """
    return {"metadata": {"labels": {SCHEDULABLE: "false"}}}


def offers(node: Mapping[str, Any], resources: Collection[str]) -> bool:
    """Tell whether the Node's status offers these resources, so that the scheduler can place Pods that request them."""
    allocatable = node.get("status", {}).get("allocatable") or {}
    return all(allocatable.get(resource, "0") != "0" for resource in resources)


def is_needed(node: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Tell whether a patch changes anything except the heartbeat annotation."""
    meta = node.get("metadata", {})
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    wanted = patch["metadata"]
    return any(labels.get(name) != value for name, value in wanted.get("labels", {}).items()) or any(
        annotations.get(name) != value for name, value in wanted.get("annotations", {}).items() if name != HEARTBEAT
    )
