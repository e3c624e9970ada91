# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A series of migrations of one instance: which failed last, what the next one is called."""

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
def test_the_failures_are_those_since_one_that_did_not_fail(phases: list[str], failed: list[int]) -> None:
    """Or one that failed weeks ago would have the next one wait for longer."""
    known = [one(number, phase) for number, phase in enumerate(phases, 1)]
    for order in (known, known[::-1]):
        found = [migration.metadata.name.rpartition("-")[2] for migration in OURS.failures(order)]
        assert found == list(map(str, failed))


def test_what_was_made_of_an_earlier_instance_of_that_name_is_no_failure_of_this_one() -> None:
    name = "kubevirt-evacuation-otheruid-1"
    earlier = a_migration("Failed", uid=name, name=name, annotations={"mark": ""}, entered=format_timestamp(NOW - 1))
    assert OURS.ours([earlier]) == []
    assert OURS.waits_for([earlier], NOW) == 0


def test_the_next_one_waits_from_when_the_last_one_failed() -> None:
    known = [one(1, "Failed", ago=100), one(2, "Failed", ago=15)]
    assert OURS.waits_for(known, NOW) == 25
    assert OURS.waits_for([one(1, "Failed", ago=5), one(2, "Succeeded"), one(3, "Failed", ago=5)], NOW) == 15
    assert OURS.waits_for([], NOW) == 0
