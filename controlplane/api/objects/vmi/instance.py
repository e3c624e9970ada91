# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstance: one run of a machine. Parts of its spec are in domain, devices, volumes and probes."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import msgspec
from kubevirt_api.condition_types import PAUSED, PAUSED_BY_USER

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Node, Object
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE, Resource
from controlplane.api.objects.topology_spread import TopologySpreadConstraint
from controlplane.api.objects.vmi.devices import DeviceSpec, Disk, DiskTarget, Interface
from controlplane.api.objects.vmi.domain import (
    Bootloader,
    Clock,
    Cpu,
    DomainSpec,
    Features,
    Firmware,
    KernelBoot,
    KernelBootContainer,
    Machine,
    Memory,
    Resources,
)
from controlplane.api.objects.vmi.probes import Probe
from controlplane.api.objects.vmi.status import (
    CpuTopology,
    FailedAttempt,
    InterfaceStatus,
    MemoryStatus,
    PhaseTransition,
    VirtualMachineInstanceStatus,
    VolumeStatus,
    has_entered,
)
from controlplane.api.objects.vmi.volumes import CloudInitNoCloud, ContainerDisk, EmptyDisk, Network, PodNetwork, Volume
from controlplane.api.schema.bounds import DnsLabel, DnsSubdomain, LabelMap, bounded, one_of

__all__ = [
    "Bootloader",
    "Clock",
    "CloudInitNoCloud",
    "ContainerDisk",
    "Cpu",
    "CpuTopology",
    "DeviceSpec",
    "Disk",
    "DiskTarget",
    "DomainSpec",
    "EmptyDisk",
    "FailedAttempt",
    "Features",
    "Firmware",
    "Interface",
    "InterfaceStatus",
    "KernelBoot",
    "KernelBootContainer",
    "Machine",
    "Memory",
    "MemoryStatus",
    "Network",
    "PhaseTransition",
    "PodNetwork",
    "Probe",
    "Resources",
    "Toleration",
    "VirtualMachineInstance",
    "VirtualMachineInstanceSpec",
    "VirtualMachineInstanceStatus",
    "Volume",
    "VolumeStatus",
]

DEFAULT_GRACE_PERIOD_SECONDS = 30
"""Assumed when terminationGracePeriodSeconds is not set; never written into the object."""


class Toleration(Node, frozen=True, kw_only=True):
    """A taint that the machine's Pod puts up with; see Kubernetes' Pod."""

    key: str = ""
    """Taint key; empty with operator Exists means every key."""
    operator: Annotated[str, one_of("Exists", "Equal")] = ""
    """Exists or Equal (the default)."""
    value: str = ""
    """Taint value, for Equal."""
    effect: Annotated[str, one_of("NoSchedule", "PreferNoSchedule", "NoExecute")] = ""
    """NoSchedule, PreferNoSchedule or NoExecute; empty means all."""
    toleration_seconds: int | None = None
    """How long a NoExecute taint is put up with."""


class DnsOption(Node, frozen=True, kw_only=True):
    """One resolver option."""

    name: str = ""
    """Name of the option, e.g. ndots."""
    value: str | None = None
    """Its value, if it has one."""


class DnsConfig(Node, frozen=True, kw_only=True):
    """Resolver settings added to those of dnsPolicy; see Kubernetes' Pod."""

    nameservers: Annotated[tuple[str, ...], bounded(max_items=3)] = ()
    """IP addresses, at most 3."""
    searches: Annotated[tuple[DnsSubdomain, ...], bounded(max_items=6)] = ()
    """Search domains, at most 6."""
    options: tuple[DnsOption, ...] = ()
    """Resolver options."""


class VirtualMachineInstanceSpec(Node, frozen=True, kw_only=True):
    """The machine, its disks and networks, and where it may run."""

    domain: DomainSpec
    """The machine: CPU, memory, firmware, devices."""
    volumes: Annotated[tuple[Volume, ...], bounded(max_items=256)] = ()
    """Where the data of disks comes from."""
    networks: Annotated[tuple[Network, ...], bounded(max_items=32)] = ()
    """What interfaces are attached to. The Pod network if neither networks nor interfaces are given."""
    termination_grace_period_seconds: Annotated[int, bounded(minimum=0, maximum=86400)] | None = None
    """Seconds between asking the guest to shut down and pulling the plug. 30 if not set."""
    hostname: DnsLabel = ""
    """Host name of the guest, by DHCP and cloud-init; the object's name if not set."""
    subdomain: DnsLabel = ""
    """Name of a headless Service that makes DNS records for the machine."""
    node_selector: LabelMap = msgspec.field(default_factory=dict)
    """Labels that the node must have."""
    affinity: dict[str, Any] | None = None
    """Scheduling rules, as in a Pod."""
    tolerations: Annotated[tuple[Toleration, ...], bounded(max_items=256)] = ()
    """Taints that the machine's Pod puts up with."""
    topology_spread_constraints: Annotated[tuple[TopologySpreadConstraint, ...], bounded(max_items=64)] = ()
    """How the machine's Pod is spread over nodes and zones, together with others."""
    scheduler_name: DnsSubdomain = ""
    """Scheduler of the machine's Pod."""
    priority_class_name: DnsSubdomain = ""
    """Priority class of the machine's Pod."""
    dns_policy: Annotated[str, one_of("ClusterFirst", "ClusterFirstWithHostNet", "Default", "None")] = ""
    """Resolver policy of the machine's Pod: ClusterFirst, ClusterFirstWithHostNet, Default or None."""
    dns_config: DnsConfig | None = None
    """Resolver settings added to those of dnsPolicy."""
    eviction_strategy: Annotated[str, one_of("None", "LiveMigrate", "LiveMigrateIfPossible", "External")] | None = None
    """What happens when the Pod is evicted. None: the machine is stopped. LiveMigrate: it is not evicted unless it can
    leave its node. LiveMigrateIfPossible: it is stopped if it cannot. External: somebody else moves it."""
    liveness_probe: Probe | None = None
    """The launcher is ended, and with it the run, when this fails so often as failureThreshold says."""
    readiness_probe: Probe | None = None
    """The machine is Ready, and gets a Service's traffic, only while this succeeds."""
    architecture: Annotated[str, one_of("amd64", unbuilt=("arm64", "s390x"))] = ""
    """CPU architecture; amd64."""
    start_strategy: Annotated[str, one_of("Paused")] = ""
    """Paused: the guest's processors do not run before somebody unpauses it. They run at once if not set."""

    @property
    def is_start_paused(self) -> bool:
        """Whether the guest starts paused."""
        return self.start_strategy == "Paused"

    @property
    def grace_period_seconds(self) -> int:
        """Seconds from the shutdown request until the guest is destroyed."""
        seconds = self.termination_grace_period_seconds
        return DEFAULT_GRACE_PERIOD_SECONDS if seconds is None else seconds


class VirtualMachineInstance(Object, frozen=True, kw_only=True):
    """One run of a virtual machine: from its launcher Pod's creation until it succeeded or failed."""

    resource: ClassVar[Resource] = VIRTUAL_MACHINE_INSTANCE

    spec: VirtualMachineInstanceSpec
    """What runs. Does not change after creation."""
    status: VirtualMachineInstanceStatus = VirtualMachineInstanceStatus()
    """How far it got."""

    @property
    def is_user_pause_reported(self) -> bool:
        """Whether its status says that a user has paused the guest."""
        paused = conditions.find(self.status.conditions, PAUSED)
        return paused is not None and (paused.status, paused.reason) == ("True", PAUSED_BY_USER)

    @property
    def has_run(self) -> bool:
        """Whether its guest has ever run."""
        return has_entered(RUNNING, self.status.phase, self.status.phase_transition_timestamps)
