# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules: what others have stays, what was done is told, what is secret is not shown."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_PRESENT = "plugins/module_utils/_vm/present.py"
_WHOLE = "plugins/module_utils/_vm/whole.py"
_OWNERSHIP = "plugins/module_utils/_vm/ownership.py"
_OVERLAY = "plugins/module_utils/_vm/overlay.py"
_SERVICE = "plugins/module_utils/_vm/service.py"
_INSTANCE = "plugins/module_utils/_vm/instance.py"
_OPERATE = "plugins/module_utils/_vm/operate.py"
_GOAL = "plugins/module_utils/_vm/goal.py"
_GUEST_GOAL = "plugins/module_utils/_vm/guest_goal.py"
_WAITING = "plugins/module_utils/_vm/waiting.py"
_REDACT = "plugins/module_utils/_client/redact.py"
_MIGRATION = "plugins/module_utils/_migration"
_TESTS = "tests/unit/plugins/module_utils"
_STORIES = (f"{_TESTS}/_vm/test_nothing_is_lost.py",)
_BY_OWNERSHIP = (f"{_TESTS}/_vm/test_ownership.py",)
_BY_SERVICE = (f"{_TESTS}/_vm/test_service.py",)

_REPLICA_SET = "plugins/module_utils/_vm/replica_set.py"
_BY_SET = (f"{_TESTS}/_vm/test_replica_set.py",)
_BY_INSTANCE = (f"{_TESTS}/_vm/test_instance.py",)
_BY_OPERATE = (f"{_TESTS}/_vm/test_operate.py",)
_BY_GOAL = (f"{_TESTS}/_vm/test_goal.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file="plugins/module_utils/_vm/writing.py",
        line="whole.only_new(whole.for_creation(request))",
        without="whole.for_creation(request)",
        because="A machine that somebody made between look and write would be started, and lose its disks.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line='    (("spec",), ("replicas",)),\n    (("spec",), ("selector",)),\n',
        without="",
        because="A change of something else would undo what an autoscaler did, or orphan a set's instances.",
        tests=_BY_SET,
    ),
    Guard(
        file=_OWNERSHIP,
        line='        ("spec", "replicas"), ("spec", "selector"),',
        without="",
        because="Not to declare how many instances there are to be would set it to one.",
        tests=_BY_SET,
    ),
    Guard(
        file=_REPLICA_SET,
        line="    if has == ready == wanted(obj):",
        without="    if ready >= wanted(obj):",
        because="A set would pass for scaled down while guests that are too many still run.",
        tests=_BY_SET,
    ),
    Guard(
        file=_WAITING,
        line="                done[name] = self._members_left(name, self._set)",
        without="                pass",
        because="Deletion would be reported while the set's guests still run.",
        tests=_BY_SET,
    ),
    Guard(
        file=_WAITING,
        line="self.listed.pop(name) if is_listed",
        without="self.listed[name] if is_listed",
        because="An event would be judged by how its guest was when all were read, and waited for in vain.",
        tests=(f"{_TESTS}/_vm/test_waiting.py",),
    ),
    Guard(
        file=_WAITING,
        line="        if len(needed) < cluster.LIST_FROM:",
        without="        if True:",
        because="Where every watch is ended at once, a hundred machines would be a hundred requests for each look.",
        tests=(f"{_TESTS}/_vm/test_waiting.py",),
    ),
    Guard(
        file=_INSTANCE,
        line='{"preconditions": {"uid": live["metadata"]["uid"]}}',
        without="{}",
        because="Another's instance of the same name, made meanwhile, would be deleted.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_INSTANCE,
        line="    if is_to_go and _maker(live) is None:",
        without="    if is_to_go:",
        because="The guest of a VirtualMachine would be deleted for another one that its owner is faster to make.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_INSTANCE,
        line="        raise _unchangeable(request, live, differing)",
        without="        pass",
        because="The task would say that nothing changed while the guest is not as declared.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_OPERATE,
        line="    if terms.check_mode and not ask.has_dry_run:",
        without="    if False:",
        because="A check would reset the guest: that request has no dry run.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_OPERATE,
        line="    if live is None and request.state in OPERATIONS:",
        without="    if False:",
        because="A task that pauses would create and start what it then cannot pause.",
        tests=_BY_OPERATE,
    ),
    Guard(
        file=_PRESENT,
        line="    if start_paused and wanted == run_strategies.ALWAYS:",
        without="    if False:",
        because="The guest would run before it is asked to begin paused.",
        tests=_BY_OPERATE,
    ),
    Guard(
        file=_GOAL,
        line='        is_other = vm is not None and goal.uid not in (None, vm["metadata"].get("uid"))',
        without="        is_other = False",
        because="A deletion would wait for an instance that a VM made anew.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_GOAL,
        line="    has_own = vmi is None or goal.condition[0] in _OF_THE_VM",
        without="    has_own = True",
        because="A VM keeps the conditions of its last instance, so a stale one would count.",
        tests=_BY_GOAL,
    ),
    Guard(
        file=_GUEST_GOAL,
        line="    if not may_come and is_final(vmi):",
        without="    if False:",
        because="A run that is over would be waited for until time is up.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_WAITING,
        line="                done[name] = self._pods_left(name, uids[name])",
        without="                pass",
        because="Deletion would be reported while the guest's Pod is still there.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_PRESENT,
        line="guarded(patch, live) if compare.has_lists(patch) else patch",
        without="patch",
        because="A list that was read would overwrite the item that somebody adds meanwhile.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line='_noted(guarded({**body, "spec": body.get("spec") or {}}, live), noted)',
        without='_noted({**body, "spec": body.get("spec") or {}}, noted)',
        because="A list that was read would overwrite the item that somebody adds meanwhile.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line="            body = manifest.replaced(body, path, left)",
        without="            pass",
        because="To the server the list is one field: what an apply leaves out of it is gone.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line="            noted = manifest.replaced(noted, path, [])",
        without="            pass",
        because="The next run would take what others have for what was applied as a whole.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line="is_known = not ownership.is_outdated(live, clean) and",
        without="is_known =",
        because="A name that was ours once would be taken from who uses it next.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line="    if not compare.has_nulls(compare.merge_patch(live, laid)) and not ownership.is_patched(",
        without="    if not ownership.is_patched(",
        because="An apply leaves what others own, so what a null takes away would stay.",
        tests=_STORIES,
    ),
    Guard(
        file=_WHOLE,
        line=" and not ownership.is_patched(live, FIELD_MANAGER, patch):",
        without=":",
        because="An apply leaves what we once patched, so it would never be taken back.",
        tests=_STORIES,
    ),
    Guard(
        file=_PRESENT,
        line="        return wanted not in (run_strategies.MANUAL, run_strategies.HALTED)",
        without="        return wanted == run_strategies.ALWAYS",
        because="A VM that is declared stopped must not run for a moment.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_OWNERSHIP,
        line="        elif fields and name not in ours:",
        without="        elif False:",
        because="What others plugged in is theirs.",
        tests=_BY_OWNERSHIP,
    ),
    Guard(
        file=_OWNERSHIP,
        line='        if entry.get("manager") != manager:',
        without="        if False:",
        because="What another declares as well is not ours to take away.",
        tests=_BY_OWNERSHIP,
    ),
    Guard(
        file=_OVERLAY,
        line="            del merged[key]\n",
        without="            pass\n",
        because="Two kinds of source for one volume: the server refuses them.",
        tests=(f"{_TESTS}/_vm/test_overlay.py",),
    ),
    Guard(
        file="plugins/module_utils/_vm/manifest.py",
        line='(params.get("cpu") or {}).items() if value is not None}',
        without='(params.get("cpu") or {}).items()}',
        because="What an option leaves out would be taken away.",
        tests=_STORIES,
    ),
    Guard(
        file=_SERVICE,
        line=" and not api.serves(request.kind.group):",
        without=":",
        because="A 404 of whoever answers there is no proof that a VM is gone.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_SERVICE,
        line="    return outcome._replace(changed=True, method",
        without="    return outcome._replace(method",
        because="What was changed before a conflict was changed.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_SERVICE,
        line='        error.facts["changed"] = True',
        without="        pass",
        because="What was changed before a failure was changed.",
        tests=_BY_SERVICE,
    ),
    Guard(
        file=_REDACT,
        line='    return key in ("data", "stringData") and obj.get("kind") == "Secret"',
        without="    return False",
        because="A Secret's values are secret.",
        tests=(f"{_TESTS}/_client/test_redact.py",),
    ),
    Guard(
        file="plugins/module_utils/_client/kubeconfig.py",
        line='"\\n" in text or ": " in text or ',
        without="",
        because="A kubeconfig that is taken for paths is printed as paths that do not exist.",
        tests=(f"{_TESTS}/_client/test_kubeconfig.py",),
    ),
    Guard(
        file="plugins/module_utils/_vm/claims.py",
        line='        if one.delete_options.get("propagationPolicy") == "Orphan":',
        without="        if False:",
        because="Who waits for claims that do not go with their machine would take them for gone.",
        tests=(f"{_TESTS}/_vm/test_claims.py",),
    ),
    Guard(
        file=f"{_MIGRATION}/batch.py",
        line=' if not one["metadata"].get("deletionTimestamp")]',
        without="]",
        because="Who empties a node would fail for a machine that is being stopped, and leaves it by itself.",
        tests=(f"{_TESTS}/_migration/test_batch.py",),
    ),
    Guard(
        file=f"{_MIGRATION}/standing.py",
        line="    if uid and told_by_instance",
        without="    if told_by_instance",
        because="Where neither says of which migration it is, one would be told to go where another one went.",
        tests=(f"{_TESTS}/_migration/test_standing.py",),
    ),
    Guard(
        file=f"{_MIGRATION}/move.py",
        line='    if reached.obj is not None and reached.obj["metadata"].get("uid") != uid:\n',
        without="    if False:\n",
        because="A migration that was cancelled would be reported as done for another one of its name.",
        tests=(f"{_TESTS}/_migration/test_move.py",),
    ),
    Guard(
        file=f"{_MIGRATION}/nodes.py",
        line=' if one["metadata"]["name"] != here]',
        without="]",
        because="A machine would be sent from the only node that it may have to nowhere.",
        tests=(f"{_TESTS}/_migration/test_nodes.py",),
    ),
)
