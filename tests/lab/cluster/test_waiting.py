# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a node is ready again, and the error after a timeout."""

from __future__ import annotations

import datetime
import time

import pytest

from lab.cluster import waiting
from lab.cluster.waiting import is_ready, is_renewed, wait_until
from lab.errors import ApiError, LabError
from lab.machines.machine import control_plane_machine
from lab.paths import State

NOW = datetime.datetime(2026, 1, 1, 12, 0, tzinfo=datetime.UTC)


@pytest.mark.parametrize(("status", "ready"), [("True", True), ("False", False), ("Unknown", False)])
def test_a_node_is_ready_by_its_condition(status: str, ready: bool) -> None:
    assert is_ready({"status": {"conditions": [{"type": "Ready", "status": status}]}}) is ready


def test_node_without_conditions_is_not_ready() -> None:
    assert not is_ready({})


@pytest.mark.parametrize(
    ("renewed", "news"),
    [("2026-01-01T12:00:00.000001Z", True), ("2026-01-01T11:59:59.999999Z", False), (None, False)],
)
def test_a_lease_from_before_the_restart_is_not_renewed(renewed: str | None, news: bool) -> None:
    assert is_renewed({"spec": {"renewTime": renewed}}, NOW) is news


def test_a_timeout_has_the_last_answer_and_the_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([0.0, 1.0, 2.0, waiting.START_SECONDS + 1.0])
    monkeypatch.setattr(time, "monotonic", lambda: next(times))

    def refuse() -> bool:
        raise ApiError("GET /x: 503", status=503)

    machine = control_plane_machine(State(name="t"))
    with pytest.raises(LabError, match=r"^waited 90 s for x on cp \(last answer: GET /x: 503\); the logs in .*/cp/log"):
        wait_until("x", refuse, machine)


def test_a_permanent_error_is_raised_at_once() -> None:
    def refuse() -> bool:
        raise ApiError("POST /x: 422", status=422)

    with pytest.raises(ApiError, match="422"):
        wait_until("x", refuse, control_plane_machine(State(name="t")))
