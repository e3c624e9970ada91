# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about what a migration leaves that is gone: pure. It is ended as one that is cancelled is.

A guest that was sent already is not touched: the run is given away by what its source says, whoever asked for that.
"""

from __future__ import annotations

from controlplane.engine.plan import Plan
from controlplane.virt_controller.migration.world import DeleteTarget, EndState, RequestAbort, Unlabel
from controlplane.virt_controller.orphan.world import Action, World

GONE = "its migration is gone"


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    state = world.state
    if state is not None and state.is_under_way:
        if world.is_target_down:
            return Plan((EndState("the target Pod is down", because=GONE),))
        if state.start_timestamp is None:
            return Plan((EndState("the VirtualMachineInstanceMigration was deleted", because=GONE),))
        return Plan() if state.abort_requested else Plan((RequestAbort(because=GONE),))
    if world.left:
        return Plan(tuple(DeleteTarget(one.metadata.name, one.uid, because=GONE) for one in world.left))
    if state is not None and world.is_labelled:
        return Plan((Unlabel(because=GONE),))
    return Plan()
