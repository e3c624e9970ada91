# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual CPUs that a running guest is to get, and does not have: what is said of them, and what is done. Pure.

A guest gets them in a Pod that was made for them. So it moves to one, and virt-handler plugs them in there.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance


def cpu_change(vmi: VirtualMachineInstance) -> Condition | None:
    """Say that the guest is to have other virtual CPUs than it has; None when it has those."""
    cpu, has = vmi.spec.domain.cpu, vmi.status.current_cpu_topology
    if vmi.status.phase != RUNNING or cpu is None or has is None or not cpu.max_sockets or has.vcpus == cpu.vcpus:
        return None
    text = f"the guest has {has.vcpus} virtual CPUs and is to have {cpu.vcpus}: it gets them by a migration"
    return Condition(type=condition_types.HOT_VCPU_CHANGE, status="True", message=text)


def reason_to_migrate(vmi: VirtualMachineInstance, pod: Pod | None) -> str | None:
    """Say why the guest is to leave the Pod that it is in; None: it is not, or gets its virtual CPUs where it is."""
    cpu, change = vmi.spec.domain.cpu, cpu_change(vmi)
    if cpu is None or change is None or (pod is not None and pod.vcpus >= cpu.vcpus):
        return None
    return change.message
