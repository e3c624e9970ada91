# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Say what an object of the installation is still waiting for. Pure; waiting itself is in serving.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..kubevirt_api.predicates import condition, is_condition_true

Object = Mapping[str, Any]


def missing(obj: Object) -> str | None:
    """Return what keeps an object from serving, in a few words; None when nothing does.

    Kinds without a rule of their own serve as soon as they exist.
    """
    rule = RULES.get(obj.get("kind", ""))
    return rule(obj) if rule else None


def _condition(obj: Object, kind: str) -> str | None:
    found = condition(obj, kind)
    if found is None:
        return f"{kind} is not reported yet"
    if found.get("status") == "True":
        return None
    why = found.get("message") or found.get("reason") or "no reason given"
    return f"{kind} is {found.get('status')}: {why}"


def _definition(obj: Object) -> str | None:
    return _condition(obj, "NamesAccepted") or _condition(obj, "Established")


def _api_service(obj: Object) -> str | None:
    return _condition(obj, "Available")


def _kubevirt(obj: Object) -> str | None:
    return _condition(obj, "Available")


def _unseen(obj: Object) -> str | None:
    generation = obj.get("metadata", {}).get("generation", 0)
    if obj.get("status", {}).get("observedGeneration", 0) < generation:
        return "its controller has not seen the latest change yet"
    return None


def _deployment(obj: Object) -> str | None:
    status = obj.get("status", {})
    wanted = obj.get("spec", {}).get("replicas", 1)
    counts = (status.get("updatedReplicas", 0), status.get("availableReplicas", 0), status.get("replicas", 0))
    if counts == (wanted, wanted, wanted):
        return _unseen(obj)
    return _unseen(obj) or f"{counts[0]} of {wanted} updated, {counts[1]} available, {counts[2]} in all"


def _daemon_set(obj: Object) -> str | None:
    status = obj.get("status", {})
    wanted = status.get("desiredNumberScheduled", 0)
    updated, ready = status.get("updatedNumberScheduled", 0), status.get("numberReady", 0)
    if updated == ready == wanted:
        return _unseen(obj)
    return _unseen(obj) or f"{updated} of {wanted} updated, {ready} ready"


_REVISION = "controller-revision-hash"
"""Label of a DaemonSet's Pods: of which ControllerRevision they are. A template that comes back is the revision that it
was, and its Pods stay."""
_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def without_silent_nodes(
    obj: Object, pods: Sequence[Object], nodes: Sequence[Object], revisions: Sequence[Object]
) -> list[str] | None:
    """Say of a DaemonSet that is not ready whether all that is missing is missing on nodes that are not Ready.

    pods, revisions: those that its selector finds. Returns those nodes; None when something is missing elsewhere too,
    there is no elsewhere, or nobody can tell yet. A node that is not Ready gets its Pod when it is back, and ends the
    one that it had; nobody waits for that. Nor for a node that is gone: of that its controller hears nothing, so that
    a Pod which was not placed stays until the DaemonSet changes.
    """
    newest = _newest_revision(obj, revisions)
    silent = {*not_ready(nodes)}
    there = [one for one in pods if not one["metadata"].get("deletionTimestamp") or _node_of(one) in silent]
    at = {_node_of(one) for one in there}
    silent |= at - {one["metadata"]["name"] for one in nodes} - {""}
    if _unseen(obj) or len(at) < obj.get("status", {}).get("desiredNumberScheduled", 0) or at <= silent:
        return None
    for pod in there:
        if _node_of(pod) in silent:
            continue
        if (pod["metadata"].get("labels") or {}).get(_REVISION) != newest or not is_condition_true(pod, "Ready"):
            return None
    return sorted(silent & at) or None


def _newest_revision(obj: Object, revisions: Sequence[Object]) -> str | None:
    """Return the label value of Pods that are as the DaemonSet's template is now."""
    uid = obj["metadata"].get("uid")
    own = [
        one
        for one in revisions
        if any(owner.get("uid") == uid for owner in one["metadata"].get("ownerReferences") or ())
    ]
    newest = max(own, key=lambda one: one.get("revision") or 0, default=None)
    return None if newest is None else (newest["metadata"].get("labels") or {}).get(_REVISION)


def _node_of(pod: Object) -> str:
    """Name the node that a DaemonSet's Pod is on or, while the scheduler holds it back, was made for; "" for none."""
    spec = pod.get("spec") or {}
    wanted = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(_REQUIRED) or {}
    for term in wanted.get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and field.get("values"):
                return spec.get("nodeName") or field["values"][0]
    return spec.get("nodeName") or ""


def not_ready(nodes: Sequence[Object]) -> list[str]:
    """Name the nodes that are not Ready."""
    return sorted(one["metadata"]["name"] for one in nodes if not is_condition_true(one, "Ready"))


RULES: dict[str, Callable[[Object], str | None]] = {
    "CustomResourceDefinition": _definition,
    "Deployment": _deployment,
    "DaemonSet": _daemon_set,
    "APIService": _api_service,
    "KubeVirt": _kubevirt,
}
"""By kind, in the order in which they rest on one another."""


_OF_IMAGES = ("ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull")
_WITHOUT_IMAGE = " (bring the image to that node, or have others chosen: {})"


def _node_selector(pod: Object) -> str:
    """Name the role's variable that says on which nodes such a Pod may be: each kind of component has its own."""
    owners = pod.get("metadata", {}).get("ownerReferences") or ()
    of_nodes = any(one.get("kind") == "DaemonSet" for one in owners)
    return "control_plane_workload_node_selector" if of_nodes else "control_plane_node_selector"


def pod_trouble(pod: Object) -> str | None:
    """Return why a Pod does not get ready, from its containers and conditions; None when nothing is wrong with it."""
    status = pod.get("status", {})
    name = pod.get("metadata", {}).get("name", "?")
    where = f" on node {node}" if (node := pod.get("spec", {}).get("nodeName")) else ""
    for container in [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]:
        state = container.get("state", {})
        for kind in ("waiting", "terminated"):
            reason = state.get(kind, {}).get("reason")
            if reason and reason not in ("ContainerCreating", "PodInitializing", "Completed"):
                message = _last_words(container) if reason == "CrashLoopBackOff" else state[kind].get("message")
                said = f"Pod {name}{where}, container {container.get('name')}: {reason} {message or ''}".strip()
                return said + (_WITHOUT_IMAGE.format(_node_selector(pod)) if reason in _OF_IMAGES else "")
    placed = condition(pod, "PodScheduled") or {}
    if placed.get("status") == "False":
        return f"Pod {name} cannot be scheduled: {placed.get('message', '')}"
    return None


def _last_words(container: Object) -> str | None:
    """Return what a container that ends again and again said last; if nothing, when the kubelet tries next."""
    ended = container.get("lastState", {}).get("terminated", {}).get("message")
    return " ".join(ended.split()) if ended else container["state"]["waiting"].get("message")
