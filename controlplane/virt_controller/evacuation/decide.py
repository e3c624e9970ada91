# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a VMI that has to leave its node gets a migration now, and when to report a back-off: pure."""

from __future__ import annotations

from controlplane.engine.plan import Plan
from controlplane.virt_controller.evacuation.world import Action, BackOff, CreateMigration, World


def decide(world: World) -> Plan[Action]:
    """Choose the next action."""
    if not _is_due(world):
        return Plan()
    remaining = world.waits_for
    if remaining > 0:
        return Plan(requeue_after=remaining)
    return Plan((CreateMigration(world.next_name, because="its guest has to leave the node"),))


def derive_back_off(world: World) -> BackOff | None:
    """Return the back-off to report; None without one, or if it is reported already."""
    failures = world.failures
    if not _is_due(world) or world.waits_for <= 0 or world.announced == failures[0].metadata.uid:
        return None
    return BackOff(failures[0].metadata.uid, len(failures))


def _is_due(world: World) -> bool:
    return world.is_to_leave and world.can_leave and not world.is_moving
