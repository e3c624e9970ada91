# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Input of the VMI controller's decisions, and its actions. Values only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from math import inf

from kubevirt_api.names import EXCLUDED_NODES, KVM_DEVICE, LAUNCHER_ROLE
from kubevirt_api.names import ROLE as ROLE_LABEL

from controlplane.api.objects.claim import Claims, claim_names
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.phase import AFTER_HAND_OVER, SCHEDULING
from controlplane.api.objects.pod import Failure, Pod
from controlplane.api.objects.resources import Key
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.volumes.registry import NO_CLAIMS
from controlplane.virt_controller.storage.data_volumes import DataVolumeLookup, unfilled
from controlplane.virt_controller.vmi.evidence import Evidence, NodeState, weigh_evidence

DEFAULTS = KubeVirtConfiguration()
NOTHING_KNOWN = DataVolumeLookup()
NO_IMAGE = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull"})
PREVIOUS_ATTEMPTS = 2
"""How many former attempts may still have a Pod: an attempt begins when the previous one has ended."""


class Role(Enum):
    """The role of a launcher Pod in a run."""

    SOURCE = auto()
    """The Pod has the guest, or will start it."""
    TARGET = auto()
    """A migration's target. Its end never affects the source."""


@dataclass(frozen=True, slots=True)
class ClaimWriter:
    """Another instance whose guest may write to a block device, now or when its Pod is granted the start."""

    vmi: Key
    orphan: str = ""
    """Name of its launcher Pod if the instance is gone."""
    gives_way: bool = False
    """It has a Pod that was not granted the start, and its name comes later: it gives up this Pod."""


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    vmi: VirtualMachineInstance
    pods: tuple[Pod, ...] = ()
    """Launcher Pods that this VMI controls, by UID, or was granted to; by name, oldest attempt first."""
    predecessors: tuple[Pod, ...] = ()
    """Launcher Pods of a former VMI of this name that may still have its guest."""
    last_states: tuple[Pod, ...] = ()
    """The VMI's removed Pods, in their last state."""
    node: NodeState | None = None
    """The node that the run was granted to."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    problems: tuple[str, ...] = ()
    """Errors of the spec, which admission would have refused."""
    is_absence_confirmed: bool = False
    """The API server confirmed that the granted Pod does not exist; before the grant or while the VMI is being deleted:
    that the run has no Pod."""
    was_begun: bool = False
    """A Pod of the current attempt is known to have existed."""
    event_troubles: Mapping[str, Failure] = field(default_factory=dict)
    """Why Pods do not start, from Events, by the Pod's UID."""
    claims: Claims = field(default_factory=lambda: NO_CLAIMS)
    """PersistentVolumeClaims that the spec names and the cache has."""
    claim_writers: Mapping[str, ClaimWriter] = field(default_factory=dict)
    """Other instances that may write to the block devices of its claims, by claim. Only before the grant."""
    data_volumes: DataVolumeLookup = NOTHING_KNOWN
    """DataVolumes of its volumes."""
    placed_for: float = 0.0
    """Seconds for which this process has observed the Pod on a node."""
    dead_for: float = inf
    """Seconds for which this process has known that its guest is dead."""
    excluded_nodes: frozenset[str] = frozenset()
    """Nodes without new machines."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of Pods whose deletion was accepted and is not in the cache yet."""

    @property
    def is_deleting(self) -> bool:
        return self.vmi.metadata.deletion_timestamp is not None

    @property
    def is_granted(self) -> bool:
        """A Pod was granted the start."""
        return bool(self.vmi.status.active_pods) or self.vmi.status.phase in AFTER_HAND_OVER

    @property
    def attempt(self) -> int:
        """Number of the current attempt, or 1 before the first."""
        return max(self.vmi.status.attempt, 1)

    @property
    def source(self) -> Pod | None:
        """The Pod that has the guest: the granted one; before the grant the one of the current attempt."""
        name = pod_name(self.vmi, self.attempt)
        sources = (pod for pod in self.pods if self.role_of(pod) is Role.SOURCE)
        return next((pod for pod in sources if self.vmi.status.active_pods or pod.metadata.name == name), None)

    @property
    def superseded(self) -> tuple[Pod, ...]:
        """Pods of former attempts. None of them was granted the start, or there would be no later attempt."""
        former = former_pod_names(self.vmi)
        return tuple(pod for pod in self.pods if pod.metadata.name in former)

    @property
    def missing_claims(self) -> tuple[str, ...]:
        """Claims that the spec names and the cache lacks. The Pod waits: its manifest depends on them."""
        return tuple(name for name in claim_names(self.vmi.spec.volumes) if name not in self.claims)

    @property
    def unfilled(self) -> tuple[str, ...]:
        """DataVolumes that the Pod waits for: a guest must not see a disk that is being written."""
        return unfilled(self.vmi.spec.volumes, self.claims, self.data_volumes)

    @property
    def requests_unneeded_kvm(self) -> bool:
        """Tell whether its Pod has no node and requests KVM, which it does not need any more.

        A Pod's resources cannot be changed. A Pod that has a node stays: its launcher may be up already.
        """
        pod = self._ungranted
        if pod is None or pod.spec.node_name:
            return False
        return self.configuration.developer_configuration.use_emulation and pod.was_given(KVM_DEVICE)

    @property
    def excludes_available_node(self) -> bool:
        """Tell whether its Pod has no node and excludes a node that takes machines again."""
        pod = self._ungranted
        if pod is None or pod.spec.node_name:
            return False
        excluded = set(pod.metadata.annotations.get(EXCLUDED_NODES, "").split(",")) - {""}
        return bool(excluded - self.excluded_nodes)

    @property
    def must_give_way(self) -> bool:
        """Tell whether its Pod has a block device of an instance that goes first.

        The Pod may keep the device on its node. That instance need not wait for its end: the next attempt is recorded
        first, and then this Pod cannot be granted the start any more.
        """
        return self._ungranted is not None and any(not writer.gives_way for writer in self.claim_writers.values())

    @property
    def must_be_recreated(self) -> bool:
        """Tell whether its Pod has outdated requirements and no node, or must give way to another instance."""
        return self.requests_unneeded_kvm or self.excludes_available_node or self.must_give_way

    @property
    def _ungranted(self) -> Pod | None:
        """The Pod that waits for the grant, if nobody deletes it: no guest was started in it."""
        pod = self.source
        is_waiting = self.vmi.status.phase == SCHEDULING and not self.is_granted and not self.is_deleting
        return pod if is_waiting and pod is not None and not pod.is_deleting else None

    def role_of(self, pod: Pod) -> Role:
        """Derive the Pod's role from the grant. Labels are writable by users."""
        granted = self.vmi.status.active_pods
        return Role.SOURCE if not granted or pod.uid in granted else Role.TARGET

    @property
    def evidence(self) -> Evidence:
        """Evidence whether the guest of the granted Pod is alive. For use after the hand-over."""
        granted = self.vmi.status.active_pods
        last_state = next((pod for pod in self.last_states if pod.uid in granted), None)
        return weigh_evidence(
            self.source or last_state,
            self.node,
            uid=", ".join(sorted(granted)) or "(none is named)",
            is_absence_confirmed=self.source is None and self.is_absence_confirmed,
        )


def is_watched(pod: Pod) -> bool:
    """Tell whether a Pod has the label by which launcher Pods are watched."""
    return pod.metadata.labels.get(ROLE_LABEL) == LAUNCHER_ROLE


def is_controlled(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """Tell whether a VMI controls a Pod, by kind and UID. Admission lets only the control plane write that."""
    return pod.owner is not None and pod.owner.uid == vmi.metadata.uid


def lacks_launcher_image(pod: Pod) -> bool:
    """Tell whether the kubelet reports that the node lacks the launcher image, rather than another one."""
    waiting = pod.compute.waiting
    if waiting is None or waiting.reason not in NO_IMAGE:
        return False
    return bool(pod.launcher_image) and f'"{pod.launcher_image}"' in waiting.message


def is_adopted(pod: Pod, vmi: VirtualMachineInstance) -> bool:
    """Tell whether a Pod has the label and the owner, by name and UID, that make it this VMI's."""
    owner = pod.owner
    return is_watched(pod) and owner is not None and (owner.name, owner.uid) == (vmi.metadata.name, vmi.metadata.uid)


def attempts(vmi: VirtualMachineInstance) -> range:
    """Return the attempts that may have a Pod, the current one last."""
    current = max(vmi.status.attempt, 1)
    return range(max(1, current - PREVIOUS_ATTEMPTS), current + 1)


def former_pod_names(vmi: VirtualMachineInstance) -> frozenset[str]:
    """Return the names of Pods of former attempts: none of them is granted the start any more."""
    return frozenset(pod_name(vmi, number) for number in attempts(vmi)[:-1])


def pod_name(vmi: VirtualMachineInstance, attempt: int) -> str:
    """Name the launcher Pod of an attempt. The name is deterministic: a second create fails with AlreadyExists.

    63 characters at most, because kubelets use it as host name: the VMI's name is cut.
    """
    tail = f"{vmi.metadata.uid.replace('-', '')[:8]}-{attempt}"
    head = f"virt-launcher-{vmi.metadata.name}".replace(".", "-")
    return f"{head[: 63 - len(tail) - 1].rstrip('-')}-{tail}"


@dataclass(frozen=True, slots=True)
class AddFinalizer:
    because: str


@dataclass(frozen=True, slots=True)
class RemoveFinalizers:
    because: str


@dataclass(frozen=True, slots=True)
class CreatePod:
    attempt: int
    because: str


@dataclass(frozen=True, slots=True)
class AdoptPod:
    """Restore the label and the owner reference of the VMI's Pod."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class SetUnpausedCondition:
    """Set the readiness gate of a target Pod whose guest has arrived: Services send to it from then on."""

    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class AnnotateEviction:
    """Set or remove the annotation of a Pod by which a descheduler knows that its guest is leaving."""

    name: str
    uid: str
    value: str | None
    because: str


@dataclass(frozen=True, slots=True)
class DeletePod:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LabelNode:
    """Write the node into a label of the VMI, for other clients. The control plane does not read it."""

    node: str
    because: str


@dataclass(frozen=True, slots=True)
class GrantStart:
    """Grant the start to exactly this Pod on its node, in one write."""

    pod: Pod
    because: str


@dataclass(frozen=True, slots=True)
class CommitMigration:
    """Give the run to the migration's target Pod, in one write."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmPodsAbsent:
    """Read the VMI's Pods from the API server."""

    because: str


@dataclass(frozen=True, slots=True)
class ConfirmNode:
    """Read the run's Node from the API server."""

    name: str
    because: str


Action = (
    AddFinalizer
    | RemoveFinalizers
    | CreatePod
    | AdoptPod
    | SetUnpausedCondition
    | AnnotateEviction
    | DeletePod
    | LabelNode
    | GrantStart
    | CommitMigration
    | ConfirmPodsAbsent
    | ConfirmNode
)
