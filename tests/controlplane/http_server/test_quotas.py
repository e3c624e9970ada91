# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import random
from collections import Counter

import pytest

from controlplane.http_server.quotas import Parts, Shares


def test_who_is_alone_may_have_it_all() -> None:
    shares = Shares(10)

    assert shares.take("a", 10)
    assert not shares.take("a", 1)


def test_a_share_is_everybodys_at_any_time() -> None:
    """A Pod that holds all of it keeps nobody out."""
    shares = Shares(12)
    assert shares.take("greedy", 12)

    assert not shares.take("api-server", 7), "who comes counts, too"
    assert shares.take("api-server", 6)
    assert not shares.take("api-server", 1)
    assert not shares.take("greedy", 1)
    assert not shares.take("third", 3)
    assert shares.take("third", 2)
    assert shares.take("fourth", 1)


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


def test_peers_that_come_one_after_the_other_hold_twice_the_bound_at_most() -> None:
    """Even shares of it were 1 + 1/2 + 1/3 ...: 2,402 connections of 512 for 64 peers."""
    shares = Shares(512)
    held = [_take_all(shares, f"pod-{number}") for number in range(64)]

    assert held[:6] == [512, 256, 85, 42, 25, 17]
    assert shares.total == sum(held) <= 1024


@pytest.mark.parametrize("seed", range(20))
def test_whatever_peers_do_they_hold_twice_the_bound_at_most(seed: int) -> None:
    chance, shares, held = random.Random(seed), Shares(500), Counter[str]()
    for _unused in range(3000):
        peer = f"pod-{chance.randrange(40)}"
        if chance.random() < 0.6:
            amount = chance.choice((1, 1, 7, 100, 500, shares.total))
            if shares.take(peer, amount):
                held[peer] += amount
            elif amount == 1 and not held[peer]:  # as the listener has somebody make room
                giver = max(held, key=lambda one: held[one])
                shares.hand_over(giver, peer, 1)
                held.update({giver: -1, peer: 1})
        elif held[peer]:
            amount = chance.choice((1, held[peer]))
            shares.give_back(peer, amount)
            held[peer] -= amount
        assert shares.total == held.total() <= 1000


def test_the_parts_of_a_peer_may_each_have_an_even_one() -> None:
    """How much a peer may have in all is bounded elsewhere: its tenants are not to be as poor as strangers."""
    parts = Parts(12)
    assert parts.take("api-server", "greedy", 12)
    assert [parts.take("api-server", f"tenant-{number}", 12 // number) for number in range(2, 7)] == [True] * 5


def _take_all(shares: Shares, peer: str) -> int:
    taken = 0
    while shares.take(peer, 1):
        taken += 1
    return taken


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
