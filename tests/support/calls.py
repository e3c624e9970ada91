# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls that a test carries out, loses or refuses: API requests, and verbs of a launcher's session.

A reconciler that awaits a Call yields it to the code that drives the coroutine.
"""

from __future__ import annotations

import asyncio
from asyncio import events
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from controlplane.api.objects.resources import Key, Resource
from controlplane.engine.errors import ApiError, Forbidden, Invalid, Throttled, Unavailable
from tests.support.store import Json, Store

Fate = Literal["done", "request lost", "answer lost", "forbidden", "invalid", "throttled"]
LOST: tuple[Fate, ...] = ("request lost", "answer lost")
REFUSALS: dict[Fate, type[ApiError]] = {"forbidden": Forbidden, "invalid": Invalid, "throttled": Throttled}
READ = "get"
LOOK = "look for"
ASK = "ask"
"""An agent."""
QUESTIONS = (READ, LOOK, ASK, "connect to", "look at", "hear of")


class Asks:
    """Of an event loop: knows the process that a call belongs to."""

    def ask(self, call: Call) -> asyncio.Future[Any]:
        """Take a call in, to be carried out when the schedule says so."""
        raise NotImplementedError


PREPARE = "prepare network of"
"""What a virt-handler has done once for each guest that it finds: it changes nothing where all is well."""


@dataclass(frozen=True, slots=True)
class Call:
    """What is to be done outside the process, once the schedule says so."""

    verb: str
    kind: str
    key: Key
    run: Callable[[], Any]
    lost: type[Exception] = Unavailable
    """What the caller gets when there is no answer."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """What it carries: patch, body, preconditions; of a launcher's verb the UIDs that it is about."""

    def __await__(self) -> Generator[Any, Any, Any]:
        """Ask the process whose loop runs; without one, whoever drives the coroutine by hand."""
        loop = events._get_running_loop()
        return (yield from loop.ask(self).__await__()) if isinstance(loop, Asks) else (yield self)

    @property
    def is_api(self) -> bool:
        return self.lost is Unavailable

    @property
    def is_write(self) -> bool:
        return self.is_api and self.verb != READ

    @property
    def is_question(self) -> bool:
        return self.verb in QUESTIONS

    def __str__(self) -> str:
        return f"{self.verb} {self.kind} {self.key}"


class CallingApi:
    """The reconcilers' API: every method waits for the schedule."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def get(self, resource: Resource, key: Key) -> Json:
        return await Call(READ, resource.kind, key, lambda: self._store.get(resource, key))  # type: ignore[no-any-return]

    async def create(self, resource: Resource, namespace: str, body: Json) -> Json:
        key = Key(namespace, body["metadata"]["name"])
        return await Call(  # type: ignore[no-any-return]
            "create", resource.kind, key, lambda: self._store.create(resource, namespace, body), asked={"body": body}
        )

    async def patch(self, resource: Resource, key: Key, patch: Mapping[str, Any], **options: Any) -> Json:
        verb = "patch status of" if options.get("subresource") else "patch"
        asked = {**options, "patch": patch}
        return await Call(  # type: ignore[no-any-return]
            verb, resource.kind, key, lambda: self._store.patch(resource, key, patch, **options), asked=asked
        )

    async def delete(self, resource: Resource, key: Key, *, uid: str, **options: Any) -> None:
        asked = {**options, "uid": uid}
        await Call(
            "delete", resource.kind, key, lambda: self._store.delete(resource, key, uid=uid, **options), asked=asked
        )


def perform(call: Call, fate: Fate) -> tuple[Any, Exception | None]:
    """Carry a call out, lose it on its way there or back, or have it refused."""
    if fate == "request lost":
        return None, call.lost(f"{call}: connection refused")
    if fate in REFUSALS:
        return None, REFUSALS[fate](f"{call}: {fate}")
    try:
        result = call.run()
    except Exception as error:  # what the caller must cope with; the rest is a bug that the process reports
        return None, error
    return (result, None) if fate == "done" else (None, call.lost(f"{call}: connection reset"))
