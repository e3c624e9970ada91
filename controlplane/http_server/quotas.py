# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quotas: a limit for all peers together, and a lower limit for each of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class BusyError(Exception):
    """There is no capacity at the moment: the peer may try again later."""


class Quota:
    """A bounded quantity, e.g. of connections or bytes. The caller chooses what identifies a peer, e.g. an address."""

    def __init__(self, limit: int, peer_limit: int) -> None:
        self._limit, self._peer_limit = limit, peer_limit
        self._used: Counter[str] = Counter()

    def take(self, peer: str, amount: int = 1) -> bool:
        """Take an amount for a peer; False, and nothing is taken, when it would exceed a limit."""
        if self._used.total() + amount > self._limit or self._used[peer] + amount > self._peer_limit:
            return False
        self._used[peer] += amount
        return True

    def give_back(self, peer: str, amount: int = 1) -> None:
        self._used[peer] -= amount
        if not self._used[peer]:
            del self._used[peer]

    @contextmanager
    def reserve(self, peer: str, amount: int, refusal: str) -> Iterator[None]:
        """Take an amount for the duration of the block. Raises BusyError with the refusal as its text."""
        if not self.take(peer, amount):
            raise BusyError(refusal)
        try:
            yield
        finally:
            self.give_back(peer, amount)

    def used_by(self, peer: str) -> int:
        return self._used[peer]

    @property
    def is_unused(self) -> bool:
        return not self._used
