# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The content of a hand-over, and that it replaces every field of an earlier one."""

from __future__ import annotations

import msgspec

from controlplane.virt_controller.migration.hand_over import failed_state_patch, hand_over_state, replace_state_patch
from tests.controlplane.virt_controller.builders import POD_UID, STAMP, a_running_pod
from tests.controlplane.virt_controller.migration.worlds import (
    HANDED_OVER,
    TARGET_UID,
    UID,
    a_migration,
    a_target,
    a_world,
    an_instance,
)
from tests.support.store import merged


def test_a_hand_over_names_both_pods_and_nodes_and_the_settings() -> None:
    new = hand_over_state(a_world(a_migration("Scheduled"), an_instance()), a_target())
    assert new is not None
    assert (new.migration_uid, new.source_pod_uid, new.target_pod_uid) == (UID, POD_UID, TARGET_UID)
    assert (new.source_node, new.target_node, new.source_pod) == ("node-1", "node-2", HANDED_OVER["sourcePod"])
    assert new.migration_configuration is not None


def test_a_hand_over_needs_exactly_one_known_source_pod() -> None:
    migration, target = a_migration("Scheduled"), a_target()
    assert hand_over_state(a_world(migration, an_instance(), launchers=()), target) is None
    assert hand_over_state(a_world(migration, None), target) is None
    two = an_instance(activePods={POD_UID: "node-1", "other": "node-3"})
    assert hand_over_state(a_world(migration, two, launchers=(a_running_pod(),)), target) is None


def test_a_hand_over_replaces_the_earlier_migration_state() -> None:
    new = hand_over_state(a_world(a_migration("Scheduled"), an_instance()), a_target())
    assert new is not None
    old = {
        "failed": True,
        "laterField": {"a": 1},
        "migrationConfiguration": {"laterSetting": 1, "progressTimeout": 7},
        "migrationUid": "former",
    }
    raw = msgspec.json.encode({"status": {"migrationState": old, "phase": "Running"}})
    after = merged({"migrationState": old, "phase": "Running"}, replace_state_patch(raw, new))
    assert after["migrationState"] == {**HANDED_OVER, "migrationConfiguration": {}}
    assert after["phase"] == "Running"


def test_a_first_hand_over_has_all_fields() -> None:
    new = hand_over_state(a_world(a_migration("Scheduled"), an_instance()), a_target())
    assert new is not None
    assert set(replace_state_patch(b"{}", new)["migrationState"]) == {*HANDED_OVER, "migrationConfiguration"}


def test_a_failed_hand_over_of_a_paused_guest_reports_the_pause() -> None:
    stopped = an_instance({**HANDED_OVER, "mode": "Paused"}, conditions=[{"type": "Paused", "status": "False"}])
    (condition,) = failed_state_patch(stopped, "it did not begin in time", STAMP)["conditions"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "Paused",
        "True",
        "PausedByMigrationMonitor",
    )
