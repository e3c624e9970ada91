# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher Pod: types for lenient decoding, and predicates. Pure.

Messages and reasons in its status may come from a tenant. They are limited and cleaned here before they are shown.
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
    pod_ip: str = msgspec.field(default="", name="podIP")


class PodResources(Node, frozen=True, kw_only=True):
    limits: dict[str, Quantity] = msgspec.field(default_factory=dict)


class Container(Node, frozen=True, kw_only=True):
    name: str = ""
    image: str = ""
    resources: PodResources = msgspec.field(default_factory=PodResources)


class ImageSource(Node, frozen=True, kw_only=True):
    reference: str = ""


class ClaimSource(Node, frozen=True, kw_only=True):
    claim_name: str = ""
    read_only: bool = False


class Volume(Node, frozen=True, kw_only=True):
    name: str = ""
    image: ImageSource | None = None
    persistent_volume_claim: ClaimSource | None = None


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
        """The VMI that controls it. By owner reference, because users can write labels."""
        return next(
            (
                reference
                for reference in self.metadata.owner_references
                if reference.controller
                and reference.kind == "VirtualMachineInstance"
                and reference.api_version.startswith("kubevirt.io/")
            ),
            None,
        )

    @property
    def vmi_key(self) -> Key | None:
        owner = self.owner
        return None if owner is None else Key(self.metadata.namespace, owner.name)

    @property
    def waits_for(self) -> frozenset[str]:
        """Its readiness gates. A migration's target Pod has one, for the arrival of the guest."""
        return frozenset(gate.condition_type for gate in self.spec.readiness_gates)

    @property
    def is_kept_from_services(self) -> bool:
        """Tell whether its readiness gate still waits for the guest, so Services do not send to it."""
        is_unpaused = conditions.is_true(self.status.conditions, condition_types.UNPAUSED)
        return condition_types.UNPAUSED in self.waits_for and not is_unpaused

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_evicted(self) -> bool:
        """Tell whether the Pod is being deleted, or ended by somebody other than its launcher: an eviction through the
        API or by the kubelet, a preemption, a shutdown of the node.
        """
        return self.is_deleting or conditions.is_true(self.status.conditions, condition_types.DISRUPTION_TARGET)

    @property
    def is_over(self) -> bool:
        """Tell whether the kubelet has reported the end of all its containers."""
        return self.status.phase in ("Succeeded", "Failed")

    @property
    def has_succeeded(self) -> bool:
        """Tell whether the kubelet has reported a successful end."""
        if self.is_over:
            return self.status.phase == "Succeeded"
        return self.compute.terminated is not None and self.compute.terminated.exit_code == 0

    @property
    def compute(self) -> ContainerState:
        """State of the launcher's container; empty before there is one."""
        return next(
            (container.state for container in self.status.container_statuses if container.name == COMPUTE),
            ContainerState(),
        )

    @property
    def is_up(self) -> bool:
        """Tell whether the launcher's container runs. Sidecars do not count."""
        return self.status.phase == "Running" and self.compute.running is not None and not self.is_deleting

    @property
    def is_unschedulable(self) -> bool:
        """Tell whether the scheduler has reported that no node fits."""
        scheduled = conditions.find(self.status.conditions, condition_types.POD_SCHEDULED)
        is_refused = scheduled is not None and (scheduled.status, scheduled.reason) == (
            "False",
            condition_types.UNSCHEDULABLE,
        )
        return is_refused and not self.spec.node_name

    @property
    def launcher_image(self) -> str:
        return next((container.image for container in self.spec.containers if container.name == COMPUTE), "")

    @property
    def image_digests(self) -> dict[str, str]:
        """Return the image reference with digest of each image volume: the declared one, else the kubelet's.

        A volume is missing if it was declared by tag and the kubelet does not report the digest.
        """
        references = {entry.name: entry.image.reference for entry in self.spec.volumes if entry.image is not None}
        digests = {
            mount.name: mount.volume_status.image.image_ref
            for entry in self.status.container_statuses
            for mount in entry.volume_mounts
            if mount.volume_status is not None
            and mount.volume_status.image is not None
            and DIGEST in mount.volume_status.image.image_ref
        }
        return digests | {name: reference for name, reference in references.items() if DIGEST in reference}

    @property
    def written_claims(self) -> frozenset[str]:
        """Claims that its containers may write to."""
        sources = (volume.persistent_volume_claim for volume in self.spec.volumes)
        return frozenset(source.claim_name for source in sources if source is not None and not source.read_only)

    @property
    def vcpus(self) -> int:
        """The number of virtual CPUs that the Pod was created for; 0 when it is unknown."""
        text = self.metadata.annotations.get(VCPUS, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _VCPU_DIGITS else 0

    @property
    def guest_bytes(self) -> int:
        """The guest memory that the Pod was created for, in bytes; 0 when it is unknown."""
        text = self.metadata.annotations.get(GUEST_MEMORY, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) <= _BYTES_DIGITS else 0

    @property
    def guest_network(self) -> GuestNetwork | None:
        """The guest's network in the launch plan. None: no interface, or a plan of an older version."""
        return read_network(self.metadata.annotations.get(NETWORK_ANNOTATION, ""))

    def was_given(self, resource: str) -> bool:
        """Tell whether its launcher has a device plugin's resource, so that the domain can use the device."""
        return any(
            resource in container.resources.limits for container in self.spec.containers if container.name == COMPUTE
        )


class Failure(NamedTuple):
    """What is wrong: a CamelCase word and a sentence."""

    reason: str
    message: str


def find_start_failure(pod: Pod, heard: Failure | None = None) -> Failure | None:
    """Return why the launcher's container does not start, if the kubelet reports a reason.

    heard: the kubelet's newest Event. It is the only report about a volume that cannot be mounted.
    """
    waiting = pod.compute.waiting
    if waiting is None or waiting.reason in ("", "ContainerCreating", "PodInitializing"):
        return heard if pod.compute.running is None else None
    reason = reason_word(waiting.reason)
    return Failure(reason, sanitize(waiting.message) or f"the launcher's container waits: {reason}")


def find_end_failure(pod: Pod) -> Failure:
    """Return why a Pod failed: the launcher's termination message if there is one, else the kubelet's reason."""
    terminated = pod.compute.terminated
    if terminated is not None and terminated.message in REASONS:
        return Failure(REASONS[terminated.message], terminated.message)
    if terminated is not None and terminated.message:
        return Failure("LauncherFailed", sanitize(terminated.message))
    if pod.status.reason:
        return Failure(reason_word(pod.status.reason), sanitize(pod.status.message) or sanitize(pod.status.reason))
    if terminated is not None and terminated.reason not in ("", "Error", "Completed"):
        reason = reason_word(terminated.reason)
        return Failure(reason, f"the launcher ended with exit code {terminated.exit_code}: {reason}")
    if terminated is not None:
        return Failure("LauncherFailed", f"the launcher ended with exit code {terminated.exit_code} and left no reason")
    return Failure("PodFailed", "the launcher Pod failed and nothing says why")


def sanitize(text: str) -> str:
    """Clean a tenant's text for a condition: printable, one line, at most MESSAGE_LIMIT characters."""
    printable = "".join(character if character.isprintable() else " " for character in text[: 4 * MESSAGE_LIMIT])
    return " ".join(printable.split())[:MESSAGE_LIMIT]


def abbreviate(text: str) -> str:
    """Keep the start and the end of a long text: QEMU's output begins with warnings and ends with the cause."""
    if len(text) <= MESSAGE_LIMIT:
        return sanitize(text)
    head = MESSAGE_LIMIT // 4
    return sanitize(f"{text[:head]} ... {text[head + 5 - MESSAGE_LIMIT :]}")


def reason_word(text: str) -> str:
    """Turn a text into a condition's reason: letters and digits only."""
    return re.sub(r"[^A-Za-z0-9]", "", text)[:64] or "PodFailed"
