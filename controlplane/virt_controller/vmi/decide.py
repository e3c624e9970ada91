# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VirtualMachineInstance: pure.

Never two: a run has one Pod, its name is fixed by UID and attempt, the attempt is in the status before the Pod is made,
and the guest is started only in the Pod that status.activePods names, which is written once. What is irreversible
(declaring the Pod lost, letting go of the VMI) rests on the API server's word, never on a cache's silence.
"""

from __future__ import annotations

from kubevirt_api.names import NODE_NAME, VM_FINALIZER, VMI_FINALIZER

from controlplane.api.objects.phase import AFTER_HAND_OVER, NEVER_STARTED, is_final
from controlplane.api.objects.pod import Pod
from controlplane.engine.plan import Plan
from controlplane.virt_controller.vmi.world import (
    Action,
    AddFinalizer,
    ConfirmAbsence,
    CreatePod,
    DeletePod,
    LabelNode,
    RemoveFinalizers,
    World,
)

SQUATTER_SECONDS = 35.0
"""Pods without our label are not watched: look whether a foreign one freed its name, after the overlay forgot it."""


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    phase = world.vmi.status.phase
    if world.is_deleting:
        return _end(world)
    if is_final(phase):
        return Plan(tuple(_delete(pod, "the run is over and it was never used") for pod in _idle(world)))
    if VMI_FINALIZER not in world.vmi.metadata.finalizers:
        return Plan((AddFinalizer(because="its Pod must be gone before it is"),))
    if phase in AFTER_HAND_OVER:
        return _watch_over(world)
    return _bring_to_node(world)


def _bring_to_node(world: World) -> Plan[Action]:
    pod, status = world.pod, world.vmi.status
    if world.squatter:
        return Plan(look_again_in=SQUATTER_SECONDS)
    if world.problems or status.epoch == 0:
        return Plan()  # the status comes first: what is wrong, or which attempt this is
    if pod is None:
        return Plan((CreatePod(world.epoch, because="the run has no launcher Pod yet"),))
    node = pod.spec.node_name
    if node and not pod.is_deleting and not pod.is_over and world.vmi.metadata.labels.get(NODE_NAME) != node:
        return Plan((LabelNode(node, because="its Pod was placed there"),))
    return Plan()


def _watch_over(world: World) -> Plan[Action]:
    if world.pod is None and not world.is_absence_confirmed:
        return Plan((ConfirmAbsence(because="its Pod is not in the cache"),))
    return Plan()


def _end(world: World) -> Plan[Action]:
    if not {VMI_FINALIZER, VM_FINALIZER} & set(world.vmi.metadata.finalizers):
        return Plan()
    if world.pods:
        return Plan(tuple(_delete(pod, "its VMI is deleted") for pod in _staying(world)))
    if not world.is_absence_confirmed:
        return Plan((ConfirmAbsence(because="the VMI can only go after its Pod"),))
    if not is_final(world.vmi.status.phase):
        return Plan()  # the status comes first: how the run ended
    return Plan((RemoveFinalizers(because="the run is over and no Pod is left"),))


def _idle(world: World) -> list[Pod]:
    """Pods of a finished run in which nothing was ever started: nobody else will end them."""
    granted = () if world.vmi.status.reason in NEVER_STARTED else world.vmi.status.active_pods
    return [pod for pod in _staying(world) if not pod.is_over and pod.metadata.uid not in granted]


def _staying(world: World) -> list[Pod]:
    return [pod for pod in world.pods if not pod.is_deleting and pod.metadata.uid not in world.deletes_sent]


def _delete(pod: Pod, because: str) -> DeletePod:
    return DeletePod(pod.metadata.name, pod.metadata.uid, because=because)
