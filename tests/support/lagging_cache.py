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
    """Begins with a quorum list of the present, as every watcher does, then follows at its own pace."""

    def __init__(self, store: Store, resource: Resource, selects: Selects = everything) -> None:
        super().__init__(resource, INDEXES.get(resource))
        self._store = store
        self._history = store.histories[resource.kind]
        self._selects = selects
        self._next = 0
        """Index of the next entry of this resource's history."""
        self._listing: list[bytes] = []
        self._listed: set[Key] | None = None
        self._listed_at = 0
        self.is_blind = False
        """Its last list was too short."""

    def start(self) -> None:
        """List; subscribers hear of every object."""
        self.relist()
        while self._listed is not None:
            self.advance()
        self.synced = True

    @property
    def is_behind(self) -> bool:
        return self._listed is not None or self._next < len(self._history)

    def relist(self) -> None:
        """Lose the history (410): what happened since is learned from a list that comes object by object."""
        found = [(key, body) for key, body in self._store.list(self.resource) if self._selects(body)]
        self._listing = [self._store.raw(self.resource, key) for key, _unused in reversed(found)]
        self._listed = {key for key, _unused in found}
        self._next, self._listed_at = len(self._history), self._store.version
        self.is_blind = False

    def lose_sight(self) -> None:
        """Be given a list that is too short: nothing of what there is."""
        self._listing, self._listed = [], set()
        self._next, self._listed_at = len(self._history), self._store.version
        self.is_blind = True

    def advance(self) -> None:
        """Take in the next change, or the next object of a list."""
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
                continue  # of what is outside of the selection the server says nothing
            self.move(change.version)
            return

    def bookmark(self) -> None:
        """Be told how far the history has come when nothing is left in it."""
        if not self.is_behind:
            self.move(self._store.version)

    def forget(self) -> None:
        """Know nothing any more, and tell nobody: as a watch with a selector that nothing passes."""
        self._raw.clear()
        self._versions.clear()
        self._indexed.clear()
        for filed in self._keys_by_value.values():
            filed.clear()

    def repeat(self, count: int = 1) -> None:
        """Hear the last events once more, as after a broken stream, of what is held by then."""
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
