# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""VirtualMachineInstanceMigration: a request to move an instance to another node, and its progress. Types only."""

from __future__ import annotations

from typing import Annotated, ClassVar

import msgspec

from controlplane.api.objects.meta import Condition, Node, Object
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.resources import VIRTUAL_MACHINE_INSTANCE_MIGRATION, Resource
from controlplane.api.objects.vmi.status import PhaseTransition
from controlplane.api.schema.bounds import LabelMap, bounded, one_of

UNSET, PENDING, SCHEDULING, SCHEDULED = "", "Pending", "Scheduling", "Scheduled"
PREPARING_TARGET, TARGET_READY, RUNNING = "PreparingTarget", "TargetReady", "Running"
SUCCEEDED, FAILED = "Succeeded", "Failed"
PHASES = (UNSET, PENDING, SCHEDULING, SCHEDULED, PREPARING_TARGET, TARGET_READY, RUNNING, SUCCEEDED, FAILED)
FINAL = frozenset({SUCCEEDED, FAILED})

SYSTEM_CRITICAL, USER_TRIGGERED, SYSTEM_MAINTENANCE = "system-critical", "user-triggered", "system-maintenance"


class VirtualMachineInstanceMigrationSpec(Node, frozen=True, kw_only=True):
    """What is to be moved. It cannot be changed; deleting the migration cancels it."""

    vmi_name: Annotated[str, bounded(max_length=253)] = ""
    """Name of the instance, in the same namespace."""
    added_node_selector: LabelMap = msgspec.field(default_factory=dict)
    """Labels that the node it goes to must have, beside those that the machine asks for itself."""
    priority: Annotated[str, one_of(SYSTEM_CRITICAL, USER_TRIGGERED, SYSTEM_MAINTENANCE)] | None = None
    """Which of those that wait is first. Only the control plane sets it."""


class VirtualMachineInstanceMigrationStatus(Node, frozen=True, kw_only=True):
    """How far it got. Written by virt-controller."""

    phase: Annotated[str, bounded(max_length=64)] = ""
    """Pending, Scheduling, Scheduled, PreparingTarget, TargetReady, Running, Succeeded or Failed."""
    conditions: Annotated[tuple[Condition, ...], bounded(max_items=16)] = ()
    """migrationAbortRequested, migrationRejectedByResourceQuota."""
    phase_transition_timestamps: Annotated[tuple[PhaseTransition, ...], bounded(max_items=16)] = ()
    """When each phase was entered."""
    migration_state: MigrationState | None = None
    """The last migrationState of the instance that is about this migration."""


class VirtualMachineInstanceMigration(Object, frozen=True, kw_only=True):
    """Moves a running VirtualMachineInstance to another node."""

    resource: ClassVar[Resource] = VIRTUAL_MACHINE_INSTANCE_MIGRATION

    spec: VirtualMachineInstanceMigrationSpec
    """What is to be moved."""
    status: VirtualMachineInstanceMigrationStatus = VirtualMachineInstanceMigrationStatus()
    """How far it got."""
