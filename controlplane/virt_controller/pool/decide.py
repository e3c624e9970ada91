# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a pool. Pure.

First release, then create missing members or delete surplus ones, then roll out the template. VMs get it at once;
running guests get it by a restart, as many at a time as maxUnavailable allows.
"""

from __future__ import annotations

from collections.abc import Iterator

from controlplane.api.objects import int_or_percent
from controlplane.api.objects.pool import BURST
from controlplane.engine.plan import Plan
from controlplane.virt_controller.members.decide import (
    LOOK_AGAIN_SECONDS,
    before_scaling,
    compare_counts,
    create_missing,
    run_now,
)
from controlplane.virt_controller.members.world import DeleteMember
from controlplane.virt_controller.pool.machine import number_of
from controlplane.virt_controller.pool.member import Member, Run
from controlplane.virt_controller.pool.order import in_order
from controlplane.virt_controller.pool.revision import has_other_volumes
from controlplane.virt_controller.pool.world import Action, RestartVm, UpdateVm, World

ALL = "100%"


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    if (plan := before_scaling(world)) is not None:
        return plan
    if world.missing and not world.has_read_earlier_batches:
        return Plan(requeue_after=LOOK_AGAIN_SECONDS)
    if world.missing > 0:
        return create_missing(world, world.missing, world.free[: min(world.missing, BURST)])
    return run_now(world, _deletes(world) or _updates(world) or _restarts(world))


def _deletes(world: World) -> tuple[Action, ...]:
    """Delete surplus members, if the pool's strategy does that. Members that are being deleted are not surplus."""
    strategy = world.owner.spec.scale_in_strategy
    surplus = len(world.selected) - world.owner.spec.replicas
    if surplus <= 0 or (strategy is not None and (strategy.unmanaged is not None or strategy.opportunistic)):
        return ()
    policy = strategy.proactive.selection_policy if strategy is not None and strategy.proactive else None
    candidates = in_order(world.owner.metadata.name, policy, world.selected)
    return tuple(DeleteMember(member, compare_counts(world)) for member in candidates[:surplus])


def _updates(world: World) -> tuple[Action, ...]:
    """Write the template into all VMs at once: no guest stops."""
    pool, because = world.owner.metadata.name, "the template has changed"
    outdated = (member for member in _updatable(world) if member.revision != world.revision)
    numbered = ((member, number_of(pool, member.metadata.name)) for member in outdated)
    return tuple(UpdateVm(member, number, because) for member, number in numbered if number is not None)


def _restarts(world: World) -> tuple[Action, ...]:
    """Restart guests with another template: all that are not ready, and as many ready ones as maxUnavailable allows.

    Only VMs that the VM controller starts again are restarted. Others get the template with their next start, and
    report that they need one.
    """
    strategy, spec = world.owner.spec.update_strategy, world.owner.spec
    if strategy is not None and strategy.opportunistic is not None:
        return ()
    outdated = tuple(_outdated(world))
    not_ready = [(member, run) for member, run in outdated if not run.is_ready]
    ready = [(member, run) for member, run in outdated if run.is_ready]
    limit = int_or_percent.of(ALL if spec.max_unavailable is None else spec.max_unavailable, spec.replicas)
    budget = max(0, limit - _unavailable(world))
    return tuple(_restart(member, run) for member, run in (*not_ready, *ready[:budget]))


def _restart(member: Member, run: Run) -> Action:
    if has_other_volumes(run.template_hash, member.template_hash):
        return DeleteMember(member, "the template has other DataVolumes", is_update=True)
    return RestartVm(member, run, "it runs with another template")


def _outdated(world: World) -> Iterator[tuple[Member, Run]]:
    for member in _updatable(world):
        run = world.run_of(member)
        if run is not None and member.is_kept_running and run.template_hash != member.template_hash:
            yield member, run


def _unavailable(world: World) -> int:
    """Count the missing members, and those that should run and are not ready for any reason."""
    going = sum(member.is_kept_running for member in world.going)
    return (
        max(0, world.missing)
        + going
        + sum(member.is_kept_running and not _is_available(world, member) for member in world.selected)
    )


def _is_available(world: World, member: Member) -> bool:
    run = world.run_of(member)
    return run is not None and run.is_ready


def _updatable(world: World) -> tuple[Member, ...]:
    """Return the members that get a changed template, in order."""
    strategy = world.owner.spec.update_strategy
    if strategy is not None and strategy.unmanaged is not None:
        return ()
    policy = strategy.proactive.selection_policy if strategy is not None and strategy.proactive else None
    return in_order(world.owner.metadata.name, policy, world.selected)
