# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One reconcile of one key."""

from __future__ import annotations

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import (
    ApiError,
    Conflict,
    Forbidden,
    Invalid,
    NoProgress,
    NotFound,
    NotLeader,
    Throttled,
    Unavailable,
)
from controlplane.engine.plan import IndependentActions, Plan, WriteStatus
from controlplane.engine.reconcile import REFUSALS, reconcile
from tests.controlplane.engine.world import Add, Count, Counting

WEB = Key("default", "web")


async def test_a_reconcile_repeats_while_its_writes_enable_the_next_step_and_then_writes_the_status() -> None:
    counting = Counting(goal=2)
    outcome = await reconcile(counting, WEB)
    assert counting.writes == ["add", "add", "2 of 2"]
    assert outcome.error is None
    assert counting.status == "2 of 2"


async def test_many_steps_take_several_reconciles() -> None:
    counting = Counting(goal=100)
    outcome = await reconcile(counting, WEB)
    assert (len(counting.writes), outcome.requeue_after) == (4, 0.0)


async def test_without_a_difference_nothing_is_written() -> None:
    counting = Counting(goal=1, value=1, status="1 of 1", requeue_after=30.0)
    outcome = await reconcile(counting, WEB)
    assert (counting.writes, outcome.requeue_after, outcome.error) == ([], 30.0, None)


async def test_a_deleted_object_ends_the_reconcile() -> None:
    outcome = await reconcile(Counting(goal=1, is_absent=True), WEB)
    assert outcome.error is None
    assert outcome.requeue_after is None


@pytest.mark.parametrize(
    "error", [Conflict("old"), NotFound("gone"), NotLeader("deposed"), Unavailable("no answer")], ids=repr
)
async def test_an_error_that_is_no_refusal_is_not_reported_in_the_status(error: ApiError) -> None:
    counting = Counting(goal=1, fail_with=[error])
    outcome = await reconcile(counting, WEB)
    assert (outcome.error, counting.writes, counting.refusals) == (error, [], [])


async def test_a_refusal_is_reported_and_backs_off() -> None:
    refusal = Forbidden("quota exceeded")
    counting = Counting(goal=1, fail_with=[refusal, None])
    outcome = await reconcile(counting, WEB)
    assert counting.writes == ["0 of 1, quota exceeded"]
    assert counting.refusals == ["Add: quota exceeded"]
    assert outcome.error is refusal


@pytest.mark.parametrize("refusal", [Forbidden("policy"), Invalid("bound"), Throttled("later")], ids=repr)
async def test_a_refused_status_is_reported_and_does_not_raise(refusal: ApiError) -> None:
    counting = Counting(goal=0, fail_with=[refusal])
    outcome = await reconcile(counting, WEB)
    assert (outcome.error, counting.refusals) == (refusal, [f"WriteStatus: {refusal}"])


async def test_a_status_planned_first_is_written_before_the_next_step() -> None:
    counting = Counting(goal=1, status_first=True)
    await reconcile(counting, WEB)
    assert counting.writes == ["0 of 1", "add", "1 of 1"]


class Watched(Counting):
    """Counts the observations."""

    looks = 0

    def observe(self, key: Key) -> Count | None:
        self.looks += 1
        return super().observe(key)


@pytest.mark.parametrize("status_first", [False, True])
async def test_without_a_difference_the_reconcile_observes_once(status_first: bool) -> None:
    watched = Watched(goal=1, value=1, status="1 of 1", status_first=status_first)
    await reconcile(watched, WEB)
    assert watched.looks == 1


class StatusLast(Counting):
    """Writes the status after each step, before the next decision."""

    def decide(self, world: Count) -> Plan[Add]:
        return Plan((*super().decide(world).steps, WriteStatus(because="it has changed")))


async def test_the_status_after_a_step_includes_that_step() -> None:
    counting = StatusLast(goal=2)
    await reconcile(counting, WEB)
    assert counting.writes == ["add", "1 of 2", "add", "2 of 2"]


class OnlyStatus(Counting):
    """Reports a problem that no action can solve."""

    def decide(self, _world: Count) -> Plan[Add]:
        return Plan((WriteStatus(because="it cannot be done"),))


async def test_a_plan_that_only_writes_a_current_status_ends_the_reconcile() -> None:
    counting = OnlyStatus(goal=1, status="0 of 1")
    outcome = await reconcile(counting, WEB)
    assert (counting.writes, outcome.error, outcome.requeue_after) == ([], None, None)


async def test_an_action_without_effect_is_not_repeated() -> None:
    counting = Counting(goal=1, is_stuck=True)
    outcome = await reconcile(counting, WEB)
    assert counting.writes == ["add"]
    assert isinstance(outcome.error, NoProgress)


async def test_an_action_without_effect_but_with_a_requeue_is_no_error() -> None:
    outcome = await reconcile(Counting(goal=1, is_stuck=True, requeue_after=10.0), WEB)
    assert (outcome.error, outcome.requeue_after) == (None, 10.0)


class AllAtOnce(Counting):
    """Adds everything that is missing in one step."""

    def decide(self, world: Count) -> Plan[Add]:
        missing = tuple(Add(to=value) for value in range(world.value, self.goal))
        return Plan((IndependentActions(missing),) if missing else ())


@pytest.mark.parametrize("error", [Forbidden("quota"), Invalid("name")], ids=repr)
async def test_one_refused_action_does_not_hold_up_the_others(error: ApiError) -> None:
    counting = AllAtOnce(goal=3, fail_with=[None, error])
    outcome = await reconcile(counting, WEB)
    assert counting.writes == ["add", "add", f"2 of 3, {error}"]
    assert counting.refusals == [f"Add: {error}"]
    assert outcome.error is error


@pytest.mark.parametrize("error", [Conflict("old"), NotFound("gone")], ids=repr)
async def test_a_conflict_of_one_action_does_not_stop_the_others_and_retries(error: ApiError) -> None:
    counting = AllAtOnce(goal=3, fail_with=[error])
    outcome = await reconcile(counting, WEB)
    assert (counting.writes, counting.refusals, outcome.error) == (["add", "add"], [], error)


@pytest.mark.parametrize("error", [NotLeader("deposed"), Unavailable("no answer")], ids=repr)
async def test_no_response_to_one_action_stops_the_others(error: ApiError) -> None:
    counting = AllAtOnce(goal=3, fail_with=[None, error])
    outcome = await reconcile(counting, WEB)
    assert (counting.writes, counting.refusals, outcome.error) == (["add"], [], error)


@pytest.mark.parametrize(("error", "times"), [(Forbidden("quota"), REFUSALS), (Throttled("later"), 1)], ids=repr)
async def test_many_refusals_stop_the_remaining_actions(error: ApiError, times: int) -> None:
    counting = AllAtOnce(goal=100, fail_with=[error] * times)
    outcome = await reconcile(counting, WEB)
    assert (counting.writes, len(counting.refusals)) == ([f"0 of 100, {error}"], times)
    assert outcome.error is error
