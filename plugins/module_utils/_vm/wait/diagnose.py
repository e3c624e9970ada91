# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Explain why a VM is not in its declared state, from its conditions, instance, launcher Pods and their Events.

Reading is best effort: without the right to read Pods or Events, the status of the VM must do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ..._client.api import Api, Resource
from ..._client.errors import REASON_LIMIT, VirtError, cut
from ...kubevirt_api import desired, phases, predicates, run_strategies
from .. import kinds
from ..write import removal
from . import no_node
from .last_lines import LastLines

EVENTS_SHOWN = 5

_NOT_STARTED = {
    run_strategies.HALTED: (
        "its run strategy is Halted, so nothing starts it; start it (kubevirt_vm with state=started), or set"
        " run_strategy=Always"
    ),
    run_strategies.MANUAL: (
        "its run strategy is Manual, so nothing starts it by itself; start it (kubevirt_vm with state=started)"
    ),
}
"""Why a VM has no instance, by run strategy."""
_PREEMPTION = re.compile(r"\s+(?:[^.:]*, )?preemption: .*", re.DOTALL)
"""What the scheduler says about Pods that it might evict, after the cause."""

Object = dict[str, Any]


def explain(
    api: Api,
    obj: Object | None,
    namespace: str,
    name: str,
    kind: str = kinds.VM.name,
    *,
    last_lines: LastLines | None = None,
) -> dict[str, Any]:
    """Return reason (one sentence, the most specific cause), printable_status, conditions and events.

    obj: the object of `kind` as it was read last, None if it never existed. last_lines: reads the last lines of the
    guest, which are then returned as console, if there are any.
    """
    vm = obj if kind == kinds.VM.name else None
    read_error = ""
    try:
        instance = api.get(kinds.instances(namespace), name)
    except VirtError as error:
        instance, read_error = None, error.message
    pods: list[Object] = []
    if instance is not None:
        pods = list_or_nothing(api, kinds.pods(namespace), labels=kinds.launchers(instance))
    events = warnings(api, namespace, [name, *(pod["metadata"]["name"] for pod in pods)])
    status = (obj or {}).get("status") or {}
    console = last_lines.of(instance, pods) if last_lines is not None and instance is not None else []
    return {
        **({"console": console} if console else {}),
        "reason": reason(vm, instance, pods, events, kind, read_error=read_error),
        "printable_status": status.get("printableStatus") if vm is not None else status.get("phase"),
        "conditions": [short(condition) for condition in status.get("conditions") or ()],
        "events": events,
    }


def reason(
    vm: Object | None,
    instance: Object | None,
    pods: list[Object],
    events: list[str],
    kind: str = kinds.VM.name,
    *,
    read_error: str = "",
) -> str:
    """Choose the most specific cause. Pure. read_error: why the instance could not be read."""
    deleting = removal.deletion(instance if kind != kinds.VM.name else vm)
    if deleting is not None:
        return deleting + (f"; its {_instance_text(instance)}" if instance is not None and vm is not None else "")
    causes = [text for pod in pods for text in pod_troubles(pod)]
    for obj in (instance, vm):
        trouble = predicates.first_failure(obj) if obj is not None else None
        if trouble is not None:
            causes.append(f"{trouble[0]}: {trouble[1]}" if trouble[1] else trouble[0])
    causes += events[-1:]
    # An instance that could not be read may exist.
    not_started = _not_started(vm) if vm is not None and instance is None and not read_error else None
    if not_started is not None:
        return not_started  # failures of an earlier run are not the cause
    if causes:
        return cut(scheduler_cause(causes[0]), REASON_LIMIT)
    return _progress(vm, instance, kind, read_error)


def _progress(vm: Object | None, instance: Object | None, kind: str, read_error: str) -> str:
    """Return the progress of the object in words, for an unknown cause."""
    if read_error and (vm is not None or kind != kinds.VM.name):
        subject = "it" if vm is None else f"its status is {_printable(vm)}, and its instance"
        return cut(f"{subject} could not be read: {read_error}", REASON_LIMIT)
    if vm is None and (instance is None or kind == kinds.VM.name):
        return f"the {kind} does not exist"
    if instance is None:
        return f"it has no instance (status {_printable(vm or {})}); is virt-controller running?"
    return f"its {_instance_text(instance)}" + (f" (status {_printable(vm)})" if vm is not None else "")


def scheduler_cause(text: str) -> str:
    """Return a message of the scheduler without what follows the cause."""
    return _PREEMPTION.sub("", text)


def _instance_text(instance: Object) -> str:
    phase = predicates.phase(instance) or "not yet seen by virt-controller"
    node = (instance.get("status") or {}).get("nodeName")
    return f"instance is {phase}" + (f" on node {node}" if node else "")


def _not_started(vm: Object) -> str | None:
    requests = (vm.get("status") or {}).get("stateChangeRequests")
    return None if requests else _NOT_STARTED.get(desired.run_strategy(vm))


def _printable(vm: Object) -> str:
    return str((vm.get("status") or {}).get("printableStatus") or "not reported")


def pod_troubles(pod: Object) -> Iterator[str]:
    """Yield what keeps a launcher Pod from running, or why it ended."""
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
            cause = scheduler_cause(str(condition.get("message") or condition.get("reason")))
            requests = no_node.pod_requests_text(pod)
            yield f"{title} finds no node: {cause}" + (f" ({requests})" if requests else "")
    if status.get("phase") == phases.FAILED and status.get("message"):
        yield f"{title} failed: {status['message']}"


def warnings(api: Api, namespace: str, object_names: list[str]) -> list[str]:
    """Return the newest warning Events of the first three of these objects, oldest first, each text once."""
    events: list[Object] = []
    for name in object_names[:3]:
        fields = f"involvedObject.name={name},type=Warning"
        events += list_or_nothing(api, kinds.events(namespace), fields=fields)
    return distinct(events)


def distinct(events: list[Object]) -> list[str]:
    """Return the texts of the newest Events, oldest first. Pure. Equal ones are counted."""
    newest: dict[str, tuple[str, int]] = {}
    for event in events:
        series = event.get("series") or {}
        message = scheduler_cause(str(event.get("message") or ""))
        text = f"{event.get('reason')}: {cut(message, REASON_LIMIT)}"
        time, times = newest.get(text, ("", 0))
        moments = (event.get("lastTimestamp"), series.get("lastObservedTime"), event.get("eventTime"), time)
        newest[text] = (
            max(filter(None, moments), default=""),
            times + (event.get("count") or series.get("count") or 1),
        )
    shown = sorted((time, text, times) for text, (time, times) in newest.items())[-EVENTS_SHOWN:]
    return [f"{text} ({times} times)" if times > 1 else text for _time, text, times in shown]


def list_or_nothing(
    api: Api, resource: Resource, *, labels: str | None = None, fields: str | None = None
) -> list[Object]:
    """Return the selected objects, none if they cannot be read."""
    try:
        return api.list(resource, labels=labels, fields=fields)
    except VirtError:
        return []


def short(condition: Object) -> dict[str, Any]:
    """Return a condition without timestamps and empty fields."""
    return {key: condition.get(key) for key in ("type", "status", "reason", "message") if condition.get(key)}
