# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VMI's controller: whose a Pod is, what is remembered of it, and the preconditions of every write."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_WORLD = "controlplane/virt_controller/vmi/world.py"
_RECONCILER = "controlplane/virt_controller/vmi/reconciler.py"
_MEMORY = "controlplane/virt_controller/vmi/memory.py"
_DECIDE = "controlplane/virt_controller/vmi/decide.py"
_BY_WORLD = (
    "tests/controlplane/virt_controller/vmi/test_world.py",
    "tests/controlplane/virt_controller/vmi/test_decide.py",
    "tests/controlplane/virt_controller/vmi/test_status.py",
)
_BY_RECONCILER = ("tests/controlplane/virt_controller/vmi/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_WORLD,
        line="return Role.SOURCE if not granted or pod.uid in granted else Role.TARGET",
        without="return Role.SOURCE",
        because="A later Pod of the run would be taken for the granted one.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="if self.vmi.status.active_pods or pod.metadata.name == name), None)",
        without="), None)",
        because="A Pod of an earlier attempt must not be granted the start.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="return is_watched(pod) and owner is not None and (owner.name, owner.uid)",
        without="return is_watched(pod) and True or (owner.name, owner.uid)",
        because="A Pod that names another owner wakes nobody and is ended by nobody.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="    return pod.owner is not None and pod.owner.uid == vmi.metadata.uid",
        without=(
            "    return any(one.controller and one.uid == vmi.metadata.uid for one in pod.metadata.owner_references)"
        ),
        because="Admission keeps a VMI from being named as a Pod's controller, and not its UID with another kind.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="    return pod.owner is not None and pod.owner.uid == vmi.metadata.uid",
        without="    return any(one.uid == vmi.metadata.uid for one in pod.metadata.owner_references)",
        because="Only the controller among a Pod's owners may act on it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="    return pod.owner is not None and pod.owner.uid == vmi.metadata.uid",
        without="    return pod.owner is not None",
        because="A Pod of another VMI, or of a former one of this name, is not ours.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="is_absence_confirmed=self.source is None and self.is_absence_confirmed",
        without="is_absence_confirmed=self.is_absence_confirmed",
        because="A Pod that is there again after an answer that it was not would count as gone.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="(pod for pod in self.last_words if pod.uid in granted)",
        without="(pod for pod in self.last_words)",
        because="The end of another Pod of the VMI is no proof about the granted one.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="    tail = f\"{vmi.metadata.uid.replace('-', '')[:8]}-{attempt}\"",
        without="    tail = f\"{vmi.metadata.uid.replace('-', '')[:8]}-{len(vmi.status.active_pods)}\"",
        because="A Pod's name is its lock: one name for each attempt, always the same.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_RECONCILER,
        line="        if not (self._vmis.synced and self._pods.synced and self._nodes.synced):",
        without="        if False:",
        because="While a cache is not complete, nothing may be concluded from what it does not show.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            is_absence_confirmed=question(vmi, memory) in memory.absence,",
        without="            is_absence_confirmed=bool(memory.absence),",
        because="An answer about one grant, or asked before the deletion, is none about another.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_MEMORY,
        line="granted, attempts(vmi)[-1], was_begun",
        without="granted, 0, was_begun",
        because="That the Pod of one attempt is gone says nothing of the next one's, which is there.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_MEMORY,
        line="granted, attempts(vmi)[-1], was_begun",
        without="granted, attempts(vmi)[-1], True",
        because="What was answered before a Pod was made would be its death.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/vmi/decide.py",
        line="        if world.attempt > 1 and not world.is_absence_confirmed:",
        without="        if False:",
        because="The Pod of the attempt before may only have lost our label: there would be two.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_MEMORY,
        line="        if memory is None or memory.uid != vmi.metadata.uid:",
        without="        if memory is None:",
        because="A VMI must not inherit what was learned about the one of its name before.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_MEMORY,
        line="if pod.uid in memory.granted and (pod.is_over",
        without="if (pod.is_over",
        because="The last words of a stranger's Pod must be neither kept nor taken for those of ours.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="if is_controlled(pod, vmi) or pod.uid in granted)",
        without="if True)",
        because="A Pod that merely names the VMI among its owners is not ours to start or to delete.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="if is_controlled(pod, vmi) or pod.uid in granted)",
        without="if is_controlled(pod, vmi))",
        because="A granted Pod that lost its owner reference still has the guest.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            if not is_controlled(decode(await self._api.get(POD, key), Pod), vmi):",
        without="            if False:",
        because="A name that somebody else's Pod holds would be waited for in silence for ever.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="patch, uid=pod.uid, resource_version=version)",
        without="patch, uid=pod.uid)",
        because="Owners that were written meanwhile would be lost by claiming the Pod.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="for one in pod.metadata.owner_references if not one.controller]",
        without="for one in pod.metadata.owner_references]",
        because="A Pod has one controller, and the API server refuses a second one.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            await self._api.delete(POD, key, uid=action.uid)",
        without=(
            "            fresh = await self._api.get(POD, key)\n"
            '            await self._api.delete(POD, key, uid=fresh["metadata"]["uid"])'
        ),
        because="A Pod that has taken the name meanwhile is not the one that was decided about.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=vmi.metadata.resource_version,\n",
        without="",
        because="What was decided on an older state must not be written over a newer one.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            uid=vmi.metadata.uid,\n        )",
        without="        )",
        because="A VMI that has taken the name meanwhile is not the one that was decided about.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="    return range(max(1, current - LOOKED_BACK), current + 1)",
        without="    return range(max(1, current - 1_000), current + 1)",
        because="A number that somebody else wrote into the status must not cost a million reads.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="    return range(max(1, current - LOOKED_BACK), current + 1)",
        without="    return range(current, current + 1)",
        because="A Pod of the attempt before may still be going.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_MEMORY,
        line="        return self.begun >= max(attempt, 1)",
        without="        return self.begun > 0",
        because="A further attempt would be over before it is begun: the Pod of the one before it is gone.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="was_given(KVM_DEVICE) and not is_placed",
        without="was_given(KVM_DEVICE)",
        because="A Pod that has a node may have its launcher up; it would be given up for nothing.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_WORLD,
        line="        if pod is None or self.is_deleting or pod.is_deleting or self.vmi.status.phase != SCHEDULING:\n",
        without="        if pod is None:\n",
        because="After the hand-over a further attempt would be another run beside the one that was granted.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.superseded:\n",
        without="    if False:\n",
        because="The next Pod of a run would be made beside the one before it.",
        tests=_BY_WORLD,
    ),
    Guard(
        file=_MEMORY,
        line="        is_current = self.nodes_read.get(name) == node.metadata.resource_version",
        without="        is_current = name in self.nodes_read",
        because="What the API server said of an earlier state of a Node is no word about this one.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            is_any_enough = world.is_deleting or not granted",
        without="            is_any_enough = world.is_deleting",
        because="A Pod that is found is not absent, before the grant either: its run would fail for nothing.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        memory.begun = max(memory.begun, action.attempt)\n",
        without="",
        because="A Pod that was made and is gone before it was seen would be made again.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="return bool(self.vmi.status.active_pods) or self.vmi.status.phase in AFTER_HAND_OVER",
        without="return bool(self.vmi.status.active_pods)",
        because="A run that was handed over ends by proof, whatever became of the word to whom.",
        tests=_BY_WORLD,
    ),
    Guard(
        file="controlplane/api/objects/phase.py",
        line="SCHEDULED: frozenset({RUNNING, SUCCEEDED, FAILED, UNKNOWN}),",
        without="SCHEDULED: frozenset({RUNNING, SUCCEEDED, FAILED}),",
        because="A run whose Pod is lost before its guest was seen up would be Scheduled for ever, and say nothing.",
        tests=("tests/controlplane/api/objects/test_phase.py",),
    ),
)
