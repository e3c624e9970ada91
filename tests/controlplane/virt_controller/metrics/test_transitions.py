# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controlplane.api.objects.resources import Key
from controlplane.virt_controller.metrics.transitions import Transitions

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


def test_a_phase_change_is_measured_from_the_last_phase_and_from_the_creation() -> None:
    counted = Counted()

    counted.changed(KEY, a_vmi("Scheduled"), a_vmi("Running"))

    assert counted.sums() == {"seconds_sum Running Scheduled": 4, "from_creation_seconds_sum Running": 8}


def test_the_first_phase_is_measured_from_the_creation() -> None:
    counted = Counted()

    counted.changed(KEY, a_vmi(""), a_vmi("Pending"))

    assert counted.sums()["seconds_sum Pending "] == 1


def test_a_requested_end_is_measured_from_the_deletion() -> None:
    counted = Counted()

    counted.changed(KEY, a_vmi("Running", deleted_at=30), a_vmi("Failed", deleted_at=30))

    assert counted.sums()["from_deletion_seconds_sum Failed"] == 10


def test_of_a_deleting_vmi_only_the_end_is_measured_from_the_deletion() -> None:
    counted = Counted()

    counted.changed(KEY, a_vmi("Scheduled", deleted_at=6), a_vmi("Running", deleted_at=6))

    assert "from_deletion_seconds_sum Running" not in counted.sums()


def test_a_clock_that_is_behind_causes_no_negative_time() -> None:
    counted = Counted()

    counted.changed(KEY, a_vmi("Scheduled", Running=1), a_vmi("Running", Running=1))

    assert counted.sums()["seconds_sum Running Scheduled"] == 0


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
