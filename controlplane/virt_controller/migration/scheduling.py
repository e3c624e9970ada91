# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which of the waiting migrations may begin: pure.

Order: higher priority first, then the namespace with the fewest running migrations, then the older one.
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
    """An unfinished migration and the node that its VMI is on; "" when unknown."""

    migration: VirtualMachineInstanceMigration
    source: str
    can_begin: bool = True
    """It could begin if the limits allowed it. A migration that cannot begin blocks no other."""
    has_pod: bool = False
    """The target Pod exists. The status may not show that yet."""

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
    """Tell whether a waiting migration may begin, together with those before it that can."""
    return any(entry.migration.metadata.uid == uid for entry in next_to_begin(entries, settings, trying=uid))


def blocks_others(uid: str, entries: Iterable[QueueEntry], settings: MigrationConfiguration) -> bool:
    """Tell whether another migration that could begin has to wait because of this one."""
    queue = list(entries)
    others = [entry for entry in queue if entry.migration.metadata.uid != uid]
    return len(next_to_begin(others, settings)) > len(next_to_begin(queue, settings))


def should_yield(uid: str, entries: Iterable[QueueEntry], settings: MigrationConfiguration) -> bool:
    """Tell whether this migration, whose target Pod is not up, has to yield to one of another namespace.

    One migration yields at a time: the oldest of the namespace with the most running migrations. It never yields to a
    lower priority, nor to a namespace that would then have as many: no namespace loses its only migration.
    """
    queue = list(entries)
    begun = [entry for entry in queue if not entry.is_waiting]
    counts = Counter(entry.namespace for entry in begun)

    def is_due(blocked: QueueEntry) -> bool:
        successors = [
            entry
            for entry in queue
            if entry.is_waiting
            and counts[entry.namespace] + 1 < counts[blocked.namespace]
            and entry.order[0] <= blocked.order[0]
        ]
        return blocks_others(blocked.migration.metadata.uid, [*begun, *successors], settings)

    due = [entry for entry in begun if entry.migration.status.phase == SCHEDULING and is_due(entry)]
    first = min(due, key=lambda entry: (-counts[entry.namespace], *entry.order[1:]), default=None)
    return first is not None and first.migration.metadata.uid == uid


def next_to_begin(
    entries: Iterable[QueueEntry], settings: MigrationConfiguration, *, trying: str = ""
) -> list[QueueEntry]:
    """List the migrations that may begin now, in order. trying: UID of a migration that counts as ready even if
    refused.
    """
    queue = list(entries)
    begun = [entry for entry in queue if not entry.is_waiting]
    ready = [
        entry
        for entry in queue
        if entry.is_waiting and entry.source and (entry.can_begin or entry.migration.metadata.uid == trying)
    ]
    free = settings.parallel_migrations_per_cluster - len(begun)
    outbound = Counter(entry.source for entry in begun)
    chosen: list[QueueEntry] = []
    for entry in _alternating(ready, begun):
        if len(chosen) >= free:
            break
        if outbound[entry.source] < settings.parallel_outbound_migrations_per_node:
            chosen.append(entry)
            outbound[entry.source] += 1
    return chosen


def _alternating(waiting: Iterable[QueueEntry], begun: Iterable[QueueEntry]) -> list[QueueEntry]:
    """Sort by priority, then alternate between namespaces. The running migrations of each namespace count."""
    counts = Counter(entry.namespace for entry in begun)
    numbered: list[tuple[int, int, QueueEntry]] = []
    for entry in sorted(waiting, key=lambda entry: entry.order):
        numbered.append((entry.order[0], counts[entry.namespace], entry))
        counts[entry.namespace] += 1
    return [
        entry
        for _rank, __, entry in sorted(
            numbered, key=lambda numbered_entry: (numbered_entry[0], numbered_entry[1], numbered_entry[2].order)
        )
    ]
