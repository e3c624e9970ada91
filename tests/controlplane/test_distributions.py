# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role renders fits the settings of each distribution. tests/distributions.py runs them on labs."""

from __future__ import annotations

import json

import pytest

from controlplane.virt_handler.node.labels import is_for_control_plane
from lab.cluster.distributions import DISTRIBUTIONS, Distribution
from tests.controlplane.test_rights import manifests
from tests.controlplane.virt_api.test_manifests import render, workloads

LIKE = pytest.mark.parametrize("distribution", DISTRIBUTIONS.values(), ids=[name or "none" for name in DISTRIBUTIONS])


@LIKE
def test_virt_node_mounts_the_pods_below_the_kubelets_root(distribution: Distribution) -> None:
    (workload,) = workloads("virt-node", control_plane_kubelet_root=distribution.kubelet_root)
    volumes = {volume["name"]: volume for volume in workload["spec"]["template"]["spec"]["volumes"]}
    assert volumes["pods"]["hostPath"] == {"path": f"{distribution.kubelet_root}/pods", "type": "Directory"}


@LIKE
def test_nothing_uses_the_socket_of_the_runtime(distribution: Distribution) -> None:
    directory = distribution.runtime_socket.rpartition("/")[0]
    assert directory not in json.dumps(manifests())


@LIKE
@pytest.mark.parametrize("name", ["virt-api", "virt-controller", "virt-handler", "virt-node"])
def test_the_components_tolerate_the_taint_of_the_control_plane_node(name: str, distribution: Distribution) -> None:
    (workload,) = workloads(name)
    tolerations = workload["spec"]["template"]["spec"]["tolerations"]
    tolerated = {item.get("key") for item in tolerations if item["operator"] == "Exists"}
    assert not distribution.taint or tolerated & {distribution.taint, None}


@LIKE
def test_a_control_plane_node_with_a_taint_takes_no_machines(distribution: Distribution) -> None:
    """Not even those that tolerate the taint."""
    labels, taints = distribution.node_labels(1), distribution.node_taints(1)
    node = {"metadata": {"name": "a", "labels": labels}, "spec": {"taints": taints}}
    assert is_for_control_plane(node) is bool(distribution.taint)


@LIKE
def test_no_default_of_pod_security_applies_to_the_components(distribution: Distribution) -> None:
    """Where a namespace has no label for a mode, the cluster's default level applies."""
    (namespace,) = [item for item in render("namespace.yaml.j2") if item["kind"] == "Namespace"]
    modes = distribution.pod_security_plugin()["configuration"]["defaults"]
    assert {f"pod-security.kubernetes.io/{mode}": "privileged" for mode in modes}.items() <= namespace["metadata"][
        "labels"
    ].items()
