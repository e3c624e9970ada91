# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A watch cache that lags behind the API server: a test feeds it the history, entry by entry.

It does what the watch protocol allows: late, filtered and repeated events, and a fresh list that skips history.
"""

from __future__ import annotations

from collections.abc import Callable

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube import cache
from controlplane.virt_controller.controllers import INDEXES
from tests.support.store import Json, Store

Selects = Callable[[Json], bool]


def everything(_unused: Json) -> bool:
    return True


class LaggingCache(cache.Store):
    """A watch cache that starts with a list and then applies the history one change at a time."""

    def __init__(self, store: Store, resource: Resource, selects: Selects = everything) -> None:
        super().__init__(resource, INDEXES.get(resource))
        self._store = store
        self._history = store.histories[resource.kind]
        self._selects = selects
        self._next = 0
        """Index of the next change in this resource's history."""
        self._listing: list[bytes] = []
        self._listed: set[Key] | None = None
        self._listed_at = 0
        self.is_blind = False
        """The last list was incomplete."""

    def start(self) -> None:
        """List; every object is an event for subscribers."""
        self.relist()
        while self._listed is not None:
            self.advance()
        self.synced = True

    @property
    def is_behind(self) -> bool:
        return self._listed is not None or self._next < len(self._history)

    def relist(self) -> None:
        """Replace the history by a list, as after 410 Gone. Its objects arrive one at a time."""
        keys = [key for key, body in self._store.list(self.resource) if self._selects(body)]
        self._listing = [self._store.raw(self.resource, key) for key in reversed(keys)]
        self._listed = set(keys)
        self._next, self._listed_at = len(self._history), self._store.version
        self.is_blind = False

    def lose_sight(self) -> None:
        """Receive an empty list although objects exist."""
        self._listing, self._listed = [], set()
        self._next, self._listed_at = len(self._history), self._store.version
        self.is_blind = True

    def advance(self) -> None:
        """Apply the next change, or the next object of a list."""
        if self._listed is not None:
            self._advance_list()
            return
        while self._next < len(self._history):
            change = self._history[self._next]
            self._next += 1
            is_old = change.version <= self.resource_version
            if change.after is not None and self._selects(change.after):
                if not is_old or self.get(change.key) is not None:
                    self.put(change.raw)
            elif change.before is not None and self._selects(change.before):
                self.remove(change.key, change.raw)
            else:
                continue  # the server sends no events for objects outside the selector
            self.move(change.version)
            return

    def bookmark(self) -> None:
        """Receive a bookmark with the current version. Nothing happens if changes are pending."""
        if not self.is_behind:
            self.move(self._store.version)

    def forget(self) -> None:
        """Drop all objects without events, as a watch with a selector that matches nothing."""
        self._raw.clear()
        self._versions.clear()
        self._indexed.clear()
        for index in self._keys_by_value.values():
            index.clear()

    def repeat(self, count: int = 1) -> None:
        """Apply the last changes again, as after a broken stream."""
        if self._listed is None and self._next:
            until, self._next = self._next, max(0, self._next - count)
            while self._next < until:
                self.advance()

    def _advance_list(self) -> None:
        if self._listing:
            self.put(self._listing.pop())
            return
        listed, self._listed = self._listed or set(), None
        for key in [key for key in self.keys() if key not in listed]:
            self.remove(key)
        self.move(self._listed_at)
