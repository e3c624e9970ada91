# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decisions that replica sets and pools share, as tables of replica sets."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.engine.plan import Plan
from controlplane.virt_controller.members.decide import before_scaling, create_missing, run_now
from controlplane.virt_controller.members.world import DeleteMember
from controlplane.virt_controller.replicaset.world import World
from tests.controlplane.virt_controller.members.plans import actions_of
from tests.controlplane.virt_controller.replicaset.stage import a_member, a_set, a_world

A, B, FINAL = a_member("a"), a_member("b"), a_member("final", "Succeeded")
GOING, UNSELECTED = a_member("going", deleting=True), a_member("other", app="db")


@pytest.mark.parametrize(
    ("world", "adoptable", "expected"),
    [
        pytest.param(a_world(a_set(5), A), (), None, id="nothing"),
        pytest.param(a_world(a_set(0), UNSELECTED), (), ["ReleaseMember other"], id="unselected"),
        pytest.param(a_world(a_set(0)), (A, B), ["AdoptMember a", "AdoptMember b"], id="adoptable"),
        pytest.param(a_world(a_set(0), UNSELECTED), (A,), ["ReleaseMember other", "AdoptMember a"], id="both"),
        pytest.param(a_world(a_set(0), a_member("x", deleting=True, app="db")), (), None, id="unselected, deleting"),
        pytest.param(
            a_world(a_set(0), UNSELECTED, deletes_sent=frozenset({"uid-other"})), (), None, id="its deletion was sent"
        ),
        pytest.param(a_world(a_set(5, paused=True)), (A,), ["AdoptMember a"], id="paused: adopts"),
        pytest.param(a_world(a_set(5, paused=True), FINAL), (), [], id="paused: does nothing else"),
        pytest.param(a_world(a_set(5, deleting=True), UNSELECTED), (A,), [], id="deleting"),
        pytest.param(a_world(a_set(5), UNSELECTED, problems=("it is empty",)), (A,), [], id="invalid selector"),
        pytest.param(a_world(a_set(0), is_current=False), (A,), ["ConfirmSet"], id="not current"),
    ],
)
def test_members_are_adopted_and_released_before_a_set_is_scaled(
    world: World, adoptable: tuple[Any, ...], expected: list[str] | None
) -> None:
    plan = before_scaling(world, adoptable)
    assert (None if plan is None else actions_of(plan)) == expected


@pytest.mark.parametrize(
    ("missing", "members", "expected"),
    [
        pytest.param(2, [], ["CreateMember x", "CreateMember y"], id="the whole batch"),
        pytest.param(1, [], ["ConfirmMember x", "ConfirmMember y"], id="fewer are missing"),
        pytest.param(5, [], ["CreateMember x", "CreateMember y"], id="more are missing: the batch first"),
    ],
)
def test_a_batch_is_completed_before_the_next_one(missing: int, members: list[Any], expected: list[str]) -> None:
    world = a_world(a_set(missing + len(members)), *members, unmade=("x", "y"))
    assert actions_of(create_missing(world, missing, 5)) == expected


@pytest.mark.parametrize(
    ("absent", "expected"),
    [
        ("", ["ConfirmMember x", "ConfirmMember y", "ConfirmMember z"]),
        ("xz", ["ConfirmMember y"]),
        ("xyz", ["CreateMember x", "CreateMember y"]),
    ],
)
def test_names_are_created_only_when_it_is_known_which_members_exist(absent: str, expected: list[str]) -> None:
    """A member whose response was lost may exist. Another one in its place would be a surplus."""
    world = a_world(a_set(2), unmade=("x", "y", "z"), absent=frozenset(absent))
    assert actions_of(create_missing(world, 2, 2)) == expected


@pytest.mark.parametrize(
    ("member", "facts", "expected"),
    [
        pytest.param(FINAL, {"shown": (("final", False),)}, ["ConfirmMember final"], id="final in the cache"),
        pytest.param(FINAL, {"shown": (("final", True),)}, ["BeginBatch 7"], id="final, confirmed"),
        pytest.param(GOING, {"shown": (("going", False),)}, ["ConfirmMember going"], id="deleting in the cache"),
        pytest.param(A, {"shown": (("a", False),)}, ["BeginBatch 7"], id="alive"),
        pytest.param(
            FINAL, {"shown": (("final", False),), "unmade": ("x",)}, ["CreateMember x"], id="the batch is still open"
        ),
        pytest.param(
            A,
            {"shown": (("a", False),), "unconfirmed": frozenset("a")},
            ["ConfirmMember a"],
            id="alive, and this process got no response to another create of its name",
        ),
    ],
)
def test_no_batch_begins_while_a_former_member_may_exist_again(
    member: Any, facts: dict[str, Any], expected: list[str]
) -> None:
    """An old member with this name ended, the name was created again, and the response was lost."""
    assert actions_of(create_missing(a_world(a_set(9), member, **facts), 7, 7)) == expected


def test_a_set_is_confirmed_before_any_action_on_members_but_not_before_a_batch() -> None:
    """The write of a batch has the set's version as its precondition."""
    missing = a_world(a_set(1), unmade=("x",), is_current=False)
    assert actions_of(create_missing(missing, 1, 1)) == ["ConfirmSet"]
    assert actions_of(create_missing(a_world(a_set(1), is_current=False), 1, 1)) == ["BeginBatch 1"]
    assert run_now(missing, (), 3.0) == Plan(requeue_after=3.0)


def test_a_burst_of_members_is_created_confirmed_or_deleted_at_once() -> None:
    names = tuple(f"{number:03}" for number in range(300))
    world = a_world(a_set(300))
    many = tuple(DeleteMember(a_member(name), "surplus") for name in names)
    assert len(actions_of(run_now(world, many))) == 250
    old = a_world(a_set(300), shown=tuple((name, False) for name in names))
    assert actions_of(create_missing(old, 300, 250)) == [f"ConfirmMember {name}" for name in names[:250]]


def test_deletes_come_first_and_the_plan_is_requeued() -> None:
    """Members to replace may count against a quota."""
    world = a_world(a_set(2), A, unmade=("x",))
    plan = create_missing(world, 1, 1, deletes=(DeleteMember(FINAL, "over"),), requeue_after=5.0)
    assert (actions_of(plan), plan.requeue_after) == (["DeleteMember final", "CreateMember x"], 5.0)
    (step,) = plan.steps
    assert step.actions[1].because == "2 are wanted and 1 exist"  # type: ignore[union-attr]
