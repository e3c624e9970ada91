# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""May machines still be sent to a node? Pure."""

from __future__ import annotations

from controlplane.api.objects.lease import Lease
from controlplane.engine.plan import Plan
from controlplane.virt_controller.node.world import Action, MarkUnschedulable, World

USUAL_SECONDS = 40
"""How long a Lease lasts of which nothing can be read, or that is not there: virt-handler's own default."""
LONGEST_SECONDS = 120
"""The role's policy lets no virt-handler say more; an older Lease might."""


def decide(world: World) -> Plan[Action]:
    """Take a node off the list when its virt-handler was silent for all the time that it may be."""
    if not world.takes_machines:
        return Plan()
    duration = duration_seconds(world.lease)
    left = duration - world.unrenewed_for
    if left > 0:
        return Plan(requeue_after=left)
    what = "its Lease was not renewed" if world.lease is not None else "it has no Lease"
    return Plan((MarkUnschedulable(f"virt-handler is silent: {what} for {duration} s"),))


def duration_seconds(lease: Lease | None) -> int:
    if lease is None or lease.spec.lease_duration_seconds < 1:
        return USUAL_SECONDS
    return min(lease.spec.lease_duration_seconds, LONGEST_SECONDS)
