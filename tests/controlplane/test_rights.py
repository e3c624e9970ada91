# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rights of the control plane's Pods, field by field: a field in a manifest and not here is a new right.

Harmless fields are listed, and all others are compared: an unexpected field fails the test.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.controlplane.virt_api.test_manifests import TEMPLATES, render

Json = dict[str, Any]

NO_RIGHT_OF_A_POD = {
    "priorityClassName",
    "enableServiceLinks",
    "terminationGracePeriodSeconds",
    "imagePullSecrets",
    "nodeSelector",
    "affinity",
    "tolerations",
}
NO_RIGHT_OF_A_CONTAINER = {
    "name",
    "image",
    "imagePullPolicy",
    "terminationMessagePolicy",
    "command",
    "readinessProbe",
    "livenessProbe",
    "resources",
}
CONTAINERS = ("initContainers", "containers", "ephemeralContainers")

CONFINED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
PRIVILEGED = {"privileged": True, "runAsUser": 0, "runAsGroup": 0, "readOnlyRootFilesystem": True}
DEVICE_PLUGINS = "/var/lib/kubelet/device-plugins"


def nobody(uid: int) -> Json:
    """Return the security context of a non-root user, confined by the container runtime."""
    return {
        "runAsNonRoot": True,
        "runAsUser": uid,
        "runAsGroup": uid,
        "seccompProfile": {"type": "RuntimeDefault"},
    }


OF_ITSELF_AND_ITS_NODE = ["metadata.name", "metadata.namespace", "spec.nodeName", "status.podIP"]
RIGHTS: dict[str, Json] = {
    "virt-api": {
        "token": True,
        "serviceAccountName": "kubevirt-apiserver",
        "securityContext": nobody(65532),
        "containers": {
            "virt-api": {
                "securityContext": CONFINED,
                "downward_api": OF_ITSELF_AND_ITS_NODE,
                "ports": [{"name": "metrics", "containerPort": 8443}],
            },
        },
    },
    "virt-controller": {
        "token": True,
        "serviceAccountName": "kubevirt-controller",
        "securityContext": nobody(65532),
        "containers": {
            "virt-controller": {
                "securityContext": CONFINED,
                "downward_api": OF_ITSELF_AND_ITS_NODE,
                "ports": [{"name": "metrics", "containerPort": 8443}],
            },
        },
    },
    "virt-handler": {
        "token": True,
        "serviceAccountName": "kubevirt-handler",
        "securityContext": nobody(60107),
        "containers": {
            "virt-handler": {
                "securityContext": CONFINED,
                "downward_api": OF_ITSELF_AND_ITS_NODE,
                "ports": [{"name": "metrics", "containerPort": 8443}, {"name": "endpoint", "containerPort": 8186}],
                "volumeMounts": [
                    {"name": "node", "mountPath": "/run/virtops/node", "readOnly": True},
                    {"name": "migration", "mountPath": "/run/virtops/migration"},
                ],
            },
        },
        "volumes": [
            {"name": "migration", "emptyDir": {"medium": "Memory", "sizeLimit": "1Mi"}},
            {"name": "node", "hostPath": {"path": "/run/virtops/node", "type": "DirectoryOrCreate"}},
        ],
    },
    "virt-node": {
        "token": False,
        "serviceAccountName": "kubevirt-node",
        "hostPID": True,
        "initContainers": {
            "capabilities": {
                "securityContext": PRIVILEGED,
                "volumeMounts": [{"name": "capabilities", "mountPath": "/capabilities"}],
            },
        },
        "containers": {
            "virt-node": {
                "securityContext": PRIVILEGED,
                "downward_api": ["metadata.uid"],
                "volumeMounts": [
                    {"name": "pods", "mountPath": "/var/lib/kubelet/pods", "mountPropagation": "HostToContainer"},
                    {"name": "device-plugins", "mountPath": DEVICE_PLUGINS},
                    {"name": "devices", "mountPath": "/run/virtops/devices"},
                    {"name": "node", "mountPath": "/run/virtops/node"},
                    {"name": "capabilities", "mountPath": "/capabilities", "readOnly": True},
                ],
            },
        },
        "volumes": [
            {"name": "pods", "hostPath": {"path": "/var/lib/kubelet/pods", "type": "Directory"}},
            {"name": "device-plugins", "hostPath": {"path": DEVICE_PLUGINS, "type": "Directory"}},
            {"name": "devices", "hostPath": {"path": "/run/virtops/devices", "type": "DirectoryOrCreate"}},
            {"name": "node", "hostPath": {"path": "/run/virtops/node", "type": "DirectoryOrCreate"}},
            {"name": "capabilities", "emptyDir": {}},
        ],
    },
}
"""By workload. token: whether the kubelet mounts one; downward_api: the fields of the Pod in its environment."""


def manifests() -> list[Json]:
    """Return the manifests that the role's templates of components and accounts render."""
    names = [path.name for pattern in ("virt-*.j2", "rbac-*.j2") for path in sorted(TEMPLATES.glob(pattern))]
    return [body for name in names for body in render(name)]


def rights_of(pod: Json) -> Json:
    """Return a Pod's specification without its harmless fields."""
    rights = {key: value for key, value in pod.items() if key not in NO_RIGHT_OF_A_POD}
    rights["token"] = is_token_mounted(pod)
    rights.pop("automountServiceAccountToken", None)
    for kind in CONTAINERS:
        if kind in rights:
            rights[kind] = {item["name"]: rights_of_container(item) for item in rights[kind]}
    return rights


def rights_of_container(container: Json) -> Json:
    rights = {key: value for key, value in container.items() if key not in NO_RIGHT_OF_A_CONTAINER}
    sources = [item["valueFrom"] for item in rights.pop("env", ()) if "valueFrom" in item]
    if sources:
        rights["downward_api"] = sorted(item.get("fieldRef", {}).get("fieldPath", str(item)) for item in sources)
    return rights


def is_token_mounted(pod: Json) -> bool:
    """Decide as the API server does: the Pod's value, else that of its account, else yes."""
    (account,) = (
        manifest
        for manifest in manifests()
        if (manifest["kind"], manifest["metadata"]["name"]) == ("ServiceAccount", pod["serviceAccountName"])
    )
    mounted = pod.get("automountServiceAccountToken", account.get("automountServiceAccountToken", True))
    assert isinstance(mounted, bool)
    return mounted


def pods() -> dict[str, Json]:
    """Return the Pods' specifications by workload."""
    made = [item for item in manifests() if "template" in item.get("spec", {})]
    return {item["metadata"]["name"]: item["spec"]["template"]["spec"] for item in made}


def test_every_pod_of_the_control_plane_is_listed() -> None:
    assert pods().keys() == RIGHTS.keys()


@pytest.mark.parametrize("name", RIGHTS)
def test_a_pod_of_the_control_plane_has_exactly_the_listed_rights(name: str) -> None:
    assert rights_of(pods()[name]) == RIGHTS[name]


def test_workloads_with_root_on_a_node_have_an_account_without_rights() -> None:
    """A stolen token of that account is worth nothing."""
    granted = {
        subject["name"]
        for manifest in manifests()
        if manifest["kind"] in ("ClusterRoleBinding", "RoleBinding")
        for subject in manifest["subjects"]
    }

    assert "kubevirt-handler" in granted
    assert RIGHTS["virt-node"]["serviceAccountName"] not in granted
