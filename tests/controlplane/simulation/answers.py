# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a process was told, by the API server itself or by a look at its node: what its next call may rest on.

Only answers that arrived are in here. Caches are not: their silence proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import AlreadyExists, ApiError, Conflict, NotFound, Unavailable
from tests.controlplane.simulation.calls import Call
from tests.controlplane.simulation.store import Json, Store

NOT_REFUSED = (AlreadyExists, Conflict, NotFound, Unavailable)
"""What is no refusal of a write, but no basis for it."""


@dataclass(frozen=True, slots=True)
class Answer:
    version: int
    """The store's, when it was given."""
    found: Any
    """The object, or what was found on the node; None: there is no such object."""


class Answers:
    """The newest answer to each question."""

    def __init__(self) -> None:
        self._newest: dict[tuple[str, Key], Answer] = {}
        self._made: set[tuple[str, Key]] = set()
        self._ended: set[tuple[str, str]] = set()
        self.was_refused = False
        """A write was, for a reason that is the object's."""

    def take(self, call: Call, result: Any, error: Exception | None, version: int) -> None:
        """Note what came back from a question."""
        if call.is_question and (error is None or isinstance(error, NotFound)):
            self._newest[call.kind, call.key] = Answer(version, result)
        if call.verb == "create" and error is None:
            self._made.add((call.kind, call.key))
        if call.verb == "delete" and error is None:
            self._ended.add((call.kind, call.asked["uid"]))
        is_refusal = isinstance(error, ApiError) and not isinstance(error, NOT_REFUSED)
        self.was_refused |= call.is_write and is_refusal

    def of(self, kind: str, key: Key) -> Answer | None:
        return self._newest.get((kind, key))

    def has_made(self, kind: str, key: Key) -> bool:
        """Tell whether it was told that it made such an object."""
        return (kind, key) in self._made

    def has_ended(self, kind: str, uid: str) -> bool:
        """Tell whether it was told that it deleted that object."""
        return (kind, uid) in self._ended


@dataclass(frozen=True, slots=True)
class View:
    """What the process believed when it asked for a call: the newest VM and VMI of the key that it knew."""

    vm: bytes | None = None
    vmi: bytes | None = None
    since: int = 0
    """The store's version when its pass began."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A call in the moment in which a process asks for it, and what it knows then."""

    call: Call
    view: View
    in_pass: Answers
    ever: Answers
    """Since the process began."""
    store: Store
    now: float
    """By its own clock; what it said when the pass began, if that was later."""
    seen: Callable[[Resource, Key], Json | None]
    """What its cache, with the answers to its own writes, shows of an object."""

    @property
    def decided_on(self) -> Json:
        """The very state that a write names. What is believed by now may be a newer one, or another of the name."""
        found = self.store.history[int(self.call.asked["resource_version"]) - 1]
        return found.after or found.before or {}
