# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a migration: pure, a total table by phase.

No guest is touched by it. A target's Pod is deleted only when its migration has failed, by what the instance says or
before the instance knew of it: then nothing of the guest is there. A source's only when the run was given away.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevirt_api.names import MIGRATION_FINALIZER, MIGRATION_TARGET_NODE

from controlplane.api.objects.migration import (
    FAILED,
    FINAL,
    PENDING,
    PREPARING_TARGET,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    SUCCEEDED,
    TARGET_READY,
    UNSET,
    VirtualMachineInstanceMigration,
)
from controlplane.api.objects.pod import Pod
from controlplane.engine.plan import Plan, Tell
from controlplane.virt_controller.migration.status import next_step, seconds_left
from controlplane.virt_controller.migration.world import (
    KEPT,
    Action,
    AddFinalizer,
    CreateTarget,
    DeleteMigration,
    DeletePod,
    EndState,
    HandOver,
    RemoveFinalizer,
    RequestAbort,
    Unlabel,
    World,
)


def decide(world: World) -> Plan[Action]:
    """Choose the next step. In a phase that nobody here knows: none."""
    phase = world.migration.status.phase
    rule = RULES.get(phase)
    if rule is None:
        return Plan()
    if phase not in FINAL and next_step(world).phase != phase:
        return Plan((Tell(because="it is further than its status says"),))
    return rule(world)


def _begin(world: World) -> Plan[Action]:
    """Towards the target's Pod, when its turn has come."""
    if MIGRATION_FINALIZER not in world.migration.metadata.finalizers:
        return Plan((AddFinalizer(because="what it makes is cleared away before it goes"),))
    if not world.is_turn or not world.can_move or world.other_under_way:
        return Plan()
    return Plan((CreateTarget(because="its turn has come"),))


def _wait(world: World) -> Plan[Action]:
    return Plan(look_again_in=seconds_left(world))


def _hand_over(world: World) -> Plan[Action]:
    pod = world.target
    if pod is None or not world.can_move or world.other_under_way:
        return Plan()
    return Plan((HandOver(pod, because="the target's launcher is up"),))


def _follow(world: World) -> Plan[Action]:
    """See it through: the two virt-handlers move it on."""
    state = world.state
    if state is None or state.is_over:
        return Plan()
    if world.is_target_down:
        return Plan((EndState("target Pod is down", because="its Pod has ended"),))
    left = seconds_left(world)
    if state.start_timestamp is None and left is not None and left <= 0:
        return Plan((EndState("it did not begin in time", because="nobody has begun it"),))
    if world.is_cancelled and not state.abort_requested:
        return Plan((RequestAbort(because="it is being deleted"),))
    return Plan(look_again_in=None if state.start_timestamp is not None else left)


def _clear(world: World) -> Plan[Action]:
    """Clear away what is left over of one that has failed."""
    state, pod = world.state, world.target
    if state is not None and state.is_under_way and state.start_timestamp is None:
        return Plan((EndState("it failed before it began", because="it is over"),))
    is_unused = state is None or state.failed
    if pod is not None and is_unused and _is_staying(world, pod):
        return Plan((DeletePod(pod.metadata.name, pod.uid, because="its migration has failed"),))
    return _end(world)


def _clear_source(world: World) -> Plan[Action]:
    """Clear away what is left over of one that has succeeded."""
    pod = world.source
    if pod is not None and world.is_committed and _is_staying(world, pod):
        return Plan((DeletePod(pod.metadata.name, pod.uid, because="its guest has moved"),))
    return _end(world)


def _end(world: World) -> Plan[Action]:
    vmi, state = world.vmi, world.state
    if vmi is not None and state is not None and MIGRATION_TARGET_NODE in vmi.metadata.labels:
        return Plan((Unlabel(because="its migration is over"),))
    if MIGRATION_FINALIZER in world.migration.metadata.finalizers:
        return Plan((RemoveFinalizer(because="nothing of it is left to be done"),))
    old = _older_than_kept(world)
    return Plan(
        tuple(
            DeleteMigration(one.metadata.name, one.metadata.uid, because=f"{KEPT} newer ones are kept") for one in old
        )
    )


def _older_than_kept(world: World) -> list[VirtualMachineInstanceMigration]:
    over = [one for one in (*world.others, world.migration) if one.status.phase in FINAL]
    over.sort(key=lambda one: (one.metadata.creation_timestamp or "", one.metadata.uid))
    return [one for one in over[:-KEPT] if one.metadata.deletion_timestamp is None]


def _is_staying(world: World, pod: Pod) -> bool:
    return not pod.is_deleting and pod.uid not in world.deletes_sent


RULES: dict[str, Callable[[World], Plan[Action]]] = {
    UNSET: lambda _unused: Plan((Tell(because="it is new"),)),
    PENDING: _begin,
    SCHEDULING: _wait,
    SCHEDULED: _hand_over,
    PREPARING_TARGET: _follow,
    TARGET_READY: _follow,
    RUNNING: _follow,
    SUCCEEDED: _clear_source,
    FAILED: _clear,
}
"""One row for every phase."""
