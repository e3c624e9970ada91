# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State about VMIs that no cache has. A restart loses it, and the API server is asked again. No I/O.

It also maps Pods to VMIs: this determines which Pods are read, and which VMIs a change of a Pod enqueues.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from math import inf

from kubevirt_api.names import SCHEDULABLE

from controlplane.api.objects.decode import DecodeError, decode
from controlplane.api.objects.event import Event
from controlplane.api.objects.node import Node
from controlplane.api.objects.pod import Failure, Pod, sanitize
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.evidence import NodeState
from controlplane.virt_controller.vmi.world import attempts, pod_name

EVENT_REASONS = frozenset({"FailedMount", "FailedMapVolume", "FailedAttachVolume", "FailedCreatePodSandBox"})
"""Reasons of Events about a Pod that waits before its containers start. The Pod's status does not report them."""

EVENT_HOLD_SECONDS = 150.0
"""How long an Event about a Pod takes precedence over others. The kubelet repeats each Event within 2 minutes, once per
volume: if the newest Event won, the condition would change each time."""

PodLookup = tuple[bool, frozenset[str], int, bool]
"""Identifies a lookup of a VMI's Pods: whether the VMI is being deleted, its granted Pods, its attempt, and whether a
Pod of that attempt is known to have existed. The result of another lookup proves nothing."""


@dataclass(slots=True)
class VmiState:
    """The state of one VMI."""

    uid: str
    begun: int = 0
    """The latest attempt whose Pod is known to have existed."""
    absent_lookups: set[PodLookup] = field(default_factory=set)
    """Lookups for which the API server confirmed that there is no Pod."""
    gone_nodes: set[str] = field(default_factory=set)
    nodes_read: dict[str, str] = field(default_factory=dict)
    """resourceVersion of each Node as read from the API server."""
    granted: frozenset[str] = frozenset()
    last_states: dict[str, Pod] = field(default_factory=dict)
    """The last state of removed Pods that had ended: granted Pods and a migration's target, by UID."""
    pods: frozenset[Key] = frozenset()
    """Keys of Pods that concern this VMI, even if they name another owner or none."""
    event_troubles: dict[str, Failure] = field(default_factory=dict)
    """Why a Pod does not start, from Events, by the Pod's UID. It has one entry at most."""
    event_at: float = float("-inf")
    """When (monotonic) the last such Event came."""
    pod_uids: frozenset[str] = frozenset()
    placed: tuple[str, float] = ("", 0.0)
    """UID of the Pod that has a node, and when (monotonic) this process first observed that."""
    dead_since: float = inf
    """When (monotonic) this process learned that the guest is dead."""

    def placed_for(self, pod: Pod | None, monotonic: float) -> float:
        """Return for how many seconds a Pod was observed on a node; 0 without a node."""
        if pod is None or not pod.spec.node_name:
            return 0.0
        if self.placed[0] != pod.uid:
            self.placed = pod.uid, monotonic
        return monotonic - self.placed[1]

    def dead_for(self, is_dead: bool, monotonic: float) -> float:
        """Return for how many seconds the guest has been known to be dead."""
        if not is_dead:
            self.dead_since = inf
            return 0.0
        self.dead_since = min(self.dead_since, monotonic)
        return monotonic - self.dead_since

    def was_begun(self, attempt: int) -> bool:
        """Tell whether a Pod of an attempt is known to have existed."""
        return self.begun >= max(attempt, 1)

    def judge_node(self, name: str, raw: bytes | None) -> NodeState | None:
        """Return the state of a Node. raw: as the cache has it."""
        if not name:
            return None
        if raw is None:
            return NodeState(name, is_unseen=True, is_gone=name in self.gone_nodes)
        node = decode(raw, Node)
        self.gone_nodes.discard(name)  # a Node of this name exists again: a former 404 does not apply
        is_current = self.nodes_read.get(name) == node.metadata.resource_version
        has_taint = node.is_out_of_service
        return NodeState(
            name,
            looks_out_of_service=has_taint,
            is_out_of_service=has_taint and is_current,
            takes_none=node.metadata.labels.get(SCHEDULABLE) == "false",
        )


class ControllerState:
    """The state of all VMIs. An entry is dropped when its VMI is gone or has another UID."""

    def __init__(self) -> None:
        self._by_vmi: dict[Key, VmiState] = {}
        self._vmi_by_pod: dict[Key, Key] = {}
        """Keys of VMIs, by the key of a Pod."""

    def of(self, vmi: VirtualMachineInstance) -> VmiState:
        """Return the state of this VMI, not of a former VMI of its name."""
        key = vmi.metadata.key
        state = self._by_vmi.get(key)
        if state is None or state.uid != vmi.metadata.uid:
            self.forget(key)
            state = self._by_vmi[key] = VmiState(vmi.metadata.uid)
        return state

    def forget(self, key: Key) -> None:
        state = self._by_vmi.pop(key, None)
        for pod in () if state is None else state.pods:
            self._vmi_by_pod.pop(pod, None)

    def vmi_of(self, pod: Key) -> Key | None:
        """Return the VMI that a Pod of this name concerns."""
        return self._vmi_by_pod.get(pod)

    def note_pods(self, vmi: VirtualMachineInstance, pods: Collection[Pod]) -> VmiState:
        """Note the Pods of a VMI."""
        state = self.of(vmi)
        state.begun = max([state.begun, *(_attempt_of(pod, vmi) for pod in pods)])
        state.granted = frozenset(vmi.status.active_pods) | _targets(vmi)
        state.pod_uids = frozenset(pod.uid for pod in pods)
        keys = frozenset({*pod_keys(vmi), *(pod.metadata.key for pod in pods)})
        for former in state.pods - keys:
            self._vmi_by_pod.pop(former, None)
        key = vmi.metadata.key
        self._vmi_by_pod.update(dict.fromkeys(keys - state.pods, key))
        state.pods = keys
        return state

    def note_event(self, raw: bytes, monotonic: float) -> Key | None:
        """Note an Event about a Pod that does not start. Return the VMI to enqueue, None if nothing changed.

        Only Events about known Pods count, one per VMI for EVENT_HOLD_SECONDS: users may create any number of Events,
        and each new text is a write.
        """
        try:
            event = decode(raw, Event)
        except DecodeError:
            return None
        owner = self._vmi_by_pod.get(Key(event.metadata.namespace, event.involved_object.name))
        state = None if owner is None else self._by_vmi.get(owner)
        if state is None or event.reason not in EVENT_REASONS:
            return None
        uid, failure = event.involved_object.uid, Failure(event.reason, sanitize(event.message))
        if state.pod_uids and uid not in state.pod_uids:
            return None  # the first Event may come before the Pod is in the cache
        is_repeated = state.event_troubles.get(uid) == failure
        if uid in state.event_troubles and not is_repeated and monotonic - state.event_at < EVENT_HOLD_SECONDS:
            return None
        state.event_troubles, state.event_at = {uid: failure}, monotonic
        return None if is_repeated else owner

    def note_removal(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Keep the last state of a removed Pod that had ended: it cannot be read again."""
        owner = self._vmi_by_pod.get(key)
        state = None if owner is None or before is None or after is not None else self._by_vmi.get(owner)
        if state is None or before is None:
            return
        pod = decode(before, Pod)
        if pod.uid in state.granted and (pod.is_over or pod.compute.terminated is not None):
            state.last_states[pod.uid] = pod


def pod_lookup(vmi: VirtualMachineInstance, state: VmiState) -> PodLookup:
    """Identify the lookup of a VMI's Pods."""
    granted, was_begun = frozenset(vmi.status.active_pods), state.was_begun(vmi.status.attempt)
    return vmi.metadata.deletion_timestamp is not None, granted, attempts(vmi)[-1], was_begun


def pod_keys(vmi: VirtualMachineInstance) -> list[Key]:
    """List the keys of Pods that this run can have. An attempt number that a user wrote adds a few keys at most."""
    migration = vmi.status.migration_state
    migration_pods = () if migration is None else (migration.source_pod, migration.target_pod)
    pod_names = [*(pod_name(vmi, number) for number in attempts(vmi)), *migration_pods]
    return [Key(vmi.metadata.namespace, name) for name in dict.fromkeys(pod_names) if name]


def _targets(vmi: VirtualMachineInstance) -> frozenset[str]:
    """Return the UID of a migration's target Pod, which may get the run."""
    migration = vmi.status.migration_state
    return frozenset() if migration is None or not migration.target_pod_uid else frozenset({migration.target_pod_uid})


def _attempt_of(pod: Pod, vmi: VirtualMachineInstance) -> int:
    """Return the attempt that a Pod was created for; the current one if its name does not show it."""
    possible = attempts(vmi)
    return next((number for number in possible if pod.metadata.name == pod_name(vmi, number)), possible[-1])
