# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stage of a VMI's migration, derived from the VMI's status. Pure (docs/adr/0016)."""

from __future__ import annotations

from collections.abc import Container
from enum import Enum, auto

from controlplane.api.objects.migration_state import MigrationState


class MigrationStage(Enum):
    """Where a migration is, and so which node has the guest."""

    NONE = auto()
    """No migration was handed over."""
    PREPARING = auto()
    """Handed over. Nothing was sent: the guest runs at the source."""
    SENDING = auto()
    """The source sends the guest's memory. The guest runs at the source, or is on its way."""
    ARRIVED = auto()
    """The target reports that the guest runs there. The source has not confirmed that its QEMU is gone."""
    LEFT = auto()
    """The source reports that its QEMU is gone for good. The run still belongs to the source: the commit is due."""
    COMMITTED = auto()
    """The run belongs to the target."""
    SUPERSEDED = auto()
    """The migration succeeded, and the run belongs to another Pod by now, or to none."""
    FAILED = auto()
    """The guest stays at the source."""


BEING_SENT = frozenset({MigrationStage.SENDING, MigrationStage.ARRIVED})
"""Stages in which only the source and the target know where the guest is."""


def migration_stage(state: MigrationState | None, active_pods: Container[str]) -> MigrationStage:
    """Derive the stage. state, active_pods: status.migrationState and status.activePods of a VMI."""
    if state is None:
        return MigrationStage.NONE
    if state.target_pod_uid in active_pods:
        return MigrationStage.COMMITTED
    if state.is_over:
        return _final_stage(state, active_pods)
    if not state.migration_uid:
        return MigrationStage.NONE
    if state.start_timestamp is None:
        return MigrationStage.PREPARING
    has_arrived = state.target_node_domain_ready_timestamp is not None
    return MigrationStage.ARRIVED if has_arrived else MigrationStage.SENDING


def _final_stage(state: MigrationState, active_pods: Container[str]) -> MigrationStage:
    if state.failed:
        return MigrationStage.FAILED
    return MigrationStage.LEFT if state.source_pod_uid in active_pods else MigrationStage.SUPERSEDED
