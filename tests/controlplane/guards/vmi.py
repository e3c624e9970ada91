# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI's controller: never two, nothing taken for dead, every write on what was seen."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/vmi/decide.py"
_EVIDENCE = "controlplane/virt_controller/vmi/evidence.py"
_STATUS = "controlplane/virt_controller/vmi/status.py"
_BY_DECIDE = ("tests/controlplane/virt_controller/vmi/test_decide.py",)
_BY_EVIDENCE = ("tests/controlplane/virt_controller/vmi/test_evidence.py",)
_BY_STATUS = ("tests/controlplane/virt_controller/vmi/test_status.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="controlplane/virt_controller/vmi/reconciler.py",
        line="            if found.uid in granted or (is_any_enough and is_controlled(found, vmi)):",
        without="            if is_controlled(found, vmi) and (found.uid in granted or is_any_enough):",
        because="A granted Pod that somebody took the owner off would be told to be absent, and its guest runs.",
        tests=("tests/controlplane/virt_controller/vmi/test_reconciler.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vmi/reconciler.py",
        line="            memory.begun = max(memory.begun, action.attempt)  # it may be gone",
        without="            # it may be gone",
        because="A Pod that another leader made, and somebody deleted, would be made again.",
        tests=("tests/controlplane/virt_controller/vmi/test_reconciler.py",),
    ),
    Guard(
        file=_DECIDE,
        line="    rule = RULES.get(world.vmi.status.phase)\n",
        without="    rule = RULES.get(world.vmi.status.phase, RULES[PENDING])\n",
        because="A phase that this version does not know would be begun anew, with a second Pod.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if VMI_FINALIZER not in world.vmi.metadata.finalizers:",
        without="    if False:",
        because="Without the finalizer the VMI's name is free while its Pod runs.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.vmi.status.attempt == 0:",
        without="    if False:",
        because="A Pod that exists before its attempt is recorded is unknown to the next leader.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.problems:\n        return Plan((Tell(",
        without="    if False:\n        return Plan((Tell(",
        because="A spec that admission would have refused must not become a Pod.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not is_marked(pod, world.vmi):\n        return _claim(pod)",
        without="    if False:\n        return _claim(pod)",
        because="A Pod without our label or owner is granted the start and never watched or ended again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if pod.is_deleting or pod.is_over or pod.compute.terminated is not None:",
        without="    if pod.is_over or pod.compute.terminated is not None:",
        because="A Pod that is being deleted must not be granted the start.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if pod.is_deleting or pod.is_over or pod.compute.terminated is not None:",
        without="    if pod.is_deleting:",
        because="A Pod whose launcher has ended must not be granted the start.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if pod.is_up:",
        without="    if True:",
        because="The start is granted to a launcher that is up, on the node where it is, not to a hope.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not world.was_begun:",
        without="    if True:",
        because=("A Pod that was deleted before the grant would be made again with the same name, again and again."),
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=(
            "    if not world.is_absence_confirmed:\n"
            '        return Plan((LookForPods(because="its Pod is not in the cache"),))'
        ),
        without='    if False:\n        return Plan((LookForPods(because="its Pod is not in the cache"),))',
        because="A cache's silence must not be taken for the end of the Pod before the hand-over.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if isinstance(evidence, Alive):",
        without="    if False:",
        because="Nobody would ask the API server for a Pod that the cache has lost, and the VMI hangs.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not {VMI_FINALIZER, VM_FINALIZER} & set(world.vmi.metadata.finalizers):",
        without="    if False:",
        because="A VMI that we let go of already, held by somebody else's finalizer, would be written for ever.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.pods:\n        return _end_pods(world)",
        without="    if _staying(world):\n        return _end_pods(world)",
        because="A VMI must stay while a Pod of it is still going.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if unwatched is not None:\n        return _claim(unwatched)\n",
        without="",
        because="The end of a Pod that lost its label would wake nobody.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=(
            "    if not world.is_absence_confirmed:\n"
            '        return Plan((LookForPods(because="the VMI can only go after its Pod"),))'
        ),
        without=('    if False:\n        return Plan((LookForPods(because="the VMI can only go after its Pod"),))'),
        because="The finalizer must not go on a cache's word that no Pod is left.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if is_final(world.vmi.status.phase):\n        return Plan((RemoveFinalizers(",
        without="    if True:\n        return Plan((RemoveFinalizers(",
        because="A deleted VMI must not go before it is known how its run ended.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.is_granted:\n        return _look_for_proof(world)",
        without="    if False:\n        return _look_for_proof(world)",
        because="Nobody would look for the node of a deleted VMI whose Pod is lost, and it stays for ever.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    SUCCEEDED: Rule(_clean_up),",
        without="    SUCCEEDED: Rule(_bring_to_node),",
        because="A run that is over must not be brought to a node again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    granted = () if world.vmi.status.reason in LEFT_WAITING else world.vmi.status.active_pods",
        without="    granted = ()",
        because="The Pod that had the guest ends itself: deleting it would kill a guest that still shuts down.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="if not pod.is_deleting and pod.uid not in world.deletes_sent]",
        without="if not pod.is_deleting]",
        because="A Pod whose deletion was accepted would be deleted again until the cache has it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_EVIDENCE,
        line="    if not is_absence_confirmed:\n        return Alive()\n",
        without="",
        because="A Pod that the cache does not show would be taken for gone.",
        tests=_BY_EVIDENCE,
    ),
    Guard(
        file=_EVIDENCE,
        line="    if node is not None and node.is_gone:",
        without="    if node is None or node.is_gone:",
        because="A node of which nothing is known is no proof that its guests ended.",
        tests=_BY_EVIDENCE,
    ),
    Guard(
        file=_EVIDENCE,
        line="    if node is not None and node.is_gone:",
        without="    if node is not None and (node.is_gone or node.is_unseen):",
        because="That the cache does not show a Node is no proof that it is gone.",
        tests=_BY_EVIDENCE,
    ),
    Guard(
        file=_EVIDENCE,
        line="    return Unknown(\n        Trouble(",
        without="    return Dead(\n        FAILED, Trouble(",
        because=(
            "That the API server does not know the Pod any more is no proof of death: its node may run the guest on."
        ),
        tests=_BY_EVIDENCE,
    ),
    Guard(
        file=_EVIDENCE,
        line="return Dead(SUCCEEDED) if pod.has_succeeded else",
        without="return Dead(SUCCEEDED) if True else",
        because="A launcher that failed must not be told as a guest that shut down.",
        tests=_BY_EVIDENCE,
    ),
    Guard(
        file=_STATUS,
        line="    if is_final(old.phase):\n        return _no_longer_ready(world)\n",
        without="",
        because="A final phase would be left when later news come.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    if not is_known(old.phase):\n        return _not_understood(world)\n",
        without="",
        because="A phase that this version does not know would be moved by it.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    return step if may_move(before, step.phase) else Step(before)",
        without="    return step",
        because="Only the moves of the one table of phases may be made.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="        active_pods={pod.uid: node},",
        without="        active_pods={**old.active_pods, pod.uid: node},",
        because="Exactly one Pod has the start; one of an earlier grant has it no more.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="        epoch=old.epoch + 1,\n",
        without="",
        because="Without an epoch of its own a run's owner cannot be told from the one before.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="        return ended if world.is_absence_confirmed else Step(phase)",
        without="        return ended",
        because="A deleted VMI would be called over while a Pod of it may start its guest.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    if world.was_begun and world.is_absence_confirmed:",
        without="    if world.was_begun:",
        because="A Pod that the cache does not show yet would fail its run.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    return Step(SCHEDULING if VMI_FINALIZER in world.vmi.metadata.finalizers else phase)",
        without="    return Step(SCHEDULING)",
        because="The attempt must not be recorded before the finalizer protects what follows.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line=(
            "    if pod.is_over or pod.compute.terminated is not None:\n"
            "        return Step(FAILED, find_end_trouble(pod))\n"
        ),
        without="",
        because="A launcher that ended before the grant leaves its VMI Scheduling for ever.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="        case Unknown(trouble=trouble):\n            return Step(UNKNOWN, trouble)",
        without="        case Unknown(trouble=trouble):\n            return Step(FAILED, trouble)",
        because="What nobody has confirmed is unknown, not failed: a failed VMI is started again elsewhere.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    for told in (condition_types.POD_SCHEDULED, condition_types.SYNCHRONIZED):",
        without="    for told in (condition_types.POD_SCHEDULED,):",
        because="A trouble of before the hand-over is nobody's to take back after it.",
        tests=_BY_STATUS,
    ),
)
