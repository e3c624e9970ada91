# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The declaration of a controller: how it is built, and which changes of which objects enqueue which keys.

Each folder declares its controller beside its reconciler, in controller.py; controllers.py lists them. The counterpart
in controller-runtime is SetupWithManager.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from controlplane.api.objects.resources import Key, Resource
from controlplane.kube.cache import IndexFunction
from controlplane.virt_controller.dependencies import Dependencies

Enqueue = Callable[[Key], None]
KeysOf = Callable[[Key, bytes | None, bytes | None], Iterable[Key]]
"""Maps a change (key, before, after) to the keys to enqueue. before is None for an addition, after for a deletion.

It is a generator: if a malformed object raises, the keys that it yielded before are enqueued.
"""
ReconcilerT = TypeVar("ReconcilerT")


@dataclass(frozen=True, slots=True)
class Watch:
    """Enqueue `keys` of each change of a kind."""

    resource: Resource
    keys: KeysOf


def own_key(key: Key, _before: bytes | None, _after: bytes | None) -> Iterator[Key]:
    """Enqueue the key of the changed object."""
    yield key


def no_sources(_deps: Dependencies, _reconciler: object, _enqueue: Enqueue) -> None:
    """Enqueue on watched changes only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Controller(Generic[ReconcilerT]):
    name: str
    """The name in metrics and log lines."""
    build: Callable[[Dependencies], ReconcilerT]
    watches: Callable[[Dependencies, ReconcilerT], Iterable[Watch]]
    sources: Callable[[Dependencies, ReconcilerT, Enqueue], None] = no_sources
    """Subscribes to other sources of keys, e.g. to the reconciler. Called once, after the watches."""
    begin: Callable[[ReconcilerT], None] | None = None
    """Called when this replica becomes the leader, before the first reconcile."""
    delay: float = 0.0
    """Seconds from a change to the reconcile, so that many changes cost one reconcile."""
    indexes: Mapping[Resource, Mapping[str, IndexFunction]] = field(default_factory=dict)
    """Indexes of caches that the reconciler and the watches need."""

    def connect(
        self, deps: Dependencies, reconciler: ReconcilerT, enqueue: Enqueue, is_watched: Callable[[Resource], bool]
    ) -> None:
        """Subscribe enqueue to the caches of the kinds that are watched, and to the other sources."""
        for watch in self.watches(deps, reconciler):
            if is_watched(watch.resource):
                deps.cache(watch.resource).subscribe(_enqueue_keys(watch.keys, enqueue))
        self.sources(deps, reconciler, enqueue)


def _enqueue_keys(keys: KeysOf, enqueue: Enqueue) -> Callable[[Key, bytes | None, bytes | None], None]:
    def on_change(key: Key, before: bytes | None, after: bytes | None) -> None:
        for affected in keys(key, before, after):
            enqueue(affected)

    return on_change


AnyController = Controller[Any]
