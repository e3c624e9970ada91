# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual CPUs that a running guest is given: which, and what is said of it. Pure.

Only in a Pod that was made for as many: its node has room for them, and its limits know them. A guest gets there by a
migration. None are taken away: no guest need let go of one.
"""

from __future__ import annotations

import msgspec

from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.api.objects.vmi.status import CpuTopology
from controlplane.virt_handler.vmi.world import Launcher


def missing_cpus(vmi: VirtualMachineInstance, launcher: Launcher) -> int:
    """Return how many virtual CPUs the guest is to have, where it has fewer and can be given them here; else 0."""
    cpu, has = vmi.spec.domain.cpu, _has(vmi, launcher)
    if cpu is None or not has or not has < cpu.vcpus <= launcher.pod.vcpus:
        return 0
    return cpu.vcpus


def with_cpus(
    vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, launcher: Launcher
) -> VirtualMachineInstanceStatus:
    """Say of a guest that has got the virtual CPUs of its spec that it has them."""
    cpu, told = vmi.spec.domain.cpu, new.current_cpu_topology
    if cpu is None or told is None or told.vcpus == cpu.vcpus or _has(vmi, launcher) != cpu.vcpus:
        return new
    return msgspec.structs.replace(new, current_cpu_topology=CpuTopology.of(cpu))


def _has(vmi: VirtualMachineInstance, launcher: Launcher) -> int:
    """Return how many it has; 0 while that is not known."""
    cpu, observed = vmi.spec.domain.cpu, launcher.sighting.observed
    if cpu is None or observed is None:
        return 0
    return observed.vcpus or cpu.most_vcpus
