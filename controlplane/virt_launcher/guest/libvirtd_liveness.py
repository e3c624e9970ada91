# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long libvirtd has been silent, and when that is too long. Pure: who asks it, and who ends it, is in guest.py and
restart.py.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PING_SECONDS, ANSWER_SECONDS = 10.0, 5.0
"""An idle libvirtd is asked so often whether it is there, and has so long for the answer."""
PATIENCE_SECONDS, LAST_PATIENCE_SECONDS = 15.0, 120.0


@dataclass(slots=True)
class LibvirtdLiveness:
    """When libvirtd was heard last. clock: monotonic seconds."""

    clock: Callable[[], float]
    patience: float = PATIENCE_SECONDS
    _last: float = field(init=False)

    def __post_init__(self) -> None:
        self._last = self.clock()

    def beat(self) -> None:
        """Libvirtd has answered."""
        self._last, self.patience = self.clock(), PATIENCE_SECONDS

    def seconds_to_ping(self) -> float:
        """Tell when an idle libvirtd is to be asked; 0 or less: now. Its events are no answers (restart.py)."""
        return self._last + PING_SECONDS - self.clock()

    def begin(self) -> None:
        """A new libvirtd has all the time that there is."""
        self._last = self.clock()

    def seconds_left(self) -> float:
        """Tell until when libvirtd is to answer; 0 or less: it is hung."""
        return self._last + self.patience - self.clock()

    def give_up(self) -> None:
        """Count a libvirtd that was ended: the next has more time, for it may be the node that is slow."""
        self.begin()
        self.patience = min(2 * self.patience, LAST_PATIENCE_SECONDS)
