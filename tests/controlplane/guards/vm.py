# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM's controller: an instance is started and stopped for a cause in an object, and only if it is ours."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/vm/decide.py"
_OWNER = "controlplane/virt_controller/owner.py"
_WORLD = "controlplane/virt_controller/vm/world.py"
_QUEUE = "controlplane/api/objects/requests.py"
_REQUESTS = "controlplane/virt_controller/vm/requests.py"
_BY_DECIDE = ("tests/controlplane/virt_controller/vm/test_decide.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/vm/test_reconciler.py",)
_BY_ONE_START = ("tests/controlplane/virt_controller/vm/test_one_start.py",)
_BY_REQUESTS = (
    "tests/controlplane/virt_controller/vm/test_requests.py",
    "tests/controlplane/virt_controller/vm/test_decide.py",
)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_DECIDE,
        line="    if not world.is_strategy_known:\n        return Plan()",
        without="    if False:\n        return Plan()",
        because="A run strategy of a newer version must not be guessed at.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if VM_FINALIZER not in world.vm.metadata.finalizers:\n        return AddFinalizer",
        without="    if False:\n        return AddFinalizer",
        because="Without the finalizer a VM goes before its instance, and its name is free too early.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="world.vmi is not None and world.vmi.metadata.deletion_timestamp is None:",
        without="world.vmi is not None:",
        because="An instance that is going must not be adopted.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if because is None or world.claim is not Claim.NONE:",
        without="    if because is None:",
        because="A name that somebody else's instance holds must be waited for.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if delay > 0:\n        return Plan(look_again_in=delay)\n",
        without="",
        because="A machine that fails at once would be started again at once, for ever.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="        return Plan(look_again_in=delay)",
        without="        return Plan()",
        because="Nobody comes back when the wait is over.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if has_stale_stop(world):\n        return",
        without="    if False:\n        return",
        because="A stop that is done would stop the next instance, too.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.is_stopping:\n        return Plan()\n    if because is None:",
        without="    if because is None:",
        because="An instance that is going would be deleted again and again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='        case "Always" if is_final(phase):',
        without=(
            '        case "Always" if is_final(phase) or str(world.vm.metadata.generation) != '
            'own.metadata.annotations.get("kubevirt.io/vm-generation", str(world.vm.metadata.generation)):'
        ),
        because="A running machine must not be deleted because its template has changed.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='        case "RerunOnFailure" if phase == FAILED:',
        without='        case "RerunOnFailure" | "Once" if phase == FAILED:',
        because="A machine that is to run once must not be run again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='        case "RerunOnFailure" if phase == FAILED:',
        without='        case "RerunOnFailure" | "Manual" if phase == FAILED:',
        because="Under Manual nothing goes without a person's request.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if has_answered_start(world):",
        without="    if False:",
        because="A start that is still queued when the instance that answered it goes would bring a second run.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line=('        case "Manual" | "RerunOnFailure" if world.wants_start:\n            return "a start'),
        without='        case "Manual" | "RerunOnFailure":\n            return "a start',
        because="Under Manual nothing starts without a person's request.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if is_failed_start(world, own) and not is_recorded(world, own):",
        without="    if False:",
        because="A failed start that is not counted before its instance goes is never counted: no back-off.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='    if asks_again(world, own):\n        return "the next',
        without='    if False:\n        return "the next',
        because="A failed run that is gone before the next is asked for is not run again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.vm.run_strategy == RERUN_ON_FAILURE != world.vm.status.run_strategy:",
        without="    if False:",
        because="A strategy that was acted on and not recorded would start the machine a second time by itself.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if VM_FINALIZER not in finalizers:\n        return Plan()\n    if ORPHAN",
        without="    if ORPHAN",
        because="A VM that we let go of must not be written for ever.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if ORPHAN_FINALIZER in finalizers and world.own is not None:",
        without="    if False:",
        because="A VM deleted with its instance left behind would take it along.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.own is None:\n        return Plan((RemoveFinalizer",
        without="    if world.own is None or world.is_stopping:\n        return Plan((RemoveFinalizer",
        because="A VM must stay until its instance is gone.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line='    if world.is_stopping:\n        return Plan()\n    return Plan((DeleteVmi(because="its VM',
        without='    return Plan((DeleteVmi(because="its VM',
        because="An instance that is going would be deleted again and again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="{said.message[:WORDS]})",
        without="{said.message})",
        because="An Event refuses more than 1024 characters, and then nothing is told.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_WORLD,
        line="        return self.vmi if self.claim is Claim.OWN else None",
        without="        return self.vmi",
        because="An instance of the name that is somebody else's is not ours to stop.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_OWNER,
        line="    return next((owner for owner in meta.owner_references if owner.controller), None)",
        without="    return next((owner for owner in meta.owner_references), None)",
        because="Only the owner that controls may act, not one that is merely listed.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="Claim.OWN if owner.uid == vm.metadata.uid else Claim.FOREIGN",
        without="Claim.OWN if owner.name == vm.metadata.name else Claim.FOREIGN",
        because="An instance of a former VM of this name is not ours.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_QUEUE,
        line="return uid is None or (request.uid is not None and request.uid != uid)",
        without="return uid is None",
        because="A stop names the instance that it is for, and must not stop the next one.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_WORLD,
        line="there = None if self.claim is Claim.FOREIGN else self.vmi",
        without="there = self.own",
        because="A stop of an instance that is about to be adopted must not be forgotten.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_WORLD,
        line="return self._left if self.is_instance_known else self.vm.status.state_change_requests",
        without="return self._left",
        because="A request would be done by an instance, or its absence, of long ago.",
        tests=("tests/controlplane/virt_controller/vm/test_world.py",),
    ),
    Guard(
        file=_WORLD,
        line="is_own=self.own is not None)",
        without='is_own=self.own is not None and self.own.status.phase not in ("Succeeded", "Failed"))',
        because="One start whose run is over before it is off the queue would run the machine twice.",
        tests=_BY_ONE_START,
    ),
    Guard(
        file=_WORLD,
        line="is_own=self.own is not None)",
        without="is_own=self.own is not None and not self.is_stopping)",
        because="One start whose instance a person has deleted before it is off the queue would run the machine twice.",
        tests=_BY_ONE_START,
    ),
    Guard(
        file=_WORLD,
        line="is_own=self.own is not None)",
        without="is_own=there is not None)",
        because="An instance that is not the machine's answers none of its starts.",
        tests=("tests/controlplane/virt_controller/vm/test_world.py",),
    ),
    Guard(
        file=_REQUESTS,
        line='    return StateChangeRequest(action="Stop", uid=own.metadata.uid), start',
        without="    return (start,)",
        because="A failed run would be taken for the answer to the start of the next one.",
        tests=("tests/controlplane/virt_controller/vm/test_status.py",),
    ),
    Guard(
        file=_REQUESTS,
        line='        case "Start", "Halted" if not',
        without='        case "Start", "Nothing" if not',
        because="A request that nobody acts on blocks every later one.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file=_REQUESTS,
        line='        case "Stop", "Once":',
        without='        case "Stop", "Nothing":',
        because="A request that nobody acts on blocks every later one.",
        tests=_BY_REQUESTS,
    ),
    Guard(
        file="controlplane/virt_controller/vm/status.py",
        line="    if theirs is None or conditions.says_the_same(ours, theirs):",
        without="    if theirs is None or ours.status == theirs.status:",
        because="People read on the VM why its instance does not get on: the reason changes, the status stays.",
        tests=("tests/controlplane/virt_controller/vm/test_status.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vm/status.py",
        line="    return max(found, old.observed_generation) if is_of_this_run else found\n",
        without="    return found\n",
        because="Who waited until a generation was observed would see it taken back.",
        tests=("tests/controlplane/virt_controller/vm/test_observed_generation.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vm/status.py",
        line="    is_of_this_run = old.created and old.observed_generation <= newest\n",
        without="    is_of_this_run = old.observed_generation <= newest\n",
        because="What a former run was would be said of the next.",
        tests=("tests/controlplane/virt_controller/vm/test_observed_generation.py",),
    ),
    Guard(
        file="controlplane/virt_controller/vm/status.py",
        line="    is_of_this_run = old.created and old.observed_generation <= newest\n",
        without="    is_of_this_run = old.created\n",
        because="A generation that the VM never had would be said to be the one that runs.",
        tests=("tests/controlplane/virt_controller/vm/test_observed_generation.py",),
    ),
    Guard(
        file=_DECIDE,
        line='        case "Manual" | "RerunOnFailure" if world.wants_start:',
        without='        case "Manual" if world.wants_start:',
        because="A machine that is to be run again only when it fails could never be started by anybody.",
        tests=_BY_DECIDE,
    ),
)
