# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How often a launcher is called and looked at, whatever it does. Pure: who measures and who waits is the session.

A launcher may be a tenant's own program: it must not be able to keep us busy, nor to fill our log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PAUSES_SECONDS = (0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Between attempts to connect: libvirtd listens a moment after its socket is there."""
STEADY_SECONDS = 10.0
"""A contact that was good for so long makes up for the failures before it."""
RESYNC_SECONDS = 300.0
"""A domain is looked at again after so long without an event: one may be lost, or not sent."""
FIRST_SECONDS, USUAL_SECONDS, RARE_SECONDS = 10.0, 120.0, 600.0
"""An agent is asked again after 10 s, then ever later up to two minutes, as upstream asks it for its interfaces; one
that is silent, or says something else each time, up to ten."""
_CHANGES, _SILENCES = 5, 2
"""In a row they are no surprise: a guest that boots has addresses one after the other, and is slow in everything."""
_SHARE = 0.05
"""Of the time that an agent is being asked at most; one that answers slowly is asked seldom."""
_BURST, _RATE = 20, 2.0
"""Looks that are taken as events come, and how many come back in a second."""
_LONG_BURST, _LONG_RATE = 100, 0.1
"""The same for who goes on like that: each look may be a write, for as long as the machine is there."""


@dataclass(slots=True)
class Pauses:
    """Counts contacts that ended, or never began. random: numbers in [0, 1)."""

    random: Callable[[], float]
    failures: int = 0

    def next(self, good_for: float) -> float:
        """Return the seconds to wait after the end of a contact that was good for so long."""
        self.failures = 1 if good_for >= STEADY_SECONDS else self.failures + 1
        return PAUSES_SECONDS[min(self.failures, len(PAUSES_SECONDS)) - 1] * (0.5 + self.random() / 2)

    @property
    def is_worth_a_warning(self) -> bool:
        """Say the trouble once it lasts, and then ever less often: a launcher that comes up fails a few times."""
        return self.failures >= len(PAUSES_SECONDS) and self.failures & (self.failures - 1) == 0

    @property
    def is_ordinary(self) -> bool:
        """Tell whether the next contact is worth a line for operators."""
        return self.failures < len(PAUSES_SECONDS)


@dataclass(slots=True)
class Looks:
    """A bucket of looks (at a domain, unless said otherwise) that fills again slowly."""

    left: float = _BURST
    at: float = 0.0
    burst: float = _BURST
    rate: float = _RATE

    def next(self, now: float) -> float:
        """Take a look; return the seconds to wait before. now: monotonic seconds."""
        self.left = min(self.burst, self.left + (now - self.at) * self.rate) - 1
        self.at = now
        return 0.0 if self.left >= 0 else -self.left / self.rate


@dataclass(slots=True)
class DomainLooks:
    """Looks at a domain: some as events come, and in the long run few."""

    short: Looks = field(default_factory=Looks)
    long: Looks = field(default_factory=lambda: Looks(_LONG_BURST, 0.0, _LONG_BURST, _LONG_RATE))

    def next(self, now: float) -> float:
        """Take a look; return the seconds to wait before. now: monotonic seconds."""
        return max(self.short.next(now), self.long.next(now))


def resync_pause(usual: float, random: float) -> float:
    """Return the seconds to wait for an event before looking without one. random: in [0, 1)."""
    return usual * (0.9 + 0.2 * random)


def pause_after_silence(took: float) -> float:
    """Return the seconds for which an agent that did not answer is not asked the like again. took: those of the try."""
    return max(FIRST_SECONDS, took / _SHARE)


@dataclass(slots=True)
class Rounds:
    """Counts rounds of questions to an agent, and says when the next is due."""

    count: int = 0
    silences: int = 0
    changes: int = 0
    """Of each: how many in a row."""

    def next(self, *, is_silent: bool, is_changed: bool, took: float) -> float:
        """Return the seconds until the next round. took: those of this one."""
        usual = min(USUAL_SECONDS, FIRST_SECONDS * 2.0 ** min(self.count, 10))
        self.count += 1
        self.silences = self.silences + 1 if is_silent else 0
        self.changes = self.changes + 1 if is_changed else 0
        excess = max(self.silences - _SILENCES, self.changes - _CHANGES)
        rest = 0.0 if 0 < self.silences <= _SILENCES else took / _SHARE
        return min(RARE_SECONDS, max(usual * 2.0 ** min(max(excess, 0), 10), rest))
