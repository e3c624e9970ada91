# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Wait until the caller's judge accepts the objects of one collection. The caller words the timeout error.

The collection is listed, then watched from that version. A watch ends after WATCH_SECONDS and is resumed. If a watch
has no events, the collection is listed again: a proxy may drop watches silently, or refuse them and pass reads.
An object that is stuck ends its wait when its state has lasted for as long as the judge says.
Temporary failures (no connection, an overloaded server, a proxy's error page) are retried with back-off until the
deadline. The last step before a timeout is a read. The judge's requests through the same Api end at the deadline too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any

from .api import Api, Resource
from .errors import ApiError, TimeIsUp, Unavailable, VirtError

WATCH_SECONDS = 30.0
"""Length of one watch."""
FIRST_PAUSE_SECONDS, LAST_PAUSE_SECONDS = 1.0, 8.0
"""Pauses before a retry, when a watch ended early or a read failed."""
STEADY_SECONDS = 10.0
"""A watch that lasted at least this long ended normally."""
LAST_LOOKS, LAST_LOOKS_PAUSE_SECONDS = 4, 0.5
"""Reads after the deadline, while the server is overloaded or does not respond, and the pause between them."""
_PASSING = (429, 500, 502, 503, 504)
_GONE = 410

Object = dict[str, Any]


@dataclass(frozen=True)
class Stuck:
    """A state that does not end by itself, and becomes hopeless when it has lasted for some seconds.

    key: equal for texts that alternate.
    """

    key: str
    text: str
    seconds: float


@dataclass(frozen=True)
class Verdict:
    """The judgement of one object: done, or hopeless with the reason, or what is missing."""

    done: bool = False
    hopeless: str | None = None
    missing: str = ""
    wanted: str = ""
    """What is still missing although the object is otherwise as it should be; "" if it is not."""
    stuck: Stuck | None = None


@dataclass(frozen=True)
class Reached:
    """The object after the wait (None: it does not exist) and its verdict. Neither done nor hopeless: a timeout."""

    obj: Object | None
    verdict: Verdict
    trouble: str = ""
    """Why the last read failed; "" if it did not."""


Judge = Callable[[str, "Object | None"], Verdict]
"""Judges a name and its object. None: the object does not exist."""


class Waiter:
    """Waits for objects of one resource, in one namespace. deadline: by `clock`, which is monotonic.

    prepare: called after each list, with the names that will be judged.
    """

    def __init__(
        self,
        api: Api,
        resource: Resource,
        judge: Judge,
        *,
        deadline: float,
        prepare: Callable[[list[str]], None] | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._api = api
        self._resource = resource
        self._judge = judge
        self._deadline = deadline
        self._prepare = prepare
        self._clock = clock
        self._sleep = sleep
        self._seen: dict[str, Reached] = {}
        self._stuck: dict[str, tuple[str, float, float]] = {}
        """Names of stuck objects, with the key, and by `clock` since when and until when they are not hopeless."""
        self._pending: dict[str, None] = {}
        self._version: str | None = None
        """resourceVersion to watch from; None: list first."""

    def until(self, names: Iterable[str]) -> dict[str, Reached]:
        """Return the result for each name, at the deadline at the latest. Raises permanent refusals of the API."""
        self._pending = dict.fromkeys(names)
        self._seen = dict.fromkeys(self._pending, Reached(None, Verdict(missing="it could not be read")))
        with self._api.bounded(self._deadline):
            self._follow()
        return self._seen

    def _follow(self) -> None:
        failures, last_looks = 0, 0
        while self._pending:
            began, is_last = self._clock(), self._left() <= 0
            last_looks += is_last
            try:
                if is_last or self._version is None:
                    self._read()
                    is_well = is_last or self._version is not None  # otherwise it would be listed again at once
                else:
                    if not self._watch() or self._is_stuck_too_long():
                        self._version = None
                    is_well = self._clock() - began >= STEADY_SECONDS or self._is_stuck_too_long()
            except (Unavailable, ApiError) as error:
                self._version = None
                self._note_trouble(error)
                is_well = isinstance(error, TimeIsUp)  # no more requests fit before the deadline
            if is_last and (is_well or last_looks == LAST_LOOKS):
                break
            if is_last:
                self._sleep(LAST_LOOKS_PAUSE_SECONDS)
                continue
            if self._pending and not is_well:
                pause = min(FIRST_PAUSE_SECONDS * 2**failures, LAST_PAUSE_SECONDS)
                pause *= random.uniform(0.8, 1.2)  # noqa: S311 - nothing secret
                failures = min(failures + 1, 10)
                self._sleep(max(0.0, min(pause, self._left())))
            elif self._clock() - began >= STEADY_SECONDS:
                failures = 0

    def _left(self) -> float:
        return self._deadline - self._clock()

    def _is_stuck_too_long(self) -> bool:
        """Tell whether an object has to be judged again without an event."""
        return any(until <= self._clock() for _key, _since, until in self._stuck.values())

    def _fields(self) -> str | None:
        return f"metadata.name={next(iter(self._pending))}" if len(self._pending) == 1 else None

    def _read(self) -> None:
        """List and judge all objects."""
        objects, version = self._api.read_all(self._resource, fields=self._fields())
        by_name = {obj["metadata"]["name"]: obj for obj in objects}
        pending = list(self._pending)
        if self._prepare is not None:
            self._prepare(pending)
        for name in pending:
            self._consider(name, by_name.get(name))
        self._version = version

    def _watch(self) -> bool:
        """Judge the events of one watch until all is done, it ends, or the deadline. Return whether it had events."""
        watcher, has_events = self._api.clone(), False
        try:
            seconds = min(
                self._left(), WATCH_SECONDS, *(until - self._clock() for *_rest, until in self._stuck.values())
            )
            for event in watcher.watch(
                self._resource, fields=self._fields(), version=self._version, timeout_seconds=seconds
            ):
                has_events = True
                metadata = event["object"]["metadata"]
                name = metadata.get("name")
                if event["type"] != "BOOKMARK" and name in self._pending:
                    self._consider(name, None if event["type"] == "DELETED" else event["object"])
                self._version = metadata.get(
                    "resourceVersion"
                )  # after the judgement: an event whose judgement failed is sent again
                if not self._pending or self._left() <= 0 or self._is_stuck_too_long():
                    break
        finally:
            watcher.close()
        return has_events

    def _consider(self, name: str, obj: Object | None) -> None:
        verdict = self._timed(name, self._judge(name, obj))
        self._seen[name] = Reached(obj, verdict)
        if verdict.done or verdict.hopeless:
            del self._pending[name]
            self._stuck.pop(name, None)

    def _timed(self, name: str, verdict: Verdict) -> Verdict:
        """Return the verdict, hopeless if the object has been stuck for long enough."""
        if verdict.stuck is None or verdict.done or verdict.hopeless:
            self._stuck.pop(name, None)
            return verdict
        key, since, _until = self._stuck.get(name, ("", 0.0, 0.0))
        if key != verdict.stuck.key:
            since = self._clock()
        until = since + verdict.stuck.seconds
        self._stuck[name] = (verdict.stuck.key, since, until)
        return replace(verdict, hopeless=verdict.stuck.text) if until <= self._clock() else verdict

    def _note_trouble(self, error: VirtError) -> None:
        """Remember why a read failed; raise the error if it is permanent."""
        status = error.status if isinstance(error, ApiError) else 0
        if status == _GONE:  # the server has dropped the events since our version
            return
        if status and status not in _PASSING:
            raise error
        for name in self._pending:
            reached = self._seen[name]
            # The last response of the server says more than "no time is left".
            if isinstance(error, TimeIsUp) and reached.trouble:
                continue
            self._seen[name] = Reached(reached.obj, reached.verdict, error.message)
