# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations that this control plane makes of an instance, one after another for one cause: names, failures, pauses.

Pure. create_once makes them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from controlplane.api.objects.migration import FAILED, VirtualMachineInstanceMigration
from controlplane.api.timestamps import read_timestamp

FIRST_SECONDS, MOST_DOUBLINGS = 20.0, 4
"""Back-off after a first failure, doubled with each that is kept."""

Migrations = Iterable[VirtualMachineInstanceMigration]


@dataclass(frozen=True, slots=True)
class GeneratedMigrations:
    """Of one instance."""

    prefix: str
    """What their names begin with."""
    annotation: str
    """By which they are known."""
    vmi_uid: str

    def next_name(self, known: Migrations) -> str:
        """Name the next one: the same for everybody who knows of the same ones, so that a second create collides."""
        last = max((self._number_of(migration) for migration in known), default=0)
        return f"{self._stem}{last + 1}"

    def ours(self, known: Migrations) -> list[VirtualMachineInstanceMigration]:
        """Return those that were made for this cause, and of no earlier instance of that name."""
        return [
            migration
            for migration in known
            if self.annotation in migration.metadata.annotations and self._number_of(migration)
        ]

    def failures(self, known: Migrations) -> list[VirtualMachineInstanceMigration]:
        """List those that were made here and failed, the last one first, back to one that did not fail."""
        newest_first = sorted(self.ours(known), key=self._number_of, reverse=True)
        return list(takewhile(lambda migration: migration.status.phase == FAILED, newest_first))

    def waits_for(self, known: Migrations, now: float) -> float:
        """Return for how many seconds more nothing is tried, because of failures. now: seconds since the epoch."""
        failures = self.failures(known)
        return (
            remaining_seconds(back_off_seconds(len(failures)), now - max(map(_ended_at, failures))) if failures else 0.0
        )

    @property
    def _stem(self) -> str:
        return f"{self.prefix}{self.vmi_uid.replace('-', '')[:8]}-"

    def _number_of(self, migration: VirtualMachineInstanceMigration) -> int:
        """Return which of them it is by its name; 0 for what is none."""
        name = migration.metadata.name
        number = name.removeprefix(self._stem)
        return int(number) if number != name and number.isascii() and number.isdecimal() and len(number) < 10 else 0


def back_off_seconds(failures: int) -> float:
    """Return how many seconds there are to the next try after some that failed."""
    return FIRST_SECONDS * 2.0 ** min(failures - 1, MOST_DOUBLINGS)


def remaining_seconds(pause: float, since: float) -> float:
    """Return how many seconds of a pause are left, when so many have passed since what it follows was written down.

    What was written by a clock that was ahead delays by the pause once more at most: beyond that it says nothing.
    """
    return 0.0 if since < -pause else min(pause, max(0.0, pause - since))


def _ended_at(migration: VirtualMachineInstanceMigration) -> float:
    """Return when a migration failed; long ago when nobody can tell."""
    times = (transition for transition in migration.status.phase_transition_timestamps if transition.phase == FAILED)
    return next((read_timestamp(transition.phase_transition_timestamp) or 0.0 for transition in times), 0.0)
