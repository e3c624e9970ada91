# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launcher Pods of a former VMI of the same name: somebody removed its finalizer, and its guest may still run. Pure.

The garbage collector deletes such a Pod. The new VMI gets no Pod of its own before it is gone.
"""

from __future__ import annotations

from collections.abc import Iterable

from controlplane.api.objects.pod import Failure, Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.world import World, is_controlled


def select_predecessors(pods: Iterable[Pod], vmi: VirtualMachineInstance) -> tuple[Pod, ...]:
    """Return the Pods, among those of the VMI's name, that another VMI had and that may still have its guest."""
    granted = vmi.status.active_pods
    return tuple(pod for pod in pods if not (is_controlled(pod, vmi) or pod.uid in granted or pod.is_over))


def wait_for_predecessor(world: World) -> Failure | None:
    """Return what a VMI without a Pod waits for; None if there is no predecessor."""
    if not world.predecessors:
        return None
    pod = world.predecessors[0]
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    text = (
        f"launcher Pod {pod.metadata.name}{where} of a former instance of this name is not gone, and its guest may "
        "still run: wait until it is; if its node is silent, see that the node is off, then delete the Pod by force"
    )
    return Failure("PredecessorExists", text)
