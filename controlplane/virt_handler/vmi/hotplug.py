# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual CPUs and memory that a running guest is given: which, and what is said of it. Pure.

Only in a Pod that was made for as many, or as much: its node has room for them, and its limits know them. A guest gets
there by a migration. No CPUs are taken away: no guest need let go of one. Memory is, down to what it began with.
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
    """Return how many virtual CPUs the guest is to have, where it has fewer and can be given them here; else 0."""
    cpu, has = vmi.spec.domain.cpu, _has(vmi, launcher)
    if cpu is None or not has or not has < cpu.vcpus <= launcher.pod.vcpus:
        return 0
    return cpu.vcpus


def with_cpus(
    vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, launcher: Launcher
) -> VirtualMachineInstanceStatus:
    """Say how many virtual CPUs a guest has, which may be wanted to have still others by now."""
    cpu, told, has = vmi.spec.domain.cpu, new.current_cpu_topology, _has(vmi, launcher)
    if cpu is None or told is None or has in (0, told.vcpus):
        return new
    observed, whole = launcher.status.observed, CpuTopology.of(cpu)
    sockets, rest = divmod(has, whole.cores * whole.threads)
    is_counted = has == cpu.vcpus or (observed is not None and observed.vcpus > 0)
    if not is_counted or not sockets or rest:
        return new
    return msgspec.structs.replace(new, current_cpu_topology=msgspec.structs.replace(whole, sockets=sockets))


def _has(vmi: VirtualMachineInstance, launcher: Launcher) -> int:
    """Return how many it has; 0 while that is not known."""
    cpu, observed = vmi.spec.domain.cpu, launcher.status.observed
    if cpu is None or observed is None:
        return 0
    return observed.vcpus or cpu.most_vcpus


def missing_memory(vmi: VirtualMachineInstance, launcher: Launcher) -> int | None:
    """Return how many bytes the guest is to be asked to have beside what it began with; None where it is right."""
    boot, observed, domain = _at_boot(vmi), launcher.status.observed, vmi.spec.domain
    if not boot or observed is None or observed.requested_bytes is None or not most_bytes(domain):
        return None
    wanted = guest_bytes(domain) - boot
    if wanted == observed.requested_bytes or not 0 <= wanted <= most_bytes(domain) - boot:
        return None
    return wanted if launcher.pod.guest_bytes == guest_bytes(domain) else None


def with_memory(
    vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, launcher: Launcher
) -> VirtualMachineInstanceStatus:
    """Say how much memory a guest is asked to have, and has, that can come to have more than it began with.

    One whose domain has no device for it, by a virt-handler that knew none, is asked for nothing.
    """
    boot, observed, told = _at_boot(vmi), launcher.status.observed, new.memory
    most = most_bytes(vmi.spec.domain)
    if not boot or observed is None or told is None or not most:
        return new
    room = max(0, most - boot)
    names = (told.guest_at_boot, vmi.spec.domain.memory.guest if vmi.spec.domain.memory else None)
    if observed.requested_bytes is None:
        memory = msgspec.structs.replace(told, guest_requested=None)
    else:
        memory = msgspec.structs.replace(
            told,
            guest_current=_spelled(boot + min(observed.taken_bytes, room), names),
            guest_requested=_spelled(boot + min(observed.requested_bytes, room), names),
        )
    return new if memory == told else msgspec.structs.replace(new, memory=memory)


def is_to_be_still(status: LauncherStatus) -> bool:
    """Tell whether a guest is not to write while its memory is sent (docs/adr/0017): QEMU's emulation dies of it."""
    observed = status.observed
    return observed is not None and not observed.is_kvm and bool(observed.requested_bytes or observed.taken_bytes)


def _at_boot(vmi: VirtualMachineInstance) -> int:
    return 0 if vmi.status.memory is None else amount_in_bytes(vmi.status.memory.guest_at_boot)


def _spelled(count: int, names: tuple[Quantity | None, ...]) -> Quantity:
    """Return an amount as somebody has written it already, else in the shortest way."""
    return next((one for one in names if one is not None and amount_in_bytes(one) == count), quantity.from_bytes(count))
