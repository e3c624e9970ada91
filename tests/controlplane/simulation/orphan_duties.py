# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guests without a visible VMI: virt-handler asks the API server after a minute, not before, not never.

Mostly the VMI is only late, and the response says that it exists: so a wrong clock alone does no harm.
"""

from __future__ import annotations

from controlplane.api.objects.resources import Key
from tests.controlplane.simulation.handler_duties import ORPHANS

SHORTEST_SECONDS = 0.01


class OrphanClock:
    """Per process. All times are monotonic."""

    def __init__(self) -> None:
        self._since: dict[Key, float] = {}
        self._asked: dict[Key, float] = {}

    def looks(self, key: Key, now: float, *, is_orphaned: bool) -> None:
        """Record whether a look at a key has found launchers without a VMI."""
        if is_orphaned:
            self._since.setdefault(key, now)
        else:
            self._since.pop(key, None)
            self._asked.pop(key, None)

    def left(self, key: Key, now: float) -> float:
        """Return the seconds until the next question."""
        begun = max(self._since.get(key, now), self._asked.get(key, 0.0))
        return ORPHANS - (now - begun)

    def asks(self, key: Key, now: float) -> str | None:
        """Record the question; return a complaint when it comes too early."""
        early = ORPHANS - (now - self._since.get(key, now))
        self._asked[key] = now
        return f"whose a guest is, is asked {early:.1f} s too early" if early > SHORTEST_SECONDS else None
