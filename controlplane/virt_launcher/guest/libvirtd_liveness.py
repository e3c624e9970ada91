# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When libvirtd last responded, and when it counts as hung. Pure. watch.py pings, libvirtd_restart.py restarts it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PING_SECONDS, ANSWER_SECONDS = 10.0, 5.0
"""The interval of pings to an idle libvirtd, and the timeout of each."""
HUNG_SECONDS, LAST_HUNG_SECONDS = 15.0, 120.0
"""A libvirtd without a response for this long counts as hung; the second is the limit after repeated restarts."""


@dataclass(slots=True)
class LibvirtdLiveness:
    """When libvirtd last responded. clock: monotonic seconds."""

    clock: Callable[[], float]
    hung_after: float = HUNG_SECONDS
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    def answered(self) -> None:
        """Record a response of libvirtd."""
        self._last, self.hung_after = self.clock(), HUNG_SECONDS

    def seconds_to_ping(self) -> float:
        """Return the seconds until the next ping; 0 or less: now. Events do not count as responses."""
        return self._last + PING_SECONDS - self.clock()

    def restarted(self) -> None:
        """Record that a new libvirtd was started."""
        self._last = self.clock()

    def seconds_left(self) -> float:
        """Return the seconds until libvirtd counts as hung; 0 or less: it does."""
        return self._last + self.hung_after - self.clock()

    def killed(self) -> None:
        """Record that a hung libvirtd was killed. The next one gets more time, because the node may be slow."""
        self.restarted()
        self.hung_after = min(2 * self.hung_after, LAST_HUNG_SECONDS)
