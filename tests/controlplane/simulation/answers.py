# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The responses that a process has received, from the API server or from its node: its next call may rely on them.

Only responses that arrived are recorded. Caches are not: absence from a cache proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kubevirt_api.names import ROLE

from controlplane.api.objects.resources import POD, Key, Resource
from controlplane.engine.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from tests.controlplane.simulation.ledger import controlling_uid
from tests.support.calls import READ, Call
from tests.support.store import Json, Store

NOT_REFUSED = (AlreadyExists, Conflict, NotFound, Unavailable)
"""Errors that are no refusal of a write."""


@dataclass(frozen=True, slots=True)
class Answer:
    version: int
    """The version of the store at the response."""
    value: Any
    """The object, or the state on the node; None: there is no such object."""


class Answers:
    """The newest response to each request."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, Key], Answer] = {}
        self._made: set[tuple[str, Key]] = set()
        self._tried: dict[tuple[str, Key], int] = {}
        """The version of the store at the last create of an object, successful or not."""
        self._ended: set[tuple[str, str]] = set()
        self._found: set[tuple[str, Key, str]] = set()
        self.was_refused = False
        """A write was refused, for a reason in the object."""

    def take(self, call: Call, result: Any, error: Exception | None, version: int) -> None:
        """Record a response."""
        if call.is_question and (error is None or isinstance(error, NotFound)):
            kept = self._newest.get((call.kind, call.key))
            if kept is None or kept.version <= version:  # otherwise a later request was answered first
                self._newest[call.kind, call.key] = Answer(version, result)
        if call.verb == READ and error is None and (owner := controlling_uid(result)) is not None:
            self._found.add((call.kind, call.key, owner))
        if call.verb == "create" and error is None:
            self._made.add((call.kind, call.key))
        if call.verb == "create" and (error is None or isinstance(error, Unavailable)):
            self._tried[call.kind, call.key] = version
        if call.verb == "delete" and error is None:
            self._ended.add((call.kind, call.asked["uid"]))
        is_refusal = isinstance(error, ApiError) and not isinstance(error, NOT_REFUSED)
        self.was_refused |= call.is_write and is_refusal

    def of(self, kind: str, key: Key) -> Answer | None:
        return self._newest.get((kind, key))

    def has_made(self, kind: str, key: Key) -> bool:
        """Whether a response said that it created such an object."""
        return (kind, key) in self._made

    def has_found(self, kind: str, key: Key, owner: str) -> bool:
        """Whether the API server has returned an object of that name with this controller."""
        return (kind, key, owner) in self._found

    def tried_at(self, kind: str, key: Key) -> int:
        """Return the version of the store at the last create of such an object, successful or not; 0 for never."""
        return self._tried.get((kind, key), 0)

    def has_ended(self, kind: str, uid: str) -> bool:
        """Whether a response said that it deleted that object."""
        return (kind, uid) in self._ended


def was_hidden(store: Store, kind: str, uid: str) -> bool:
    """Whether a Pod had no label of ours for a while: it then reappears as if it were new."""
    if kind != POD.kind:
        return False
    states = (item.after for item in store.histories[kind] if item.after and item.after["metadata"]["uid"] == uid)
    return any(ROLE not in item["metadata"].get("labels", {}) for item in states)


@dataclass(frozen=True, slots=True)
class View:
    """The state behind a call: the newest VM and VMI of the key that the process knew."""

    vm: bytes | None = None
    vmi: bytes | None = None
    since: int = 0
    """The version of the store at the start of its reconcile."""


@dataclass(frozen=True, slots=True)
class Request:
    """A call at the moment of its request, with the state of its process."""

    call: Call
    view: View
    at_first: View
    """Its view at the start of the reconcile."""
    in_pass: Answers
    ever: Answers
    """Since the start of the process."""
    store: Store
    now: float
    """By its own clock; never earlier than at the start of the reconcile."""
    clock: float
    """By its own clock, now."""
    age: float
    """Seconds since the start of the process."""
    seen: Callable[[Resource, Key], Json | None]
    """Returns an object as its cache, with the responses to its own writes, shows it."""

    @property
    def decided_on(self) -> Json:
        """The exact version that a write names. The cached state may be newer, or another object of that name."""
        change = self.store.history[int(self.call.asked["resource_version"]) - 1]
        return change.after or change.before or {}
