# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions of the replica set controller, as tables."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.engine.plan import IndependentActions, Plan
from controlplane.virt_controller.members.world import (
    AdoptMember,
    BeginBatch,
    ConfirmMember,
    ConfirmSet,
    CreateMember,
    DeleteMember,
    MemberAction,
    ReleaseMember,
)
from controlplane.virt_controller.replicaset.decide import decide
from controlplane.virt_controller.replicaset.member import Member
from controlplane.virt_controller.replicaset.world import World
from tests.controlplane.virt_controller.replicaset.stage import POD_GOES, READY, a_member, a_set, a_world

A, B, C = (a_member(name, ready=READY) for name in "abc")
FINAL, FAILED = a_member("final", "Succeeded"), a_member("failed", "Failed")
GOING, DRAINED = a_member("going", deleting=True), a_member("drained", ready=POD_GOES)
UNSELECTED, UNSELECTED_GOING = a_member("other", app="db"), a_member("other", app="db", deleting=True)


def words(plan: Plan[MemberAction]) -> list[str]:
    """Return the actions of a plan as text."""
    steps = (step.actions if isinstance(step, IndependentActions) else (step,) for step in plan.steps)
    actions = [action for actions_of_step in steps for action in actions_of_step]
    return [word(action) for action in actions]


def word(action: Any) -> str:
    match action:
        case BeginBatch():
            return f"begin {action.size}"
        case ConfirmMember():
            return f"confirm {action.name}"
        case CreateMember():
            return f"create {action.name}"
        case DeleteMember() | AdoptMember() | ReleaseMember():
            return f"{type(action).__name__.removesuffix('Member').lower()} {action.member.metadata.name}"
    return type(action).__name__


@pytest.mark.parametrize(
    ("member", "is_found", "expected"),
    [
        (FINAL, False, ["confirm final"]),
        (FINAL, True, ["begin 1"]),
        (GOING, False, ["confirm going"]),
        (A, False, ["begin 1"]),
    ],
    ids=["final in the cache", "final, confirmed", "deleting in the cache", "alive"],
)
def test_no_batch_begins_while_a_former_member_may_exist_again(
    member: Member, is_found: bool, expected: list[str]
) -> None:
    """An old member with this name ended, the name was created again, and the response was lost."""
    replicas = 2 if member is A else 1
    world = a_world(a_set(replicas), member, shown=((member.metadata.name, is_found),))
    assert words(decide(world)) == expected


def test_no_batch_begins_while_an_alive_member_is_unconfirmed() -> None:
    """It ended, its name was created again, the response was lost, and the cache shows none of this yet."""
    world = a_world(a_set(2), A, shown=((A.metadata.name, False),), unconfirmed=frozenset({A.metadata.name}))
    assert words(decide(world)) == [f"confirm {A.metadata.name}"]


@pytest.mark.parametrize(
    ("replicas", "members", "expected"),
    [
        pytest.param(0, [], [], id="none wanted"),
        pytest.param(None, [], ["begin 1"], id="default"),
        pytest.param(2, [A, B], [], id="complete"),
        pytest.param(3, [A], ["begin 2"], id="two missing"),
        pytest.param(1, [A, B, C], ["delete a", "delete b"], id="two surplus: the first ones"),
        pytest.param(0, [A], ["delete a"], id="scaled to zero"),
        pytest.param(2, [A, GOING], ["begin 1"], id="a deleting member does not count"),
        pytest.param(1, [A, GOING], [], id="a deleting member is not deleted again"),
        pytest.param(2, [A, FINAL], ["begin 1"], id="a final member is replaced first"),
        pytest.param(1, [A, FINAL, FAILED], ["delete final", "delete failed"], id="final members are deleted"),
        pytest.param(2, [A, DRAINED], ["begin 1"], id="a member that loses its Pod is replaced"),
        pytest.param(1, [A, DRAINED], ["delete drained"], id="and deleted then"),
        pytest.param(1, [A, B, FINAL], ["delete a", "delete final"], id="one surplus, one final"),
        pytest.param(1, [a_member("new", ""), B], ["delete b"], id="a new member counts"),
        pytest.param(1, [a_member("lost", "Unknown")], [], id="an unknown member counts"),
        pytest.param(600, [], ["begin 250"], id="at most a burst"),
    ],
)
def test_the_wanted_number_of_members_is_kept(replicas: int | None, members: list[Member], expected: list[str]) -> None:
    ordered = sorted(members, key=lambda member: member.metadata.name)
    assert sorted(words(decide(a_world(a_set(replicas), *ordered)))) == sorted(expected)


def test_at_most_a_burst_is_deleted_at_once() -> None:
    crowd = [a_member(f"{number:03}") for number in range(300)]
    actions = words(decide(a_world(a_set(0), *crowd)))
    assert actions == [f"delete {number:03}" for number in range(250)]


@pytest.mark.parametrize(
    ("replicas", "members", "expected"),
    [
        pytest.param(2, [], ["create x", "create y"], id="the whole batch"),
        pytest.param(1, [], ["confirm x", "confirm y"], id="fewer are wanted now"),
        pytest.param(3, [A, B], ["confirm x", "confirm y"], id="other members were adopted"),
        pytest.param(5, [], ["create x", "create y"], id="more are wanted now: the batch first"),
        pytest.param(2, [A, B], [], id="none is missing now"),
        pytest.param(1, [A, B], ["delete a"], id="surplus now"),
        pytest.param(
            2, [FINAL], ["delete final", "create x", "create y"], id="final members first: a quota may count them"
        ),
    ],
)
def test_a_batch_is_completed_before_the_next_one(replicas: int, members: list[Member], expected: list[str]) -> None:
    assert words(decide(a_world(a_set(replicas), *members, unmade=("x", "y")))) == expected


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ("", ["confirm x", "confirm y", "confirm z"]),
        ("xz", ["confirm y"]),
        ("xyz", ["create x", "create y"]),
    ],
)
def test_names_of_a_batch_are_created_only_when_it_is_known_which_members_exist(
    absent: str, expected: list[str]
) -> None:
    """A member whose response was lost may exist. Another one in its place would be a surplus."""
    world = a_world(a_set(2), unmade=("x", "y", "z"), absent=frozenset(absent))
    assert words(decide(world)) == expected


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(a_world(a_set(0), UNSELECTED), ["release other"], id="unselected"),
        pytest.param(a_world(a_set(0), UNSELECTED_GOING), [], id="unselected and deleting"),
        pytest.param(a_world(a_set(0), orphans=(A, B)), ["adopt a", "adopt b"], id="selected, without a controller"),
        pytest.param(a_world(a_set(0), orphans=(GOING,)), [], id="without a controller, deleting"),
        pytest.param(a_world(a_set(0), orphans=(UNSELECTED,)), [], id="without a controller, unselected"),
        pytest.param(a_world(a_set(5), A, orphans=(B,)), ["adopt b"], id="before a batch"),
        pytest.param(a_world(a_set(0, paused=True), orphans=(B,)), ["adopt b"], id="in a paused set"),
        pytest.param(a_world(a_set(0, deleting=True), UNSELECTED, orphans=(B,)), [], id="not in a deleting set"),
    ],
)
def test_members_are_adopted_and_released_first(world: World, expected: list[str]) -> None:
    assert words(decide(world)) == expected


@pytest.mark.parametrize("replica_set", [a_set(5, paused=True), a_set(5, deleting=True)], ids=["paused", "deleting"])
def test_a_paused_or_deleting_set_neither_creates_nor_deletes(replica_set: Any) -> None:
    assert decide(a_world(replica_set, A, FINAL, DRAINED, unmade=("x",))) == Plan()


def test_an_invalid_selector_stops_everything() -> None:
    assert decide(a_world(a_set(5), FINAL, orphans=(A,), problems=("spec.selector: is empty",))) == Plan()


@pytest.mark.parametrize(
    "world",
    [
        a_world(a_set(0), A, is_current=False),
        a_world(a_set(1), unmade=("x",), is_current=False),
        a_world(a_set(1), orphans=(A,), is_current=False),
        a_world(a_set(1), UNSELECTED, is_current=False),
        a_world(a_set(1), A, FINAL, is_current=False),
    ],
    ids=["surplus", "missing", "orphan", "unselected", "final"],
)
def test_a_set_is_confirmed_before_any_action_on_members(world: World) -> None:
    (step,) = decide(world).steps
    assert isinstance(step, ConfirmSet)


def test_a_batch_needs_no_confirmation_because_its_write_has_a_precondition() -> None:
    assert words(decide(a_world(a_set(1), is_current=False))) == ["begin 1"]


def test_no_batch_begins_before_earlier_batches_are_read() -> None:
    plan = decide(a_world(a_set(2), A, has_read_earlier_batches=False))
    assert (plan.steps, plan.requeue_after) == ((), 1.0)


def test_no_batch_is_continued_before_earlier_batches_are_read() -> None:
    """Fewer may be missing than the cache shows."""
    assert words(decide(a_world(a_set(1), unmade=("x",), has_read_earlier_batches=False))) == []


def test_no_surplus_is_deleted_before_earlier_batches_are_read() -> None:
    """Some members that the cache shows may be gone."""
    assert words(decide(a_world(a_set(0), A, has_read_earlier_batches=False))) == []


def test_final_members_are_deleted_before_earlier_batches_are_read() -> None:
    assert words(decide(a_world(a_set(2), A, FINAL, has_read_earlier_batches=False))) == ["delete final"]
    assert words(decide(a_world(a_set(1), A, FINAL, has_read_earlier_batches=False))) == ["delete final"]


def test_a_member_whose_deletion_was_sent_does_not_count() -> None:
    sent = frozenset({A.metadata.uid})
    assert words(decide(a_world(a_set(1), A, B, deletes_sent=sent))) == []
    assert words(decide(a_world(a_set(2), A, B, deletes_sent=sent))) == ["begin 1"]


def test_because_has_the_numbers() -> None:
    (step,) = decide(a_world(a_set(3), A)).steps
    assert isinstance(step, BeginBatch)
    assert step.because == "3 are wanted and 1 there"
