# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The objects of every lab: cluster DNS, storage classes, the API server's access to kubelets. Pure."""

from __future__ import annotations

from typing import Any

from lab.images.system import COREDNS_IMAGE
from lab.machines.addresses import DNS_SERVICE

Object = dict[str, Any]

PROVISIONER = "lab.virtops/storage"
DEFAULT_CLASS = "standard"
SHARED_CLASS = "shared"

_DNS_LABELS = {"k8s-app": "kube-dns"}
_COREFILE = """.:53 {{
    errors
    health
    ready
    kubernetes {domain} in-addr.arpa ip6.arpa {{
        pods insecure
    }}
    cache 5
    loadbalance
    reload
}}
"""


def _meta(name: str, namespace: str | None = "kube-system", **more: Any) -> Object:
    return {"name": name, **({"namespace": namespace} if namespace else {}), **more}


def base_objects(domain: str = "cluster.local") -> list[tuple[str, Object]]:
    """Return pairs of collection path and object, in the order of their creation. domain: of the cluster."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    core = "/api/v1/namespaces/kube-system"
    return [
        (f"{rbac}/clusterrolebindings", _kubelet_binding()),
        *(("/apis/storage.k8s.io/v1/storageclasses", obj) for obj in storage_classes()),
        (f"{rbac}/clusterroles", _dns_role()),
        (f"{rbac}/clusterrolebindings", _dns_binding()),
        (f"{core}/serviceaccounts", {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": _meta("coredns")}),
        (f"{core}/configmaps", _dns_configuration(domain)),
        (f"{core}/services", _dns_service()),
        ("/apis/apps/v1/namespaces/kube-system/deployments", _dns_deployment()),
    ]


def _kubelet_binding() -> Object:
    """Allow the API server exec and logs. The kubelet caches a refusal for 30 s."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta("lab:kubelet-api-admin", None),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:kubelet-api-admin",
        },
        "subjects": [
            {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "kube-apiserver-kubelet-client"}
        ],
    }


def storage_classes() -> list[Object]:
    def storage_class(name: str, binding: str, annotations: dict[str, str]) -> Object:
        return {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "StorageClass",
            "metadata": {"name": name, "annotations": annotations},
            "provisioner": PROVISIONER,
            "reclaimPolicy": "Delete",
            "volumeBindingMode": binding,
        }

    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    return [
        storage_class(DEFAULT_CLASS, "WaitForFirstConsumer", default),
        storage_class(SHARED_CLASS, "Immediate", {}),
    ]


def _dns_role() -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": _meta("system:coredns", None),
        "rules": [
            {
                "apiGroups": [""],
                "resources": ["endpoints", "services", "pods", "namespaces"],
                "verbs": ["list", "watch"],
            },
            {"apiGroups": ["discovery.k8s.io"], "resources": ["endpointslices"], "verbs": ["list", "watch"]},
        ],
    }


def _dns_binding() -> Object:
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": _meta("system:coredns", None),
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "system:coredns"},
        "subjects": [{"kind": "ServiceAccount", "name": "coredns", "namespace": "kube-system"}],
    }


def _dns_configuration(domain: str) -> Object:
    data = {"Corefile": _COREFILE.format(domain=domain)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _meta("coredns"), "data": data}


def _dns_service() -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": _meta("kube-dns", labels=_DNS_LABELS),
        "spec": {
            "selector": _DNS_LABELS,
            "clusterIP": str(DNS_SERVICE),
            "ports": [
                {"name": "dns", "port": 53, "protocol": "UDP"},
                {"name": "dns-tcp", "port": 53, "protocol": "TCP"},
            ],
        },
    }


def _dns_deployment() -> Object:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _meta("coredns", labels=_DNS_LABELS),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": _DNS_LABELS},
            "template": {
                "metadata": {"labels": _DNS_LABELS},
                "spec": {
                    "serviceAccountName": "coredns",
                    "dnsPolicy": "Default",
                    "priorityClassName": "system-cluster-critical",
                    "tolerations": [{"operator": "Exists"}],
                    "containers": [_dns_container()],
                    "volumes": [{"name": "config", "configMap": {"name": "coredns"}}],
                },
            },
        },
    }


def _dns_container() -> Object:
    return {
        "name": "coredns",
        "image": COREDNS_IMAGE,
        "imagePullPolicy": "Never",
        "args": ["-conf", "/etc/coredns/Corefile"],
        "ports": [{"containerPort": 53, "protocol": "UDP"}, {"containerPort": 53, "protocol": "TCP"}],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8181}, "periodSeconds": 1},
        "livenessProbe": {"httpGet": {"path": "/health", "port": 8080}, "periodSeconds": 5},
        "resources": {"requests": {"cpu": "50m", "memory": "32Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE"]},
        },
        "volumeMounts": [{"name": "config", "mountPath": "/etc/coredns", "readOnly": True}],
    }
