# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Node affinity: what is avoided, what is left out, and what the user asks for besides."""

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
def test_without_a_failure_or_a_quarantine_the_users_affinity_is_as_it_is(affinity: Any) -> None:
    assert avoid_nodes(affinity, failed_on=[], kept_from=[]) is affinity


def test_nodes_where_it_failed_are_avoided_and_never_left_out() -> None:
    found = avoid_nodes(None, failed_on=["b", "a", "b"], kept_from=[])
    avoid = {"weight": 100, "preference": {"matchFields": not_on("a", "b")}}
    assert found == {"nodeAffinity": {PREFERRED: [avoid]}}


@pytest.mark.parametrize(("theirs", "times"), [([HERE], 1), ([HERE, HERE], 2), ([HERE] * 5, 4), ([HERE] * 99, 10)])
def test_all_that_a_user_prefers_weighs_less(theirs: list[Any], times: int) -> None:
    found = avoid_nodes(preferring(*theirs), failed_on=["a"], kept_from=[])
    assert found is not None
    entries = found["nodeAffinity"][PREFERRED]
    assert entries[: len(theirs)] == theirs
    assert [one["weight"] for one in entries[len(theirs) :]] == [100] * times


def test_quarantined_nodes_are_left_out_of_every_term() -> None:
    other = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["c"]}]}
    theirs = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [ZONE, other, {}]}}, "podAffinity": {}}
    before = copy.deepcopy(theirs)
    found = avoid_nodes(theirs, failed_on=[], kept_from=["b"])
    assert theirs == before
    assert found is not None
    assert found["podAffinity"] == {}
    assert found["nodeAffinity"][REQUIRED]["nodeSelectorTerms"] == [
        {**ZONE, "matchFields": not_on("b")},
        {"matchFields": [*other["matchFields"], *not_on("b")]},
        {},
    ]


def test_a_machine_that_asks_for_nothing_is_kept_from_quarantined_nodes_by_name() -> None:
    """A label would be asked for again by a kubelet that restarts, which ends what does not fit it any more."""
    found = avoid_nodes(None, failed_on=[], kept_from=["b", "a"])
    assert found == {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{"matchFields": not_on("a", "b")}]}}}
