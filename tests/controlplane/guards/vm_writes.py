# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The VM's controller: what it writes, counts and makes."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_STATUS = "controlplane/virt_controller/vm/status.py"
_RECONCILER = "controlplane/virt_controller/vm/reconciler.py"
_FAILURE = "controlplane/virt_controller/vm/start_failure.py"
_INSTANCE = "controlplane/virt_controller/vm/instance.py"
_BY_STATUS = ("tests/controlplane/virt_controller/vm/test_status.py",)
_RESTART = "controlplane/virt_controller/vm/restart_required.py"
_BY_RESTART = ("tests/controlplane/virt_controller/vm/test_restart_required.py",)
_BY_GENERATION = ("tests/controlplane/virt_controller/vm/test_observed_generation.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/vm/test_reconciler.py",)
_BY_FAILURE = (
    "tests/controlplane/virt_controller/vm/test_start_failure.py",
    "tests/controlplane/virt_controller/vm/test_decide.py",
)
_BY_INSTANCE = ("tests/controlplane/virt_controller/vm/test_instance.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_FAILURE,
        line="    return own.status.phase == SUCCEEDED and world.vm.run_strategy != ALWAYS\n",
        without="    return False\n",
        because="A machine that is rightly off would say for ever that it is in a crash loop.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_STATUS,
        line="    has_instance = world.own is not None and not world.is_stopping\n",
        without="    has_instance = world.own is not None\n",
        because="A strategy that an instance on its way out has not begun would start no machine after it.",
        tests=_BY_STATUS,
    ),
    Guard(
        file="controlplane/virt_controller/tell.py",
        line="while len(self._kept) > REMEMBERED or now",
        without="while now",
        because="Of every machine that ever was it would be remembered what was told.",
        tests=("tests/controlplane/virt_controller/test_tell.py",),
    ),
    Guard(
        file=_RECONCILER,
        line="        if not (self._vms.synced and self._vmis.synced):",
        without="        if False:",
        because="While a watch is refused nobody tells of an instance that comes or goes: its absence means nothing.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        await self._insist_on_being_current(vm)\n",
        without="",
        because="A start that was taken back, or used up, would be carried out by a leader that lags.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='if (fresh["uid"], fresh["resourceVersion"]) != (vm.metadata.uid, vm.metadata.resource_version):',
        without='if (fresh["uid"], fresh["generation"]) != (vm.metadata.uid, vm.metadata.generation):',
        because="A start is asked for, and taken back, in the status: no generation tells.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="return max(seen_at, self._vmis.position) >= asked_at",
        without="return True",
        because="A stop of an instance not seen yet would be taken for done, and a start by one that has failed since.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        if vmi is None and raw_vmi is not None:\n            return None",
        without="        if False:\n            return None",
        because="An instance that cannot be read is there all the same.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        await self._insist_on_absence(vm)\n        kept",
        without="        kept",
        because="The finalizer must not go on a cache's word that the instance is gone.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        if claim_of(vm, decode_vmi(found)) is Claim.OWN:",
        without="        if False:",
        because="A VM must stay while the API server knows an instance of it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            raise Conflict(str(error)) from error\n        text",
        without="        text",
        because="A start that met somebody else's instance must not be told as one.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=("        if fresh.metadata.uid != vm.metadata.uid or fresh.metadata.deletion_timestamp is not None:"),
        without="        if False:",
        because="A VM that is gone or going must not take an instance into its grave.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=("        if fresh.metadata.uid != vm.metadata.uid or fresh.metadata.deletion_timestamp is not None:"),
        without="        if fresh.metadata.uid != vm.metadata.uid:",
        because="A VM that is going must not take an instance along.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=("        if fresh.metadata.uid != vm.metadata.uid or fresh.metadata.deletion_timestamp is not None:"),
        without="        if fresh.metadata.deletion_timestamp is not None:",
        because="A VM of the same name that came after must not get an instance in another's name.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=(
            '            {"metadata": {"ownerReferences": [*kept, owner_reference(vm)]}},\n'
            "            resource_version=vmi.metadata.resource_version,\n"
        ),
        without='            {"metadata": {"ownerReferences": [*kept, owner_reference(vm)]}},\n',
        because="Who adopted an instance meanwhile must not lose it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line=(
            '            {"metadata": {"ownerReferences": kept or None}},\n'
            "            resource_version=vmi.metadata.resource_version,\n"
        ),
        without='            {"metadata": {"ownerReferences": kept or None}},\n',
        because="Who came to own an instance meanwhile must not lose it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="_key(vm), uid=meta.uid, resource_version=meta.resource_version",
        without="_key(vm), uid=meta.uid",
        because="An instance that lost its owner meanwhile is not ours to delete.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="_key(vm), uid=meta.uid, resource_version=meta.resource_version",
        without='_key(vm), uid="", resource_version=meta.resource_version',
        because="An instance that has taken the name meanwhile is not the one that was decided about.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=vm.metadata.resource_version,\n            uid=vm.metadata.uid,\n",
        without="            uid=vm.metadata.uid,\n",
        because=("What was decided on an older state must not be written over a newer one: a request would be lost."),
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=vm.metadata.resource_version,\n            uid=vm.metadata.uid,\n",
        without="            resource_version=vm.metadata.resource_version,\n",
        because="A VM that has taken the name meanwhile is not the one that was decided about.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_STATUS,
        line="    if not world.is_strategy_known:\n        return world.vm.status.state_change_requests\n",
        without="",
        because="Requests under a strategy that nobody here knows are not ours to take off.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="    if world.is_strategy_known and (has_instance or not wants_instance):",
        without="    if True:",
        because="A strategy counts as acted on when its instance exists, not before.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_STATUS,
        line="text.isdecimal() and len(text) <= len(str(newest))",
        without="text.isdecimal()",
        because="An annotation of 5,000 digits must not end every pass over its machine in an error.",
        tests=_BY_GENERATION,
    ),
    Guard(
        file=_STATUS,
        line="    return int(text) if is_number and int(text) <= newest else 0",
        without="    return int(text) if is_number else 0",
        because="A generation that the machine has never had was not observed.",
        tests=_BY_GENERATION,
    ),
    Guard(
        file=_STATUS,
        line="    if text != str(newest) and annotations.get(TEMPLATE_HASH) == template_hash(world.template):",
        without="    if False:",
        because="A change of the run strategy of a running machine would count as unobserved for ever.",
        tests=_BY_GENERATION,
    ),
    Guard(
        file=_STATUS,
        line="annotations.get(TEMPLATE_HASH) == template_hash(world.template):\n        return newest",
        without="world.own is not None:\n        return newest",
        because="A template that nothing runs yet would count as what runs.",
        tests=_BY_GENERATION,
    ),
    Guard(
        file=_RESTART,
        line="    if made_from is None or made_from == template_hash(world.template):",
        without="    if made_from is None:",
        because="A machine that runs what its template says needs no restart.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_RESTART,
        line=(
            "    if own is None or world.is_stopping or is_final(own.status.phase):\n        return None\n    made_from"
        ),
        without="    if own is None:\n        return None\n    made_from",
        because="A machine that is over or going picks the change up anyway.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_RESTART,
        line="if isinstance(a, msgspec.Struct) and isinstance(b, msgspec.Struct):",
        without="if False:",
        because="A person is to read which field it is, not that the machine has changed.",
        tests=_BY_RESTART,
    ),
    Guard(
        file=_RESTART,
        line="        start_strategy=template.start_strategy,",
        without="        start_strategy=runs.start_strategy,",
        because="A run that was asked to begin paused has no other template for that.",
        tests=_BY_RESTART,
    ),
    Guard(
        file=_FAILURE,
        line="(own.has_run or _is_enough(world, own))) or _is_stopped(world)\n",
        without="(own.has_run or _is_enough(world, own)))\n",
        because="A machine that was stopped after failed starts would be said to wait for the next one, for ever.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="world.own is None and world.is_instance_known and not world.pending_requests",
        without="world.own is None and not world.pending_requests",
        because="A cache that lags would have the failures in a row forgotten, and the next start hurried.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="    return ended and world.vm.run_strategy in COUNTED and not world.is_stopping",
        without="    return ended and world.vm.run_strategy in COUNTED",
        because="A start that a person ended is no failure.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="    ended = is_final(own.status.phase) and not own.has_run",
        without="    ended = is_final(own.status.phase)",
        because="A run that ended after it ran is no failed start.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="not is_failed_start(world, own) or is_recorded(world, own):",
        without="not is_failed_start(world, own):",
        because="One failure must be counted once, however often it is looked at.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="min(BASE_SECONDS * max(count, 1) ** 2, SHORTEST_CAP_SECONDS)",
        without="BASE_SECONDS * max(count, 1) ** 2",
        because="A machine must not wait for hours.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="    return shortest + jitter * (longest - shortest)",
        without="    return shortest",
        because="Machines that failed together must not come back together.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="        if parse_stamp(failure.retry_after_timestamp) - world.now <= CAP_SECONDS:",
        without="        if True:",
        because="Another leader's clock must not make a machine wait for an hour.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_FAILURE,
        line="    except ValueError:\n        pass",
        without="    except ZeroDivisionError:\n        pass",
        because="A time that somebody scribbled must not stop the machine for ever.",
        tests=_BY_FAILURE,
    ),
    Guard(
        file=_INSTANCE,
        line='            "finalizers": [VMI_FINALIZER],\n',
        without="",
        because="An instance without its finalizer frees its name while its Pod runs.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_RECONCILER,
        line="        kept = [one for one in vm.metadata.finalizers if one != VM_FINALIZER]",
        without="        kept: list[str] = []",
        because="Others' finalizers would go with ours, and what they wait for would never be done.",
        tests=_BY_RECONCILER,
    ),
)
