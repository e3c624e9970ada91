# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a node still takes machines. Pure."""

from __future__ import annotations

from controlplane.api.objects.lease import Lease
from controlplane.engine.plan import Plan
from controlplane.virt_controller.node.world import Action, MarkUnschedulable, World

USUAL_SECONDS = 40
"""Duration of a missing or unreadable Lease: virt-handler's default."""
LONGEST_SECONDS = 120
"""Upper bound. The role's policy enforces it; a Lease may be older than the policy."""


def decide(world: World) -> Plan[Action]:
    """Make a node unschedulable when its virt-handler has been silent for the whole duration of its Lease."""
    if not world.takes_machines:
        return Plan()
    duration = duration_seconds(world.lease)
    remaining = duration - world.unrenewed_for
    if remaining > 0:
        return Plan(requeue_after=remaining)
    cause = "its Lease was not renewed" if world.lease is not None else "it has no Lease"
    return Plan((MarkUnschedulable(f"virt-handler is silent: {cause} for {duration} s"),))


def duration_seconds(lease: Lease | None) -> int:
    if lease is None or lease.spec.lease_duration_seconds < 1:
        return USUAL_SECONDS
    return min(lease.spec.lease_duration_seconds, LONGEST_SECONDS)
