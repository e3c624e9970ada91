# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Back-off for the replacement of VMIs that ended before they ran. It decides nothing.

The delays are those of a VM's start (vm/start_failure.py). Counting starts again with a new leader, when a VMI runs,
and when the set changes. Members that are missing for another reason do not wait.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key
from controlplane.virt_controller.replicaset.member import Member
from controlplane.virt_controller.vm.start_failure import delay_seconds, spread


@dataclass(slots=True)
class _BackOff:
    version: tuple[str, int]
    """UID and generation of the set."""
    rounds: int = 0
    """Consecutive rounds in which VMIs ended before they ran."""
    held_back: int = 0
    """VMIs that are not replaced before not_before."""
    not_before: float = 0.0
    failed: frozenset[str] = frozenset()
    ran: frozenset[str] = frozenset()
    """UIDs of members that ended before they ran, and of those that have run."""


@dataclass(slots=True)
class Failures:
    _by_key: dict[Key, _BackOff] = field(default_factory=dict)

    def note(
        self, key: Key, owner: VirtualMachineInstanceReplicaSet, members: Iterable[Member], monotonic: float
    ) -> tuple[int, float]:
        """Count new failures. Return how many members must not be replaced now, and for how many seconds."""
        version = owner.metadata.uid, owner.metadata.generation
        back_off = self._by_key.get(key)
        if back_off is None or back_off.version != version:
            back_off = self._by_key[key] = _BackOff(version)
        members = tuple(members)
        ran = frozenset(member.metadata.uid for member in members if member.has_run)
        failed = frozenset(member.metadata.uid for member in members if member.is_failed_start)
        if ran - back_off.ran:
            back_off.rounds = back_off.held_back = 0
        if monotonic >= back_off.not_before:
            back_off.held_back = 0
        if new := failed - back_off.failed:
            self._hold_back(back_off, len(new), monotonic)
        back_off.ran, back_off.failed = ran, failed
        return (back_off.held_back, back_off.not_before - monotonic) if back_off.held_back else (0, 0.0)

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def _hold_back(self, back_off: _BackOff, count: int, monotonic: float) -> None:
        """Add to the current round, or begin the next one."""
        if not back_off.held_back:
            back_off.rounds += 1
            jitter = spread(back_off.version[0], back_off.rounds)
            back_off.not_before = monotonic + delay_seconds(back_off.rounds, jitter=jitter)
        back_off.held_back += count
