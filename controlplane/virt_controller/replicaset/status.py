# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a replica set. Pure."""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSetStatus
from controlplane.api.objects.selector import render
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.members.status import Reasons
from controlplane.virt_controller.members.world import BeginBatch, MemberAction
from controlplane.virt_controller.replicaset.world import World

REASONS = Reasons(
    create=condition_types.FAILED_CREATE,
    delete=condition_types.FAILED_DELETE,
    paused=("Paused", "Controller got paused"),
)
HELD_BACK = (
    "instances ended before they ran; those that replace them wait, ever longer while none comes to run, 300 s at most;"
    " Events of the instances say why they ended"
)


def derive_status(
    world: World, problem: RefusedStep[MemberAction] | None
) -> VirtualMachineInstanceReplicaSetStatus | None:
    """Return the status to write; None if it is written already."""
    status = _derive(world, problem)
    return None if status == world.owner.status else status


def status_of_batch(world: World, action: BeginBatch) -> VirtualMachineInstanceReplicaSetStatus:
    """Return the status that begins a batch."""
    status = _derive(world, None)
    return msgspec.structs.replace(status, batches=status.batches + 1, batch_size=action.size)


def _derive(world: World, problem: RefusedStep[MemberAction] | None) -> VirtualMachineInstanceReplicaSetStatus:
    old = world.owner.status
    return msgspec.structs.replace(
        old,
        replicas=len(world.active),
        ready_replicas=sum(member.is_ready for member in world.active),
        label_selector=render(world.owner.spec.selector),
        conditions=REASONS.conditions(world, problem, HELD_BACK if world.held_back else ""),
        batch_size=old.batch_size if world.unmade else 0,
    )
