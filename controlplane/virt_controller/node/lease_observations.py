# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each node's Lease has not been renewed, by this process's own clock. It decides nothing.

The time in a Lease comes from another host's clock, so it is only compared with its former value. Only the time since
this process became the leader counts.
"""

from __future__ import annotations

from controlplane.api.objects.lease import Renewal


class LeaseObservations:
    """Each node's last renewal, and when (monotonic) this process first observed it."""

    def __init__(self) -> None:
        self._renewals: dict[str, tuple[Renewal | None, float]] | None = None

    def begin(self) -> None:
        """Start to observe."""
        self._renewals = {}

    def observe(self, node: str, renewal: Renewal | None, monotonic: float) -> float:
        """Record the renewal of a Lease; return for how many seconds it has not changed. 0 before `begin`."""
        if self._renewals is None:
            return 0.0
        former, since = self._renewals.setdefault(node, (renewal, monotonic))
        if former != renewal:
            since = monotonic
            self._renewals[node] = (renewal, since)
        return monotonic - since

    def forget(self, node: str) -> None:
        if self._renewals is not None:
            self._renewals.pop(node, None)
