# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What only Events tell of a component's Pods: that they are refused, or that a volume cannot be mounted. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]

PODS_VOLUME = 'volume "pods"'
"""The kubelet's directory of Pods, a volume of virt-node."""
_REMEDY = " (set control_plane_kubelet_root to the root directory, --root-dir, of the kubelets)"
_STARTING = ("ContainerCreating", "PodInitializing")


def event_troubles(name: str, pods: Sequence[Object], events: Sequence[Object]) -> list[str]:
    """Return why a component has no Pods, or why theirs do not start. name: of the Deployment or DaemonSet.

    Older Events of Pods that run by now tell nothing.
    """
    if not pods:
        refused = _newest([event for event in events if _is_refusal(event, name)])
        return [f"its Pods are refused: {refused}"] if refused else []
    texts = []
    for pod in filter(_is_starting, pods):
        own = [event for event in events if event.get("reason") == "FailedMount" and _is_about(event, pod)]
        if message := _newest(own):
            node = (pod.get("spec") or {}).get("nodeName", "?")
            remedy = _REMEDY if PODS_VOLUME in message else ""
            texts.append(f"Pod {pod['metadata']['name']} on node {node}: {message}{remedy}")
    return texts


def _is_refusal(event: Object, name: str) -> bool:
    """Tell whether a controller could not create a Pod: that of a DaemonSet, or of a ReplicaSet of a Deployment."""
    involved = event.get("involvedObject") or {}
    owners = {"DaemonSet": involved.get("name"), "ReplicaSet": str(involved.get("name")).rpartition("-")[0]}
    return event.get("reason") == "FailedCreate" and owners.get(involved.get("kind", "")) == name


def _is_about(event: Object, pod: Object) -> bool:
    return (event.get("involvedObject") or {}).get("name") == pod["metadata"]["name"]


def _is_starting(pod: Object) -> bool:
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    return any(
        ((container.get("state") or {}).get("waiting") or {}).get("reason") in _STARTING for container in containers
    )


def _newest(events: Sequence[Object]) -> str:
    """Return the message of the newest Event; empty without one."""
    newest = max(events, key=lambda event: event.get("lastTimestamp") or event.get("eventTime") or "", default={})
    return " ".join(str(newest.get("message") or "").split())
