# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What an object of the control plane lacks to serve. Pure; serving.py waits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..kubevirt_api.predicates import condition, is_condition_true

Object = Mapping[str, Any]


def missing(obj: Object) -> str | None:
    """Return in a few words what keeps an object from serving, None if it serves.

    Kinds without a rule serve as soon as they exist.
    """
    rule = RULES.get(obj.get("kind", ""))
    return rule(obj) if rule else None


def _condition(obj: Object, kind: str) -> str | None:
    current = condition(obj, kind)
    if current is None:
        return f"{kind} is not reported yet"
    if current.get("status") == "True":
        return None
    reason = current.get("message") or current.get("reason") or "no reason given"
    return f"{kind} is {current.get('status')}: {reason}"


def _definition(obj: Object) -> str | None:
    return _condition(obj, "NamesAccepted") or _condition(obj, "Established")


def _api_service(obj: Object) -> str | None:
    return _condition(obj, "Available")


def _kubevirt(obj: Object) -> str | None:
    return _condition(obj, "Available")


def _stale(obj: Object) -> str | None:
    generation = obj.get("metadata", {}).get("generation", 0)
    if obj.get("status", {}).get("observedGeneration", 0) < generation:
        return "its controller has not seen the latest change yet"
    return None


def _deployment(obj: Object) -> str | None:
    status = obj.get("status", {})
    replicas = obj.get("spec", {}).get("replicas", 1)
    counts = (status.get("updatedReplicas", 0), status.get("availableReplicas", 0), status.get("replicas", 0))
    if counts == (replicas, replicas, replicas):
        return _stale(obj)
    return _stale(obj) or f"{counts[0]} of {replicas} updated, {counts[1]} available, {counts[2]} in all"


def _daemon_set(obj: Object) -> str | None:
    status = obj.get("status", {})
    scheduled = status.get("desiredNumberScheduled", 0)
    updated, ready = status.get("updatedNumberScheduled", 0), status.get("numberReady", 0)
    if updated == ready == scheduled:
        return _stale(obj)
    return _stale(obj) or f"{updated} of {scheduled} updated, {ready} ready"


_REVISION = "controller-revision-hash"
"""Label of a DaemonSet's Pods with their ControllerRevision. A restored template has its old revision, and its Pods
stay."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def without_silent_nodes(
    obj: Object, pods: Sequence[Object], nodes: Sequence[Object], revisions: Sequence[Object]
) -> list[str] | None:
    """Return the nodes that are not Ready if a DaemonSet lacks Pods on those alone.

    pods, revisions: the objects that its selector selects. Returns None if a Pod is missing on another node, if there
    is no other node, or if this is not known yet. A node that is not Ready updates its Pod when it is back. A deleted
    node counts as not Ready: the DaemonSet controller does not notice the deletion, so an unscheduled Pod for the node
    stays until the DaemonSet changes.
    """
    newest = _newest_revision(obj, revisions)
    silent = {*not_ready(nodes)}
    counted = [pod for pod in pods if not pod["metadata"].get("deletionTimestamp") or _node_of(pod) in silent]
    pod_nodes = {_node_of(pod) for pod in counted}
    silent |= pod_nodes - {node["metadata"]["name"] for node in nodes} - {""}
    if _stale(obj) or len(pod_nodes) < obj.get("status", {}).get("desiredNumberScheduled", 0) or pod_nodes <= silent:
        return None
    for pod in counted:
        if _node_of(pod) in silent:
            continue
        if (pod["metadata"].get("labels") or {}).get(_REVISION) != newest or not is_condition_true(pod, "Ready"):
            return None
    return sorted(silent & pod_nodes) or None


def _newest_revision(obj: Object, revisions: Sequence[Object]) -> str | None:
    """Return the label value of Pods of the DaemonSet's current template."""
    uid = obj["metadata"].get("uid")
    owned = [
        revision
        for revision in revisions
        if any(owner.get("uid") == uid for owner in revision["metadata"].get("ownerReferences") or ())
    ]
    newest = max(owned, key=lambda revision: revision.get("revision") or 0, default=None)
    return None if newest is None else (newest["metadata"].get("labels") or {}).get(_REVISION)


def _node_of(pod: Object) -> str:
    """Return the node of a DaemonSet's Pod; for an unscheduled Pod the node that it was created for; "" for none."""
    spec = pod.get("spec") or {}
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in required.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return spec.get("nodeName") or field["values"][0]
    return spec.get("nodeName") or ""


def not_ready(nodes: Sequence[Object]) -> list[str]:
    """Return the names of the nodes that are not Ready."""
    return sorted(node["metadata"]["name"] for node in nodes if not is_condition_true(node, "Ready"))


RULES: dict[str, Callable[[Object], str | None]] = {
    "CustomResourceDefinition": _definition,
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "APIService": _api_service,
    "KubeVirt": _kubevirt,
}
"""Rules by kind. Each kind follows the kinds that it depends on."""


_IMAGE_REASONS = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull")
_WITHOUT_IMAGE = " (bring the image to that node, or have others chosen: {})"


def _node_selector(pod: Object) -> str:
    """Return the role's variable for the node selector of such a Pod."""
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    of_nodes = any(owner.get("kind") == "DaemonSet" for owner in owners)
    return "control_plane_workload_node_selector" if of_nodes else "control_plane_node_selector"


def pod_trouble(pod: Object) -> str | None:
    """Return why a Pod is not ready, from its containers and conditions; None when nothing is wrong."""
    status = pod.get("status", {})
    name = pod.get("metadata", {}).get("name", "?")
    where = f" on node {node}" if (node := pod.get("spec", {}).get("nodeName")) else ""
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state", {})
        for kind in ("waiting", "terminated"):
            reason = state.get(kind, {}).get("reason")
            if reason and reason not in ("ContainerCreating", "PodInitializing", "Completed"):
                message = _crash_message(container) if reason == "CrashLoopBackOff" else state[kind].get("message")
                text = f"Pod {name}{where}, container {container.get('name')}: {reason} {message or ''}".strip()
                return text + (_WITHOUT_IMAGE.format(_node_selector(pod)) if reason in _IMAGE_REASONS else "")
    placed = condition(pod, "PodScheduled") or {}
    if placed.get("status") == "False":
        return f"Pod {name} cannot be scheduled: {placed.get('message', '')}"
    return None


def _crash_message(container: Object) -> str | None:
    """Return the last termination message of a crashing container, or when the kubelet restarts it."""
    ended = container.get("lastState", {}).get("terminated", {}).get("message")
    return " ".join(ended.split()) if ended else container["state"]["waiting"].get("message")
