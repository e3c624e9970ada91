# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read what installed.assess needs from a cluster. No decisions here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import NotFound
from .installed import MANAGED_BY, MANAGER, Installed, assess

_DEFINITIONS = Resource("apiextensions.k8s.io/v1", "customresourcedefinitions", "CustomResourceDefinition", None)
_NAMESPACES = Resource("v1", "namespaces", "Namespace", None)
_DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment", None)
_NODES = Resource("v1", "nodes", "Node", None)
_MACHINES = (
    Resource("kubevirt.io/v1", "virtualmachines", "VirtualMachine", None),
    Resource("kubevirt.io/v1", "virtualmachineinstances", "VirtualMachineInstance", None),
)
_ADMISSION = "admissionregistration.k8s.io/v1"
_CLUSTER_WIDE = (
    _DEFINITIONS,
    _NAMESPACES,
    Resource("scheduling.k8s.io/v1", "priorityclasses", "PriorityClass", None),
    Resource("rbac.authorization.k8s.io/v1", "clusterroles", "ClusterRole", None),
    Resource("rbac.authorization.k8s.io/v1", "clusterrolebindings", "ClusterRoleBinding", None),
    Resource("apiregistration.k8s.io/v1", "apiservices", "APIService", None),
    Resource(_ADMISSION, "mutatingwebhookconfigurations", "MutatingWebhookConfiguration", None),
    Resource(_ADMISSION, "validatingwebhookconfigurations", "ValidatingWebhookConfiguration", None),
    Resource(_ADMISSION, "validatingadmissionpolicies", "ValidatingAdmissionPolicy", None),
    Resource(_ADMISSION, "validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", None),
)


def inspect(api: Api, namespace: str | None = None) -> Installed:
    """Look at a cluster and decide whose control plane it has, and whose a namespace is."""
    ours = f"{MANAGED_BY}={MANAGER}"
    return assess(
        api.get(_DEFINITIONS, "kubevirts.kubevirt.io"),
        namespace=api.get(_NAMESPACES, namespace) if namespace else None,
        deployments=api.list(_DEPLOYMENTS, labels=ours),
        workloads=[obj for resource in _MACHINES for obj in _list_if_known(api, resource)],
        nodes=api.list(_NODES),
        leftovers=[obj for resource in _CLUSTER_WIDE for obj in api.list(resource, labels=ours)],
    )


def _list_if_known(api: Api, resource: Resource) -> list[dict[str, Any]]:
    try:
        return api.list(resource)
    except NotFound:
        return []


def run(params: Mapping[str, Any], api: Api, **_modes: bool) -> dict[str, Any]:
    """Do what module kubevirt_control_plane_info does."""
    return {"changed": False, **inspect(api, params["namespace"]).to_result()}
