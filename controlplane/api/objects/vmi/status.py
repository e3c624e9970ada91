# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Status of a VirtualMachineInstance. Types only."""

from __future__ import annotations

from typing import Annotated

import msgspec

from controlplane.api.objects.meta import Condition, Node, Quantity
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.domain import Cpu, Machine
from controlplane.api.schema.bounds import bounded

Word = Annotated[str, bounded(max_length=64)]
Text = Annotated[str, bounded(max_length=256)]
"""A node's virt-handler writes most of a status, and everybody reads it: whatever it can write has a small end."""

Plain = Annotated[str, bounded("ASCII that can be printed", pattern="[ -~]+", max_length=64)]
Address = Annotated[str, bounded("an address", pattern="[!-~]+", max_length=45)]
INTERFACES_LIMIT, ADDRESSES_LIMIT = 42, 8
"""A machine's own 32, and ten that only its guest has; addresses of each."""

Counter = Annotated[int, bounded(minimum=0, maximum=10_000)]
"""Whoever reads one may loop over what it counts: nobody, a captured node neither, may write two thousand million."""


class PhaseTransition(Node, frozen=True, kw_only=True):
    """When a phase was entered."""

    phase: Word = ""
    """The phase."""
    phase_transition_timestamp: Word | None = None
    """When it was entered."""


def has_entered(phase: str, now: str, transitions: tuple[PhaseTransition, ...]) -> bool:
    """Tell whether an instance is in this phase, or was. now: its current phase."""
    return now == phase or any(transition.phase == phase for transition in transitions)


class InterfaceStatus(Node, frozen=True, kw_only=True):
    """An interface as it is."""

    name: Plain = ""
    """Name of the interface in the spec."""
    ip_address: Address = ""
    """The first of ipAddresses."""
    ip_addresses: Annotated[tuple[Address, ...], bounded(max_items=ADDRESSES_LIMIT)] = ()
    """Addresses under which the guest is reached."""
    mac: Address = ""
    """Address that the guest sees."""
    interface_name: Word = ""
    """Name of the interface in the guest."""
    pod_interface_name: Plain = ""
    """Name of the interface in the Pod."""
    info_source: Plain = ""
    """Where the facts come from: domain, guest-agent, multus-status, joined by comma and space."""
    queue_count: Annotated[int, bounded(minimum=0, maximum=1024)] = 0
    """Queue pairs."""
    link_state: Plain = ""
    """up or down."""


class GuestOsInfo(Node, frozen=True, kw_only=True):
    """The guest's operating system, if a guest agent reports it."""

    name: Text = ""
    """Name, e.g. Fedora Linux."""
    kernel_release: Text = ""
    """Release of the kernel."""
    version: Text = ""
    """Version of the system."""
    pretty_name: Text = ""
    """Name and version for people."""
    version_id: Text = ""
    """Version as a word."""
    kernel_version: Text = ""
    """Version text of the kernel."""
    machine: Text = ""
    """Architecture."""
    id: Text = ""
    """Name as a word."""


Part = Annotated[int, bounded(minimum=0, maximum=1024)]


class CpuTopology(Node, frozen=True, kw_only=True):
    """Virtual CPUs that the guest has now."""

    cores: Part = 0
    """Cores per socket."""
    sockets: Part = 0
    """Sockets."""
    threads: Part = 0
    """Threads per core."""

    @classmethod
    def of(cls, cpu: Cpu) -> CpuTopology:
        """Return the topology that a spec declares."""
        return cls(cores=max(cpu.cores, 1), sockets=max(cpu.sockets, 1), threads=max(cpu.threads, 1))

    @property
    def vcpus(self) -> int:
        """The number of virtual CPUs."""
        return self.sockets * self.cores * self.threads


class MemoryStatus(Node, frozen=True, kw_only=True):
    """Memory of the guest."""

    guest_at_boot: Quantity | None = None
    """Memory at the start."""
    guest_current: Quantity | None = None
    """Memory now."""
    guest_requested: Quantity | None = None
    """Memory that was asked for."""
    memory_overhead: Quantity | None = None
    """What the Pod needs beside the guest's memory."""


MOST_VOLUMES_TOLD = 64
"""A status stays small, however many disks a machine has: everybody holds it."""


class Storage(Node, frozen=True, kw_only=True):
    """An amount of storage, the one resource that a claim has."""

    storage: Quantity | None = None
    """How much."""


Mode = Annotated[str, bounded(max_length=32)]


class PersistentVolumeClaimInfo(Node, frozen=True, kw_only=True):
    """A claim, as it was when the run was given to its node."""

    claim_name: Annotated[str, bounded(max_length=253)] = ""
    """Name of the claim."""
    access_modes: Annotated[tuple[Mode, ...], bounded(max_items=4)] = ()
    """How many nodes may use it, e.g. ReadWriteOnce."""
    volume_mode: Mode = ""
    """Filesystem or Block."""
    capacity: Storage | None = None
    """What the volume has."""
    requests: Storage | None = None
    """What the claim asks for."""
    preallocated: bool = False
    """Whether CDI has allocated all of its blocks."""


class VolumeStatus(Node, frozen=True, kw_only=True):
    """A volume as the guest has it."""

    name: Word
    """Name of the volume."""
    target: Word = ""
    """Name of the device in the guest, e.g. vda."""
    size: Annotated[int, bounded(minimum=0, maximum=1 << 60)] = 0
    """Size in bytes."""
    persistent_volume_claim_info: PersistentVolumeClaimInfo | None = None
    """The claim that it is made of."""


class FailedAttempt(Node, frozen=True, kw_only=True):
    """A launcher Pod that was given up before its guest was started."""

    attempt: Counter = 0
    """Its number, which ends the Pod's name."""
    node_name: Annotated[str, bounded(max_length=253)] = ""
    """Node that it was on."""
    reason: Word = ""
    """What went wrong, in a word."""
    message: Text = ""
    """What went wrong, in a sentence."""
    node_fault: bool = False
    """Whether nobody but the node can be the cause: such failures can quarantine it."""


class VirtualMachineInstanceStatus(Node, frozen=True, kw_only=True):
    """How far a run got. Written by virt-controller until phase Scheduled, then by virt-handler."""

    phase: Word = ""
    """Pending, Scheduling, Scheduled, Running, Succeeded or Failed."""
    reason: Word = ""
    """One word that says why the run ended, e.g. NodeUnresponsive."""
    phase_transition_timestamps: Annotated[tuple[PhaseTransition, ...], bounded(max_items=16)] = ()
    """When each phase was entered."""
    node_name: str = ""
    """Node that the machine runs on."""
    conditions: Annotated[tuple[Condition, ...], bounded(max_items=32)] = ()
    """Ready, Synchronized, Paused and others."""
    interfaces: Annotated[tuple[InterfaceStatus, ...], bounded(max_items=INTERFACES_LIMIT)] = ()
    """Interfaces as they are."""
    guest_os_info: GuestOsInfo = msgspec.field(default_factory=GuestOsInfo, name="guestOSInfo")
    """The guest's operating system, if a guest agent reports it."""
    fs_freeze_status: Word = ""
    """frozen while the guest's file systems take no writes, if a guest agent reports it."""
    active_pods: dict[str, str] = msgspec.field(default_factory=dict)
    """UID of each launcher Pod and the node it runs on."""
    attempt: Counter = 0
    """How many launcher Pods were begun for this run: the number in the Pod's name.

    Written before the Pod is created, so that two writers collide on the name instead of making two Pods.
    """
    failed_attempts: Annotated[tuple[FailedAttempt, ...], bounded(max_items=16)] = ()
    """What became of the Pods before: why, and where, the run did not begin at first."""
    epoch: Counter = 0
    """How often the run was given an owner: 1 with the first grant, one more with each migration."""
    launcher_container_image_version: str = ""
    """Image of the launcher."""
    qos_class: str | None = None
    """Quality of service class of the Pod."""
    runtime_user: int = 0
    """User that the launcher runs as."""
    machine: Machine | None = None
    """The board that QEMU chose."""
    current_cpu_topology: CpuTopology | None = msgspec.field(default=None, name="currentCPUTopology")
    """Virtual CPUs that the guest has now."""
    memory: MemoryStatus | None = None
    """Memory of the guest."""
    volume_status: Annotated[tuple[VolumeStatus, ...], bounded(max_items=MOST_VOLUMES_TOLD)] = ()
    """Volumes as the guest has them, the first 64."""
    migration_state: MigrationState | None = None
    """The migration that is under way, or was last."""
    migration_method: str = ""
    """LiveMigration or BlockMigration."""
    migration_transport: str = ""
    """How migration data travels: Unix."""
    evacuation_node_name: str = ""
    """Node that the machine is to leave."""
    virtual_machine_revision_name: str = ""
    """ControllerRevision with the VM's spec that this run was made from."""
    selinux_context: str = ""
    """SELinux context of the launcher, or none."""
