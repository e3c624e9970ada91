# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process knows of earlier batches of a set. It never stores a count.

The members of a batch that this process began and completed are in the cache. The members of another leader's batch
were created before the set's status recorded the batch as complete: a cache of members that has reached that
resourceVersion has them.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key

Progress = tuple[str, int, int]
Set = VirtualMachineInstanceReplicaSet | VirtualMachinePool


@dataclass(slots=True)
class SetState:
    """Replaced when another leader begins or completes a batch, and with another set of the name."""

    progress: Progress
    """UID of the set, number of batches and size of the last one, as last observed or written."""
    version: int
    """Every member of the earlier batches was created before this resourceVersion."""
    absent: set[str] = field(default_factory=set)
    """Names of the batch for which the API server returned 404, since this process last tried to create one."""
    confirmed: dict[str, str] = field(default_factory=dict)
    """By name of the batch: the UID that the API server returned, since this process last tried to create one."""
    unconfirmed: set[str] = field(default_factory=set)
    """Names that this process tried to create, and for which it got no response."""
    current: str = ""
    """resourceVersion of the set that the API server returned; "" if none, or if the response to a write was lost."""

    def note_written(self, stored: Set) -> None:
        """Record that this process wrote the set: its state about earlier batches stays valid."""
        self.progress, self.current = _progress(stored), stored.metadata.resource_version

    def note_absent(self, name: str) -> None:
        self.absent.add(name)
        self.unconfirmed.discard(name)

    def note_confirmed(self, name: str, uid: str) -> None:
        self.confirmed[name] = uid
        self.unconfirmed.discard(name)

    def note_attempt(self, name: str) -> None:
        """Record that a member is about to be created. If the response is lost, the member may exist."""
        self.absent.discard(name)
        self.confirmed.pop(name, None)
        self.unconfirmed.add(name)


class ControllerState:
    def __init__(self) -> None:
        self._by_key: dict[Key, SetState] = {}

    def observe(self, key: Key, owner: Set) -> SetState:
        """Return the state of this set, as observed in the cache."""
        state, progress = self._by_key.get(key), _progress(owner)
        if state is None or state.progress != progress:
            has_batches = owner.status.batches > 0
            state = SetState(progress, int(owner.metadata.resource_version) if has_batches else 0)
            self._by_key[key] = state
        return state

    def of(self, key: Key) -> SetState:
        """Return the state of a set that was observed."""
        return self._by_key[key]

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)


def _progress(owner: Set) -> Progress:
    return owner.metadata.uid, owner.status.batches, owner.status.batch_size
