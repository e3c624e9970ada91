# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from typing import Any

import pytest
from kubevirt_api import predicates


def with_condition(kind: str, status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}}


@pytest.mark.parametrize(
    "empty", [{}, {"status": None}, {"status": {"conditions": None}}, {"metadata": None, "spec": None}]
)
def test_an_object_that_says_nothing_is_an_answer_everywhere(empty: dict[str, Any]) -> None:
    assert not predicates.is_running(empty)
    assert not predicates.is_final(empty)
    assert not predicates.is_ready(empty)
    assert predicates.phase(empty) == ""
    assert predicates.first_failure(empty) is None


@pytest.mark.parametrize(
    ("obj", "expected"),
    [
        pytest.param(with_condition("Failure", "True", "FailedCreate", "no"), ("FailedCreate", "no"), id="failure"),
        pytest.param(
            with_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes"),
            ("Unschedulable", "0/3 nodes"),
            id="no node",
        ),
        pytest.param(
            with_condition("Synchronized", "False", "ErrImagePull", "x"), ("ErrImagePull", "x"), id="no image"
        ),
        pytest.param({"status": {"phase": "Failed"}}, ("Failed", ""), id="failed without a word"),
        pytest.param({"status": {"phase": "Failed", "reason": "NodeUnresponsive"}}, ("NodeUnresponsive", ""), id="why"),
        pytest.param(with_condition("Synchronized", "True"), None, id="fine"),
    ],
)
def test_trouble_is_the_most_telling_reason(obj: dict[str, Any], expected: tuple[str, str] | None) -> None:
    assert predicates.first_failure(obj) == expected


def test_a_vm_is_up_to_date_once_the_controller_saw_its_generation() -> None:
    assert predicates.is_up_to_date({"metadata": {"generation": 2}, "status": {"desiredGeneration": 2}})
    assert not predicates.is_up_to_date({"metadata": {"generation": 2}, "status": {"desiredGeneration": 1}})
