# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole domain."""

from __future__ import annotations

from libvirt_domain.model.domain import Devices, Domain

from controlplane.api.objects.guest_memory import GuestMemory, guest_memory
from controlplane.api.objects.vmi.domain import TERMINATE
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.clock import build_clock
from controlplane.domain.builders.console import (
    build_channels,
    build_consoles,
    build_graphics,
    build_serials,
    build_videos,
)
from controlplane.domain.builders.cpu import build_cpu, build_vcpu
from controlplane.domain.builders.device import (
    build_controllers,
    build_memory_balloon,
    build_panics,
    build_rng,
    build_watchdog,
)
from controlplane.domain.builders.disk import build_disks
from controlplane.domain.builders.facts import Facts
from controlplane.domain.builders.interface import build_interfaces
from controlplane.domain.builders.machine import build_features, build_os, build_sysinfo
from controlplane.domain.builders.memory import build_max_memory, build_memory, build_memory_device
from controlplane.domain.builders.metadata import build_metadata
from controlplane.domain.guest_identity import firmware_uuid


def build_domain(vmi: VirtualMachineInstance, facts: Facts) -> Domain:
    """Return the domain that libvirt is to define for this VMI. NotBuildableError names the field that prevents it.

    The domain's name is the VMI's UID: a user's text never becomes a name in libvirt. Render the result with
    libvirt_domain.codec.render_text.
    """
    memory = guest_memory(vmi.spec.domain)
    return Domain(
        type="kvm" if facts.is_kvm else "qemu",
        name=vmi.metadata.uid,
        uuid=firmware_uuid(vmi),
        metadata=build_metadata(vmi, facts),
        max_memory=build_max_memory(memory),
        memory=build_memory(memory),
        vcpu=build_vcpu(vmi),
        sysinfo=build_sysinfo(vmi),
        os=build_os(vmi, facts),
        features=build_features(vmi, facts),
        cpu=build_cpu(vmi, facts, memory),
        clock=build_clock(vmi, facts),
        on_poweroff="destroy",
        on_reboot="destroy" if vmi.spec.domain.reboot_policy == TERMINATE else "restart",
        on_crash="destroy",
        devices=_build_devices(vmi, facts, memory),
    )


def _build_devices(vmi: VirtualMachineInstance, facts: Facts, memory: GuestMemory) -> Devices:
    return Devices(
        controllers=build_controllers(vmi),
        disks=build_disks(vmi, facts),
        interfaces=build_interfaces(vmi, facts),
        serials=build_serials(vmi),
        consoles=build_consoles(vmi),
        channels=build_channels(),
        graphics=build_graphics(vmi),
        videos=build_videos(vmi),
        rng=build_rng(vmi),
        memory_device=build_memory_device(memory),
        memory_balloon=build_memory_balloon(vmi),
        watchdog=build_watchdog(vmi),
        panics=build_panics(vmi),
    )
