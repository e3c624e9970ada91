# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU hotplug: the condition HotVCPUChange, and the reason to migrate. Pure.

A guest gets more virtual CPUs only in a Pod that was sized for them: it migrates to such a Pod, and virt-handler
plugs the CPUs in there.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects.meta import Condition
from controlplane.api.objects.phase import RUNNING
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance


def cpu_change(vmi: VirtualMachineInstance) -> Condition | None:
    """Return HotVCPUChange while a running guest's virtual CPUs differ from its spec."""
    cpu, current = vmi.spec.domain.cpu, vmi.status.current_cpu_topology
    if vmi.status.phase != RUNNING or cpu is None or current is None or not cpu.max_sockets:
        return None
    if current.vcpus == cpu.vcpus:
        return None
    text = f"the guest has {current.vcpus} virtual CPUs and is to have {cpu.vcpus}: it gets them by a migration"
    return Condition(type=condition_types.HOT_VCPU_CHANGE, status="True", message=text)


def cpu_migration_reason(vmi: VirtualMachineInstance, pod: Pod | None) -> str | None:
    """Return why the guest has to migrate. None: no change, or its Pod is already large enough."""
    cpu, change = vmi.spec.domain.cpu, cpu_change(vmi)
    if cpu is None or change is None or (pod is not None and pod.vcpus >= cpu.vcpus):
        return None
    return change.message
