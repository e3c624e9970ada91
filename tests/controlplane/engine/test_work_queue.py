# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of keys in the work queue."""

from __future__ import annotations

from dataclasses import fields

import pytest

from controlplane.api.objects.resources import Key
from controlplane.engine.backoff import BackOff
from controlplane.engine.work_queue import WorkQueue

WEB, DB = Key("default", "web"), Key("default", "db")


def a_queue() -> WorkQueue:
    return WorkQueue(BackOff(lambda: 1.0, base_seconds=10.0))


def test_a_key_in_progress_is_not_handed_out_and_comes_again() -> None:
    queue = a_queue()
    queue.add(WEB, 0)
    queue.take(0)
    queue.add(WEB, 1)
    assert queue.take(1) is None
    queue.finish(WEB, 2, failed=False)
    assert queue.take(2) == WEB


def test_a_requeue_brings_a_key_back_in_time_and_a_change_earlier() -> None:
    queue = a_queue()
    queue.add(WEB, 0)
    queue.take(0)
    queue.finish(WEB, 0, failed=False, requeue_after=60)
    assert queue.take(59) is None
    queue.add(WEB, 59)
    assert queue.take(59) == WEB
    queue.finish(WEB, 59, failed=False)
    assert queue.next_due() is None, "the requeue belonged to the previous decision"


def test_an_event_does_not_shorten_the_back_off() -> None:
    """Other controllers have made 19 retries a second, because events bypassed the back-off."""
    queue = a_queue()
    queue.add(WEB, 0)
    queue.take(0)
    queue.finish(WEB, 0, failed=True)
    for moment in range(1, 10):
        queue.add(WEB, moment)
        assert queue.take(moment) is None
    assert queue.take(10) == WEB


def test_success_ends_the_back_off() -> None:
    queue = a_queue()
    queue.add(WEB, 0)
    for moment, failed in ((0, True), (10, False)):
        assert queue.take(moment) == WEB
        queue.finish(WEB, moment, failed=failed)
    queue.add(WEB, 11)
    assert queue.take(11) == WEB
    queue.finish(WEB, 11, failed=True)
    assert queue.next_due() == 21, "it counts from the beginning"


@pytest.mark.parametrize(("asked", "due"), [(70.0, 70.0), (1.0, 10.0)], ids=["longer than its back-off", "shorter"])
def test_a_failing_key_waits_at_least_as_long_as_the_server_asks(asked: float, due: float) -> None:
    """A shorter time from the server does not shorten the back-off."""
    queue = a_queue()
    queue.add(WEB, 0.0)
    queue.take(0.0)
    queue.finish(WEB, 0.0, failed=True, requeue_after=asked)
    queue.add(WEB, 1.0)
    assert queue.next_due() == due


def test_replaced_requeues_leave_no_entries_behind() -> None:
    queue = a_queue()
    most = 0
    for second in range(1000):
        for key in (WEB, DB):
            queue.add(key, second)
            assert queue.take(second) == key
            queue.finish(key, second, failed=False, requeue_after=300)
            most = max(most, len(queue._heap))
    assert most <= 4, "as many stale entries as live ones, at most"
    assert (queue.next_due(), queue.take(1298), queue.take(1299), queue.take(1299)) == (1299, None, WEB, DB)


def test_a_change_during_a_reconcile_comes_before_its_requeue() -> None:
    queue = a_queue()
    queue.add(WEB, 0)
    queue.take(0)
    queue.add(WEB, 1)
    queue.finish(WEB, 2, failed=False, requeue_after=300)
    assert queue.take(2) == WEB


def test_a_key_that_succeeds_after_a_failure_leaves_nothing_behind() -> None:
    queue = a_queue()
    queue.add(WEB, 0)
    queue.take(0)
    queue.finish(WEB, 0, failed=True)
    queue.take(10)
    queue.finish(WEB, 10, failed=False)
    assert queue.next_due() is None
    state = {field.name: getattr(queue, field.name) for field in fields(queue)}
    assert [name for name, value in state.items() if isinstance(value, dict | list | set) and value] == []


def test_namespaces_take_turns_and_within_one_the_longest_due_key_comes_first() -> None:
    queue = a_queue()
    due = {Key("a", "late"): 3, Key("a", "early"): 1, Key("b", "early"): 2, Key("b", "late"): 4, Key("a", "last"): 5}
    for key, at in due.items():
        queue.add(key, 0, after=at)
    taken = [queue.take(9) for _unused in due]
    assert [str(key) for key in taken] == ["a/early", "b/early", "a/late", "b/late", "a/last"]


def test_a_namespace_that_had_a_turn_comes_after_those_that_wait() -> None:
    queue = a_queue()
    for key in (Key("a", "one"), Key("a", "two"), Key("b", "one")):
        queue.add(key, 0)
    queue.finish(queue.take(0) or WEB, 0, failed=False)
    assert [queue.take(0), queue.take(0)] == [Key("b", "one"), Key("a", "two")]


def test_a_namespace_with_slow_reconciles_waits_for_those_with_fewer_in_progress() -> None:
    queue = a_queue()
    for number in range(20):
        queue.add(Key("slow", str(number)), 0)
    for _unused in range(6):
        queue.take(0)
    quick = [Key("quick", str(number)) for number in range(7)]
    for key in quick:
        queue.add(key, 1)
    assert [queue.take(1) for _unused in range(6)] == quick[:6], "as many as the other has"
    queue.finish(quick[0], 2, failed=False)
    assert queue.take(2) == quick[6]
