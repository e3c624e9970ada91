# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watch cache that lags: it sees the store's history entry by entry, when the schedule lets it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube.cache import by_node, peek
from tests.controlplane.simulation.store import Json, Store

Callback = Callable[[Key, bytes | None, bytes | None], None]


class LaggingCache:
    """Begins with a quorum list of the present, as every watcher does, then follows at its own pace."""

    def __init__(self, store: Store, resource: Resource) -> None:
        self._store = store
        self._resource = resource
        self._raw: dict[Key, bytes] = {}
        self._owners: dict[Key, frozenset[str]] = {}
        self._read = 0
        """How many entries of the history have been looked at."""
        self._subscribers: list[Callback] = []
        self._followers: list[Callable[[int], None]] = []
        self.synced = False
        self.position = 0

    def start(self) -> None:
        """List; subscribers hear of every object."""
        self._read = len(self._store.history)
        for key, body in self._store.list(self._resource):
            self._take(key, self._store.raw(self._resource, key), body)
        self.synced = True
        self._move(self._store.version)

    def get(self, key: Key) -> bytes | None:
        return self._raw.get(key)

    def keys(self) -> Collection[Key]:
        return self._raw.keys()

    def indexed(self, index: str, value: str) -> Collection[Key]:
        if index == "node":
            return [key for key, raw in self._raw.items() if value in by_node(peek(raw))]
        assert index == "owner"
        return [key for key, owners in self._owners.items() if value in owners]

    def subscribe(self, callback: Callback) -> None:
        self._subscribers.append(callback)

    def follow(self, callback: Callable[[int], None]) -> None:
        self._followers.append(callback)

    @property
    def is_behind(self) -> bool:
        self._skip()
        return self._read < len(self._store.history)

    def advance(self) -> None:
        """Take in the next change."""
        self._skip()
        change = self._store.history[self._read]
        self._read += 1
        self._take(change.key, change.raw, change.after)
        self._move(change.version)

    def bookmark(self) -> None:
        """Be told how far the history has come when nothing of this resource is left in it."""
        if not self.is_behind:
            self._move(self._store.version)

    def _skip(self) -> None:
        history = self._store.history
        while self._read < len(history) and history[self._read].resource != self._resource:
            self._read += 1

    def _move(self, position: int) -> None:
        self.position = max(position, self.position)
        for callback in self._followers:
            callback(self.position)

    def _take(self, key: Key, raw: bytes, body: Json | None) -> None:
        """Take in a state, the last one when body is None: as the API server, deletions tell that one."""
        before, after = self._raw.get(key), raw
        if body is None:
            before, after = raw, None
            self._raw.pop(key, None)
            self._owners.pop(key, None)
        else:
            self._raw[key] = raw
            self._owners[key] = frozenset(one["uid"] for one in body["metadata"].get("ownerReferences") or ())
        for callback in self._subscribers:
            callback(key, before, after)
