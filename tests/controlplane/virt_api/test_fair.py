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
