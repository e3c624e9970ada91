# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which VMIs to label, migrate and evict now, so that all get to the deployed launcher. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controlplane.api.objects.kubevirt import EVICT, LIVE_MIGRATE
from controlplane.api.objects.migration import SYSTEM_CRITICAL, USER_TRIGGERED
from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.kubevirt.status import DEPLOYED
from controlplane.virt_controller.workload_update.world import (
    OUTDATED,
    Action,
    BeginBatch,
    Candidate,
    CreateMigration,
    DropMigration,
    Evict,
    Label,
    World,
)

LABELS = 100
"""Limit of labels that one pass writes: migrations must not wait for all labels."""


def decide(world: World) -> Plan[Action]:
    """Choose the next actions; none for a VMI in back-off."""
    kubevirt = world.kubevirt
    if kubevirt.metadata.deletion_timestamp is not None or kubevirt.status.phase != DEPLOYED:
        return Plan()
    parts = (_labels(world)[:LABELS], _drops(world), _moves(world))
    steps: list[Action | IndependentActions[Action]] = [
        IndependentActions(tuple(actions)) for actions in parts if actions
    ]
    batch = _evictions(world)
    if batch:
        steps += [BeginBatch(len(batch), because="the batch interval has passed"), IndependentActions(tuple(batch))]
    return Plan(tuple(steps), requeue_after=_next_look(world))


def _labels(world: World) -> list[Action]:
    mislabelled = (
        candidate for candidate in world.candidates if candidate.instance.is_outdated != candidate.instance.is_labelled
    )
    return [
        Label(
            candidate.instance,
            because=OUTDATED if candidate.instance.is_outdated else "its launcher is up to date",
        )
        for candidate in mislabelled
        if candidate.backs_off_for <= 0
    ]


def _drops(world: World) -> list[Action]:
    return [
        DropMigration(
            candidate.instance, job.metadata.name, job.metadata.uid, because="there is no reason for it any more"
        )
        for candidate in world.candidates
        if candidate.backs_off_for <= 0
        for job in candidate.obsolete
    ]


def _moves(world: World) -> list[Action]:
    """Create no more migrations than can run at once.

    Users' migrations do not count here, because the migration queue balances them: otherwise a user who always has one
    waiting would block workload updates for ever.
    """
    limits = world.kubevirt.spec.configuration.migrations
    free, outbound = limits.parallel_migrations_per_cluster - world.under_way, Counter(world.leaving)
    actions: list[Action] = []
    for candidate in sorted(_movable(world), key=lambda candidate: candidate.order):
        if len(actions) >= free:
            break
        instance = candidate.instance
        if (
            candidate.waits_for(world.now) > 0
            or outbound[instance.node] >= limits.parallel_outbound_migrations_per_node
        ):
            continue
        outbound[instance.node] += 1
        priority = SYSTEM_CRITICAL if instance.is_outdated else USER_TRIGGERED
        actions.append(CreateMigration(instance, candidate.next_name, priority, because=candidate.reason))
    return actions


def _evictions(world: World) -> list[Action]:
    if world.next_batch_in > 0:
        return []
    due = sorted(
        (candidate for candidate in _evictable(world) if candidate.backs_off_for <= 0),
        key=lambda candidate: candidate.order,
    )
    return [Evict(candidate.instance, because=OUTDATED) for candidate in due[: world.strategy.batch_eviction_size]]


def _next_look(world: World) -> float | None:
    waits = [candidate.backs_off_for for candidate in world.candidates]
    waits += [candidate.waits_for(world.now) for candidate in _movable(world)]
    if world.strategy.batch_eviction_size and any(_evictable(world)):
        waits.append(world.next_batch_in)
    return min((seconds for seconds in waits if seconds > 0), default=None)


def _movable(world: World) -> Iterator[Candidate]:
    if LIVE_MIGRATE in world.strategy.workload_update_methods and not world.outdated_nodes:
        yield from (
            candidate for candidate in world.candidates if _is_due(candidate) and candidate.instance.is_migratable
        )


def _evictable(world: World) -> Iterator[Candidate]:
    """Yield the outdated VMIs that cannot or must not be migrated. Workload updates stop no other machines."""
    methods = world.strategy.workload_update_methods
    if EVICT not in methods or world.outdated_nodes:
        return
    for candidate in world.candidates:
        is_moved = LIVE_MIGRATE in methods and candidate.instance.is_migratable
        if _is_due(candidate) and candidate.instance.is_outdated and not is_moved:
            yield candidate


def _is_due(candidate: Candidate) -> bool:
    """Tell whether a VMI runs in one Pod, has a reason to move, and no move is under way."""
    instance = candidate.instance
    if instance.is_outdated != instance.is_labelled:
        return False  # wait for the version that has the right label
    is_free = candidate.is_served and not candidate.is_moving and not candidate.is_evicted
    return instance.is_running and bool(instance.pod) and bool(candidate.reason) and is_free
