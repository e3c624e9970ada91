# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Find out why a VM is not what it should be: its own conditions, its instance's, its Pod's, the warnings about them.

Reading is best effort: who may not read Pods or Events gets the reason that the VM itself tells.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .._client.api import Api, Resource
from .._client.errors import VirtError, cut
from ..kubevirt_api import asked, names, phases, predicates, run_strategies
from . import cluster

MESSAGE_LIMIT = 400
EVENTS_SHOWN = 5

_IDLE = {
    run_strategies.HALTED: (
        "its run strategy is Halted, so nothing starts it; start it (kubevirt_vm with state=started), or set"
        " run_strategy=Always"
    ),
    run_strategies.MANUAL: (
        "its run strategy is Manual, so nothing starts it by itself; start it (kubevirt_vm with state=started)"
    ),
}
"""Why a VM without an instance has none, by strategy."""

Object = dict[str, Any]


def explain(api: Api, obj: Object | None, namespace: str, name: str, kind: str = cluster.VM.name) -> dict[str, Any]:
    """Return reason (one sentence, the most telling first), printable_status, conditions, events.

    obj: a VM as it was seen last, None if it was never there; or an object of another kind.
    """
    vm = obj if kind == cluster.VM.name else None
    unread = ""
    try:
        instance = api.get(cluster.instances(namespace), name)
    except VirtError as error:
        instance, unread = None, error.message
    pods: list[Object] = []
    if instance is not None:
        label = f"{names.CREATED_BY}={instance['metadata'].get('uid')}"
        pods = listed(api, cluster.pods(namespace), labels=label)
    events = warnings(api, namespace, [name, *(pod["metadata"]["name"] for pod in pods)])
    status = (obj or {}).get("status") or {}
    return {
        "reason": reason(vm, instance, pods, events, kind, unread=unread),
        "printable_status": status.get("printableStatus") if vm is not None else status.get("phase"),
        "conditions": [short(one) for one in status.get("conditions") or ()],
        "events": events,
    }


def reason(
    vm: Object | None,
    instance: Object | None,
    pods: list[Object],
    events: list[str],
    kind: str = cluster.VM.name,
    *,
    unread: str = "",
) -> str:
    """Choose the most telling of what is known. Pure. unread: why nobody knows whether there is an instance."""
    leaving = held(instance if kind != cluster.VM.name else vm)
    if leaving is not None:  # whatever its run was like
        return leaving + (f"; its {_told(instance)}" if instance is not None and vm is not None else "")
    found = [*(text for pod in pods for text in pod_troubles(pod))]
    for obj in (instance, vm):
        trouble = predicates.trouble(obj) if obj is not None else None
        if trouble is not None:
            found.append(f"{trouble[0]}: {trouble[1]}" if trouble[1] else trouble[0])
    found += events[-1:]
    idle = _idle(vm) if vm is not None and instance is None and not unread else None
    if idle is not None:
        return idle  # what happened in an earlier run does not keep it from running
    if found:
        return cut(found[0], MESSAGE_LIMIT)
    return _how_far(vm, instance, kind, unread)


def _how_far(vm: Object | None, instance: Object | None, kind: str, unread: str) -> str:
    """Say how far it got; nothing tells why not further."""
    if unread and (vm is not None or kind != cluster.VM.name):
        known = "it" if vm is None else f"its status is {_printable(vm)}, and its instance"
        return cut(f"{known} could not be read: {unread}", MESSAGE_LIMIT)
    if vm is None and (instance is None or kind == cluster.VM.name):
        return f"the {kind} is not there"
    if instance is None:
        return f"it has no instance (status {_printable(vm or {})}); is virt-controller running?"
    return f"its {_told(instance)}" + (f" (status {_printable(vm)})" if vm is not None else "")


def held(obj: Object | None) -> str | None:
    """Say of an object that is being deleted since when, and what holds it; None of any other."""
    if obj is None or not asked.is_deleting(obj):
        return None
    holders = ", ".join(map(str, obj["metadata"].get("finalizers") or ()))
    why = f"its finalizers hold it: {holders}" if holders else "no finalizer holds it"
    return cut(f"it is being deleted since {obj['metadata']['deletionTimestamp']}; {why}", MESSAGE_LIMIT)


def _told(instance: Object) -> str:
    told = predicates.phase(instance) or "not looked at by virt-controller yet"
    where = (instance.get("status") or {}).get("nodeName")
    return f"instance is {told}" + (f" on node {where}" if where else "")


def _idle(vm: Object) -> str | None:
    requested = (vm.get("status") or {}).get("stateChangeRequests")
    return None if requested else _IDLE.get(asked.run_strategy(vm))


def _printable(vm: Object) -> str:
    return str((vm.get("status") or {}).get("printableStatus") or "not reported")


def pod_troubles(pod: Object) -> Iterator[str]:
    """Say what keeps a launcher Pod from running, or ended it."""
    status = pod.get("status") or {}
    title = f"launcher Pod {pod['metadata']['name']}"
    containers = [*(status.get("initContainerStatuses") or ()), *(status.get("containerStatuses") or ())]
    for container in containers:
        state = container.get("state") or {}
        ended, waiting = state.get("terminated"), state.get("waiting")
        if ended and (ended.get("exitCode") or status.get("phase") == phases.FAILED):
            yield f"{title} ended: {ended.get('message') or ended.get('reason') or ended.get('exitCode')}"
        elif waiting and waiting.get("reason") not in (None, "ContainerCreating", "PodInitializing"):
            yield f"{title} cannot start: {waiting['reason']}: {waiting.get('message') or ''}"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            yield f"{title} finds no node: {condition.get('message') or condition.get('reason')}"
    if status.get("phase") == phases.FAILED and status.get("message"):
        yield f"{title} failed: {status['message']}"


def warnings(api: Api, namespace: str, about: list[str]) -> list[str]:
    """Return the newest warnings about the first three of these objects."""
    found: list[tuple[str, str]] = []
    for name in about[:3]:
        fields = f"involvedObject.name={name},type=Warning"
        for event in listed(api, cluster.events(namespace), fields=fields):
            when = event.get("lastTimestamp") or event.get("eventTime") or ""
            found.append((when, f"{event.get('reason')}: {cut(str(event.get('message') or ''), MESSAGE_LIMIT)}"))
    return [text for _when, text in sorted(found)[-EVENTS_SHOWN:]]


def listed(api: Api, resource: Resource, *, labels: str | None = None, fields: str | None = None) -> list[Object]:
    """Return what the selectors choose, nothing where it cannot be read."""
    try:
        return api.list(resource, labels=labels, fields=fields)
    except VirtError:
        return []


def short(condition: Object) -> dict[str, Any]:
    """Return what a condition says."""
    return {key: condition.get(key) for key in ("type", "status", "reason", "message") if condition.get(key)}
