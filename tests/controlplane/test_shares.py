# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from controlplane.shares import Parts, Shares


def test_who_is_alone_may_have_it_all() -> None:
    shares = Shares(10)

    assert shares.take("a", 10)
    assert not shares.take("a", 1)


def test_an_even_share_is_everybodys_at_any_time() -> None:
    """A Pod that holds all of it keeps nobody out."""
    shares = Shares(12)
    assert shares.take("greedy", 12)

    assert not shares.take("api-server", 7), "who comes counts, too"
    assert shares.take("api-server", 6)
    assert not shares.take("api-server", 1)
    assert not shares.take("greedy", 1)
    assert shares.take("third", 4)


def test_what_is_given_back_can_be_had_again() -> None:
    shares = Shares(10)
    shares.take("a", 10)
    shares.give_back("a", 4)

    assert shares.take("b", 4)
    shares.give_back("a", 6)
    shares.give_back("b", 4)
    assert shares.take("c", 10)


def test_where_everybody_may_have_a_little_nobody_is_kept_out_by_number() -> None:
    shares = Shares(2, least=1)
    assert [shares.take(f"pod-{number}", 1) for number in range(5)] == [True] * 5
    assert not shares.take("pod-1", 1)
    assert shares.total == 5
    for number in range(5):
        assert not shares.is_empty
        shares.give_back(f"pod-{number}", 1)
    assert shares.is_empty


def test_many_who_ask_little_do_not_make_the_bound_more_than_twice() -> None:
    shares = Shares(1000)
    shares.take("greedy", 1000)

    taken = sum(shares.take(f"pod-{number}", 1) for number in range(5000))

    assert taken <= 1000


def test_of_a_peer_s_share_each_part_has_its_own() -> None:
    """Whatever another peer says of its parts."""
    parts = Parts(8)
    assert parts.take("api-server", "greedy", 8)
    assert not parts.take("api-server", "greedy", 1)
    assert not parts.take("pod", "greedy", 9)
    assert parts.take("pod", "greedy", 8)

    assert parts.take("api-server", "modest", 4)
    assert not parts.take("api-server", "modest", 1)
    parts.give_back("api-server", "greedy", 8)
    assert parts.take("api-server", "modest", 4)


def test_nothing_is_kept_of_peers_that_hold_nothing() -> None:
    parts = Parts(1, least=1)
    for number in range(9):
        assert parts.take(f"pod-{number}", "ns", 1)
        assert not parts.take(f"other-{number}", "ns", 2)
        parts.give_back(f"pod-{number}", "ns", 1)
    assert not parts._of
