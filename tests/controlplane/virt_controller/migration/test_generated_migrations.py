# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Generated migrations of one instance: the recent failures, the back-off and the next name."""

from __future__ import annotations

import pytest

from controlplane.api.objects.migration import VirtualMachineInstanceMigration
from controlplane.api.timestamps import format_timestamp
from controlplane.virt_controller.migration.generated_migrations import GeneratedMigrations
from tests.controlplane.virt_controller.builders import NOW
from tests.controlplane.virt_controller.migration.worlds import a_migration

OURS = GeneratedMigrations("kubevirt-evacuation-", "mark", "webuid")


def one(number: int, phase: str, *, ago: float = 0.0) -> VirtualMachineInstanceMigration:
    name = f"kubevirt-evacuation-webuid-{number}"
    return a_migration(phase, uid=name, name=name, annotations={"mark": ""}, entered=format_timestamp(NOW - ago))


@pytest.mark.parametrize(
    ("phases", "failed"),
    [
        (["Failed", "Failed"], [2, 1]),
        (["Succeeded", "Failed"], [2]),
        (["Failed", "Succeeded"], []),
        (["Failed", "Succeeded", "Failed"], [3]),
        (["Failed", "Running"], []),
        (["Failed"] * 11, [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]),
    ],
)
def test_only_failures_since_the_last_other_result_count(phases: list[str], failed: list[int]) -> None:
    """Otherwise a failure of weeks ago would lengthen the next back-off."""
    migrations = [one(number, phase) for number, phase in enumerate(phases, 1)]
    for order in (migrations, migrations[::-1]):
        numbers = [migration.metadata.name.rpartition("-")[2] for migration in OURS.failures(order)]
        assert numbers == list(map(str, failed))


def test_a_migration_of_an_earlier_instance_with_this_name_is_no_failure() -> None:
    name = "kubevirt-evacuation-otheruid-1"
    earlier = a_migration("Failed", uid=name, name=name, annotations={"mark": ""}, entered=format_timestamp(NOW - 1))
    assert OURS.ours([earlier]) == []
    assert OURS.waits_for([earlier], NOW) == 0


def test_the_back_off_starts_at_the_last_failure() -> None:
    migrations = [one(1, "Failed", ago=100), one(2, "Failed", ago=15)]
    assert OURS.waits_for(migrations, NOW) == 25
    assert OURS.waits_for([one(1, "Failed", ago=5), one(2, "Succeeded"), one(3, "Failed", ago=5)], NOW) == 15
    assert OURS.waits_for([], NOW) == 0
