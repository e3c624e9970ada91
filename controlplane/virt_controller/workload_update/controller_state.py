# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""State about the VMIs that this process updates: migrations, evictions and refusals. No I/O.

The next leader starts without it: it may retry refused actions sooner, and finds existing migrations in the cache.
"""

from __future__ import annotations

from dataclasses import dataclass

from controlplane.api.objects.resources import Key
from controlplane.engine.ports import Clock
from controlplane.virt_controller.migration.generated_migrations import back_off_seconds

HOLD_SECONDS = 1.0


@dataclass(slots=True)
class InstanceState:
    refusals: int = 0
    """Refusals in a row."""
    not_before: float = 0.0
    """End of the back-off (monotonic)."""
    made: Key | None = None
    """The last migration that was created for it."""
    evicted: str = ""
    """UID of the Pod whose eviction was granted."""
    announced: str = ""
    """UID of the failed migration whose back-off was reported."""


class ControllerState:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_uid: dict[str, InstanceState] = {}

    def of(self, uid: str) -> InstanceState:
        """Return a VMI's state by UID. Only the methods below change it."""
        return self._by_uid.get(uid) or InstanceState()

    def backs_off_for(self, uid: str) -> float:
        return max(0.0, self.of(uid).not_before - self._clock.monotonic())

    def refuse(self, uid: str) -> None:
        state = self._stored(uid)
        state.refusals += 1
        state.not_before = self._clock.monotonic() + back_off_seconds(state.refusals)

    def hold(self, uid: str) -> None:
        """Delay this VMI after a conflict. Other VMIs are not delayed."""
        self._stored(uid).not_before = self._clock.monotonic() + HOLD_SECONDS

    def accept(self, uid: str) -> None:
        if uid in self._by_uid:
            self._by_uid[uid].refusals = 0

    def note_made(self, uid: str, migration: Key) -> None:
        self._stored(uid).made = migration

    def note_evicted(self, uid: str, pod: str) -> None:
        self._stored(uid).evicted = pod

    def note_announced(self, uid: str, migration: str) -> None:
        self._stored(uid).announced = migration

    @property
    def announced(self) -> frozenset[str]:
        return frozenset(state.announced for state in self._by_uid.values() if state.announced)

    def keep_only(self, uids: set[str]) -> None:
        """Drop the state of other VMIs."""
        self._by_uid = {uid: state for uid, state in self._by_uid.items() if uid in uids}

    def _stored(self, uid: str) -> InstanceState:
        return self._by_uid.setdefault(uid, InstanceState())
