# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The kinds of the control plane's objects, in the order in which they are deleted.

The configuration is deleted while virt-controller runs, which removes its finalizer. Webhooks and aggregated APIs are
deleted before their servers, permissions after the components that need them. Then follow the namespace with the rest,
and last the CRDs.
"""

from __future__ import annotations

from dataclasses import dataclass

from .._client.api import Resource


@dataclass(frozen=True)
class MadeKind:
    """A kind that the role creates, or that an earlier version created."""

    api_version: str
    plural: str
    kind: str
    is_pruned: bool = True
    """An upgrade deletes objects that are no longer wanted. Not kinds that hold data or users' objects."""
    is_always_served: bool = True
    """Every API server knows it."""

    def resource(self, namespace: str | None = None) -> Resource:
        """Return the collection of this kind."""
        return Resource(self.api_version, self.plural, self.kind, namespace)


_ADMISSION = "admissionregistration.k8s.io/v1"
_RBAC = "rbac.authorization.k8s.io/v1"

DEFINITION = MadeKind(
    "apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", is_pruned=False
)
DEPLOYMENT = MadeKind("apps/v1", "deployments", "Deployment")
NAMESPACE = MadeKind("v1", "namespaces", "Namespace", is_pruned=False)

MADE_KINDS = (
    MadeKind("kubevirt.io/v1", "kubevirts", "KubeVirt", is_pruned=False, is_always_served=False),
    MadeKind(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration"),
    MadeKind(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration"),
    MadeKind("apiregistration.k8s.io/v1", "apiservices", "APIService"),
    MadeKind("monitoring.coreos.com/v1", "podmonitors", "PodMonitor", is_always_served=False),
    MadeKind("apps/v1", "daemonsets", "DaemonSet"),
    DEPLOYMENT,
    MadeKind("v1", "services", "Service"),
    MadeKind("policy/v1", "poddisruptionbudgets", "PodDisruptionBudget"),
    MadeKind("v1", "secrets", "Secret", is_pruned=False),
    MadeKind(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding"),
    MadeKind(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy"),
    MadeKind(_RBAC, "clusterrolebindings", "ClusterRoleBinding"),
    MadeKind(_RBAC, "rolebindings", "RoleBinding"),
    MadeKind(_RBAC, "clusterroles", "ClusterRole"),
    MadeKind(_RBAC, "roles", "Role"),
    MadeKind("v1", "serviceaccounts", "ServiceAccount"),
    MadeKind("networking.k8s.io/v1", "networkpolicies", "NetworkPolicy"),
    MadeKind("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass"),
    NAMESPACE,
    DEFINITION,
)
BY_KIND = {kind.kind: kind for kind in MADE_KINDS}
