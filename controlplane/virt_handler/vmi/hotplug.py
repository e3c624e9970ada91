# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU and memory hotplug of a running guest: what to plug, and what the status reports. Pure.

A guest gets more CPUs or memory only in a Pod that was created for the new size: the Pod's requests and limits cover
it. A migration takes the guest to such a Pod. CPUs are never unplugged. Memory shrinks down to its size at boot.
"""

from __future__ import annotations

import msgspec

from controlplane.api.objects import quantity
from controlplane.api.objects.guest_memory import amount_in_bytes, guest_bytes, most_bytes
from controlplane.api.objects.meta import Quantity
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.api.objects.vmi.status import CpuTopology
from controlplane.virt_handler.vmi.world import Launcher, LauncherStatus


def missing_cpus(vmi: VirtualMachineInstance, launcher: Launcher) -> int:
    """Return the number of virtual CPUs that the guest gets in this Pod; 0 if there is nothing to plug."""
    cpu, count = vmi.spec.domain.cpu, _current_cpus(vmi, launcher)
    if cpu is None or not count or not count < cpu.vcpus <= launcher.pod.vcpus:
        return 0
    return cpu.vcpus


def with_cpus(
    vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, launcher: Launcher
) -> VirtualMachineInstanceStatus:
    """Report the CPU topology that the guest has now. The spec may already ask for another one."""
    cpu, reported, count = vmi.spec.domain.cpu, new.current_cpu_topology, _current_cpus(vmi, launcher)
    if cpu is None or reported is None or count in (0, reported.vcpus):
        return new
    observed, wanted = launcher.status.observed, CpuTopology.of(cpu)
    sockets, remainder = divmod(count, wanted.cores * wanted.threads)
    is_counted = count == cpu.vcpus or (observed is not None and observed.vcpus > 0)
    if not is_counted or not sockets or remainder:
        return new
    return msgspec.structs.replace(new, current_cpu_topology=msgspec.structs.replace(wanted, sockets=sockets))


def _current_cpus(vmi: VirtualMachineInstance, launcher: Launcher) -> int:
    """Return how many virtual CPUs the guest has; 0 while that is unknown."""
    cpu, observed = vmi.spec.domain.cpu, launcher.status.observed
    if cpu is None or observed is None:
        return 0
    return observed.vcpus or cpu.most_vcpus


def missing_memory(vmi: VirtualMachineInstance, launcher: Launcher) -> int | None:
    """Return the memory to request from the guest, in bytes beyond its size at boot; None if the request is right."""
    boot, observed, domain = _at_boot(vmi), launcher.status.observed, vmi.spec.domain
    if not boot or observed is None or observed.requested_bytes is None or not most_bytes(domain):
        return None
    wanted = guest_bytes(domain) - boot
    if wanted == observed.requested_bytes or not 0 <= wanted <= most_bytes(domain) - boot:
        return None
    # The kubelet kills a launcher whose guest takes more memory than the Pod's limit.
    return wanted if launcher.pod.guest_bytes == guest_bytes(domain) else None


def with_memory(
    vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, launcher: Launcher
) -> VirtualMachineInstanceStatus:
    """Report how much memory is requested from the guest, and how much it has.

    A domain that an older virt-handler defined has no memory device: nothing is requested from it.
    """
    boot, observed, reported = _at_boot(vmi), launcher.status.observed, new.memory
    most = most_bytes(vmi.spec.domain)
    if not boot or observed is None or reported is None or not most:
        return new
    room = max(0, most - boot)
    spellings = (reported.guest_at_boot, vmi.spec.domain.memory.guest if vmi.spec.domain.memory else None)
    if observed.requested_bytes is None:
        # A requested amount would cause a migration to a bigger Pod, where the guest still could not grow.
        updated = msgspec.structs.replace(reported, guest_requested=None)
    else:
        updated = msgspec.structs.replace(
            reported,
            guest_current=_as_written(boot + min(observed.taken_bytes, room), spellings),
            guest_requested=_as_written(boot + min(observed.requested_bytes, room), spellings),
        )
    return new if updated == reported else msgspec.structs.replace(new, memory=updated)


def is_to_be_still(status: LauncherStatus) -> bool:
    """Tell whether the guest must be paused while its memory is sent (docs/adr/0017).

    Under emulation, QEMU crashes when a guest writes to hotplugged memory during a migration.
    """
    observed = status.observed
    return observed is not None and not observed.is_kvm and bool(observed.requested_bytes or observed.taken_bytes)


def _at_boot(vmi: VirtualMachineInstance) -> int:
    return 0 if vmi.status.memory is None else amount_in_bytes(vmi.status.memory.guest_at_boot)


def _as_written(count: int, names: tuple[Quantity | None, ...]) -> Quantity:
    """Return an amount as one of the given quantities spells it, else in the shortest form."""
    return next(
        (spelling for spelling in names if spelling is not None and amount_in_bytes(spelling) == count),
        quantity.from_bytes(count),
    )
