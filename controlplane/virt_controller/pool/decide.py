# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VirtualMachinePool: pure.

First it is settled who belongs to it, then how many are missing or too many, then who has another template than the
pool: a machine gets it at once, what runs gets it by a restart, as many at a time as may be not ready. A paused pool
settles who belongs to it and does nothing else; one that is deleted does nothing: the garbage collector deletes its
machines, or sets them free.
"""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects import int_or_percent
from controlplane.api.objects.pool import BURST, PoolSelectionPolicy
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.pool.machine import number_of
from controlplane.virt_controller.pool.member import Member, Run
from controlplane.virt_controller.pool.order import chosen
from controlplane.virt_controller.pool.revision import has_other_volumes
from controlplane.virt_controller.pool.world import (
    Action,
    BeginBatch,
    CreateVm,
    DeleteVm,
    LookAtPool,
    LookForVm,
    ReleaseVm,
    RestartVm,
    UpdateVm,
    World,
)

LOOK_AGAIN_SECONDS = 1.0
"""While the cache has not read as far as the pool was when this leader first saw it: a minute at most, after a change
of leaders. Nobody else tells."""
ALL = "100%"


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    if world.is_deleting or world.problems:
        return Plan()
    released = tuple(ReleaseVm(one, "its labels are not selected any more") for one in world.strangers)
    if released or world.pool.spec.paused:
        return _at_once(world, released)
    if world.missing and not world.is_past_known:
        return Plan(requeue_after=LOOK_AGAIN_SECONDS)
    if world.missing > 0:
        return _make(world)
    return _at_once(world, _deletes(world) or _updates(world) or _restarts(world))


def _at_once(world: World, actions: tuple[Action, ...]) -> Plan[Action]:
    """Take a burst of actions that do not depend on each other, once it is sure that they are still wanted."""
    if not actions:
        return Plan()
    if not world.is_current:
        return Plan((LookAtPool(because="what is made, changed or deleted cannot be taken back"),))
    return Plan((IndependentActions(actions[:BURST]),))


def _make(world: World) -> Plan[Action]:
    """Make who is missing: those that were begun first."""
    because = _count(world)
    if not world.unmade and world.unsure:
        looks = tuple(LookForVm(one, "it may have been made again, unseen") for one in world.unsure)
        return Plan((IndependentActions(looks),))
    if not world.unmade:
        return Plan((BeginBatch(world.free[: min(world.missing, BURST)], because),))
    unsure = tuple(one for one in world.unmade if one not in world.absent)
    if len(world.unmade) > world.missing and unsure:
        looks = tuple(LookForVm(one, "more were begun than are missing by now") for one in unsure)
        return _at_once(world, looks)
    return _at_once(world, tuple(CreateVm(one, because) for one in world.unmade[: world.missing]))


def _deletes(world: World) -> tuple[Action, ...]:
    """Delete who is too many, where the pool does that. Who is going already counts as deleted."""
    strategy = world.pool.spec.scale_in_strategy
    surplus = len(world.staying) - world.pool.spec.replicas
    if surplus <= 0 or (strategy is not None and (strategy.unmanaged is not None or strategy.opportunistic)):
        return ()
    policy = strategy.proactive.selection_policy if strategy is not None and strategy.proactive else None
    first = chosen(world.pool.metadata.name, policy, world.staying)
    return tuple(DeleteVm(one, _count(world)) for one in first[:surplus])


def _updates(world: World) -> tuple[Action, ...]:
    """Give machines the template, all at once: nothing stops by it."""
    if _is_unmanaged(world):
        return ()
    pool, because = world.pool.metadata.name, "the template has changed"
    outdated = (one for one in _meant(world) if one.revision != world.revision)
    numbers = ((one, number_of(pool, one.metadata.name)) for one in outdated)
    return tuple(UpdateVm(one, number, because) for one, number in numbers if number is not None)


def _restarts(world: World) -> tuple[Action, ...]:
    """Restart what runs from another template: at once who is not ready anyway, then as many as may be not ready.

    Only machines that are started again by themselves: others have it from their next start on, and say so.
    """
    strategy, spec = world.pool.spec.update_strategy, world.pool.spec
    if _is_unmanaged(world) or (strategy is not None and strategy.opportunistic is not None):
        return ()
    outdated = tuple(_outdated(world))
    idle = [(one, run) for one, run in outdated if not run.is_ready]
    ready = [(one, run) for one, run in outdated if run.is_ready]
    most = int_or_percent.of(ALL if spec.max_unavailable is None else spec.max_unavailable, spec.replicas)
    budget = max(0, most - _unavailable(world))
    return tuple(_restart(one, run) for one, run in (*idle, *ready[:budget]))


def _restart(one: Member, run: Run) -> Action:
    if has_other_volumes(run.made_of, one.made_of):
        return DeleteVm(one, "its DataVolumes are to be others", is_update=True)
    return RestartVm(one, run, "it runs from another template")


def _outdated(world: World) -> Iterator[tuple[Member, Run]]:
    for one in _meant(world):
        run = world.run_of(one)
        if run is not None and one.is_kept_running and run.made_of != one.made_of:
            yield one, run


def _unavailable(world: World) -> int:
    """Count who should run and is not ready, whatever the reason; who is missing, too."""
    kept = (one for one in world.counted if one.is_kept_running)
    return max(0, world.missing) + sum(not _is_available(world, one) for one in kept)


def _is_available(world: World, one: Member) -> bool:
    run = None if world.is_going(one) else world.run_of(one)
    return run is not None and run.is_ready


def _meant(world: World) -> tuple[Member, ...]:
    """Return whom a change of the template is meant for, in order."""
    strategy = world.pool.spec.update_strategy
    proactive = strategy.proactive if strategy is not None else None
    policy: PoolSelectionPolicy | None = proactive.selection_policy if proactive is not None else None
    return chosen(world.pool.metadata.name, policy, world.staying)


def _is_unmanaged(world: World) -> bool:
    strategy = world.pool.spec.update_strategy
    return strategy is not None and strategy.unmanaged is not None


def _count(world: World) -> str:
    return f"{world.pool.spec.replicas} are wanted and {len(world.counted)} there"
