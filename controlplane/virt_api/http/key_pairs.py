# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pair is in use, when the one that came last is not valid now: its maker's clock may have been wrong, or ours.

Looked at whenever the pair is needed, so that no timer has to wait for its day.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from controlplane.kube.certificates import KeyPair, validity


class PairInUse:
    """The last pair that came or, while that one is not valid and the one before is, the one before."""

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
    def known(self) -> tuple[KeyPair, ...]:
        """That one, and the one that waits."""
        return tuple(pair for pair in (self.current, self._next) if pair is not None)

    def take(self, pair: KeyPair) -> bool:
        """Take the pair that came; tell whether it is used from now on."""
        self._next = pair if pair != self._used else None
        return self.current == pair

    def _is_valid(self, pair: KeyPair | None) -> bool:
        if pair is None:
            return False
        try:
            known = validity(pair.certificate)
        except ValueError:
            return True  # of what cannot be read here, nothing speaks against it
        return known.begins <= self._now() < known.ends
