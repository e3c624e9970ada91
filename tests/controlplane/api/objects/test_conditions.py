# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition

READY = Condition(type="Ready", status="False", reason="PodNotExists", message="old", last_transition_time="t0")
PAUSED = Condition(type="Paused", status="True", last_transition_time="t0")
LIST = (READY, PAUSED)


def test_a_new_condition_is_added_with_the_time() -> None:
    after = conditions.put((PAUSED,), Condition(type="Ready", status="True"), "t1")

    assert after == (PAUSED, Condition(type="Ready", status="True", last_transition_time="t1"))


def test_a_message_with_a_new_number_changes_nothing() -> None:
    old = (Condition(type="Ready", status="False", reason="X", message="back-off 10s", last_transition_time="t0"),)
    changed = Condition(type="Ready", status="False", reason="X", message="back-off 20s")

    assert conditions.put(old, changed, "t1") is old


def test_a_message_with_another_cause_under_the_same_reason_is_written() -> None:
    """A condition once went on blaming a limit that no longer applied, while the real cause was a name conflict."""
    changed = Condition(type="Ready", status="False", reason="PodNotExists", message="new")

    first = conditions.put(LIST, changed, "t1")[0]

    assert (first.message, first.last_transition_time) == ("new", "t0")


def test_a_long_message_is_cut_so_that_the_status_is_accepted() -> None:
    long = Condition(type="Ready", status="False", reason="R" * 2000, message="m" * 2000)

    first = conditions.put((), long, "t1")[0]

    assert (len(first.reason), len(first.message)) == (1024, 1024)
    assert conditions.put((first,), long, "t2") == (first,)


def test_a_new_reason_replaces_the_condition_but_not_its_time() -> None:
    changed = Condition(type="Ready", status="False", reason="GuestNotRunning", message="new")

    first = conditions.put(LIST, changed, "t1")[0]

    assert (first.reason, first.message, first.last_transition_time) == ("GuestNotRunning", "new", "t0")


def test_a_new_status_moves_the_time() -> None:
    first = conditions.put(LIST, Condition(type="Ready", status="True"), "t1")[0]

    assert (first.status, first.last_transition_time) == ("True", "t1")


def test_removing_a_missing_condition_changes_nothing() -> None:
    assert conditions.remove(LIST, "LiveMigratable") is LIST
    assert conditions.remove(LIST, "Ready") == (PAUSED,)


def test_only_an_existing_true_condition_is_true() -> None:
    assert conditions.is_true(LIST, "Paused")
    assert not conditions.is_true(LIST, "Ready")
    assert not conditions.is_true(LIST, "LiveMigratable")


def test_a_new_status_or_reason_makes_a_condition_newly_false() -> None:
    def false(kind: str, reason: str = "Why", message: str = "") -> Condition:
        return Condition(type=kind, status="False", reason=reason, message=message)

    before = (false("Same", message="1 of 3"), false("Other", "Old"), Condition(type="Was", status="True"))
    after = (
        false("Same", message="2 of 3"),
        false("Other", "New"),
        false("Was"),
        false("Came"),
        false("Unasked"),
        Condition(type="Good", status="True"),
    )
    kinds = {"Same", "Other", "Was", "Came", "Good"}
    assert [item.type for item in conditions.newly_false(before, after, kinds)] == ["Other", "Was", "Came"]
