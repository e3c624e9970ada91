# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A unique value for every option of role control_plane, and the objects in which it must appear."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from ansible_collections.virtops.kubevirt.plugins.module_utils.kubevirt_api.names import (
    CONSOLE_ORIGINS,
    CONTAINER_DISK_LIMIT,
    FURTHER_ATTEMPTS,
    QUARANTINE,
    RUN_TIMEOUT,
)

CLUSTER = {"Deployment/virt-api", "Deployment/virt-controller"}
NODES = {"DaemonSet/virt-handler", "DaemonSet/virt-node"}
KUBEVIRT = {"KubeVirt/kubevirt"}
WORKLOADS = {"api": "Deployment", "controller": "Deployment", "handler": "DaemonSet", "node": "DaemonSet"}
DIGEST = "sha256:" + "c" * 64


class Canary(NamedTuple):
    """value: of the option; text: its form in the JSON of an object; where: the only objects that contain it."""

    value: Any
    text: str
    where: set[str]


def _said(value: Any, name: str, where: set[str]) -> Canary:
    """Return a canary below a name of the API."""
    return Canary(value, f'"{name}": {json.dumps(value)}', where)


CANARIES = {
    "image_prefix": Canary("canary.example/prefix", "canary.example/prefix/", CLUSTER | NODES),
    "image_tag": Canary(
        "canary-tag", "/virt-launcher:canary-tag", {"Deployment/virt-controller", "DaemonSet/virt-node"}
    ),
    "image_digests": Canary({"control-plane": DIGEST}, f"/control-plane@{DIGEST}", CLUSTER | NODES),
    "image_revisions": Canary(
        {"control-plane": "canary-first", "virt-launcher": "canary-revision"},
        "canary-revision",
        {"DaemonSet/virt-node"},
    ),
    "image_pull_policy": _said("Never", "imagePullPolicy", CLUSTER | NODES | KUBEVIRT),
    "image_pull_secrets": Canary(["canary-secret"], '{"name": "canary-secret"}', CLUSTER | NODES),
    "replicas": _said(7171, "replicas", CLUSTER),
    "node_affinity": _said({"canary": "affinity"}, "nodeAffinity", CLUSTER),
    "tolerations": _said([{"key": "canary-toleration"}], "tolerations", CLUSTER),
    "node_selector": _said({"canary": "selector"}, "nodeSelector", CLUSTER),
    "workload_node_affinity": _said({"canary": "workload-affinity"}, "nodeAffinity", NODES),
    "workload_tolerations": _said([{"key": "canary-workload-toleration"}], "tolerations", NODES),
    "workload_node_selector": _said({"canary": "workload-selector"}, "nodeSelector", NODES),
    "workload_max_unavailable": _said("71%", "maxUnavailable", NODES),
    "kubelet_root": Canary("/canary/kubelet", "/canary/kubelet", {"DaemonSet/virt-node"}),
    **{
        f"{name}_resources": _said({"limits": {"canary": name}}, "resources", {f"{kind}/virt-{name}"})
        for name, kind in WORKLOADS.items()
    },
    **{
        f"{name}_annotations": Canary(
            {"canary": f"of-{name}", "number": 1}, f'"canary": "of-{name}"', {f"{kind}/virt-{name}"}
        )
        for name, kind in WORKLOADS.items()
    },
    "migration_network": Canary("canary/moves", '"canary/moves@migration0"', {"DaemonSet/virt-handler"}),
    "webhook_client_ca": Canary("canary-ca", "canary-ca", {"Deployment/virt-api"}),
    "webhook_client_names": Canary(["canary-client"], "canary-client", {"Deployment/virt-api"}),
    "console_origins": Canary(
        ["https://canary", "https://canary:1"], f'"{CONSOLE_ORIGINS}": "https://canary https://canary:1"', KUBEVIRT
    ),
    "metrics_from": Canary(
        [{"canary": "metrics"}],
        '{"canary": "metrics"}',
        {"NetworkPolicy/virt-controller", "NetworkPolicy/virt-handler"},
    ),
    "service_monitor": Canary(True, '"kind": "PodMonitor"', {"PodMonitor/kubevirt"}),
    "use_emulation": _said(True, "useEmulation", KUBEVIRT),
    "cpu_allocation_ratio": _said(717, "cpuAllocationRatio", KUBEVIRT),
    "container_disk_limit": _said("717Gi", CONTAINER_DISK_LIMIT, KUBEVIRT),
    "machines_on_control_plane": Canary(
        True, '{"name": "ON_CONTROL_PLANE", "value": "true"}', {"DaemonSet/virt-handler"}
    ),
    "further_attempts": Canary(7, f'"{FURTHER_ATTEMPTS}": "7"', KUBEVIRT),
    "run_timeout": Canary(7172, f'"{RUN_TIMEOUT}": "7172"', KUBEVIRT),
    "quarantine": Canary(7173, f'"{QUARANTINE}": "7173"', KUBEVIRT),
    "workload_update_methods": Canary(["Evict"], '"workloadUpdateMethods": ["Evict"]', KUBEVIRT),
    "workload_eviction_size": _said(717, "batchEvictionSize", KUBEVIRT),
    "workload_eviction_interval": _said("717s", "batchEvictionInterval", KUBEVIRT),
    "log_level": Canary("WARNING", '"value": "WARNING"', CLUSTER | NODES),
}
EVERYWHERE = {"namespace": "canary-namespace"}
"""In every object with a namespace, and in every reference to one."""
ABSENT = {"network_policies"}
"""Options that remove objects; the other canaries need these objects."""
NOT_RENDERED = {
    "state", "allow_downgrade", "kubeconfig", "context", "wait", "wait_timeout", "smoke_test", "remove_with_workloads",
    "other_variables",
}  # fmt: skip
"""Options that change how the role works, and not the objects."""
