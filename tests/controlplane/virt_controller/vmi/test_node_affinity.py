# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node affinity: failed nodes are avoided, quarantined nodes are excluded, and the user's own affinity is kept."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from controlplane.virt_controller.vmi.node_affinity import PREFERRED, REQUIRED, avoid_nodes

ZONE = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
HERE = {"weight": 60, "preference": ZONE}


def not_on(*names: str) -> list[Any]:
    return [{"key": "metadata.name", "operator": "NotIn", "values": [name]} for name in names]


def preferring(*theirs: Any) -> dict[str, Any]:
    return {"nodeAffinity": {PREFERRED: list(theirs)}}


@pytest.mark.parametrize("affinity", [None, {}, preferring(HERE)])
def test_without_a_failure_or_a_quarantine_the_users_affinity_is_unchanged(affinity: Any) -> None:
    assert avoid_nodes(affinity, failed_on=[], excluded_nodes=[]) is affinity


def test_nodes_of_failed_attempts_are_avoided_and_never_excluded() -> None:
    affinity = avoid_nodes(None, failed_on=["b", "a", "b"], excluded_nodes=[])
    avoid = {"weight": 100, "preference": {"matchFields": not_on("a", "b")}}
    assert affinity == {"nodeAffinity": {PREFERRED: [avoid]}}


@pytest.mark.parametrize(("theirs", "times"), [([HERE], 1), ([HERE, HERE], 2), ([HERE] * 5, 4), ([HERE] * 99, 10)])
def test_all_preferences_of_the_user_weigh_less(theirs: list[Any], times: int) -> None:
    affinity = avoid_nodes(preferring(*theirs), failed_on=["a"], excluded_nodes=[])
    assert affinity is not None
    entries = affinity["nodeAffinity"][PREFERRED]
    assert entries[: len(theirs)] == theirs
    assert [entry["weight"] for entry in entries[len(theirs) :]] == [100] * times


def test_quarantined_nodes_are_excluded_from_every_term() -> None:
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}
    theirs = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE, other, {}]}}, "podAffinity": {}}
    before = copy.deepcopy(theirs)
    affinity = avoid_nodes(theirs, failed_on=[], excluded_nodes=["b"])
    assert theirs == before
    assert affinity is not None
    assert affinity["podAffinity"] == {}
    assert affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {**ZONE, "matchFields": not_on("b")},
        {"matchFields": [*other["matchFields"], *not_on("b")]},
        {},
    ]


def test_a_machine_without_affinity_excludes_quarantined_nodes_by_name() -> None:
    """A restarted kubelet would check a label again, and end the Pods that no longer match."""
    affinity = avoid_nodes(None, failed_on=[], excluded_nodes=["b", "a"])
    assert affinity == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": not_on("a", "b")}]}}}
