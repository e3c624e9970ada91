# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The progress of a migration, read from it and its instance."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import Api
from ansible_collections.virtops.kubevirt.plugins.module_utils._migration import migration_status

MIGRATION: dict[str, Any] = {"metadata": {"name": "m", "namespace": "default", "uid": "u"}}


def test_a_migration_without_a_status_is_reported_as_such() -> None:
    assert migration_status.phase(MIGRATION) == ""
    assert migration_status.phase_text(MIGRATION) == "not yet seen by virt-controller"
    assert not migration_status.is_over(MIGRATION)
    assert migration_status.phases(MIGRATION) == []


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_two_phases_are_final(phase: str) -> None:
    assert migration_status.is_over({**MIGRATION, "status": {"phase": phase}})


def test_the_migration_state_of_another_migration_is_ignored() -> None:
    vmi = {"status": {"migrationState": {"migrationUid": "other", "targetNode": "node-2", "completed": True}}}
    assert migration_status.target_of(MIGRATION, vmi) == ""
    assert not migration_status.has_moved(MIGRATION, vmi)
    vmi["status"]["migrationState"]["migrationUid"] = "u"
    assert migration_status.target_of(MIGRATION, vmi) == "node-2"
    assert migration_status.has_moved(MIGRATION, vmi)


def test_a_migration_without_a_uid_does_not_match_a_state_without_one() -> None:
    vmi = {"status": {"migrationState": {"targetNode": "node-2"}}}
    assert migration_status.target_of({"metadata": {"name": "m"}}, vmi) == ""


@pytest.mark.parametrize(
    ("status", "state", "reason"),
    [
        pytest.param({"phase": "Running"}, {}, "it is Running", id="nothing told"),
        pytest.param({"phase": "Failed"}, {"failureReason": "broke"}, "broke", id="by the instance"),
        pytest.param({"migrationState": {"failureReason": "broke"}}, {}, "broke", id="by what was kept of it"),
        pytest.param(
            {"conditions": [{"type": "migrationRejectedByResourceQuota", "status": "True", "message": "full"}]},
            {},
            "migrationRejectedByResourceQuota: full",
            id="by a quota",
        ),
    ],
)
def test_the_most_specific_reason_comes_first(api: Api, status: Any, state: Any, reason: str) -> None:
    vmi = {"status": {"migrationState": {"migrationUid": "u", **state}}} if state else None
    assert migration_status.explain(api, "default", {**MIGRATION, "status": status}, vmi)["reason"] == reason


@pytest.mark.parametrize(
    ("phase", "reason"),
    [
        ("Scheduling", "FailedScheduling: 0/2 nodes are available"),
        ("Failed", "FailedScheduling: 0/2 nodes are available"),
        ("PreparingTarget", "it is PreparingTarget"),
        ("TargetReady", "it is TargetReady"),
        ("Running", "it is Running"),
    ],
)
def test_the_reason_of_a_target_pod_that_has_started_is_ignored(
    api: Api, monkeypatch: pytest.MonkeyPatch, phase: str, reason: str
) -> None:
    message = "FailedScheduling: 0/2 nodes are available"
    monkeypatch.setattr(migration_status.diagnose, "warnings", lambda *_unused: [message])
    result = migration_status.explain(api, "default", {**MIGRATION, "status": {"phase": phase}}, None)
    assert (result["reason"], result["events"]) == (reason, [message])
