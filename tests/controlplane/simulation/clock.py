# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Time that moves only when the simulation says so, and how each process reads it: with a wrong offset, if need be."""

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
    """A machine's clock: its wall time is off and may step; its monotonic time begins where it likes."""

    true: SimulatedClock
    offset: float = 0.0
    zero: float = 1_699_999_000.0

    def monotonic(self) -> float:
        return self.true.seconds - self.zero

    def boottime(self) -> float:
        return self.true.seconds - self.zero

    def now(self) -> float:
        return self.true.seconds + self.offset
