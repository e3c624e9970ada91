# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clocks for tests: time moves only when a test advances it, and a process can read it with a wrong offset."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class SimulatedClock:
    seconds: float = 1_700_000_000.0

    def monotonic(self) -> float:
        return self.seconds

    def boottime(self) -> float:
        return self.seconds

    def now(self) -> float:
        return self.seconds

    def advance(self, seconds: float) -> None:
        self.seconds += seconds


@dataclass(slots=True)
class WrongClock:
    """A machine's clock: wall time has an offset and may step; monotonic time starts at any value."""

    true: SimulatedClock
    offset: float = 0.0
    zero: float = 1_699_999_000.0

    def monotonic(self) -> float:
        return self.true.seconds - self.zero

    def boottime(self) -> float:
        return self.true.seconds - self.zero

    def now(self) -> float:
        return self.true.seconds + self.offset
