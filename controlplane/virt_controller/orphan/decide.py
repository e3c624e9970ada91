# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about the remains of a deleted migration. Pure. The migration ends like a cancelled one.

A guest that was already sent is not affected: the source's report decides which Pod owns the run.
"""

from __future__ import annotations

from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.migration.world import (
    DeleteTarget,
    FailMigration,
    RemoveTargetLabel,
    RequestAbort,
    awaits_commit,
)
from controlplane.virt_controller.orphan.world import Action, World

GONE = "its migration was deleted"


def decide(world: World) -> Plan[Action]:
    """Choose the next actions."""
    end = _end(world)
    if end is not None:
        return Plan((end,))
    if world.left:
        return Plan(
            (IndependentActions(tuple(DeleteTarget(pod.metadata.name, pod.uid, because=GONE) for pod in world.left)),)
        )
    state = world.state
    if state is not None and state.is_over and not awaits_commit(world.vmi) and world.is_labelled:
        return Plan((RemoveTargetLabel(because=GONE),))
    return Plan()


def _end(world: World) -> FailMigration | RequestAbort | None:
    """End a migration that is under way."""
    state = world.state
    if state is None or not state.is_under_way:
        return None
    if world.is_target_down:
        return FailMigration("the target Pod is down", because=GONE)
    if state.start_timestamp is None:
        return FailMigration("the VirtualMachineInstanceMigration was deleted", because=GONE)
    return None if state.abort_requested else RequestAbort(because=GONE)
