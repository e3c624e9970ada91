# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Migrations that the control plane creates for one VMI and one cause: their names, failures and back-off.

Pure. create_once creates them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import takewhile

from controlplane.api.objects.migration import FAILED, VirtualMachineInstanceMigration
from controlplane.api.timestamps import read_timestamp

FIRST_SECONDS, MOST_DOUBLINGS = 20.0, 4
"""Back-off in seconds after a first failure. It doubles with each further failed migration that still exists."""

Migrations = Iterable[VirtualMachineInstanceMigration]


@dataclass(frozen=True, slots=True)
class GeneratedMigrations:
    """The migrations of one VMI for one cause."""

    prefix: str
    """Prefix of their names."""
    annotation: str
    """Name of the annotation that they have."""
    vmi_uid: str

    def next_name(self, migrations: Migrations) -> str:
        """Return the next name. All leaders derive the same name, so a second create fails with AlreadyExists."""
        last = max((self._number_of(migration) for migration in migrations), default=0)
        return f"{self._stem}{last + 1}"

    def ours(self, migrations: Migrations) -> list[VirtualMachineInstanceMigration]:
        """Return the migrations of this cause and this VMI, not of a former VMI of the same name."""
        return [
            migration
            for migration in migrations
            if self.annotation in migration.metadata.annotations and self._number_of(migration)
        ]

    def failures(self, migrations: Migrations) -> list[VirtualMachineInstanceMigration]:
        """List the failures in a row up to the newest migration, newest first."""
        newest_first = sorted(self.ours(migrations), key=self._number_of, reverse=True)
        return list(takewhile(lambda migration: migration.status.phase == FAILED, newest_first))

    def waits_for(self, migrations: Migrations, now: float) -> float:
        """Return the remaining back-off in seconds. now: seconds since the epoch."""
        failures = self.failures(migrations)
        return (
            remaining_seconds(back_off_seconds(len(failures)), now - max(map(_ended_at, failures))) if failures else 0.0
        )

    @property
    def _stem(self) -> str:
        return f"{self.prefix}{self.vmi_uid.replace('-', '')[:8]}-"

    def _number_of(self, migration: VirtualMachineInstanceMigration) -> int:
        """Return the number in a migration's name; 0 for a foreign name."""
        name = migration.metadata.name
        number = name.removeprefix(self._stem)
        return int(number) if number != name and number.isascii() and number.isdecimal() and len(number) < 10 else 0


def back_off_seconds(failures: int) -> float:
    """Return the back-off in seconds after a number of failures."""
    return FIRST_SECONDS * 2.0 ** min(failures - 1, MOST_DOUBLINGS)


def remaining_seconds(pause: float, since: float) -> float:
    """Return the rest of a pause in seconds. since: seconds since it began, by a recorded time.

    A recorded time in the future comes from a wrong clock: it causes one more pause at most.
    """
    return 0.0 if since < -pause else min(pause, max(0.0, pause - since))


def _ended_at(migration: VirtualMachineInstanceMigration) -> float:
    """Return when a migration failed, in seconds since the epoch; 0 when unknown."""
    times = (transition for transition in migration.status.phase_transition_timestamps if transition.phase == FAILED)
    return next((read_timestamp(transition.phase_transition_timestamp) or 0.0 for transition in times), 0.0)
