# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much of what is short a peer may hold. Pure: what is short, and what a peer is, whoever holds the shares says.

A peer is an address: a Pod has one. What is short is divided by peers, never by requests, so that nobody gets more by
asking more.
"""

from __future__ import annotations


class Shares:
    """A bounded quantity, e.g. of bytes. While it is short, who holds an even share or more gets no more.

    Everybody may have an even share at any time, and who came before keeps what it has: peers that come one after the
    other and take all they may hold 1 + 1/2 + 1/3 ... of the bound in all, which is five times the bound for eighty.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        """least: what everybody may have however many there are; the bound is then theirs to bound."""
        self._most, self._least = most, least
        self._total = 0
        self._held: dict[str, int] = {}

    def take(self, peer: str, amount: int) -> bool:
        """Take so much, or nothing; False when there is not so much for this peer."""
        held = self._held.get(peer, 0) + amount
        peers = len(self._held) + (peer not in self._held)
        if self._total + amount > self._most and held > max(self._most // peers, self._least):
            return False
        self._held[peer] = held
        self._total += amount
        return True

    def hand_over(self, giver: str, taker: str, amount: int) -> None:
        """Take from one and give to another, who may have more than an even share by it: in all it stays as much."""
        self.give_back(giver, amount)
        self._held[taker] = self._held.get(taker, 0) + amount
        self._total += amount

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


class Parts:
    """What each part of a peer, e.g. a namespace, may hold: peers' parts are divided among themselves.

    All parts of a peer together may hold as much as the peer, which is its Shares' to bound.
    """

    def __init__(self, most: int, least: int = 0) -> None:
        """most: of one part, while it is alone; least: as with Shares."""
        self._most, self._least = most, least
        self._of: dict[str, Shares] = {}

    def take(self, peer: str, part: str, amount: int) -> bool:
        """Take so much, or nothing; False when there is not so much for this part."""
        shares = self._of.setdefault(peer, Shares(self._most, self._least))
        taken = shares.take(part, amount)
        self._tidy(peer)
        return taken

    def give_back(self, peer: str, part: str, amount: int) -> None:
        self._of[peer].give_back(part, amount)
        self._tidy(peer)

    def _tidy(self, peer: str) -> None:
        if self._of[peer].is_empty:
            del self._of[peer]
