# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many of a set's instances ended before they ran, and how long those that replace them wait. No decision here.

As a machine's start does that failed (vm/start_failure.py), and as this process saw it happen: a new leader begins to
count anew, as it does when an instance comes to run, or the set is changed. Who else is missing does not wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key
from controlplane.virt_controller.replicaset.member import Member
from controlplane.virt_controller.vm.start_failure import delay_seconds, spread


@dataclass(slots=True)
class _Record:
    of: tuple[str, int]
    """UID and generation of the set."""
    rounds: int = 0
    """In a row, in which instances ended before they ran."""
    owed: int = 0
    """Instances that are not replaced before that time."""
    not_before: float = 0.0
    counted: frozenset[str] = frozenset()
    ran: frozenset[str] = frozenset()
    """UIDs of members that are known to have ended so, or to have run."""


@dataclass(slots=True)
class Failures:
    _by_key: dict[Key, _Record] = field(default_factory=dict)

    def note(
        self, key: Key, seen: VirtualMachineInstanceReplicaSet, members: Iterable[Member], monotonic: float
    ) -> tuple[int, float]:
        """Take in how the instances are. Return how many are not to be replaced now, and for how many seconds."""
        of = seen.metadata.uid, seen.metadata.generation
        record = self._by_key.get(key)
        if record is None or record.of != of:
            record = self._by_key[key] = _Record(of)
        known = tuple(members)
        ran = frozenset(one.metadata.uid for one in known if one.has_run)
        failed = frozenset(one.metadata.uid for one in known if one.is_failed_start)
        if ran - record.ran:
            record.rounds = record.owed = 0
        if monotonic >= record.not_before:
            record.owed = 0
        if new := failed - record.counted:
            self._count(record, len(new), monotonic)
        record.ran, record.counted = ran, failed
        return (record.owed, record.not_before - monotonic) if record.owed else (0, 0.0)

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def _count(self, record: _Record, number: int, monotonic: float) -> None:
        """Add to the round that waits, or begin the next one."""
        if not record.owed:
            record.rounds += 1
            jitter = spread(record.of[0], record.rounds)
            record.not_before = monotonic + delay_seconds(record.rounds, jitter=jitter)
        record.owed += number
