# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of what is short a peer may hold. Pure: what is short, and what a peer is, whoever holds the shares says.

A peer is an address: a Pod has one. What is short is divided by peers, never by requests, so that nobody gets more by
asking more.
"""

from __future__ import annotations


class Shares:
    """A bounded quantity, e.g. of bytes. Who is alone may have it all; while it is short, each may have a share yet.

    Who came before keeps what it has, so what is shared while it is short is besides: of n peers, each may have the
    bound / (n * (n - 1)). Whatever they do, all of them hold at most twice the bound, as 1 + 1/2 + 1/6 + 1/12 ... is 2:
    of those that hold something, the one that took as the n-th of them to take last found n or more of them.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        """least: what everybody may have however many there are; so much of each peer is its users' to bound."""
        self._most, self._least = most, least
        self._total = 0
        self._held: dict[str, int] = {}

    def take(self, peer: str, amount: int) -> bool:
        """Take so much, or nothing; False when there is not so much for this peer."""
        held = self._held.get(peer, 0) + amount
        if self._total + amount > self._most and held > max(self._share(peer), self._least):
            return False
        self._held[peer] = held
        self._total += amount
        return True

    def hand_over(self, giver: str, taker: str, amount: int) -> None:
        """Take from one and give to another, who may have more than an even share by it: in all it stays as much."""
        self.give_back(giver, amount)
        self._held[taker] = self._held.get(taker, 0) + amount
        self._total += amount

    def _share(self, peer: str) -> int:
        peers = self._peers(peer)
        return self._most // (peers * (peers - 1) or 1)

    def _peers(self, peer: str) -> int:
        """Count who holds something, and this one."""
        return len(self._held) + (peer not in self._held)

    @property
    def is_empty(self) -> bool:
        return not self._held

    @property
    def total(self) -> int:
        return self._total

    def give_back(self, peer: str, amount: int) -> None:
        left = self._held.get(peer, 0) - amount
        self._total -= amount
        if left > 0:
            self._held[peer] = left
        else:
            self._held.pop(peer, None)


class _EvenShares(Shares):
    """While it is short, each may have an even share. In all that is 1 + 1/2 + 1/3 ...: somebody else's to bound."""

    def _share(self, peer: str) -> int:
        return self._most // self._peers(peer)


class Parts:
    """What each part of a peer, e.g. a namespace, may hold: peers' parts are divided among themselves, evenly.

    All parts of a peer together may hold as much as the peer, which is its Shares' to bound.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        """most: of one part, while it is alone; least: as with Shares."""
        self._most, self._least = most, least
        self._of: dict[str, _EvenShares] = {}

    def take(self, peer: str, part: str, amount: int) -> bool:
        """Take so much, or nothing; False when there is not so much for this part."""
        shares = self._of.setdefault(peer, _EvenShares(self._most, self._least))
        taken = shares.take(part, amount)
        self._tidy(peer)
        return taken

    def give_back(self, peer: str, part: str, amount: int) -> None:
        self._of[peer].give_back(part, amount)
        self._tidy(peer)

    def _tidy(self, peer: str) -> None:
        if self._of[peer].is_empty:
            del self._of[peer]
