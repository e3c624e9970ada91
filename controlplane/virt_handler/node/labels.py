# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Labels and annotations that this process writes to its Node, of its own keys only. Pure; __main__ sends them.

Liveness is shown by a Lease (controlplane.kube.lease), not by the Node: many components watch Nodes.
"""

from __future__ import annotations

import base64
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import Any

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.cpu_labels import label_processor, of_processor
from controlplane.links.handler import ADDRESS, CERTIFICATE
from controlplane.links.node.messages import HostCpu, KvmFinding

KVM_USABLE = "kubevirt.io/kvm-usable"
"""Label: "true" where a virtual processor was seen to run."""
KVM_REASON = "kubevirt.io/kvm-unusable-reason"
"""Annotation: why not."""
HEARTBEAT = "kubevirt.io/heartbeat"
"""Annotation that upstream's tools read: when virt-handler began to serve this node."""


CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
"""Label of a control-plane node, and key of the taint of one that is for nothing else."""


def is_for_control_plane(node: Mapping[str, Any]) -> bool:
    """Tell whether a Node is kept for the control plane of the cluster: a toleration is a tenant's to name."""
    labels, taints = node.get("metadata", {}).get("labels") or {}, node.get("spec", {}).get("taints") or ()
    kept = any(one.get("key") == CONTROL_PLANE and one.get("effect") in ("NoSchedule", "NoExecute") for one in taints)
    return CONTROL_PLANE in labels and kept


def serving_patch(
    kvm: KvmFinding,
    now: float,
    door: Mapping[str, str],
    *,
    takes_machines: bool = True,
    processor: Mapping[str, str | None] = MappingProxyType({}),
) -> dict[str, Any]:
    """Say whether machines can be scheduled here, on what they would run, and where virt-api may ask about them.

    processor: labels of it, see processor_labels.
    """
    stamp = datetime.fromtimestamp(int(now), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return {
        "metadata": {
            "labels": {
                **processor,
                SCHEDULABLE: "true" if takes_machines else "false",
                KVM_USABLE: "true" if kvm.is_usable else "false",
            },
            "annotations": {HEARTBEAT: stamp, KVM_REASON: None if kvm.is_usable else kvm.reason, **door},
        }
    }


def processor_labels(node: Mapping[str, Any], cpu: HostCpu | None) -> dict[str, str | None]:
    """Say what the processor is for guests that use it, and take back what it is not any more."""
    said = of_processor(node.get("metadata", {}).get("labels") or {})
    wanted = (
        {}
        if cpu is None
        else label_processor(
            model=cpu.model, vendor=cpu.vendor, models=cpu.models, required=cpu.required, features=cpu.features
        )
    )
    return {**dict.fromkeys(said), **wanted}


def unschedulable(patch: dict[str, Any]) -> dict[str, Any]:
    """Say the same of the Node, but that no new machines can be scheduled here yet."""
    meta = patch["metadata"]
    return {"metadata": {**meta, "labels": {**meta["labels"], SCHEDULABLE: "false"}}}


def door_annotations(address: str, port: int, certificate: bytes) -> dict[str, str]:
    """Say where the door is and by which certificate (DER) it is known. address: an IP address."""
    host = f"[{address}]" if ":" in address else address
    return {ADDRESS: f"{host}:{port}", CERTIFICATE: base64.b64encode(certificate).decode("ascii")}


def leaving_patch() -> dict[str, Any]:
    """Say that no new machines can be scheduled here; those that run are not touched."""
    return {"metadata": {"labels": {SCHEDULABLE: "false"}}}


def offers(node: Mapping[str, Any], resources: Collection[str]) -> bool:
    """Tell whether the scheduler, which goes by the Node's status, may place Pods that ask for these resources."""
    allocatable = node.get("status", {}).get("allocatable") or {}
    return all(allocatable.get(one, "0") != "0" for one in resources)


def is_needed(node: Mapping[str, Any], patch: Mapping[str, Any]) -> bool:
    """Tell whether a patch changes anything but the time of the heartbeat."""
    meta = node.get("metadata", {})
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    wanted = patch["metadata"]
    return any(labels.get(name) != value for name, value in wanted.get("labels", {}).items()) or any(
        annotations.get(name) != value for name, value in wanted.get("annotations", {}).items() if name != HEARTBEAT
    )
