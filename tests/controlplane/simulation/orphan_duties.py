# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests of which a virt-handler sees no VMI: whose they are is asked when a minute has passed, not before, not never.

Mostly the VMI is only late, and the answer is that it is there: so a clock that is wrong does no harm by itself.
"""

from __future__ import annotations

from controlplane.api.objects.resources import Key
from tests.controlplane.simulation.handler_duties import ORPHANS

SHORTEST_SECONDS = 0.01


class OrphanClock:
    """Of one process. All times are monotonic."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}
        self._asked: dict[Key, float] = {}

    def looks(self, key: Key, now: float, *, is_orphaned: bool) -> None:
        """Take note of what a look at a key has found: launchers and no VMI, or else."""
        if is_orphaned:
            self._since.setdefault(key, now)
        else:
            self._since.pop(key, None)
            self._asked.pop(key, None)

    def left(self, key: Key, now: float) -> float:
        """Tell in how many seconds it is to be asked, or asked again."""
        begun = max(self._since.get(key, now), self._asked.get(key, 0.0))
        return ORPHANS - (now - begun)

    def asks(self, key: Key, now: float) -> str | None:
        """Take note of the question; say that it comes too early."""
        early = ORPHANS - (now - self._since.get(key, now))
        self._asked[key] = now
        return f"whose a guest is, is asked {early:.1f} s too early" if early > SHORTEST_SECONDS else None
