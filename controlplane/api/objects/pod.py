# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod as the API server has it: types for lenient reading, and questions about it. Pure.

What a tenant's side wrote in it (messages, reasons) is bounded here before anyone repeats it.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import GUEST_MEMORY, VCPUS

from controlplane.api.launch_plan import (
    KERNEL_PANICKED,
    NETWORK_ANNOTATION,
    NOT_IN_TIME,
    WATCHDOG_EXPIRED,
    GuestNetwork,
    read_network,
)
from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition, Node, ObjectMeta, OwnerReference, Quantity
from controlplane.api.objects.resources import Key

COMPUTE = "compute"
GUEST_PANICKED = "GuestPanicked"
"""Why a run has failed, and the reason of an Event."""
GUEST_CRASHED = "GuestCrashed"
REASONS = {KERNEL_PANICKED: GUEST_PANICKED, WATCHDOG_EXPIRED: GUEST_CRASHED, NOT_IN_TIME: "ShutdownTimedOut"}
"""Why a run has failed, by what is said of it: the same whether virt-handler or the launcher notices first."""
MESSAGE_LIMIT = 512
_VCPU_DIGITS = 4
_BYTES_DIGITS = 16
DIGEST = "@sha256:"
"""In a reference to an image that cannot be another one tomorrow."""


class Terminated(Node, frozen=True, kw_only=True):
    exit_code: int = 0
    reason: str = ""
    message: str = ""


class Waiting(Node, frozen=True, kw_only=True):
    reason: str = ""
    message: str = ""


class ContainerState(Node, frozen=True, kw_only=True):
    waiting: Waiting | None = None
    running: dict[str, object] | None = None
    terminated: Terminated | None = None


class ImageVolume(Node, frozen=True, kw_only=True):
    image_ref: str = ""


class VolumeStatus(Node, frozen=True, kw_only=True):
    image: ImageVolume | None = None


class VolumeMountStatus(Node, frozen=True, kw_only=True):
    name: str = ""
    volume_status: VolumeStatus | None = None


class ContainerStatus(Node, frozen=True, kw_only=True):
    name: str = ""
    ready: bool = False
    image: str = ""
    volume_mounts: tuple[VolumeMountStatus, ...] = ()
    state: ContainerState = ContainerState()


class PodStatus(Node, frozen=True, kw_only=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: tuple[Condition, ...] = ()
    container_statuses: tuple[ContainerStatus, ...] = ()
    qos_class: str | None = None


class PodResources(Node, frozen=True, kw_only=True):
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Container(Node, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    resources: PodResources = msgspec.field(default_factory=PodResources)


class ImageSource(Node, frozen=True, kw_only=True):
    reference: str = ""


class Volume(Node, frozen=True, kw_only=True):
    name: str = ""
    image: ImageSource | None = None


class SecretName(Node, frozen=True, kw_only=True):
    name: str = ""


class ReadinessGate(Node, frozen=True, kw_only=True):
    condition_type: str = ""


class PodSpec(Node, frozen=True, kw_only=True):
    node_name: str = ""
    node_selector: dict[str, str] = msgspec.field(default_factory=dict)
    image_pull_secrets: tuple[SecretName, ...] = ()
    containers: tuple[Container, ...] = ()
    volumes: tuple[Volume, ...] = ()
    readiness_gates: tuple[ReadinessGate, ...] = ()


class Pod(Node, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    status: PodStatus = msgspec.field(default_factory=PodStatus)

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def owner(self) -> OwnerReference | None:
        """The VMI that controls it, by the API server's word; labels prove nothing."""
        return next(
            (
                one
                for one in self.metadata.owner_references
                if one.controller
                and one.kind == "VirtualMachineInstance"
                and one.api_version.startswith("kubevirt.io/")
            ),
            None,
        )

    @property
    def vmi_key(self) -> Key | None:
        owner = self.owner
        return None if owner is None else Key(self.metadata.namespace, owner.name)

    @property
    def waits_for(self) -> frozenset[str]:
        """The conditions without which it is not Ready: of a migration's Pod, that its guest is there."""
        return frozenset(one.condition_type for one in self.spec.readiness_gates)

    @property
    def is_kept_from_services(self) -> bool:
        """Tell whether it waits for the word that its guest is there."""
        is_said = conditions.is_true(self.status.conditions, condition_types.UNPAUSED)
        return condition_types.UNPAUSED in self.waits_for and not is_said

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_over(self) -> bool:
        """Tell whether nothing in it runs any more, by the kubelet's word."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def has_succeeded(self) -> bool:
        """Tell whether it ended well, by the kubelet's word."""
        if self.is_over:
            return self.status.phase == "Succeeded"
        return self.compute.terminated is not None and self.compute.terminated.exit_code == 0

    @property
    def compute(self) -> ContainerState:
        """State of the launcher's container; empty before there is one."""
        return next((one.state for one in self.status.container_statuses if one.name == COMPUTE), ContainerState())

    @property
    def is_up(self) -> bool:
        """Tell whether the launcher runs; a service mesh's sidecars are not waited for."""
        return self.status.phase == "Running" and self.compute.running is not None and not self.is_deleting

    @property
    def is_unschedulable(self) -> bool:
        """Tell whether no node fits it for now, by the scheduler's word."""
        said = conditions.find(self.status.conditions, condition_types.POD_SCHEDULED)
        is_refused = said is not None and (said.status, said.reason) == ("False", condition_types.UNSCHEDULABLE)
        return is_refused and not self.spec.node_name

    @property
    def launcher_image(self) -> str:
        return next((one.image for one in self.spec.containers if one.name == COMPUTE), "")

    @property
    def image_digests(self) -> dict[str, str]:
        """Return which image each volume of images has, by what was asked for, else by the kubelet's word.

        A tag says nothing, and not every kubelet says what it has found under one.
        """
        asked = {one.name: one.image.reference for one in self.spec.volumes if one.image is not None}
        said = {
            mount.name: mount.volume_status.image.image_ref
            for one in self.status.container_statuses
            for mount in one.volume_mounts
            if mount.volume_status is not None
            and mount.volume_status.image is not None
            and DIGEST in mount.volume_status.image.image_ref
        }
        return said | {name: reference for name, reference in asked.items() if DIGEST in reference}

    @property
    def vcpus(self) -> int:
        """For how many virtual CPUs it was made; 0 where it does not say."""
        said = self.metadata.annotations.get(VCPUS, "")
        return int(said) if said.isascii() and said.isdigit() and len(said) <= _VCPU_DIGITS else 0

    @property
    def guest_bytes(self) -> int:
        """For how much memory of its guest it was made; 0 where it does not say."""
        said = self.metadata.annotations.get(GUEST_MEMORY, "")
        return int(said) if said.isascii() and said.isdigit() and len(said) <= _BYTES_DIGITS else 0

    @property
    def guest_network(self) -> GuestNetwork | None:
        """The network of its guest, by the launch plan. None: no interface, or a plan of an older version."""
        return read_network(self.metadata.annotations.get(NETWORK_ANNOTATION, ""))

    def was_given(self, resource: str) -> bool:
        """Tell whether its launcher has a device plugin's resource; the domain must not ask for what is not there."""
        return any(resource in one.resources.limits for one in self.spec.containers if one.name == COMPUTE)


class Failure(NamedTuple):
    """What is wrong: a CamelCase word and a sentence."""

    reason: str
    message: str


def find_start_failure(pod: Pod, heard: Failure | None = None) -> Failure | None:
    """Say what keeps the launcher's container from starting, if the kubelet names something.

    heard: what it said in an Event; of a volume that it cannot mount it says nothing else.
    """
    waiting = pod.compute.waiting
    if waiting is None or waiting.reason in ("", "ContainerCreating", "PodInitializing"):
        return heard if pod.compute.running is None else None
    reason = reason_word(waiting.reason)
    return Failure(reason, sanitize(waiting.message) or f"the launcher's container waits: {reason}")


def find_end_failure(pod: Pod) -> Failure:
    """Say why a Pod failed: the launcher's last words if it left some, else the kubelet's."""
    ended = pod.compute.terminated
    if ended is not None and ended.message in REASONS:
        return Failure(REASONS[ended.message], ended.message)
    if ended is not None and ended.message:
        return Failure("LauncherFailed", sanitize(ended.message))
    if pod.status.reason:
        return Failure(reason_word(pod.status.reason), sanitize(pod.status.message) or sanitize(pod.status.reason))
    if ended is not None and ended.reason not in ("", "Error", "Completed"):
        reason = reason_word(ended.reason)
        return Failure(reason, f"the launcher ended with exit code {ended.exit_code}: {reason}")
    if ended is not None:
        return Failure("LauncherFailed", f"the launcher ended with exit code {ended.exit_code} and left no reason")
    return Failure("PodFailed", "the launcher Pod failed and nothing says why")


def sanitize(text: str) -> str:
    """Make a text that comes from the tenant's side fit for a condition: printable, one line, not long."""
    printable = "".join(one if one.isprintable() else " " for one in text[: 4 * MESSAGE_LIMIT])
    return " ".join(printable.split())[:MESSAGE_LIMIT]


def abbreviate(text: str) -> str:
    """Keep beginning and end of a long text: QEMU warns first, and says last what it died of."""
    if len(text) <= MESSAGE_LIMIT:
        return sanitize(text)
    head = MESSAGE_LIMIT // 4
    return sanitize(f"{text[:head]} ... {text[head + 5 - MESSAGE_LIMIT :]}")


def reason_word(text: str) -> str:
    """Make a reason of a text: letters and digits only."""
    return re.sub(r"[^A-Za-z0-9]", "", text)[:64] or "PodFailed"
