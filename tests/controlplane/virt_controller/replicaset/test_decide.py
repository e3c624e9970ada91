# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of the replica set controller, as tables. Those that it shares with pools: members/test_decide."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.engine.plan import Plan
from controlplane.virt_controller.replicaset.decide import decide
from controlplane.virt_controller.replicaset.member import Member
from tests.controlplane.virt_controller.members.plans import actions_of
from tests.controlplane.virt_controller.members.stand import READY
from tests.controlplane.virt_controller.replicaset.stage import POD_GOES, a_member, a_set, a_world

A, B, C = (a_member(name, ready=READY) for name in "abc")
FINAL, FAILED = a_member("final", "Succeeded"), a_member("failed", "Failed")
GOING, DRAINED = a_member("going", deleting=True), a_member("drained", ready=POD_GOES)
UNSELECTED = a_member("other", app="db")


@pytest.mark.parametrize(
    ("replicas", "members", "expected"),
    [
        pytest.param(0, [], [], id="none wanted"),
        pytest.param(None, [], ["BeginBatch 1"], id="default"),
        pytest.param(2, [A, B], [], id="complete"),
        pytest.param(3, [A], ["BeginBatch 2"], id="two missing"),
        pytest.param(1, [A, B, C], ["DeleteMember a", "DeleteMember b"], id="two surplus: the first ones"),
        pytest.param(0, [A], ["DeleteMember a"], id="scaled to zero"),
        pytest.param(2, [A, GOING], ["BeginBatch 1"], id="a deleting member does not count"),
        pytest.param(1, [A, GOING], [], id="a deleting member is not deleted again"),
        pytest.param(2, [A, FINAL], ["BeginBatch 1"], id="a final member is replaced first"),
        pytest.param(1, [A, FAILED, FINAL], ["DeleteMember failed", "DeleteMember final"], id="final: deleted"),
        pytest.param(2, [A, DRAINED], ["BeginBatch 1"], id="a member that loses its Pod is replaced"),
        pytest.param(1, [A, DRAINED], ["DeleteMember drained"], id="and deleted then"),
        pytest.param(1, [A, B, FINAL], ["DeleteMember a", "DeleteMember final"], id="one surplus, one final"),
        pytest.param(1, [B, a_member("new", "")], ["DeleteMember b"], id="a new member counts"),
        pytest.param(1, [a_member("lost", "Unknown")], [], id="an unknown member counts"),
        pytest.param(600, [], ["BeginBatch 250"], id="at most a burst"),
    ],
)
def test_the_wanted_number_of_members_is_kept(replicas: int | None, members: list[Member], expected: list[str]) -> None:
    assert actions_of(decide(a_world(a_set(replicas), *members))) == expected


@pytest.mark.parametrize(
    ("replicas", "members", "facts", "expected"),
    [
        pytest.param(2, [A, B], {"unmade": ("x",)}, [], id="a batch, and none is missing now"),
        pytest.param(1, [A, B], {"unmade": ("x",)}, ["DeleteMember a"], id="a batch, and surplus now"),
        pytest.param(
            2, [FINAL], {"unmade": ("x", "y")}, ["DeleteMember final", "CreateMember x", "CreateMember y"], id="a batch"
        ),
        pytest.param(5, [A], {"orphans": (B,)}, ["AdoptMember b"], id="an orphan"),
        pytest.param(0, [], {"orphans": (GOING,)}, [], id="an orphan, deleting"),
        pytest.param(0, [], {"orphans": (UNSELECTED,)}, [], id="an orphan, unselected"),
        pytest.param(1, [A, B], {"deletes_sent": frozenset({"uid-a"})}, [], id="its deletion was sent"),
        pytest.param(1, [A, FINAL], {"is_current": False}, ["ConfirmSet"], id="not current"),
    ],
)
def test_actions(replicas: int, members: list[Member], facts: dict[str, Any], expected: list[str]) -> None:
    assert actions_of(decide(a_world(a_set(replicas), *members, **facts))) == expected


@pytest.mark.parametrize(
    ("replicas", "members", "unmade", "expected"),
    [
        pytest.param(2, [A], (), [], id="no batch begins"),
        pytest.param(1, [], ("x",), [], id="no batch is continued: fewer may be missing than the cache shows"),
        pytest.param(0, [A], (), [], id="no surplus is deleted: members that the cache shows may be gone"),
        pytest.param(2, [A, FINAL], (), ["DeleteMember final"], id="final members are deleted"),
        pytest.param(0, [A, FINAL], (), ["DeleteMember final"], id="final members are deleted, surplus ones stay"),
    ],
)
def test_a_new_leader_waits_until_earlier_batches_are_read(
    replicas: int, members: list[Member], unmade: tuple[str, ...], expected: list[str]
) -> None:
    plan = decide(a_world(a_set(replicas), *members, unmade=unmade, has_read_earlier_batches=False))
    assert (actions_of(plan), plan.requeue_after) == (expected, 1.0)


@pytest.mark.parametrize(
    ("replicas", "unmade", "held_back", "expected"),
    [
        pytest.param(1, (), 1, ["DeleteMember final"], id="the only one waits, the ended one is deleted"),
        pytest.param(1, ("x",), 1, ["DeleteMember final"], id="a name of an open batch is not created again"),
        pytest.param(3, (), 1, ["BeginBatch 2"], id="the others are created"),
        pytest.param(2, ("x",), 1, ["DeleteMember final", "CreateMember x"], id="one of two"),
    ],
)
def test_replacements_wait_for_the_back_off(
    replicas: int, unmade: tuple[str, ...], held_back: int, expected: list[str]
) -> None:
    plan = decide(a_world(a_set(replicas), FINAL, unmade=unmade, held_back=held_back, held_for=30.0))
    assert actions_of(plan) == expected
    assert plan.requeue_after == (None if "BeginBatch 2" in expected else 30.0)


@pytest.mark.parametrize("replica_set", [a_set(5, paused=True), a_set(5, deleting=True)], ids=["paused", "deleting"])
def test_a_paused_or_deleting_set_neither_creates_nor_deletes(replica_set: Any) -> None:
    assert decide(a_world(replica_set, A, FINAL, DRAINED, unmade=("x",))) == Plan()
