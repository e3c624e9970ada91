# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which key pair is in use while the newest one is not valid: the clock of its issuer may be wrong, or ours.

The pair is chosen whenever it is needed, so no timer has to wait for its validity.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from controlplane.tls.certificates import KeyPair, validity


class KeyPairInUse:
    """The newest pair, or the one before as long as only that one is valid."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._used: KeyPair | None = None
        self._next: KeyPair | None = None

    @property
    def current(self) -> KeyPair | None:
        """The pair to use at this moment; None before there is one."""
        if self._next is not None and (self._is_valid(self._next) or not self._is_valid(self._used)):
            self._used, self._next = self._next, None
        return self._used

    @property
    def pairs(self) -> tuple[KeyPair, ...]:
        """The current pair, and the one that is not valid yet."""
        return tuple(pair for pair in (self.current, self._next) if pair is not None)

    def take(self, pair: KeyPair) -> bool:
        """Take the newest pair; tell whether it is used from now on."""
        self._next = pair if pair != self._used else None
        return self.current == pair

    def _is_valid(self, pair: KeyPair | None) -> bool:
        if pair is None:
            return False
        try:
            dates = validity(pair.certificate)
        except ValueError:
            return True  # a certificate that cannot be read here is not refused for its dates
        return dates.begins <= self._now() < dates.ends
