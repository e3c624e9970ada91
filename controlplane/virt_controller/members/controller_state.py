# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process knows of earlier batches of a set. It never keeps a count.

The members of a batch that this process began and completed are in the cache. The members of another leader's batch
were created before the set's status recorded the batch as complete: a cache of members that has read up to that
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
class _SetState:
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
    """resourceVersion of the set that the API server returned; "" if none."""


class ControllerState:
    def __init__(self) -> None:
        self._by_key: dict[Key, _SetState] = {}

    def has_read_earlier_batches(self, key: Key, owner: Set, version: int) -> bool:
        """Tell whether a cache of members at this resourceVersion has every member of the earlier batches."""
        return version >= self._of(key, owner).version

    def is_current(self, key: Key, owner: Set) -> bool:
        """Tell whether the API server, not only the cache, returned this version of the set."""
        return self._of(key, owner).current == owner.metadata.resource_version

    def note_current(self, key: Key, owner: Set, version: str) -> None:
        """Note the resourceVersion of the set that the API server returned."""
        self._of(key, owner).current = version

    def note_writing(self, key: Key) -> None:
        """Note that the set is about to be written. If the response is lost, the set's version is unknown."""
        self._by_key[key].current = ""

    def note_written(self, key: Key, stored: Set) -> None:
        """Note that this process wrote the set: its knowledge of earlier batches stays valid."""
        state = self._by_key[key]
        state.progress, state.current = _progress(stored), stored.metadata.resource_version

    def absent(self, key: Key, owner: Set) -> frozenset[str]:
        """Return the names of the batch that are free."""
        return frozenset(self._of(key, owner).absent)

    def is_confirmed(self, key: Key, owner: Set, name: str, uid: str) -> bool:
        """Tell whether the API server returned this member under the name."""
        return self._of(key, owner).confirmed.get(name) == uid

    def unconfirmed(self, key: Key, owner: Set) -> frozenset[str]:
        """Return the names under which this process may have created a member without a response."""
        return frozenset(self._of(key, owner).unconfirmed)

    def note_absent(self, key: Key, name: str) -> None:
        self._by_key[key].absent.add(name)
        self._by_key[key].unconfirmed.discard(name)

    def note_confirmed(self, key: Key, name: str, uid: str) -> None:
        self._by_key[key].confirmed[name] = uid
        self._by_key[key].unconfirmed.discard(name)

    def note_attempt(self, key: Key, name: str) -> None:
        """Note that a member is about to be created. If the response is lost, the member may exist."""
        self._by_key[key].absent.discard(name)
        self._by_key[key].confirmed.pop(name, None)
        self._by_key[key].unconfirmed.add(name)

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def _of(self, key: Key, owner: Set) -> _SetState:
        state, progress = self._by_key.get(key), _progress(owner)
        if state is None or state.progress != progress:
            has_batches = owner.status.batches > 0
            state = _SetState(progress, int(owner.metadata.resource_version) if has_batches else 0)
            self._by_key[key] = state
        return state


def _progress(owner: Set) -> Progress:
    return owner.metadata.uid, owner.status.batches, owner.status.batch_size
