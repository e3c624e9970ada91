# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose turn it is among the migrations that wait: pure.

More important ones first, then those of the namespace that has the fewest under way, then older ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from controlplane.api.objects.migration import (
    FINAL,
    PENDING,
    SCHEDULING,
    SYSTEM_CRITICAL,
    SYSTEM_MAINTENANCE,
    UNSET,
    USER_TRIGGERED,
    VirtualMachineInstanceMigration,
)
from controlplane.api.objects.migration_state import MigrationConfiguration

RANKS = {SYSTEM_CRITICAL: 100, USER_TRIGGERED: 50, SYSTEM_MAINTENANCE: 20, None: 0}


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A migration that is not over, and the node that its instance is on; "" when nobody knows."""

    migration: VirtualMachineInstanceMigration
    source: str
    can_begin: bool = True
    """Nothing but its turn is missing. One that cannot keeps nobody waiting."""
    has_pod: bool = False
    """The Pod that it goes to was made, whatever its status says by now."""

    @property
    def is_waiting(self) -> bool:
        return self.migration.status.phase in (UNSET, PENDING) and not self.has_pod

    @property
    def namespace(self) -> str:
        return self.migration.metadata.namespace

    @property
    def order(self) -> tuple[int, str, str]:
        meta = self.migration.metadata
        return -RANKS.get(self.migration.spec.priority, 0), meta.creation_timestamp or "", meta.uid


def is_over(migration: VirtualMachineInstanceMigration) -> bool:
    return migration.status.phase in FINAL


def may_begin(uid: str, entries: Iterable[QueueEntry], settings: MigrationConfiguration) -> bool:
    """Tell whether a migration that waits may begin: those before it that can, begin as well."""
    return any(entry.migration.metadata.uid == uid for entry in next_to_begin(entries, settings, trying=uid))


def blocks_others(uid: str, entries: Iterable[QueueEntry], settings: MigrationConfiguration) -> bool:
    """Tell whether another one, which can begin, has to wait because of this one."""
    known = list(entries)
    others = [entry for entry in known if entry.migration.metadata.uid != uid]
    return len(next_to_begin(others, settings)) > len(next_to_begin(known, settings))


def should_yield(uid: str, entries: Iterable[QueueEntry], settings: MigrationConfiguration) -> bool:
    """Tell whether this one, of those whose Pods are on their way, is to give its place to another namespace's.

    One at a time: the oldest of who has most places. It gives way to none that is less important, and to no namespace
    that would then have as many as its own is left with: nobody's only place is taken.
    """
    known = list(entries)
    begun = [entry for entry in known if not entry.is_waiting]
    places = Counter(entry.namespace for entry in begun)

    def is_due(held: QueueEntry) -> bool:
        heirs = [
            entry
            for entry in known
            if entry.is_waiting
            and places[entry.namespace] + 1 < places[held.namespace]
            and entry.order[0] <= held.order[0]
        ]
        return blocks_others(held.migration.metadata.uid, [*begun, *heirs], settings)

    due = [entry for entry in begun if entry.migration.status.phase == SCHEDULING and is_due(entry)]
    first = min(due, key=lambda entry: (-places[entry.namespace], *entry.order[1:]), default=None)
    return first is not None and first.migration.metadata.uid == uid


def next_to_begin(
    entries: Iterable[QueueEntry], settings: MigrationConfiguration, *, trying: str = ""
) -> list[QueueEntry]:
    """List those that may begin now, first ones first. trying: UID of one that is looked at, refused before or not."""
    known = list(entries)
    begun = [entry for entry in known if not entry.is_waiting]
    able = [
        entry
        for entry in known
        if entry.is_waiting and entry.source and (entry.can_begin or entry.migration.metadata.uid == trying)
    ]
    free = settings.parallel_migrations_per_cluster - len(begun)
    leaving = Counter(entry.source for entry in begun)
    found: list[QueueEntry] = []
    for entry in _in_turns(able, begun):
        if len(found) >= free:
            break
        if leaving[entry.source] < settings.parallel_outbound_migrations_per_node:
            found.append(entry)
            leaving[entry.source] += 1
    return found


def _in_turns(waiting: Iterable[QueueEntry], begun: Iterable[QueueEntry]) -> list[QueueEntry]:
    """Sort them; of one rank, each namespace's first is before another one's second, counted from those under way."""
    places = Counter(entry.namespace for entry in begun)
    numbered: list[tuple[int, int, QueueEntry]] = []
    for entry in sorted(waiting, key=lambda entry: entry.order):
        numbered.append((entry.order[0], places[entry.namespace], entry))
        places[entry.namespace] += 1
    return [
        one
        for _rank, __, one in sorted(
            numbered, key=lambda numbered_entry: (numbered_entry[0], numbered_entry[1], numbered_entry[2].order)
        )
    ]
