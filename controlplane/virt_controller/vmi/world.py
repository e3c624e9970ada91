# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the VMI controller knows when it decides, and what it can do. Values only."""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance

DEFAULTS = KubeVirtConfiguration()


@dataclass(frozen=True, slots=True)
class World:
    vmi: VirtualMachineInstance
    pods: tuple[Pod, ...]
    """Launcher Pods that this VMI controls, by UID; by name, oldest attempt first."""
    now: float
    """Seconds since the epoch."""
    configuration: KubeVirtConfiguration = DEFAULTS
    problems: tuple[str, ...] = ()
    """What is wrong with the spec; admission would have refused it."""
    squatter: str | None = None
    """Why a Pod of the name that is ours to use cannot be ours; None when the name is free or ours."""
    is_absence_confirmed: bool = False
    """The API server itself said that the Pod it depends on (deleting: any Pod of it) does not exist."""
    deletes_sent: frozenset[str] = frozenset()
    """UIDs of Pods whose deletion was accepted and is not seen yet."""

    @property
    def is_deleting(self) -> bool:
        return self.vmi.metadata.deletion_timestamp is not None

    @property
    def epoch(self) -> int:
        """Attempt that the current Pod belongs to."""
        return max(self.vmi.status.epoch, 1)

    @property
    def pod(self) -> Pod | None:
        """The Pod of this run: the granted one, else the one of the current attempt."""
        granted = self.vmi.status.active_pods
        name = pod_name(self.vmi, self.epoch)
        for pod in self.pods:
            if pod.metadata.uid in granted or (not granted and pod.metadata.name == name):
                return pod
        return None


def pod_name(vmi: VirtualMachineInstance, attempt: int) -> str:
    """Name the launcher Pod of an attempt: always the same one, so a second create collides instead of duplicating.

    At most 63 characters, because kubelets use it as host name; the VMI's name is cut, its UID is not.
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
class DeletePod:
    name: str
    uid: str
    because: str


@dataclass(frozen=True, slots=True)
class LabelNode:
    node: str
    because: str


@dataclass(frozen=True, slots=True)
class ConfirmAbsence:
    """Ask the API server, not the cache, whether Pods of this VMI exist."""

    because: str


Action = AddFinalizer | RemoveFinalizers | CreatePod | DeletePod | LabelNode | ConfirmAbsence
