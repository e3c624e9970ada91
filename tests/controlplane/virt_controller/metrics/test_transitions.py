# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controlplane.api.objects.resources import Key
from controlplane.virt_controller.metrics.transitions import MigrationTransitions, Transitions

KEY = Key("shop", "web")
STAMPS = {"Pending": 2, "Scheduling": 3, "Scheduled": 5, "Running": 9, "Failed": 40}


def at(second: int) -> str:
    return f"2026-01-31T12:00:{second:02}Z"


def a_vmi(phase: str, uid: str = "u", *, deleted_at: int | None = None, **stamps: int) -> bytes:
    entered = [{"phase": name, "phaseTransitionTimestamp": at(second)} for name, second in {**STAMPS, **stamps}.items()]
    meta: dict[str, Any] = {"uid": uid, "creationTimestamp": at(1)}
    if deleted_at is not None:
        meta["deletionTimestamp"] = at(deleted_at)
    return json.dumps({"metadata": meta, "status": {"phase": phase, "phaseTransitionTimestamps": entered}}).encode()


class Counted:
    def __init__(self, *, is_leader: bool = True) -> None:
        self._registry = CollectorRegistry()
        self.changed = Transitions(self._registry, lambda: is_leader).changed

    def sums(self) -> dict[str, float]:
        """Return the recorded sums by name and labels."""
        return {
            " ".join(
                [sample.name.removeprefix("kubevirt_vmi_phase_transition_time_"), *sample.labels.values()]
            ): sample.value
            for family in self._registry.collect()
            for sample in family.samples
            if sample.name.endswith("_sum")
        }


FROM_LAST, FROM_CREATION, FROM_DELETION = "seconds_sum", "from_creation_seconds_sum", "from_deletion_seconds_sum"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        pytest.param(
            a_vmi("Scheduled"),
            a_vmi("Running"),
            {f"{FROM_LAST} Running Scheduled": 4, f"{FROM_CREATION} Running": 8},
            id="from the last phase and from the creation",
        ),
        pytest.param(
            a_vmi(""), a_vmi("Pending"), {f"{FROM_LAST} Pending ": 1, f"{FROM_CREATION} Pending": 1}, id="the first"
        ),
        pytest.param(
            a_vmi("Running", deleted_at=30),
            a_vmi("Failed", deleted_at=30),
            {f"{FROM_LAST} Failed Running": 31, f"{FROM_CREATION} Failed": 39, f"{FROM_DELETION} Failed": 10},
            id="a requested end",
        ),
        pytest.param(
            a_vmi("Scheduled", deleted_at=6),
            a_vmi("Running", deleted_at=6),
            {f"{FROM_LAST} Running Scheduled": 4, f"{FROM_CREATION} Running": 8},
            id="deleting, not at its end",
        ),
        pytest.param(
            a_vmi("Scheduled", Running=1),
            a_vmi("Running", Running=1),
            {f"{FROM_LAST} Running Scheduled": 0, f"{FROM_CREATION} Running": 0},
            id="a clock that is behind: nothing negative",
        ),
    ],
)
def test_what_a_phase_change_records(before: bytes, after: bytes, expected: dict[str, float]) -> None:
    counted = Counted()

    counted.changed(KEY, before, after)

    assert counted.sums() == expected


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(None, a_vmi("Pending"), id="it came"),
        pytest.param(a_vmi("Failed"), None, id="it went"),
        pytest.param(a_vmi("Running"), a_vmi("Running"), id="no phase changed"),
        pytest.param(a_vmi("Failed", "u"), a_vmi("Pending", "v"), id="another of its name"),
        pytest.param(a_vmi("Running"), a_vmi("Dancing"), id="a phase that nobody knows"),
        pytest.param(a_vmi("Dancing"), a_vmi("Running"), id="from one"),
        pytest.param(b"[]", a_vmi("Running"), id="unreadable before"),
        pytest.param(a_vmi("Running"), b"\xff", id="unreadable after"),
    ],
)
def test_an_update_without_a_phase_change_is_not_counted(before: bytes | None, after: bytes | None) -> None:
    counted = Counted()

    counted.changed(KEY, before, after)

    assert counted.sums() == {}


def test_only_the_leader_counts() -> None:
    counted = Counted(is_leader=False)

    counted.changed(KEY, a_vmi("Scheduled"), a_vmi("Running"))

    assert counted.sums() == {}


@pytest.mark.parametrize(
    ("before", "after", "is_leader", "expected"),
    [
        pytest.param(a_vmi("Scheduled"), a_vmi("Running"), True, {"Running": 8}, id="a new phase"),
        pytest.param(a_vmi("Scheduled"), a_vmi("Running"), False, {}, id="another replica"),
        pytest.param(a_vmi("Running"), a_vmi("Running"), True, {}, id="the same phase"),
        pytest.param(a_vmi("Pending"), a_vmi("Running", "another"), True, {}, id="another migration of this name"),
        pytest.param(a_vmi("Pending"), a_vmi("Flying", Flying=9), True, {}, id="an unknown phase"),
        pytest.param(None, a_vmi("Running"), True, {}, id="just created"),
        pytest.param(a_vmi("Pending"), b"{", True, {}, id="unreadable"),
    ],
)
def test_migrations_are_timed_from_their_creation(
    before: bytes | None, after: bytes, is_leader: bool, expected: dict[str, float]
) -> None:
    registry = CollectorRegistry()
    MigrationTransitions(registry, lambda: is_leader).changed(KEY, before, after)

    assert {
        sample.labels["phase"]: sample.value
        for family in registry.collect()
        for sample in family.samples
        if sample.name.endswith("_seconds_sum")
    } == expected
