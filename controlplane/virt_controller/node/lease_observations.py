# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""For how long each node's Lease was seen to stand still, by this process's own clock. Nothing is decided here.

The time that is written in a Lease is another host's: it is compared to nothing but what it was before. What was seen
before this process led counts for nothing, as does what it missed: who has just begun to look has seen no silence.
"""

from __future__ import annotations

from controlplane.api.objects.lease import Renewal


class LeaseObservations:
    """Remembers each node's last renewal, and when (monotonic) it was new to us."""

    def __init__(self) -> None:
        self._seen: dict[str, tuple[Renewal | None, float]] | None = None

    def begin(self) -> None:
        """Look from now on."""
        self._seen = {}

    def observe(self, node: str, renewal: Renewal | None, monotonic: float) -> float:
        """Take note of what is there; return for how many seconds it has been so. 0 before `begin`."""
        if self._seen is None:
            return 0.0
        known, since = self._seen.setdefault(node, (renewal, monotonic))
        if known != renewal:
            since = monotonic
            self._seen[node] = (renewal, since)
        return monotonic - since

    def forget(self, node: str) -> None:
        if self._seen is not None:
            self._seen.pop(node, None)
