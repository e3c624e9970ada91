# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stage of a migration, derived from the status of the VMI."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.api.objects.migration_stage import MigrationStage, migration_stage
from controlplane.api.objects.migration_state import MigrationState

SOURCE, TARGET = {"source": "node1"}, {"target": "node2"}
STARTED: dict[str, Any] = {"start_timestamp": "2026-01-01T00:00:00Z"}
READY: dict[str, Any] = {**STARTED, "target_node_domain_ready_timestamp": "2026-01-01T00:00:01Z"}


@pytest.mark.parametrize(
    ("fields", "active_pods", "stage"),
    [
        ({}, SOURCE, MigrationStage.PREPARING),
        ({"migration_uid": ""}, SOURCE, MigrationStage.NONE),
        (STARTED, SOURCE, MigrationStage.SENDING),
        (READY, SOURCE, MigrationStage.ARRIVED),
        ({**READY, "completed": True}, SOURCE, MigrationStage.LEFT),
        ({**STARTED, "completed": True}, SOURCE, MigrationStage.LEFT),
        ({**READY, "completed": True}, TARGET, MigrationStage.COMMITTED),
        (READY, TARGET, MigrationStage.COMMITTED),
        ({**READY, "completed": True}, {"another": "node3"}, MigrationStage.SUPERSEDED),
        ({**READY, "completed": True}, {}, MigrationStage.SUPERSEDED),
        ({**READY, "failed": True}, SOURCE, MigrationStage.FAILED),
        ({**READY, "failed": True, "completed": True}, SOURCE, MigrationStage.FAILED),
        ({"failed": True}, SOURCE, MigrationStage.FAILED),
    ],
)
def test_the_stage_follows_from_the_status(
    fields: dict[str, Any], active_pods: dict[str, str], stage: MigrationStage
) -> None:
    usual = {"migration_uid": "m1", "source_pod_uid": "source", "target_pod_uid": "target"}
    assert migration_stage(MigrationState(**{**usual, **fields}), active_pods) is stage


def test_a_vmi_without_a_migration_state_is_in_no_migration() -> None:
    assert migration_stage(None, SOURCE) is MigrationStage.NONE


def test_a_failed_migration_has_not_moved_the_guest() -> None:
    assert MigrationState(completed=True).has_moved
    assert not MigrationState(completed=True, failed=True).has_moved
