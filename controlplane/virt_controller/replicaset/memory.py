# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How much a process knows of what was made for a set, or a pool, before: no decision, and never a count.

What is said of the instances of a set is true of the machines of a pool.

A batch that this process has begun and seen complete is known to it. One that another leader began was made before the
set's status said that it is complete: what the cache of instances has read beyond that is enough.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.pool import VirtualMachinePool
from controlplane.api.objects.replica_set import VirtualMachineInstanceReplicaSet
from controlplane.api.objects.resources import Key

Progress = tuple[str, int, int]
Set = VirtualMachineInstanceReplicaSet | VirtualMachinePool


@dataclass(slots=True)
class _Memory:
    progress: Progress
    """UID, batches and size of the last, as they were last seen or written."""
    version: int
    """What was made before was made before this position in the server's history."""
    absent: set[str] = field(default_factory=set)
    """Names of the batch under which the API server found nothing, since this process last tried to make one."""
    found: dict[str, str] = field(default_factory=dict)
    """By name of the batch: UID of the instance that the API server found since this process last tried to make one."""
    doubted: set[str] = field(default_factory=set)
    """Names under which this process last tried to make an instance, and does not know whether there is one."""
    current: str = ""
    """resourceVersion of the set that the API server itself has told."""


class Memories:
    def __init__(self) -> None:
        self._by_key: dict[Key, _Memory] = {}

    def is_past_known(self, key: Key, seen: Set, resource_version: int) -> bool:
        """Tell whether a cache that has read up to position knows all that was made before."""
        return resource_version >= self._of(key, seen).version

    def is_current(self, key: Key, seen: Set) -> bool:
        return self._of(key, seen).current == seen.metadata.resource_version

    def note_told(self, key: Key, seen: Set, version: str) -> None:
        """Take note of the resourceVersion that the API server has told."""
        self._of(key, seen).current = version

    def note_writing(self, key: Key) -> None:
        """Take note that the set is about to be written: whatever the answer, it may be another one then."""
        self._by_key[key].current = ""

    def note_written(self, key: Key, stored: Set) -> None:
        """Take note of the set as this process has just written it: it knows what it knew before."""
        memory = self._by_key[key]
        memory.progress, memory.current = _progress(stored), stored.metadata.resource_version

    def absent(self, key: Key, seen: Set) -> frozenset[str]:
        """Return the names of the batch that are known to be free."""
        return frozenset(self._of(key, seen).absent)

    def is_found(self, key: Key, seen: Set, name: str, uid: str) -> bool:
        """Tell whether the API server itself has said that this instance has the name."""
        return self._of(key, seen).found.get(name) == uid

    def doubted(self, key: Key, seen: Set) -> frozenset[str]:
        """Return the names of the batch under which this process may have made an instance, unseen."""
        return frozenset(self._of(key, seen).doubted)

    def note_absent(self, key: Key, name: str) -> None:
        self._by_key[key].absent.add(name)
        self._by_key[key].doubted.discard(name)

    def note_found(self, key: Key, name: str, uid: str) -> None:
        self._by_key[key].found[name] = uid
        self._by_key[key].doubted.discard(name)

    def note_attempt(self, key: Key, name: str) -> None:
        """Take note that an instance is about to be made: whatever the answer, its name may be taken then."""
        self._by_key[key].absent.discard(name)
        self._by_key[key].found.pop(name, None)
        self._by_key[key].doubted.add(name)

    def forget(self, key: Key) -> None:
        self._by_key.pop(key, None)

    def _of(self, key: Key, seen: Set) -> _Memory:
        held, progress = self._by_key.get(key), _progress(seen)
        if held is None or held.progress != progress:
            has_begun = seen.status.batches > 0
            held = _Memory(progress, int(seen.metadata.resource_version) if has_begun else 0)
            self._by_key[key] = held
        return held


def _progress(seen: Set) -> Progress:
    return seen.metadata.uid, seen.status.batches, seen.status.batch_size
