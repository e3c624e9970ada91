# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reports of workload updates: the number of outdated VMIs in the KubeVirt object, back-offs as Events. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from controlplane.api.objects.kubevirt import KubeVirtStatus
from controlplane.virt_controller.workload_update.candidates import count_outdated
from controlplane.virt_controller.workload_update.instance_view import InstanceView
from controlplane.virt_controller.workload_update.world import World


@dataclass(frozen=True, slots=True)
class BackOffNotice:
    """The next migration of a VMI backs off because this one failed."""

    instance: InstanceView
    after: str
    failures: int


@dataclass(frozen=True, slots=True)
class StatusUpdate:
    status: KubeVirtStatus | None
    """None: the written status is right."""
    back_offs: tuple[BackOffNotice, ...]


def derive_status(world: World) -> StatusUpdate | None:
    """Return what to report; None if there is nothing new."""
    old = world.kubevirt.status
    if world.kubevirt.metadata.deletion_timestamp is not None:
        return None
    outdated = count_outdated([candidate.instance for candidate in world.candidates])
    new = msgspec.structs.replace(old, outdated_virtual_machine_instance_workloads=outdated)
    back_offs = tuple(_back_offs(world))
    if new == old and not back_offs:
        return None
    return StatusUpdate(None if new == old else new, back_offs)


def _back_offs(world: World) -> list[BackOffNotice]:
    back_offs = []
    for candidate in world.candidates:
        failures = candidate.failures
        if failures and candidate.waits_for(world.now) > 0 and failures[0].metadata.uid not in world.announced:
            back_offs.append(BackOffNotice(candidate.instance, failures[0].metadata.uid, len(failures)))
    return back_offs
