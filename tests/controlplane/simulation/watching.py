# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The caches of a process: the real WatchCache on lists and streams that the schedule advances.

The API server may do to it what the protocol allows: pages and events come late, filtered, or twice; the stream ends;
the history is lost (410), so that a new list skips what happened in between; a list is too short.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import cast

import msgspec

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import Gone
from controlplane.kube.cache import parse_resource_version
from controlplane.kube.client import Client, Page, Selection
from controlplane.kube.watch import WatchCache
from controlplane.virt_controller.controllers import INDEXES
from tests.controlplane.simulation.loop import HandTurnedLoop
from tests.support.clock import WrongClock
from tests.support.lagging_cache import Selects
from tests.support.store import Change, Store

BEHIND = 2
"""Every so many lists that are no quorum reads come from a lagging server."""
EXPIRED = b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"too old"}}'


class Server:
    """The API server for one watcher. Implements what a WatchCache needs of a Client."""

    def __init__(self, store: Store, resource: Resource, selects: Selects) -> None:
        self._store = store
        self._resource = resource
        self._history = store.histories[resource.kind]
        self._selects = selects
        self._next = 0
        """Index of the next entry of this resource's history."""
        self._list: list[bytes] | None = None
        """The remaining items of the current list, read page by page."""
        self._listed_at = 0
        self._lists = 0
        """How many lists have begun."""
        self._last = b""
        self._is_to_tell_again = 0
        """How many events the next stream repeats."""
        self._turn: asyncio.Future[bytes] | None = None
        """The task that waits for the next page, line, or end of a pause."""
        self.is_streaming = False
        self.is_lost = False
        self.is_blind = False

    @property
    def is_behind(self) -> bool:
        if not self.is_streaming or self.is_lost:
            return True
        if self._next == len(self._history):
            return False
        self._next = self._find_next()
        return self._next < len(self._history)

    def next_line(self) -> bytes | None:
        """Take the next event from the history; None when there is none."""
        if self.is_lost:
            self.is_lost = False
            return EXPIRED
        self._next = self._find_next()
        if self._next == len(self._history):
            return None
        change = self._history[self._next]
        self._next += 1
        self._last = _event(change, is_new=not self._selected(change.before), is_left=not self._selected(change.after))
        return self._last

    def let_go_on(self, line: bytes) -> bool:
        """Wake the waiting watcher; return whether there was one."""
        turn, self._turn = self._turn, None
        if turn is None or turn.done():
            return False
        turn.set_result(line)
        return True

    def tell_again(self, count: int) -> None:
        """Start the next stream `count` events earlier than requested."""
        self._is_to_tell_again = count

    def repeat_line(self) -> bytes:
        return self._last

    def bookmark_line(self) -> bytes:
        meta = {"resourceVersion": str(self._store.version)}
        return msgspec.json.encode({"type": "BOOKMARK", "object": {"kind": self._resource.kind, "metadata": meta}})

    async def sleep(self, _unused: float) -> None:
        """Wait for the schedule."""
        await self._wait()

    async def list_page(
        self, _unused: Selection, token: str = "", *, limit: int, not_older_than: int, most_bytes: int
    ) -> Page:
        del limit, most_bytes
        if self._list is None or not token:
            await self._begin_list(is_from_quorum=not not_older_than)
        else:
            await self._wait()
        if self.is_lost:
            self.is_lost, self._list = False, None
            raise Gone("the continue token is too old")
        remaining = self._list or []
        items = [remaining.pop()] if remaining else []
        self._list = remaining or None
        return Page(items, str(self._listed_at), "more" if remaining else "")

    async def _begin_list(self, *, is_from_quorum: bool) -> None:
        await self._wait()
        self.is_lost = False
        self._lists += 1
        self._listed_at = self._store.version
        if not is_from_quorum and self._lists % BEHIND == 0:
            self._listed_at = max([1, *(item.version for item in self._history[: -self._lists])])
        self._list = [] if self.is_blind else [*reversed(self._listed(self._listed_at))]

    def _listed(self, version: int) -> list[bytes]:
        """Return the objects at a version, as a list shows them."""
        there: dict[Key, Change] = {}
        for change in self._history:
            if change.version > version:
                break
            there.pop(change.key, None)
            if self._selected(change.after):
                there[change.key] = change
        return [one.raw for _unused, one in sorted(there.items(), key=lambda each: (each[0].namespace, each[0].name))]

    def watch(
        self, _unused: Selection, resource_version: str, *, timeout_seconds: int, silence_seconds: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        del timeout_seconds, silence_seconds
        return self._stream(parse_resource_version(resource_version))

    @asynccontextmanager
    async def _stream(self, resource_version: int) -> AsyncIterator[AsyncIterator[bytes]]:
        self._next = next(
            (
                index
                for index in range(len(self._history), 0, -1)
                if self._history[index - 1].version <= resource_version
            ),
            0,
        )
        self._next, self._is_to_tell_again = max(0, self._next - self._is_to_tell_again), 0
        self.is_streaming = True
        try:
            yield self._lines()
        finally:
            self.is_streaming = False

    async def _lines(self) -> AsyncIterator[bytes]:
        while line := await self._wait():
            yield line

    async def _wait(self) -> bytes:
        self._turn = asyncio.get_running_loop().create_future()
        return await self._turn

    def _find_next(self) -> int:
        """Return the index of the next entry for this watcher: entries outside its selection are skipped."""
        for index in range(self._next, len(self._history)):
            change = self._history[index]
            if self._selected(change.after) or self._selected(change.before):
                return index
        return len(self._history)

    def _selected(self, body: dict[str, object] | None) -> bool:
        return body is not None and self._selects(body)


def _event(change: Change, *, is_new: bool, is_left: bool) -> bytes:
    kind = b"DELETED" if is_left else b"ADDED" if is_new else b"MODIFIED"
    return b'{"type":"%s","object":%s}' % (kind, change.raw)


class WatchingCache(WatchCache):
    """Begins with a quorum list, as every watcher does, then follows at its own pace."""

    def __init__(
        self, store: Store, resource: Resource, selects: Selects, clock: WrongClock, loop: HandTurnedLoop
    ) -> None:
        self._store = store
        self._server = Server(store, resource, selects)
        self._loop = loop
        super().__init__(
            cast(Client, self._server),
            Selection(resource),
            clock,
            indexes=INDEXES.get(resource),
            jitter=lambda: 0.5,
            sleep=self._server.sleep,
        )

    def indexed(self, index: str, value: str) -> Collection[Key]:
        """Return them in order, so that keys are enqueued in the same order in every run of a seed."""
        return tuple(sorted(super().indexed(index, value)))

    def start(self) -> None:
        """List once; subscribers get every object."""
        while not (self.synced and self._server.is_streaming):
            self._go_on(b"")

    @property
    def is_behind(self) -> bool:
        return self._server.is_behind

    @property
    def is_blind(self) -> bool:
        """Whether its last list was too short."""
        return self._server.is_blind

    def advance(self) -> None:
        """Take in the next change, or the next page of a list."""
        line = self._server.next_line() if self._server.is_streaming else b""
        if line is not None:
            self._go_on(line)

    def relist(self) -> None:
        """Lose the history (410): a new list then delivers the changes object by object."""
        self._server.is_blind, self._server.is_lost = False, True
        self.advance()

    def lose_sight(self) -> None:
        """Deliver an empty list."""
        self.relist()
        self._server.is_blind = True

    def bookmark(self) -> None:
        """Deliver a bookmark when no events are left."""
        if not self.is_behind and self.resource_version < self._store.version:
            self._go_on(self._server.bookmark_line())

    def repeat(self) -> None:
        """Deliver the last event, or the end of the stream, again."""
        if self._server.is_streaming and (line := self._server.repeat_line()):
            self._go_on(line)

    def end_stream(self, told_again: int = 0) -> None:
        """End the stream: the next one continues there, or `told_again` events before."""
        if self._server.is_streaming:
            self._server.tell_again(told_again)
            self._go_on(b"")

    def _go_on(self, line: bytes) -> None:
        self._server.let_go_on(line)
        self._loop.settle()
