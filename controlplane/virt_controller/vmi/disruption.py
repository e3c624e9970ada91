# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The condition of a VMI whose launcher Pod is taken from it: evicted, preempted or deleted. Pure.

It stays until the VMI is gone: afterwards nothing else shows why the guest was shut down.
"""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.pod import Pod, reason_word
from controlplane.virt_controller.vmi.world import World

POD_DELETED = "PodDeleted"


def with_disruption(listed: conditions.Conditions, world: World, stamp: str) -> conditions.Conditions:
    """Set the condition when the guest's Pod is ended from outside, and remove it when the guest is in another Pod.

    The deletion of the VMI deletes the Pod as well, which says nothing.
    """
    pod = world.source
    if pod is None or world.is_deleting:
        return listed
    return conditions.put_or_remove(listed, condition_types.DISRUPTION_TARGET, _disruption(pod), stamp)


def _disruption(pod: Pod) -> Condition | None:
    """Return the condition; its reason is that of the Pod's own one, which API server, scheduler and kubelet set before
    they end the Pod.
    """
    if not pod.is_evicted:
        return None
    kind, of_pod = condition_types.DISRUPTION_TARGET, pod.status.conditions
    target = conditions.find(of_pod, kind) if conditions.is_true(of_pod, kind) else None
    reason, how = (POD_DELETED, "deleted") if target is None else (reason_word(target.reason), "evicted")
    where = f" on node {pod.spec.node_name}" if pod.spec.node_name else ""
    message = f"launcher Pod {pod.metadata.name}{where} was {how}: its guest is shut down"
    return Condition(type=kind, status="True", reason=reason, message=message)
