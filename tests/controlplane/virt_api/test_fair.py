# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.virt_api.fair import HALF_LIFE_SECONDS, MOST_REMEMBERED, Turns


def test_the_peer_that_used_the_least_time_is_next() -> None:
    turns: Turns[str] = Turns()
    turns.used("flood", 3.0, 0.0)
    turns.used("api-server", 0.5, 0.0)
    for number in range(3):
        turns.wait("flood", f"flood-{number}")
    turns.wait("api-server", "review-1")
    turns.wait("api-server", "review-2")

    assert [turns.next(1.0) for _unused in range(3)] == ["review-1", "review-2", "flood-0"]


def test_who_used_next_to_nothing_still_comes_after_who_used_nothing() -> None:
    turns: Turns[str] = Turns()
    turns.used("flood", 0.0001, 0.0)
    turns.wait("flood", "flood")
    turns.wait("api-server", "review")

    assert turns.next(1.0) == "review"


def test_requests_of_one_peer_come_in_their_order_and_nobody_is_nobody() -> None:
    turns: Turns[str] = Turns()
    for item in ("a", "b", "c"):
        turns.wait("one", item)
    turns.leave("one", "b")
    turns.leave("other", "x")

    assert [turns.next(0.0) for _unused in range(3)] == ["a", "c", None]


def test_time_that_was_used_is_forgotten() -> None:
    turns: Turns[str] = Turns()
    turns.used("early", 4.0, 0.0)
    turns.used("late", 1.0, 3 * HALF_LIFE_SECONDS)
    turns.wait("early", "early")
    turns.wait("late", "late")

    assert turns.next(3 * HALF_LIFE_SECONDS) == "early"


def test_what_was_used_long_ago_counts_no_more_for_being_added_to() -> None:
    turns: Turns[str] = Turns()
    turns.used("early", 8.0, 0.0)
    turns.used("early", 1.0, 3 * HALF_LIFE_SECONDS)
    turns.used("late", 3.0, 3 * HALF_LIFE_SECONDS)
    turns.wait("late", "late")
    turns.wait("early", "early")

    assert turns.next(3 * HALF_LIFE_SECONDS) == "early"


def test_a_peer_that_waits_for_nothing_more_is_nobody() -> None:
    turns: Turns[str] = Turns()
    turns.wait("one", "a")
    turns.leave("one", "a")

    assert turns.next(0.0) is None


def test_of_very_many_peers_those_that_used_most_are_remembered() -> None:
    turns: Turns[str] = Turns()
    turns.used("flood", 5.0, 0.0)
    for number in range(2 * MOST_REMEMBERED):
        turns.used(f"pod-{number}", 0.1, 0.0)
    turns.wait("flood", "flood")
    turns.wait("api-server", "review")

    assert turns.next(0.0) == "review"
    assert len(turns._used) <= MOST_REMEMBERED


def test_of_a_peer_s_tenants_the_one_that_used_the_least_time_is_next() -> None:
    """All tenants come by the one API server."""
    turns: Turns[str] = Turns()
    turns.used("api-server", 9.0, 0.0, "greedy")
    turns.used("api-server", 0.5, 0.0, "modest")
    for number in range(3):
        turns.wait("api-server", f"greedy-{number}", "greedy")
    turns.wait("api-server", "modest-0", "modest")
    turns.wait("api-server", "new-0", "new")
    turns.wait("api-server", "modest-1", "modest")

    order = [turns.next(0.0) for _unused in range(7)]
    assert order == ["new-0", "modest-0", "modest-1", "greedy-0", "greedy-1", "greedy-2", None]


def test_who_says_many_tenants_gets_no_more_than_one_peer_s_turns() -> None:
    """What a review says of its namespace is anybody's claim."""
    turns: Turns[str] = Turns()
    for number in range(10):
        turns.used("pod", 1.0, 0.0, f"forged-{number}")
    turns.used("api-server", 5.0, 0.0, "ns")
    for number in range(3):
        turns.wait("pod", f"pod-{number}", f"never-seen-{number}")
    turns.wait("api-server", "review", "ns")

    assert turns.next(0.0) == "review"


def test_what_a_tenant_used_is_counted_for_each_peer_alone() -> None:
    turns: Turns[str] = Turns()
    turns.used("pod", 9.0, 0.0, "victim")
    turns.used("api-server", 1.0, 0.0, "other")
    turns.wait("api-server", "other", "other")
    turns.wait("api-server", "victim", "victim")

    assert turns.next(0.0) == "victim"


def test_who_leaves_a_tenant_s_queue_leaves_the_others_theirs() -> None:
    turns: Turns[str] = Turns()
    turns.wait("api-server", "a", "one")
    turns.wait("api-server", "b", "two")
    turns.leave("api-server", "a", "one")
    turns.leave("api-server", "b", "one")

    assert [turns.next(0.0) for _unused in range(2)] == ["b", None]


def test_tenants_without_number_are_forgotten_and_those_that_used_most_are_not() -> None:
    turns: Turns[str] = Turns()
    turns.used("api-server", 5.0, 0.0, "greedy")
    for number in range(2 * MOST_REMEMBERED):
        turns.used("pod", 0.1, 0.0, f"forged-{number}")
    turns.wait("api-server", "greedy", "greedy")
    turns.wait("api-server", "modest", "modest")

    assert turns.next(0.0) == "modest"
    assert len(turns._used_by_tenant) <= MOST_REMEMBERED
