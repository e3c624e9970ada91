# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which node to quarantine or to release: pure."""

from __future__ import annotations

from dataclasses import replace

from controlplane.engine.plan import Plan, WriteStatus
from controlplane.virt_controller.quarantine.failure_attribution import AttributedFailure
from controlplane.virt_controller.quarantine.quarantine_label import parse_label
from controlplane.virt_controller.quarantine.world import Action, ObservedNode, Quarantine, Release, World

WINDOW_SECONDS = 600.0
"""Older failures do not count."""
MACHINES = 3
NAMESPACES = 2
"""How many namespaces the machines must belong to, if that many have machines: no single tenant can quarantine a node.
"""
SETTLE_SECONDS = 60.0
"""After this time, the writes of a former leader have taken effect or never will."""


def decide(world: World) -> Plan[Action]:
    """Choose one action. If two nodes are to be quarantined, the second one is judged again after the first."""
    releases = [Release(node, "its quarantine has ended") for node in world.nodes if _is_over(world, node)]
    if releases:
        return Plan((releases[0],))
    next_end = _next_end(world)
    failing = _failing_nodes(world)
    if not failing:
        return Plan(requeue_after=next_end)
    if world.leading_for < SETTLE_SECONDS:
        return Plan(requeue_after=SETTLE_SECONDS - world.leading_for)
    worst = max(failing, key=lambda node: len(_machines(node.failures)))
    staying = staying_without(world, worst)
    if staying is None:
        return Plan((WriteStatus("too few nodes would remain"),), requeue_after=next_end)
    return Plan((Quarantine(worst, world.now + world.seconds, staying, _why(worst.failures)),))


def staying_without(world: World, candidate: ObservedNode) -> tuple[str, ...] | None:
    """Return the other nodes that take machines; None if fewer than half of the nodes would take machines."""
    fit = [node for node in world.nodes if node.is_fit]
    staying = tuple(node.name for node in fit if node.mark is None and node.name != candidate.name)
    return staying if len(staying) * 2 >= len(fit) else None


def newly_withheld(world: World) -> tuple[ObservedNode, ...]:
    """Return the nodes that are not quarantined because too few nodes would remain, if that is not reported yet."""
    if world.leading_for < SETTLE_SECONDS:
        return ()
    spared = (node for node in _failing_nodes(world) if staying_without(world, node) is None)
    return tuple(node for node in spared if world.withheld.get(node.name) != node.failures)


def seconds_left(world: World, node: ObservedNode) -> float | None:
    """Return the rest of a quarantine by virt-controller: by its time, or by how long this process has observed it."""
    until = None if node.mark is None else parse_label(node.mark)
    return None if until is None else min(until - world.now, world.seconds - node.quarantined_for)


def _is_over(world: World, node: ObservedNode) -> bool:
    remaining = seconds_left(world, node)
    return remaining is not None and remaining <= 0


def _next_end(world: World) -> float | None:
    ends = [seconds for seconds in (seconds_left(world, node) for node in world.nodes) if seconds is not None]
    return min(ends, default=None)


def _failing_nodes(world: World) -> list[ObservedNode]:
    """Return the nodes with enough recent failures, without their older failures."""
    judged = (replace(node, failures=_recent(world, node)) for node in world.nodes if node.mark is None and node.is_fit)
    return [node for node in judged if world.seconds > 0 and _is_enough(world, node.failures)]


def _recent(world: World, node: ObservedNode) -> tuple[AttributedFailure, ...]:
    return tuple(failure for failure in node.failures if world.monotonic - failure.at < WINDOW_SECONDS)


def _is_enough(world: World, failures: tuple[AttributedFailure, ...]) -> bool:
    namespaces = {failure.vmi.namespace for failure in failures}
    return len(_machines(failures)) >= MACHINES and len(namespaces) >= min(NAMESPACES, max(world.namespaces, 1))


def _machines(failures: tuple[AttributedFailure, ...]) -> set[str]:
    return {failure.machine for failure in failures}


def _why(failures: tuple[AttributedFailure, ...]) -> str:
    reasons = ", ".join(sorted({failure.reason for failure in failures}))
    return f"runs of {len(_machines(failures))} machines failed here ({reasons}) and started on other nodes"
