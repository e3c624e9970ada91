# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a pool. Pure."""

from __future__ import annotations

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects.pool import VirtualMachinePoolStatus
from controlplane.api.objects.selector import render
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.members.status import Reasons
from controlplane.virt_controller.members.world import BeginBatch
from controlplane.virt_controller.pool.world import Action, World

REASONS = Reasons(
    create=condition_types.FAILED_SCALE_OUT,
    delete=condition_types.FAILED_SCALE_IN,
    paused=("SuccessfulPaused", "Pool controller is paused"),
)


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachinePoolStatus | None:
    """Return the status to write; None if it is written already."""
    status = _derive(world, problem)
    return None if status == world.owner.status else status


def status_of_batch(world: World, action: BeginBatch) -> VirtualMachinePoolStatus:
    """Return the status that begins a batch."""
    status = _derive(world, None)
    return msgspec.structs.replace(status, batches=status.batches + 1, begun=action.numbers)


def _derive(world: World, problem: RefusedStep[Action] | None) -> VirtualMachinePoolStatus:
    old = world.owner.status
    return msgspec.structs.replace(
        old,
        replicas=len(world.counted),
        ready_replicas=sum(member.is_ready for member in world.counted),
        label_selector=render(world.owner.spec.selector),
        conditions=REASONS.conditions(world, problem),
        begun=old.begun if world.unmade else (),
    )
