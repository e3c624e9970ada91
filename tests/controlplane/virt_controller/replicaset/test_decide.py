# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is done about a set, as tables."""

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
OVER, FAILED = a_member("over", "Succeeded"), a_member("failed", "Failed")
GOING, DRAINED = a_member("going", deleting=True), a_member("drained", ready=POD_GOES)
STRANGER, LEAVING_STRANGER = a_member("stranger", app="db"), a_member("stranger", app="db", deleting=True)


def words(plan: Plan[MemberAction]) -> list[str]:
    """Spell a plan: what is done to whom."""
    actions = [
        one for step in plan.steps for one in (step.actions if isinstance(step, IndependentActions) else (step,))
    ]
    return [word(one) for one in actions]


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
        (OVER, False, ["confirm over"]),
        (OVER, True, ["begin 1"]),
        (GOING, False, ["confirm going"]),
        (A, False, ["begin 1"]),
    ],
    ids=["over, as it is seen", "over, as the API server says", "going, as it is seen", "one that counts"],
)
def test_no_batch_begins_while_another_may_be_there_under_a_name_of_the_last(
    member: Member, is_found: bool, expected: list[str]
) -> None:
    """One that was over or deleted, whose name was used again, and the answer to that was lost."""
    replicas = 2 if member is A else 1
    world = a_world(a_set(replicas), member, shown=((member.metadata.name, is_found),))
    assert words(decide(world)) == expected


def test_no_batch_begins_while_one_that_seems_to_count_may_be_another_by_now() -> None:
    """It ended, its name was used again, the answer to that was lost, and nothing of it is seen yet."""
    world = a_world(a_set(2), A, shown=((A.metadata.name, False),), unconfirmed=frozenset({A.metadata.name}))
    assert words(decide(world)) == [f"confirm {A.metadata.name}"]


@pytest.mark.parametrize(
    ("replicas", "members", "expected"),
    [
        pytest.param(0, [], [], id="nothing wanted"),
        pytest.param(None, [], ["begin 1"], id="one, when nothing is said"),
        pytest.param(2, [A, B], [], id="all there"),
        pytest.param(3, [A], ["begin 2"], id="two missing"),
        pytest.param(1, [A, B, C], ["delete a", "delete b"], id="two too many: the first go"),
        pytest.param(0, [A], ["delete a"], id="none wanted any more"),
        pytest.param(2, [A, GOING], ["begin 1"], id="who goes counts no more"),
        pytest.param(1, [A, GOING], [], id="who goes is not deleted again"),
        pytest.param(2, [A, OVER], ["begin 1"], id="who is over is replaced first"),
        pytest.param(1, [A, OVER, FAILED], ["delete over", "delete failed"], id="who is over is deleted"),
        pytest.param(2, [A, DRAINED], ["begin 1"], id="who loses its Pod is replaced"),
        pytest.param(1, [A, DRAINED], ["delete drained"], id="and deleted"),
        pytest.param(1, [A, B, OVER], ["delete a", "delete over"], id="too many, and one over"),
        pytest.param(1, [a_member("new", ""), B], ["delete b"], id="one that has not begun counts"),
        pytest.param(1, [a_member("lost", "Unknown")], [], id="one nobody hears of counts"),
        pytest.param(600, [], ["begin 250"], id="a burst at a time"),
    ],
)
def test_as_many_are_kept_as_are_wanted(replicas: int | None, members: list[Member], expected: list[str]) -> None:
    ordered = sorted(members, key=lambda one: one.metadata.name)
    assert sorted(words(decide(a_world(a_set(replicas), *ordered)))) == sorted(expected)


def test_no_more_than_a_burst_is_deleted_at_once() -> None:
    crowd = [a_member(f"{number:03}") for number in range(300)]
    found = words(decide(a_world(a_set(0), *crowd)))
    assert found == [f"delete {number:03}" for number in range(250)]


@pytest.mark.parametrize(
    ("replicas", "members", "expected"),
    [
        pytest.param(2, [], ["create x", "create y"], id="all of the batch"),
        pytest.param(1, [], ["confirm x", "confirm y"], id="fewer are wanted by now"),
        pytest.param(3, [A, B], ["confirm x", "confirm y"], id="some came otherwise"),
        pytest.param(5, [], ["create x", "create y"], id="more are wanted by now: the batch first"),
        pytest.param(2, [A, B], [], id="none is wanted any more"),
        pytest.param(1, [A, B], ["delete a"], id="too many by now"),
        pytest.param(
            2, [OVER], ["delete over", "create x", "create y"], id="who is over goes first: a quota may count"
        ),
    ],
)
def test_what_was_begun_is_made_before_more_is_begun(replicas: int, members: list[Member], expected: list[str]) -> None:
    assert words(decide(a_world(a_set(replicas), *members, unmade=("x", "y")))) == expected


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ("", ["confirm x", "confirm y", "confirm z"]),
        ("xz", ["confirm y"]),
        ("xyz", ["create x", "create y"]),
    ],
)
def test_fewer_than_were_begun_are_made_once_it_is_known_which_exist(absent: str, expected: list[str]) -> None:
    """One may exist whose answer was lost. Whoever makes another one in its place makes one too many."""
    world = a_world(a_set(2), unmade=("x", "y", "z"), absent=frozenset(absent))
    assert words(decide(world)) == expected


@pytest.mark.parametrize(
    ("world", "expected"),
    [
        pytest.param(a_world(a_set(0), STRANGER), ["release stranger"], id="not selected: let go"),
        pytest.param(a_world(a_set(0), LEAVING_STRANGER), [], id="not selected, and going anyway"),
        pytest.param(a_world(a_set(0), orphans=(A, B)), ["adopt a", "adopt b"], id="selected and nobody's"),
        pytest.param(a_world(a_set(0), orphans=(GOING,)), [], id="nobody's, and going"),
        pytest.param(a_world(a_set(0), orphans=(STRANGER,)), [], id="nobody's, not selected"),
        pytest.param(a_world(a_set(5), A, orphans=(B,)), ["adopt b"], id="before anything is begun"),
        pytest.param(a_world(a_set(0, paused=True), orphans=(B,)), ["adopt b"], id="in a paused set, too"),
        pytest.param(a_world(a_set(0, deleting=True), STRANGER, orphans=(B,)), [], id="in a set that goes, not"),
    ],
)
def test_who_belongs_to_a_set_is_settled_first(world: World, expected: list[str]) -> None:
    assert words(decide(world)) == expected


@pytest.mark.parametrize("replica_set", [a_set(5, paused=True), a_set(5, deleting=True)], ids=["paused", "going"])
def test_a_set_that_is_paused_or_going_makes_and_deletes_nothing(replica_set: Any) -> None:
    assert decide(a_world(replica_set, A, OVER, DRAINED, unmade=("x",))) == Plan()


def test_a_set_whose_selector_means_nothing_is_left_alone() -> None:
    assert decide(a_world(a_set(5), OVER, orphans=(A,), problems=("spec.selector: is empty",))) == Plan()


@pytest.mark.parametrize(
    "world",
    [
        a_world(a_set(0), A, is_current=False),
        a_world(a_set(1), unmade=("x",), is_current=False),
        a_world(a_set(1), orphans=(A,), is_current=False),
        a_world(a_set(1), STRANGER, is_current=False),
        a_world(a_set(1), A, OVER, is_current=False),
    ],
    ids=["too many", "unmade", "orphan", "stranger", "over"],
)
def test_nothing_is_made_deleted_or_claimed_by_an_old_copy_of_the_set(world: World) -> None:
    (step,) = decide(world).steps
    assert isinstance(step, ConfirmSet)


def test_a_batch_needs_no_look_for_its_write_is_refused_on_an_old_copy() -> None:
    assert words(decide(a_world(a_set(1), is_current=False))) == ["begin 1"]


def test_nothing_is_begun_while_what_was_made_before_may_not_be_seen_yet() -> None:
    unsure = decide(a_world(a_set(2), A, has_read_earlier_batches=False))
    assert (unsure.steps, unsure.requeue_after) == ((), 1.0)


def test_nor_is_what_was_begun_gone_on_with() -> None:
    """Fewer may be wanted since, and those that are there unseen."""
    assert words(decide(a_world(a_set(1), unmade=("x",), has_read_earlier_batches=False))) == []


def test_nor_is_anybody_too_many() -> None:
    """Some of those who are seen may be gone, and the others be all that there are."""
    assert words(decide(a_world(a_set(0), A, has_read_earlier_batches=False))) == []


def test_meanwhile_who_is_over_goes() -> None:
    assert words(decide(a_world(a_set(2), A, OVER, has_read_earlier_batches=False))) == ["delete over"]
    assert words(decide(a_world(a_set(1), A, OVER, has_read_earlier_batches=False))) == ["delete over"]


def test_who_was_told_to_go_counts_no_more_before_it_is_seen() -> None:
    sent = frozenset({A.metadata.uid})
    assert words(decide(a_world(a_set(1), A, B, deletes_sent=sent))) == []
    assert words(decide(a_world(a_set(2), A, B, deletes_sent=sent))) == ["begin 1"]


def test_why_something_is_done_is_said_in_numbers() -> None:
    (step,) = decide(a_world(a_set(3), A)).steps
    assert isinstance(step, BeginBatch)
    assert step.because == "3 are wanted and 1 there"
