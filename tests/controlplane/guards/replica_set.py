# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The replica set's controller: never more than wanted, and nobody else's."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_DECIDE = "controlplane/virt_controller/replicaset/decide.py"
_WORLD = "controlplane/virt_controller/replicaset/world.py"
_STATUS = "controlplane/virt_controller/replicaset/status.py"
_INSTANCE = "controlplane/virt_controller/replicaset/instance.py"
_MEMORY = "controlplane/virt_controller/replicaset/memory.py"
_RECONCILER = "controlplane/virt_controller/replicaset/reconciler.py"
_FAILURES = "controlplane/virt_controller/replicaset/failures.py"
_BY_DECIDE = ("tests/controlplane/virt_controller/replicaset/test_decide.py",)
_BY_STATUS = ("tests/controlplane/virt_controller/replicaset/test_status.py",)
_BY_INSTANCE = ("tests/controlplane/virt_controller/replicaset/test_instance.py",)
_BY_MEMORY = ("tests/controlplane/virt_controller/replicaset/test_memory.py",)
_BY_RECONCILER = ("tests/controlplane/virt_controller/replicaset/test_reconciler.py",)
_BY_CHANCE = ("tests/controlplane/virt_controller/replicaset/test_never_more.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_STATUS,
        line="(condition_types.FAILED_CREATE, HELD_BACK) if world.held_back else None",
        without="None",
        because="Nobody would know why nothing is made.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_DECIDE,
        line="    now = missing - world.held_back\n",
        without="    now = missing\n",
        because="A set whose disk cannot be read would start and end launchers for as long as it is there.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_FAILURES,
        line="        if ran - record.ran:\n            record.rounds = record.owed = 0\n",
        without="",
        because="Of a set that runs again the next failure would wait as if it had never run.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_FAILURES,
        line="record is None or record.of != of:",
        without="record is None:",
        because="Whoever corrects the template would wait for minutes to see it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        self._memories.note_found(_key(replica_set), action.name, uid)\n",
        without="",
        because="Each instance that was made would be asked for before the next batch.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_WORLD,
        line="for one in self.active} - self.doubted",
        without="for one in self.active}",
        because="One that was made again under the name of one that still seems to count would be one too many.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_MEMORY,
        line="        self._by_key[key].doubted.add(name)\n",
        without="",
        because="An attempt without an answer would be forgotten.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file="controlplane/virt_controller/replicaset/decide.py",
        line="    if not world.unmade and world.unsure:\n",
        without="    if False:\n",
        because="One that was made again under a name of the batch, unseen, and one of the next would be one too many.",
        tests=("tests/controlplane/virt_controller/replicaset/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_controller/replicaset/memory.py",
        line="        self._by_key[key].found.pop(name, None)\n",
        without="",
        because="What the API server said before a name was used again would count afterwards.",
        tests=("tests/controlplane/virt_controller/replicaset/test_memory.py",),
    ),
    Guard(
        file=_DECIDE,
        line="    if not world.unmade:\n",
        without="    if True:\n",
        because="What was begun may exist already: another batch beside it would be too many.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if len(world.unmade) > missing and unsure:",
        without="    if False:",
        because="One that exists unseen and one that is made in its place would be too many.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_DECIDE,
        line="    unsure = [name for name in world.unmade if name not in world.absent]",
        without="    unsure = world.unmade",
        because="What is known to be free would be asked about for ever, and not made.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="world.unmade[:missing]",
        without="world.unmade",
        because="Fewer may be wanted than were begun.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_RECONCILER,
        line="        self._memories.note_attempt(_key(replica_set), action.name)\n",
        without="",
        because="A name was free before its instance was asked for, and need not be after an answer was lost.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_DECIDE,
        line="    if missing and not world.is_past_known:\n",
        without="    if missing > 0 and not world.is_past_known:\n",
        because="A new leader would take for too many those whom the last one has deleted, and delete the others.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if now <= 0:\n",
        without="    if False:\n",
        because="Of a set that waits, batches of nobody would be begun without end.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_DECIDE,
        line="    if missing and not world.is_past_known:\n",
        without="    if False:\n",
        because="A new leader whose cache lags would make again what the last one has made.",
        tests=_BY_CHANCE,
    ),
    Guard(
        file=_DECIDE,
        line="    if not world.is_current:\n",
        without="    if False:\n",
        because="A leader whose watch of sets lags would delete what is wanted by now, and make what is not.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.is_deleting or world.problems:",
        without="    if world.problems:",
        because="A set that goes must not adopt or make anything that goes with it.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    if world.is_deleting or world.problems:",
        without="    if world.is_deleting:",
        because="An empty selector would take in every instance of the namespace.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_DECIDE,
        line="    if claims or world.replica_set.spec.paused:",
        without="    if claims:",
        because="A paused set makes and deletes nothing.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="min(now, BURST)",
        without="now",
        because="Thousands at once would be more than the status may say, and keep all others waiting.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="Each(actions[:BURST])",
        without="Each(actions)",
        because="Thousands of deletes at once would keep the worker.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_DECIDE,
        line="    return (*too_many, *(DeleteVmi",
        without="    return (*(), *(DeleteVmi",
        because="Who is too many must go.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_WORLD,
        line="            if one.is_deleting or one.metadata.uid in self.deletes_sent:",
        without="            if one.is_deleting:",
        because="Who was told to go would be counted, and one too few made; or deleted again.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_WORLD,
        line="            elif one.is_over or one.is_losing_its_pod:",
        without="            elif one.is_over:",
        because="A machine that is being drained would be replaced only after its grace period.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_WORLD,
        line="in self.orphans if not one.is_deleting and self._is_selected(one)",
        without="in self.orphans if self._is_selected(one)",
        because="Who goes anyway must not be adopted.",
        tests=_BY_DECIDE,
    ),
    Guard(
        file=_STATUS,
        line="batch_size=old.batch_size if world.unmade else 0,",
        without="batch_size=0,",
        because="A batch that is not complete would be forgotten: what is on its way comes on top of the next.",
        tests=_BY_STATUS,
    ),
    Guard(
        file=_INSTANCE,
        line="range(min(status.batch_size, BURST))",
        without="range(status.batch_size)",
        because="A number that somebody wrote past admission would be looped over.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_INSTANCE,
        line='f"{status.batches}/{place}"',
        without='f"{place}"',
        because="A machine that is replaced, and one that goes, would need the same name.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_INSTANCE,
        line='f"{meta.uid}/{which}"',
        without="which",
        because="Sets with one template name would fight for the same names.",
        tests=_BY_INSTANCE,
    ),
    Guard(
        file=_MEMORY,
        line="    memory.progress, memory.current = _progress(stored), stored.metadata.resource_version",
        without="    self._by_key[key] = _Memory(_progress(stored), 0, stored.metadata.resource_version)",
        because="Who completes another leader's batch has not seen the ones before it.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_MEMORY,
        line="int(seen.metadata.resource_version) if has_begun else 0",
        without="int(seen.metadata.resource_version)",
        because="The first instances of a set would wait for the next bookmark of an idle watch.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_MEMORY,
        line="    return seen.metadata.uid, seen.status.batches, seen.status.batch_size",
        without="    return seen.metadata.uid, 0, 0",
        because="What another leader has begun meanwhile would count as known.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=old.metadata.resource_version,\n            uid=old.metadata.uid,\n",
        without="            uid=old.metadata.uid,\n",
        because="Of two leaders, both would begin a batch.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=old.metadata.resource_version,\n            uid=old.metadata.uid,\n",
        without="            resource_version=None,\n            uid=None,\n",
        because="A set that has taken the name meanwhile is not the one that was decided about.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='if (fresh["uid"], fresh["resourceVersion"]) != (seen.metadata.uid, seen.metadata.resource_version):',
        without='if fresh["uid"] != seen.metadata.uid:',
        because="A set that was scaled or paused meanwhile wants something else.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            await self._api.get(VIRTUAL_MACHINE_INSTANCE, key)\n            raise Conflict(str(error))",
        without="            raise Conflict(str(error))",
        because="An instance whose answer was lost would be asked for until the watch catches up.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="uid=meta.uid, resource_version=version)",
        without="uid=meta.uid)",
        because="An instance that was let go meanwhile is not ours to delete.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        except NotFound:\n            return\n",
        without="        except ZeroDivisionError:\n            return\n",
        because="What is gone already is what was wanted.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="            resource_version=meta.resource_version,\n            uid=meta.uid,\n",
        without="            uid=meta.uid,\n",
        because="Who came to own an instance meanwhile must not lose it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="(owner.kind, owner.uid) == (kind, uid)",
        without="owner.uid == uid",
        because="An owner of another kind is not this set, whatever UID it claims.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="        if not (self._replica_sets.synced and self._vmis.synced):",
        without="        if False:",
        because="Before the instances are known all of them seem to be missing.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line='seed = f"{replica_set.metadata.uid}/{action.name}"',
        without="seed = replica_set.metadata.uid",
        because="All guests of a set would have the same UUID.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file=_RECONCILER,
        line="tuple(one for one in orphans if controller_of(one.metadata) is None)",
        without="orphans",
        because="A cache that lags still lists as nobody's what this process has just adopted.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/replicaset/member.py",
        line="        if held is None or held[0] is not raw:",
        without="        if held is None:",
        because="What this process has just written of an instance would not be seen before the watch tells it.",
        tests=_BY_RECONCILER,
    ),
    Guard(
        file="controlplane/virt_controller/replicaset/member.py",
        line="        self._held.pop(key, None)\n",
        without="        pass\n",
        because="Every instance that there ever was would be kept.",
        tests=("tests/controlplane/virt_controller/replicaset/test_member.py",),
    ),
    Guard(
        file="controlplane/virt_controller/wake.py",
        line="        if was != now:\n            for one in {found",
        without="        if True:\n            for one in {found",
        because="A set of thousands would be looked through for each address that one of its machines gets.",
        tests=("tests/controlplane/virt_controller/test_wake.py",),
    ),
    Guard(
        file="controlplane/api/admission/validate/selector.py",
        line="    if count > MAX_VALUES:",
        without="    if False:",
        because="Lists of lists multiply: one set's selector would keep the loop from all others for a second.",
        tests=("tests/controlplane/api/admission/kinds/test_replica_set.py",),
    ),
    Guard(
        file="controlplane/api/objects/selector.py",
        line="frozenset(one.values)) for one",
        without="one.values) for one",
        because="Each label of thousands of instances would be held against each of a thousand values.",
        tests=("tests/controlplane/api/objects/test_selector.py",),
    ),
    Guard(
        file="controlplane/api/admission/validate/selector.py",
        line="not (labels and matches(selector, labels))",
        without="not matches(selector, labels)",
        because="A set whose template has no labels would make machines, and select by what they lack.",
        tests=("tests/controlplane/api/admission/kinds/test_replica_set.py",),
    ),
)
