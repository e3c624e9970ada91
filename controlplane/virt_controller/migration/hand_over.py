# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The hand-over: replaces the VMI's migrationState with that of this migration. Pure.

It removes all fields of the former state, even those that this version does not know.
"""

from __future__ import annotations

from typing import Any

import msgspec
from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.decode import encode
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.migration_policy import MigrationPolicy
from controlplane.api.objects.migration_state import PAUSED_FOR_MIGRATION_MESSAGE, STOPPED, MigrationState
from controlplane.api.objects.pod import Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.migration.policy import merge
from controlplane.virt_controller.migration.world import World


def hand_over_state(world: World, target: Pod, policy: MigrationPolicy | None = None) -> MigrationState | None:
    """Return the new state: source, target and settings. None if the run does not belong to exactly one known Pod."""
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
    """Build the status patch that fails a migration before its guest was sent. now: timestamp."""
    state = {"failed": True, "completed": True, "failureReason": why, "endTimestamp": now}
    return {"migrationState": state, **_report_stopped(vmi, now)}


def _report_stopped(vmi: VirtualMachineInstance, now: str) -> dict[str, Any]:
    """Report the pause of a guest that was stopped for its migration, which virt-controller now fails.

    The source may be unreachable, and the next hand-over overwrites the mode: the cause of the pause would be lost.
    """
    migration, paused = vmi.status.migration_state, conditions.find(vmi.status.conditions, condition_types.PAUSED)
    if migration is None or migration.mode != STOPPED or (paused is not None and paused.status == "True"):
        return {}
    paused_by_monitor = Condition(
        type=condition_types.PAUSED,
        status="True",
        reason=condition_types.PAUSED_BY_MONITOR,
        message=PAUSED_FOR_MIGRATION_MESSAGE,
    )
    return {
        "conditions": [encode(condition) for condition in conditions.put(vmi.status.conditions, paused_by_monitor, now)]
    }


def replace_state_patch(raw: bytes, new: MigrationState) -> dict[str, Any]:
    """Build the status patch that replaces migrationState. raw: the VMI as stored."""
    before = msgspec.json.decode(raw).get("status", {}).get("migrationState") or {}
    return {"migrationState": {**dict.fromkeys(before), **_with_nulls(before, encode(new))}}


def _with_nulls(before: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Set fields of nested objects that the new state lacks to null: a merge patch merges nested objects."""
    return {
        name: {**dict.fromkeys(before[name]), **value}
        if isinstance(value, dict) and isinstance(before.get(name), dict)
        else value
        for name, value in new.items()
    }
