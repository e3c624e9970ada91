# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processors."""

from __future__ import annotations

from libvirt_domain.model.cpu import Cpu, Topology, VcpuCount

from controlplane.api.objects.guest_memory import GuestMemory
from controlplane.api.objects.vmi.domain import Cpu as CpuSpec
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.builders.facts import Facts
from controlplane.domain.builders.memory import build_numa

_HOST_MODEL = "host-model"
_HOST_PASSTHROUGH = "host-passthrough"


def build_vcpu(vmi: VirtualMachineInstance) -> VcpuCount:
    """Return how many virtual CPUs the guest has, and the most that it can have while it runs."""
    spec = _spec(vmi)
    current = spec.vcpus if spec.vcpus < spec.most_vcpus else None
    return VcpuCount(placement="static", current=current, most=spec.most_vcpus)


def build_cpu(vmi: VirtualMachineInstance, facts: Facts, memory: GuestMemory) -> Cpu:
    """Return the processor that the guest sees.

    Under emulation there is no host processor: everything that QEMU can emulate takes its place. A named model is
    emulated as far as possible (check=none), where libvirt would refuse to start.
    """
    spec = _spec(vmi)
    topology = Topology(
        sockets=max(spec.sockets, spec.max_sockets, 1), cores=max(spec.cores, 1), threads=max(spec.threads, 1)
    )
    numa = build_numa(memory, spec.most_vcpus)
    if spec.model in ("", _HOST_MODEL, _HOST_PASSTHROUGH):
        mode = (spec.model or _HOST_MODEL) if facts.is_kvm else "maximum"
        return Cpu(mode=mode, topology=topology, numa=numa)
    check = None if facts.is_kvm else "none"
    return Cpu(mode="custom", match="exact", check=check, model=spec.model, topology=topology, numa=numa)


def _spec(vmi: VirtualMachineInstance) -> CpuSpec:
    return vmi.spec.domain.cpu or CpuSpec()
