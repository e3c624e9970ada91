# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rate limits of connections, looks, statistics and agent queries. Pure: the session measures and waits.

A tenant may control a launcher: it must not be able to keep virt-handler busy or to fill its log.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

PAUSES_SECONDS = (0.02, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0)
"""Pauses between attempts to connect. libvirtd begins to listen a moment after it creates its socket."""
STEADY_SECONDS = 10.0
"""A connection that lasted this long resets the count of failures."""
RESYNC_SECONDS = 300.0
"""Period of looks at a domain without an event: an event may be lost."""
FIRST_SECONDS, USUAL_SECONDS, RARE_SECONDS = 10.0, 120.0, 600.0
"""Pauses between rounds of agent queries: the first, the usual maximum (as upstream's for interfaces), and the maximum
for an agent that does not respond or changes its responses each time."""
_CHANGES, _SILENCES = 5, 2
"""So many changes and silences in a row are normal: a booting guest is slow, and gets its addresses one by one."""
_SHARE = 0.05
"""The largest share of time that queries to one agent may take. A slow agent is queried rarely."""
LATE_FIRST_SECONDS, LATE_LAST_SECONDS = 30.0, 600.0
"""Pauses after statistics that came too late: the first, and the maximum. A call that was given up ends earlier."""
_BURST, _RATE = 20, 2.0
"""Bucket of looks at a domain: its size, and its refill per second."""
_LONG_BURST, _LONG_RATE = 100, 0.1
"""The same in the long run: each look may cause a write of the VMI's status."""


@dataclass(slots=True)
class Pauses:
    """Counts connections that failed or ended. random: numbers in [0, 1)."""

    random: Callable[[], float]
    failures: int = 0

    def next(self, lasted: float) -> float:
        """Return the seconds to wait after a connection that lasted `lasted` seconds."""
        self.failures = 1 if lasted >= STEADY_SECONDS else self.failures + 1
        return PAUSES_SECONDS[min(self.failures, len(PAUSES_SECONDS)) - 1] * (0.5 + self.random() / 2)

    @property
    def is_worth_a_warning(self) -> bool:
        """Warn when failures last, and then at growing intervals. A starting launcher fails a few times."""
        return self.failures >= len(PAUSES_SECONDS) and self.failures & (self.failures - 1) == 0

    @property
    def is_ordinary(self) -> bool:
        """Tell whether the next connection is logged at level INFO."""
        return self.failures < len(PAUSES_SECONDS)


@dataclass(slots=True)
class Looks:
    """A token bucket of looks."""

    left: float = _BURST
    at: float = 0.0
    burst: float = _BURST
    rate: float = _RATE

    def next(self, now: float) -> float:
        """Take a token; return the seconds to wait before the look. now: monotonic seconds."""
        self.left = min(self.burst, self.left + (now - self.at) * self.rate) - 1
        self.at = now
        return 0.0 if self.left >= 0 else -self.left / self.rate


@dataclass(slots=True)
class DomainLooks:
    """Limits looks at a domain: a short burst after events, and few in the long run."""

    short: Looks = field(default_factory=Looks)
    long: Looks = field(default_factory=lambda: Looks(_LONG_BURST, 0.0, _LONG_BURST, _LONG_RATE))

    def next(self, now: float) -> float:
        """Take a token; return the seconds to wait before the look. now: monotonic seconds."""
        return max(self.short.next(now), self.long.next(now))


def resync_pause(usual: float, random: float) -> float:
    """Return the seconds to wait for an event before looking without one. random: in [0, 1)."""
    return usual * (0.9 + 0.2 * random)


def pause_after_silence(took: float) -> float:
    """Return the pause in seconds after a query without a response. took: the seconds that the query took."""
    return max(FIRST_SECONDS, took / _SHARE)


@dataclass(slots=True)
class LatePauses:
    """Counts how often in a row a launcher's statistics came too late."""

    count: int = 0
    until: float = 0.0
    """Before this time (monotonic) the launcher is not asked."""

    def note(self, now: float) -> None:
        """Count another time, and begin a pause. now: monotonic seconds."""
        self.until = now + min(LATE_LAST_SECONDS, LATE_FIRST_SECONDS * 2.0 ** min(self.count, 10))
        self.count += 1


@dataclass(slots=True)
class Rounds:
    """Counts rounds of queries to an agent, and schedules the next one."""

    count: int = 0
    silences: int = 0
    changes: int = 0
    """How many silent rounds, and how many with changes, there were in a row."""

    def next(self, *, is_silent: bool, is_changed: bool, took: float) -> float:
        """Return the seconds until the next round. took: the seconds that this round took."""
        usual = min(USUAL_SECONDS, FIRST_SECONDS * 2.0 ** min(self.count, 10))
        self.count += 1
        self.silences = self.silences + 1 if is_silent else 0
        self.changes = self.changes + 1 if is_changed else 0
        excess = max(self.silences - _SILENCES, self.changes - _CHANGES)
        by_share = 0.0 if 0 < self.silences <= _SILENCES else took / _SHARE
        return min(RARE_SECONDS, max(usual * 2.0 ** min(max(excess, 0), 10), by_share))
