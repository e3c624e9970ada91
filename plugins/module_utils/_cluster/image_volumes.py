# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out whether the API server, the kubelets and the container runtimes have image volumes, which launchers use.

From Kubernetes 1.35 on the feature gate ImageVolume is on unless somebody turns it off; in 1.33 and 1.34 somebody has
to turn it on, at the API server and at each kubelet. So older ones are tried, and newer ones are not. The role decides
which Kubernetes is too old.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import Invalid, VirtError
from .readiness import not_ready
from .versions import parse, release

ON_BY_DEFAULT = (1, 35)
GATE = "ImageVolume"
RUNTIMES = {"containerd": (2, 1), "cri-o": (1, 31)}
"""The first versions of runtimes that can mount an image as a volume."""
_NODES = Resource("v1", "nodes", "Node", None)
_PODS = Resource("v1", "pods", "Pod", "default")
_POD: dict[str, Any] = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"generateName": "virtops-image-volumes-", "namespace": "default"},
    "spec": {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65532, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {
                "name": "try",
                "image": "localhost/try",
                "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
                "volumeMounts": [{"name": "image", "mountPath": "/image"}],
            }
        ],
        "volumes": [{"name": "image", "image": {"reference": "localhost/try", "pullPolicy": "Never"}}],
    },
}
"""A Pod that every Pod Security profile admits. It is only validated, never stored."""


def has_api_server(api: Api, version: str | None) -> bool:
    """Return whether the API server accepts image volumes. version: its release, None if unknown.

    An API server whose gate is off drops the field, and then misses the type of the volume.
    """
    if version is None or parse(version)[:2] >= ON_BY_DEFAULT:
        return True
    try:
        api.create(_PODS, _POD, dry_run=True)
    except Invalid as error:
        return "volume type" not in str(error)
    except VirtError:  # a quota, a policy, a right that is missing: nothing is known
        return True
    return True


def runtimes_without(nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the nodes whose container runtime is too old for image volumes, each with its runtime.

    Unknown runtimes are accepted.
    """
    too_old = []
    for node in nodes:
        runtime = _node_info(node).get("containerRuntimeVersion") or ""
        name, _separator, version = runtime.partition("://")
        floor, installed = RUNTIMES.get(name), release(version)
        if floor and installed and parse(installed) < floor:
            too_old.append(f"{node['metadata']['name']} ({name} {installed})")
    return sorted(too_old)


def kubelets_without(api: Api, nodes: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the nodes whose kubelet has the gate off, each with its version. Nodes that do not answer are accepted."""
    silent, found = set(not_ready(nodes)), []
    for node in nodes:
        name = node["metadata"]["name"]
        version = release(_node_info(node).get("kubeletVersion") or "")
        if version is None or parse(version)[:2] >= ON_BY_DEFAULT or name in silent:
            continue
        try:
            configuration = api.ask(_NODES, name, "proxy/configz").get("kubeletconfig") or {}
        except VirtError:  # the account may not ask kubelets
            continue
        if not (configuration.get("featureGates") or {}).get(GATE):
            found.append(f"{name} (kubelet {version}, feature gate {GATE} off)")
    return sorted(found)


def _node_info(node: Mapping[str, Any]) -> Mapping[str, Any]:
    return (node.get("status") or {}).get("nodeInfo") or {}
