# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations in virt-controller: one owner of a guest, nothing given up or deleted for what a cache alone says."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_MOVE = "controlplane/virt_controller/vmi/move.py"
_DECIDE = "controlplane/virt_controller/migration/decide.py"
_STATUS = "controlplane/virt_controller/migration/status.py"
_RECONCILER = "controlplane/virt_controller/migration/reconciler.py"
_APPLY = "controlplane/virt_controller/migration/apply.py"
_BY_MOVE = ("tests/controlplane/virt_controller/vmi/test_move.py",)
_BY_MEMORY = ("tests/controlplane/virt_controller/migration/test_memory.py",)
_BY_TABLE = ("tests/controlplane/virt_controller/migration/test_every_state.py",)
_BY_STORY = ("tests/controlplane/virt_controller/migration/test_reconciler.py",)
_UNFINISHED = "controlplane/virt_controller/migration/unfinished.py"
_TURN = "controlplane/virt_controller/migration/turn.py"
_BY_TURN = ("tests/controlplane/virt_controller/migration/test_turn.py",)
_BY_POD = ("tests/controlplane/virt_controller/migration/test_target_pod.py",)
_BY_EVACUATION = ("tests/controlplane/virt_controller/evacuation/test_reconciler.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_MOVE,
        line="    is_dead = moving.is_under_way and has_all_of_it and isinstance(world.evidence, Dead)",
        without="    is_dead = moving.is_under_way and has_all_of_it",
        because="A guest that runs at its source would be given to its target, and run at both.",
        tests=_BY_MOVE,
    ),
    Guard(
        file=_MOVE,
        line="    is_dead = moving.is_under_way and has_all_of_it and",
        without="    is_dead = moving.is_under_way and",
        because="A guest of which the target has a part would be lost as if it had moved.",
        tests=_BY_MOVE,
    ),
    Guard(
        file=_MOVE,
        line="    is_dead = moving.is_under_way and has",
        without="    is_dead = has",
        because="A migration that has failed would be taken for a move when its source dies later.",
        tests=_BY_MOVE,
    ),
    Guard(
        file=_MOVE,
        line="    return moving if is_dead and not _is_target_over(world, moving) else None",
        without="    return moving if is_dead else None",
        because="A run would be given to a Pod in which nothing can run.",
        tests=_BY_MOVE,
    ),
    Guard(
        file=_MOVE,
        line="(one for one in (*world.pods, *world.last_words) if",
        without="(one for one in world.pods if",
        because="A run would be given to a Pod that has ended and was removed.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_DECIDE,
        line="    if phase not in FINAL and doubt(world) and not world.is_vmi_told:",
        without="    if False:",
        because="A migration would wait for ever for the API server's word, which nobody asks for.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_STATUS,
        line='        return by_instance if world.is_vmi_told else ""',
        without="        return by_instance",
        because="A cache that lags would have a migration failed, and the Pod that has its guest deleted.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_STATUS,
        line="    if world.is_target_gone and phase in (SCHEDULING, SCHEDULED):",
        without="    if world.target is None and phase in (SCHEDULING, SCHEDULED):",
        because="A Pod that is not seen yet would be taken for one that is gone.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_STATUS,
        line="    return SCHEDULING if is_there or world.has_made or world.state is not None else",
        without="    return SCHEDULING if is_there or world.has_made else",
        because="A second Pod would be made for a migration that was handed over.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="(state is None or state.failed) and not _has_the_guest(world, pod)",
        without="(state is None or state.failed)",
        because="The Pod that has the guest would be deleted with a migration that is said to have failed.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="    if pod is not None and not _has_the_guest(world, pod) and _is_staying(world, pod):",
        without="    if pod is not None and _is_staying(world, pod):",
        because="A guest that has come back to a Pod would be ended with the migration by which it had left.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_DECIDE,
        line="    if state.start_timestamp is None:\n        return _until_begun(world)",
        without="    if True:\n        return _until_begun(world)",
        because="What is being sent would be ended while the guest may be at its target.",
        tests=_BY_TABLE,
    ),
    Guard(
        file=_APPLY,
        line="        if vmi is not None and (action.uid in vmi.status.active_pods or (",
        without="        if vmi is not None and (False and (",
        because="A leader whose cache is older than the hand-over would delete the Pod that has the guest.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_APPLY,
        line="action.uid in vmi.status.active_pods or (",
        without="(",
        because="The Pod that has the guest would be deleted as soon as a later migration is told of.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_APPLY,
        line="        await self._confirm(world)\n        await self._patch_vmi(",
        without="        await self._patch_vmi(",
        because="A migration that another leader has ended would be handed over.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/memory.py",
        line="        return self._made.get(Key(meta.namespace, meta.name)) == meta.uid\n",
        without="        return Key(meta.namespace, meta.name) in self._made\n",
        because="A migration with the name of a former one would count as begun before its turn, beyond all limits.",
        tests=_BY_MEMORY,
    ),
    Guard(
        file=_APPLY,
        line="            resource_version=meta.resource_version,\n",
        without="",
        because="Whoever begins a migration in the moment in which it is ended would send a guest to nowhere.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/hand_over.py",
        line="{**dict.fromkeys(before), **_whole(before, encode(new))}}",
        without="encode(new)}",
        because="A new migration would be taken for failed, by what was told of the former one.",
        tests=("tests/controlplane/virt_controller/migration/test_hand_over.py",),
    ),
    Guard(
        file=_STATUS,
        line=" if world.keeps_waiting else (UNSCHEDULABLE_SECONDS, inf)\n",
        without="\n",
        because="A migration for which a node is to be made or freed would fail though nobody waits for its place.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/turn.py",
        line="        if len(found) >= free:",
        without="        if False:",
        because="More migrations than the cluster bears would be under way.",
        tests=("tests/controlplane/virt_controller/migration/test_turn.py",),
    ),
    Guard(
        file="controlplane/virt_controller/migration/turn.py",
        line="self.migration.status.phase in (UNSET, PENDING) and not self.has_pod",
        without="self.migration.status.phase in (UNSET, PENDING)",
        because="One whose Pod was made would not count before its status says so, and another would take its place.",
        tests=("tests/controlplane/virt_controller/migration/test_turn.py",),
    ),
    Guard(
        file=_RECONCILER,
        line="            self.unfinished.note_refused(key_of(world.migration))\n",
        without="            pass\n",
        because="Migrations that a quota refuses would keep those of all other namespaces waiting.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_RECONCILER,
        line=" and (left is None or source.uid != left.source_pod_uid):\n",
        without=" and left is None:\n",
        because="Whatever Pod has been made since by the name of the one that was left would be deleted.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_UNFINISHED,
        line=" and meta.deletion_timestamp is None,\n",
        without=",\n",
        because="One that is cancelled would keep the turn that it does not take, and no other would be woken.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_UNFINISHED,
        line="        self._held.discard(key)\n",
        without="",
        because="A migration by the name of one that a quota has refused would not be woken when its turn comes.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/target_pod.py",
        line='        return f"docker.io/{rest}" if registry == "index.docker.io" else repository\n',
        without="        return repository\n",
        because="A guest whose image has the longer name of Docker Hub would go on with another disk below it.",
        tests=_BY_POD,
    ),
    Guard(
        file="controlplane/virt_controller/migration/series.py",
        line="        last = max((self._number_of(one) for one in known), default=0)",
        without="        last = len(list(known))",
        because="When old ones are cleared away the next would have the name of one that is there.",
        tests=("tests/controlplane/virt_controller/evacuation/test_decide.py",),
    ),
    Guard(
        file="controlplane/virt_controller/evacuation/reconciler.py",
        line="        self._made[vmi] = Key(meta.namespace, action.name)\n",
        without="",
        because="A migration that the cache is yet to hear of would be asked for again in each look, in vain.",
        tests=_BY_EVACUATION,
    ),
    Guard(
        file="controlplane/virt_controller/migration/create_once.py",
        line='    if (found["uid"], found["resourceVersion"]) != (uid, version):',
        without="    if False:",
        because="An instance whose evacuation was cancelled would be moved all the same.",
        tests=_BY_EVACUATION,
    ),
    Guard(
        file=_STATUS,
        line="            return left_of(limit, world.now - entered)\n",
        without="            return max(0.0, limit - (world.now - entered))\n",
        because="A target Pod that finds no node would keep others waiting for as long as a clock was ahead once.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_STATUS,
        line="    return min(LONGEST_SECONDS, float(said)) if",
        without="    return float(said) if",
        because="Whoever may make migrations would take the cluster's few places for years.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_STATUS,
        line="    if world.holds_more and _is_past(world, SCHEDULING, SHARE_SECONDS):\n",
        without="    if False:\n",
        because="One tenant's machines that never come up would keep everybody else's from being moved.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_STATUS,
        line="    limit = min(most, _limit(world, UNSCHEDULABLE_TIMEOUT, patience))\n",
        without="    limit = _limit(world, UNSCHEDULABLE_TIMEOUT, patience)\n",
        because="A tenant's annotation on what finds no node would keep a node from being emptied for an hour.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_TURN,
        line="sorted(numbered, key=lambda each: (each[0], each[1], each[2].order))]\n",
        without="numbered]\n",
        because="A tenant with many machines would have all places before anybody else has one.",
        tests=_BY_TURN,
    ),
    Guard(
        file=_TURN,
        line="    places = Counter(one.namespace for one in begun)\n    numbered",
        without="    places = Counter[str]()\n    numbered",
        because="A tenant whose migrations never end would have the next place, too.",
        tests=_BY_TURN,
    ),
    Guard(
        file=_TURN,
        line="places[one.namespace] + 1 < places[held.namespace] and ",
        without="",
        because="Where Pods take their time no machine would move: each place would be taken for the next one.",
        tests=_BY_TURN,
    ),
    Guard(
        file=_TURN,
        line=" and one.order[0] <= held.order[0]\n",
        without="\n",
        because="A tenant's wish would end the moves of a drain.",
        tests=_BY_TURN,
    ),
    Guard(
        file=_TURN,
        line="    first = min(due, key=lambda one: (-places[one.namespace], *one.order[1:]), default=None)\n",
        without="    first = next((one for one in due if one.migration.metadata.uid == uid), None)\n",
        because="All that are on their way would be ended for a single one that waits.",
        tests=_BY_TURN,
    ),
    Guard(
        file=_TURN,
        line="    others = [one for one in known if one.migration.metadata.uid != uid]\n",
        without="    others = known[1:]\n",
        because="A target Pod that finds no node would be given up for one that waits for something else.",
        tests=_BY_TURN,
    ),
    Guard(
        file="controlplane/virt_controller/migration/target_pod.py",
        line=" and _in_full(repository) == _in_full(own)\n",
        without="\n",
        because="A guest's disk would be pinned to another repository's digest, which is not there.",
        tests=_BY_POD,
    ),
    Guard(
        file="controlplane/virt_controller/migration/target_pod.py",
        line='    return f"{own}{DIGEST}{digest}" if is_same else asked\n',
        without="    return said\n",
        because="A captured node's kubelet would choose from where other nodes pull the disk of a guest.",
        tests=_BY_POD,
    ),
    Guard(
        file="controlplane/virt_controller/migration/target_pod.py",
        line="    chosen = source.spec.node_selector if MIGRATION_JOB in source.metadata.labels else {}\n",
        without="    chosen = source.spec.node_selector\n",
        because="A guest would be sent to a processor that cannot carry it, by a selector that was taken away.",
        tests=_BY_POD,
    ),
    Guard(
        file="controlplane/virt_controller/migration/world.py",
        line="    return controller_of(pod.metadata) is None and",
        without="    return False and",
        because="A Pod whose owner somebody takes off would stay for ever, and keep its migration.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/world.py",
        line="controller_of(pod.metadata) is None and pod.metadata.labels",
        without="pod.metadata.labels",
        because="A Pod that is somebody else's would be deleted for its label.",
        tests=_BY_STORY,
    ),
    Guard(
        file=_APPLY,
        line="        if found is None or not self._is_its(world, found):",
        without="        if found is None:",
        because="Another Pod of the name would keep a migration for ever.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration/world.py",
        line="is_to_run and not is_to_be_given(vmi)",
        without="is_to_run",
        because="A guest that has left would be lost: the next hand-over would replace what tells where it goes on.",
        tests=_BY_STORY,
    ),
    Guard(
        file="controlplane/virt_controller/migration_wakes.py",
        line="(told := after or before) is not None and",
        without="(told := after) is not None and",
        because="More than five that are over would stay, where the newest is deleted before it has seen to it.",
        tests=("tests/controlplane/virt_controller/test_process_wakes.py",),
    ),
)
