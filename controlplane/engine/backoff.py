# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Back-off of a failing key: doubling, capped, with jitter. Knows no clock."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from controlplane.api.objects.resources import Key


@dataclass(slots=True)
class BackOff:
    """Counts failures per key. `random` gives numbers in [0, 1)."""

    random: Callable[[], float]
    base_seconds: float = 0.05
    cap_seconds: float = 30.0
    _failures: dict[Key, int] = field(default_factory=dict)

    def fail(self, key: Key) -> float:
        """Count a failure and return the seconds to wait: 50 to 100 % of base * 2^n, at most of the cap."""
        count = self._failures.get(key, 0)
        self._failures[key] = count + 1
        whole = min(self.cap_seconds, self.base_seconds * 2.0 ** min(count, 30))
        return whole * (0.5 + self.random() / 2)

    def forget(self, key: Key) -> None:
        """Reset: the next failure waits for the base again."""
        self._failures.pop(key, None)
