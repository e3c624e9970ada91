# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Swarm testing of the probabilities.

Each stretch multiplies the usual ones at random, so that rare combinations occur in some stretch.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from itertools import accumulate

from tests.support.calls import Fate

USUAL = {
    "deliver": 30.0,
    "begin": 18.0,
    "carry out": 34.0,
    "kubelet": 16.0,
    "host": 12.0,
    "session": 20.0,
    "schedule": 10.0,
    "collect": 3.0,
    "people": 1.0,
    "time": 3.0,
    "guest": 0.3,
    "agent": 1.2,
    "crash": 0.05,
    "second leader": 0.08,
    "relist": 0.06,
    "bookmark": 0.1,
    "repeat": 0.05,
    "cut": 0.03,
    "cut and force": 0.06,
    "heal": 0.2,
    "power": 0.03,
    "fence": 0.1,
    "evict": 0.05,
    "handler crash": 0.04,
    "daemon": 0.05,
    "clock": 0.02,
    "emulation": 0.04,
    "I/O error": 0.4,
    "blind": 0.05,
    "break": 0.15,
}
NAMES = tuple(USUAL)
FATES: tuple[Fate, ...] = ("request lost", "answer lost", "answer lost", "forbidden", "invalid", "throttled")
SLOW_DELIVERY = 0.02
"""How often a slow watch delivers when it is chosen."""


@dataclass(slots=True)
class Odds:
    """The probabilities of one stretch."""

    rng: random.Random
    fault_rate: float = 0.0
    meddling: float = 0.0
    """How often a fault happens at a critical moment."""
    lateness: float = 0.0
    """How often a response comes after those of later calls."""
    slow: frozenset[tuple[str, str]] = frozenset()
    """Watches (role, kind) that deliver rarely."""
    is_withheld: bool = False
    """Whether most grants of starts are refused, so that running launchers wait."""
    mute: str = ""
    """The node whose launchers mostly do not respond to a start."""
    unheard: str = ""
    """The node whose Lease renewals are lost, and nothing else."""
    _weights: list[float] = field(default_factory=list)
    """Cumulative, in the order of NAMES."""

    def draw(self) -> None:
        """Begin a new stretch."""
        choice = self.rng.choice
        self.fault_rate = choice((0.0, 0.02, 0.1, 0.3))
        self.meddling = choice((0.0, 0.1, 0.25, 0.5))
        self.lateness = choice((0.0, 0.0, 0.05, 0.2))
        kinds = ("VirtualMachine", "VirtualMachineInstance", "Pod", "Node", "Lease")
        roles = ("controller", "handler")
        self.slow = frozenset((choice(roles), choice(kinds)) for _unused in range(choice((0, 0, 1, 2))))
        self.unheard = choice(("", "", "", "node-1", "node-2"))
        self.is_withheld = choice((False, False, True))
        self.mute = choice(("", "", "node-1", "node-2"))
        self._weights = list(accumulate(weight * choice((0.1, 1.0, 1.0, 4.0)) for weight in USUAL.values()))

    def move(self) -> str:
        """Draw a kind of step."""
        return self.rng.choices(NAMES, cum_weights=self._weights)[0]

    def fate(self, *, may_refuse: bool) -> Fate:
        if self.rng.random() >= self.fault_rate:
            return "done"
        return self.rng.choice(FATES if may_refuse else FATES[:3])
