# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The machine inside a VirtualMachineInstance: CPU, memory, firmware, clock, features. Types only."""

from __future__ import annotations

from typing import Annotated

import msgspec

from controlplane.api.objects.meta import Node, Quantity
from controlplane.api.objects.vmi.devices import DeviceSpec
from controlplane.api.schema.bounds import DnsSubdomain, ImagePath, KernelImageName, PullPolicy, bounded, one_of

REBOOT, TERMINATE = "Reboot", "Terminate"
"""What a reboot of the guest is."""

MAX_VCPUS = 255
"""Of a q35 machine. More need an IOMMU with extended interrupt mode, which is not built."""
Count = Annotated[int, bounded(minimum=1, maximum=1024)]
Resource = Annotated[dict[str, Quantity], bounded(max_items=16)]


class Cpu(Node, frozen=True, kw_only=True):
    """Virtual CPUs. The guest sees sockets * cores * threads of them."""

    cores: Count = 0
    """Cores per socket; 1 if not set."""
    sockets: Count = 0
    """Sockets; 1 if not set (or the CPU limit or request when no topology is given at all)."""
    max_sockets: Count = 0
    """Most sockets that it can be given while it runs; if not set, by the KubeVirt's liveUpdateConfiguration."""
    threads: Count = 0
    """Threads per core; 1 if not set."""
    model: Annotated[str, bounded("letters, digits, '.', '_' and '-'", pattern="[A-Za-z0-9._-]+", max_length=128)] = ""
    """host-model (default), host-passthrough, or the name of a CPU model that libvirt knows."""

    @property
    def vcpus(self) -> int:
        """The guest's number of virtual CPUs."""
        return max(self.sockets, 1) * self.vcpus_per_socket

    @property
    def vcpus_per_socket(self) -> int:
        """The number of virtual CPUs of one socket."""
        return max(self.cores, 1) * max(self.threads, 1)

    @property
    def most_vcpus(self) -> int:
        """The most virtual CPUs that the guest can have while it runs."""
        return max(self.sockets, self.max_sockets, 1) * self.vcpus_per_socket


class Memory(Node, frozen=True, kw_only=True):
    """Memory of the machine."""

    guest: Quantity | None = None
    """Memory that the guest sees, e.g. 2Gi."""
    max_guest: Quantity | None = None
    """Most memory that it can be given while it runs; if not set, by the KubeVirt's liveUpdateConfiguration."""


class Resources(Node, frozen=True, kw_only=True):
    """What the machine's Pod asks of its node."""

    requests: Resource = msgspec.field(default_factory=dict)
    """Least amount of cpu and memory. A memory request is the guest's memory if memory.guest is not set."""
    limits: Resource = msgspec.field(default_factory=dict)
    """Most that may be used of cpu and memory."""
    overcommit_guest_overhead: bool = False
    """Request no memory for what QEMU and libvirt need in addition to the guest; limits include it all the same."""


class Machine(Node, frozen=True, kw_only=True):
    """Kind of board."""

    type: Annotated[str, bounded("letters, digits, '.', '_' and '-'", pattern="[A-Za-z0-9._-]+", max_length=64)] = ""
    """QEMU machine type: q35 (default) or a version of it, e.g. pc-q35-9.2."""


class Bios(Node, frozen=True, kw_only=True):
    """SeaBIOS."""

    use_serial: bool | None = None
    """Show the BIOS on the serial console."""


class Efi(Node, frozen=True, kw_only=True):
    """UEFI firmware."""

    secure_boot: bool | None = None
    """Refuse unsigned boot loaders; true if not set. Needs features.smm."""


class Bootloader(Node, frozen=True, kw_only=True):
    """Firmware to boot with: bios (default) or efi."""

    bios: Bios | None = None
    """Boot with SeaBIOS."""
    efi: Efi | None = None
    """Boot with UEFI."""


class KernelBootContainer(Node, frozen=True, kw_only=True):
    """A container image that holds a kernel."""

    image: KernelImageName = ""
    """Name of the container image; required."""
    image_pull_secret: DnsSubdomain = ""
    """Secret with the registry's credentials."""
    image_pull_policy: PullPolicy = ""
    """Always, Never or IfNotPresent."""
    kernel_path: ImagePath = ""
    """Absolute path of the kernel in the image."""
    initrd_path: ImagePath = ""
    """Absolute path of the initial RAM disk in the image."""


class KernelBoot(Node, frozen=True, kw_only=True):
    """Boot a kernel directly, without firmware menu or boot loader."""

    kernel_args: Annotated[str, bounded("printable ASCII", pattern="[ -~]*", max_length=2047)] = ""
    """Kernel command line."""
    container: KernelBootContainer | None = None
    """Where kernel and initrd come from."""


class Firmware(Node, frozen=True, kw_only=True):
    """Firmware and identity of the machine."""

    uuid: Annotated[
        str,
        bounded(
            "a UUID, e.g. 5d307ca9-b3ef-428c-8861-06e72d69f223",
            pattern="[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}",
            max_length=36,
        ),
    ] = ""
    """System UUID that the guest sees. Made up at creation if not set."""
    serial: Annotated[
        str, bounded("letters, digits, spaces and any of _.+/:@#-", pattern="[A-Za-z0-9 _.+/:@#-]+", max_length=256)
    ] = ""
    """System serial number that the guest sees."""
    bootloader: Bootloader | None = None
    """BIOS or UEFI."""
    kernel_boot: KernelBoot | None = None
    """Boot a kernel directly."""


class ClockUtc(Node, frozen=True, kw_only=True):
    """The guest's clock starts at UTC."""

    offset_seconds: int | None = None
    """Offset to UTC; the clock is reset to it at each start."""


class Timer(Node, frozen=True, kw_only=True):
    """A timer device."""

    present: bool | None = None
    """False hides the timer from the guest; true if not set."""
    tick_policy: Annotated[str, one_of("delay", "catchup", "merge", "discard")] = ""
    """What happens to ticks that were missed: delay, catchup, merge or discard."""


class RtcTimer(Node, frozen=True, kw_only=True):
    """The real-time clock."""

    present: bool | None = None
    """False hides the timer from the guest; true if not set."""
    tick_policy: Annotated[str, one_of("delay", "catchup")] = ""
    """What happens to ticks that were missed: delay or catchup."""
    track: Annotated[str, one_of("guest", "wall")] = ""
    """What the timer follows: guest or wall."""


class PlainTimer(Node, frozen=True, kw_only=True):
    """A timer without settings."""

    present: bool | None = None
    """False hides the timer from the guest; true if not set."""


class Timers(Node, frozen=True, kw_only=True):
    """Timer devices of the guest."""

    hpet: Timer | None = None
    """High precision event timer."""
    pit: Timer | None = None
    """Programmable interval timer."""
    rtc: RtcTimer | None = None
    """Real-time clock."""
    kvm: PlainTimer | None = None
    """KVM's paravirtual clock."""
    hyperv: PlainTimer | None = None
    """Hyper-V's reference clock, for Windows."""


class Clock(Node, frozen=True, kw_only=True):
    """The guest's clock and timers."""

    utc: ClockUtc | None = None
    """The clock starts at UTC. Excludes timezone."""
    timezone: Annotated[
        str, bounded("a time zone, e.g. Europe/Berlin", pattern="[A-Za-z0-9_+-]+(/[A-Za-z0-9_+-]+)*", max_length=64)
    ] = ""
    """The clock starts at the local time of this zone, e.g. Europe/Berlin. Excludes utc."""
    timer: Timers | None = None
    """Timer devices."""


class FeatureState(Node, frozen=True, kw_only=True):
    """A CPU or board feature that can be switched."""

    enabled: bool | None = None
    """Whether the guest has it; true if not set."""


class Apic(Node, frozen=True, kw_only=True):
    """Interrupt controller."""

    enabled: bool | None = None
    """Whether the guest has it; true if not set."""
    end_of_interrupt: bool = False
    """Let the guest use paravirtual end-of-interrupt."""


class Features(Node, frozen=True, kw_only=True):
    """CPU and board features."""

    acpi: FeatureState = FeatureState()
    """ACPI; needed for a shutdown on request."""
    apic: Apic | None = None
    """Interrupt controller."""
    smm: FeatureState | None = None
    """System management mode; needed for secure boot."""


class DomainSpec(Node, frozen=True, kw_only=True):
    """The machine: CPU, memory, firmware, devices."""

    cpu: Cpu | None = None
    """Virtual CPUs."""
    memory: Memory | None = None
    """Memory that the guest sees."""
    resources: Resources = Resources()
    """What the machine's Pod asks of its node."""
    machine: Machine | None = None
    """Kind of board."""
    firmware: Firmware | None = None
    """Firmware and identity."""
    clock: Clock | None = None
    """Clock and timers."""
    features: Features | None = None
    """CPU and board features."""
    devices: DeviceSpec = msgspec.field(default_factory=DeviceSpec)
    """Disks, interfaces and other devices."""
    reboot_policy: Annotated[str, one_of(REBOOT, TERMINATE)] = ""
    """What a reboot of the guest is: Reboot (default) has it boot again in its Pod, Terminate ends its run, which has
    succeeded; the machine's run strategy decides what is next."""

    @property
    def vcpus(self) -> int:
        """The guest's number of virtual CPUs."""
        return self.cpu.vcpus if self.cpu else 1
