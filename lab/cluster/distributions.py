# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings in which Kubernetes distributions differ, for labs that are like one of them. Pure.

Only the settings are theirs: the programs are the lab's own, so the runtime is containerd, even at CRI-O's socket.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from lab.images.containerd import CONTAINERD_SOCKET

CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
MASTER = "node-role.kubernetes.io/master"
"""The name of the role before Kubernetes 1.24. OpenShift still has the label and the taint."""


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The defaults are those of a lab that is like no distribution."""

    kubelet_root: str = "/var/lib/kubelet"
    runtime_socket: str = CONTAINERD_SOCKET
    cluster_domain: str = "cluster.local"
    pod_security: str = ""
    """The Pod Security level of namespaces without labels; empty: Kubernetes' default, which is privileged."""
    roles: tuple[str, ...] = ()
    """Role labels of the first node. The others have none."""
    taint: str = ""
    """The key of the first node's taint, of effect NoSchedule."""

    def pod_security_plugin(self) -> dict[str, Any]:
        """Return the admission configuration. Distributions exempt their own namespaces too."""
        level = self.pod_security or "privileged"
        return {
            "name": "PodSecurity",
            "configuration": {
                "apiVersion": "pod-security.admission.config.k8s.io/v1",
                "kind": "PodSecurityConfiguration",
                "defaults": {"enforce": level, "audit": level, "warn": level},
                "exemptions": {"namespaces": ["kube-system"]},
            },
        }

    def node_labels(self, number: int) -> dict[str, str]:
        return dict.fromkeys(self.roles, "") if number == 1 else {}

    def node_taints(self, number: int) -> list[dict[str, str]]:
        return [{"key": self.taint, "effect": "NoSchedule"}] if self.taint and number == 1 else []


DISTRIBUTIONS = {
    "": Distribution(),
    "kubeadm": Distribution(roles=(CONTROL_PLANE,), taint=CONTROL_PLANE),
    # Its cluster domain is an option, which this lab uses. Servers run Pods.
    "k3s": Distribution(
        runtime_socket="/run/k3s/containerd/containerd.sock", cluster_domain="k3s.example", roles=(CONTROL_PLANE,)
    ),
    # Controllers are no nodes.
    "k0s": Distribution(kubelet_root="/var/lib/k0s/kubelet", runtime_socket="/run/k0s/containerd.sock"),
    # It warns about Pods that are not restricted, and refuses by security context constraints. The lab refuses.
    "openshift": Distribution(
        runtime_socket="/run/crio/crio.sock", pod_security="restricted", roles=(CONTROL_PLANE, MASTER), taint=MASTER
    ),
}
