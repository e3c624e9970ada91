# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What virt-controller learned about VMIs that no cache holds. Lost at a restart: then it is asked for again.

Also the one relation of VMIs and Pods: by which Pods are read, and by which whoever hears of a Pod wakes a VMI. No I/O.
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
"""Reasons of Events about what a Pod waits for before its containers, of which its status says nothing."""

EVENT_HOLD_SECONDS = 150.0
"""For so long after it was last heard a word about a Pod stands against others. The kubelet says each thing again after
2 minutes at most, about each volume for itself: whoever tells the newest tells another every time."""

PodLookup = tuple[bool, frozenset[str], int, bool]
"""Is there a Pod of a VMI that is being deleted (or not), was granted to these Pods, is at this attempt, and has had a
Pod of it (or not yet)?"""


@dataclass(slots=True)
class VmiState:
    """What was learned about one VMI."""

    uid: str
    begun: int = 0
    """The latest attempt of which a Pod is known to have existed."""
    absence: set[PodLookup] = field(default_factory=set)
    """Questions to which the API server said "no Pod"."""
    gone_nodes: set[str] = field(default_factory=set)
    nodes_read: dict[str, str] = field(default_factory=dict)
    """resourceVersion of each Node as the API server itself said it was."""
    granted: frozenset[str] = frozenset()
    last_words: dict[str, Pod] = field(default_factory=dict)
    """Granted Pods, and one that a migration goes to, that ended and were removed, by UID."""
    pods: frozenset[Key] = frozenset()
    """What is looked at for this VMI: what happens to one of these is its business, whatever it says of its owner."""
    heard: dict[str, Failure] = field(default_factory=dict)
    """What is said about why a Pod does not start, by the Pod's UID: one at most."""
    heard_at: float = float("-inf")
    """When (monotonic) that was said last."""
    pod_uids: frozenset[str] = frozenset()
    placed: tuple[str, float] = ("", 0.0)
    """UID of the Pod that is on a node, and since when (monotonic) this process has seen it there."""
    dead_since: float = inf
    """Since when (monotonic) this process has known that the guest is dead."""

    def placed_for(self, pod: Pod | None, monotonic: float) -> float:
        """Return for how many seconds a Pod was seen on a node; 0 when it has none."""
        if pod is None or not pod.spec.node_name:
            return 0.0
        if self.placed[0] != pod.uid:
            self.placed = pod.uid, monotonic
        return monotonic - self.placed[1]

    def dead_for(self, is_dead: bool, monotonic: float) -> float:
        """Return for how many seconds it was known that the guest is dead."""
        if not is_dead:
            self.dead_since = inf
            return 0.0
        self.dead_since = min(self.dead_since, monotonic)
        return monotonic - self.dead_since

    def was_begun(self, attempt: int) -> bool:
        """Tell whether an attempt is known to have had a Pod."""
        return self.begun >= max(attempt, 1)

    def judge_node(self, name: str, raw: bytes | None) -> NodeState | None:
        """Say what is known of a Node. raw: as the cache has it."""
        if not name:
            return None
        if raw is None:
            return NodeState(name, is_unseen=True, is_gone=name in self.gone_nodes)
        node = decode(raw, Node)
        self.gone_nodes.discard(name)  # one of this name is there: what was said of the former says nothing
        is_current = self.nodes_read.get(name) == node.metadata.resource_version
        looks_off = node.is_out_of_service
        return NodeState(
            name,
            looks_out_of_service=looks_off,
            is_out_of_service=looks_off and is_current,
            takes_none=node.metadata.labels.get(SCHEDULABLE) == "false",
        )


class ControllerState:
    """By VMI; forgotten with it, and with its UID."""

    def __init__(self) -> None:
        self._by_vmi: dict[Key, VmiState] = {}
        self._looked_at: dict[Key, Key] = {}
        """VMI by Pod."""

    def of(self, vmi: VirtualMachineInstance) -> VmiState:
        """Return what is known of exactly this VMI, not of a former one of its name."""
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        memory = self._by_vmi.get(key)
        if memory is None or memory.uid != vmi.metadata.uid:
            self.forget(key)
            memory = self._by_vmi[key] = VmiState(vmi.metadata.uid)
        return memory

    def forget(self, key: Key) -> None:
        memory = self._by_vmi.pop(key, None)
        for pod in () if memory is None else memory.pods:
            self._looked_at.pop(pod, None)

    def vmi_of(self, pod: Key) -> Key | None:
        """Return the VMI for which a Pod of this name is looked at."""
        return self._looked_at.get(pod)

    def note_pods(self, vmi: VirtualMachineInstance, pods: Collection[Pod]) -> VmiState:
        """Take in which Pods are looked at for a VMI, and that there are some."""
        memory = self.of(vmi)
        memory.begun = max([memory.begun, *(_attempt_of(pod, vmi) for pod in pods)])
        memory.granted = frozenset(vmi.status.active_pods) | _targets(vmi)
        memory.pod_uids = frozenset(pod.uid for pod in pods)
        seen = frozenset({*pod_keys(vmi), *(Key(pod.metadata.namespace, pod.metadata.name) for pod in pods)})
        for gone in memory.pods - seen:
            self._looked_at.pop(gone, None)
        key = Key(vmi.metadata.namespace, vmi.metadata.name)
        self._looked_at.update(dict.fromkeys(seen - memory.pods, key))
        memory.pods = seen
        return memory

    def note_event(self, raw: bytes, monotonic: float) -> Key | None:
        """Take in what is said about a Pod that does not start; return the VMI whose Pod it is, None for nobody's.

        Only of Pods that are looked at, one word for each VMI, which stands while it is said: whoever may make Events
        can make any number of them, and each new word is a write.
        """
        try:
            event = decode(raw, Event)
        except DecodeError:
            return None
        owner = self._looked_at.get(Key(event.metadata.namespace, event.involved_object.name))
        memory = None if owner is None else self._by_vmi.get(owner)
        if memory is None or event.reason not in EVENT_REASONS:
            return None
        uid, trouble = event.involved_object.uid, Failure(event.reason, sanitize(event.message))
        if memory.pod_uids and uid not in memory.pod_uids:
            return None  # before a Pod is seen its first words may come
        is_said_again = memory.heard.get(uid) == trouble
        if uid in memory.heard and not is_said_again and monotonic - memory.heard_at < EVENT_HOLD_SECONDS:
            return None
        memory.heard, memory.heard_at = {uid: trouble}, monotonic
        return None if is_said_again else owner

    def note_removal(self, key: Key, before: bytes | None, after: bytes | None) -> None:
        """Keep what the kubelet said last of a granted Pod that ended: nobody can be asked for it any more."""
        owner = self._looked_at.get(key)
        memory = None if owner is None or before is None or after is not None else self._by_vmi.get(owner)
        if memory is None or before is None:
            return
        pod = decode(before, Pod)
        if pod.uid in memory.granted and (pod.is_over or pod.compute.terminated is not None):
            memory.last_words[pod.uid] = pod


def pod_lookup(vmi: VirtualMachineInstance, memory: VmiState) -> PodLookup:
    """Say what an answer about a VMI's Pods would be an answer to."""
    granted, was_begun = frozenset(vmi.status.active_pods), memory.was_begun(vmi.status.attempt)
    return vmi.metadata.deletion_timestamp is not None, granted, attempts(vmi)[-1], was_begun


def pod_keys(vmi: VirtualMachineInstance) -> list[Key]:
    """List the pod_keys that Pods of this run can have; a number that somebody else wrote costs no more than a few."""
    moving = vmi.status.migration_state
    moved = () if moving is None else (moving.source_pod, moving.target_pod)
    found = [*(pod_name(vmi, number) for number in attempts(vmi)), *moved]
    return [Key(vmi.metadata.namespace, name) for name in dict.fromkeys(found) if name]


def _targets(vmi: VirtualMachineInstance) -> frozenset[str]:
    """Return the UID of the Pod that a migration goes to, which may be given the run yet."""
    moving = vmi.status.migration_state
    return frozenset() if moving is None or not moving.target_pod_uid else frozenset({moving.target_pod_uid})


def _attempt_of(pod: Pod, vmi: VirtualMachineInstance) -> int:
    """Return which attempt a Pod was made for; the current one if its name does not tell."""
    possible = attempts(vmi)
    return next((number for number in possible if pod.metadata.name == pod_name(vmi, number)), possible[-1])
