# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hand-over: what an instance tells of migrations becomes this one. Pure.

Nothing of a former one stays, fields that this version does not know neither.
"""

from __future__ import annotations

from typing import Any

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import encode
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.migration_policy import MigrationPolicy
from controlplane.api.objects.migration_state import SAID_OF_STOPPED, STOPPED, MigrationState
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.policy import merge
from controlplane.virt_controller.migration.world import World


def hand_over_state(world: World, target: Pod, policy: MigrationPolicy | None = None) -> MigrationState | None:
    """Say who takes part, and by which settings; None when the run is not exactly one Pod's, whose name is known."""
    granted = {} if world.vmi is None else world.vmi.status.active_pods
    source = next((pod for pod in world.launchers if pod.uid in granted), None)
    if source is None or len(granted) != 1:
        return None
    return MigrationState(
        migration_uid=world.uid,
        source_node=granted[source.uid],
        target_node=target.spec.node_name,
        source_pod=source.metadata.name,
        target_pod=target.metadata.name,
        source_pod_uid=source.uid,
        target_pod_uid=target.uid,
        migration_policy_name="" if policy is None else policy.metadata.name,
        migration_configuration=merge(policy, world.configuration.migrations),
    )


def failed_state_patch(vmi: VirtualMachineInstance, why: str, now: str) -> dict[str, Any]:
    """Build the patch of a status that ends a migration before its guest was sent."""
    ended = {"failed": True, "completed": True, "failureReason": why, "endTimestamp": now}
    return {"migrationState": ended, **_tell_stopped(vmi, now)}


def _tell_stopped(vmi: VirtualMachineInstance, now: str) -> dict[str, Any]:
    """Build what is said of a guest that may have been stopped to be sent, of a migration that is ended for its source.

    Its source may be away; the next hand-over takes the mode with it, and nobody would know whose pause it is.
    """
    moving, told = vmi.status.migration_state, conditions.find(vmi.status.conditions, condition_types.PAUSED)
    if moving is None or moving.mode != STOPPED or (told is not None and told.status == "True"):
        return {}
    said = Condition(
        type=condition_types.PAUSED,
        status="True",
        reason=condition_types.PAUSED_BY_MONITOR,
        message=SAID_OF_STOPPED,
    )
    return {"conditions": [encode(condition) for condition in conditions.put(vmi.status.conditions, said, now)]}


def replace_state_patch(raw: bytes, new: MigrationState) -> dict[str, Any]:
    """Build the patch of a status that replaces all that is told of migrations. raw: the instance as it is."""
    before = msgspec.json.decode(raw).get("status", {}).get("migrationState") or {}
    return {"migrationState": {**dict.fromkeys(before), **_whole(before, encode(new))}}


def _whole(before: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Null what objects inside have more than the new ones: a merge patch goes into them."""
    return {
        name: {**dict.fromkeys(before[name]), **value}
        if isinstance(value, dict) and isinstance(before.get(name), dict)
        else value
        for name, value in new.items()
    }
