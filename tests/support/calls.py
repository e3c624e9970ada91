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
"""Ask a guest agent."""
QUESTIONS = (READ, LOOK, ASK, "connect to", "look at", "hear of")


class Asks:
    """An event loop that knows the process of each call."""

    def ask(self, call: Call) -> asyncio.Future[Any]:
        """Queue a call. The schedule decides when it runs."""
        raise NotImplementedError


PREPARE = "prepare network of"
"""virt-handler calls it once for each running guest. It changes nothing if the network is complete."""


@dataclass(frozen=True, slots=True)
class Call:
    """An action outside the process. The schedule decides when it runs."""

    verb: str
    kind: str
    key: Key
    run: Callable[[], Any]
    lost: type[Exception] = Unavailable
    """Raised in the caller if there is no answer."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """Arguments: patch, body, preconditions; UIDs for a launcher's verb."""

    def __await__(self) -> Generator[Any, Any, Any]:
        """Hand the call to the running process' loop, or to the test that drives the coroutine."""
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
    """The API of reconcilers. Every method waits for the schedule."""

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
    """Run a call, lose its request or its answer, or refuse it. Return result and error."""
    if fate == "request lost":
        return None, call.lost(f"{call}: connection refused")
    if fate in REFUSALS:
        return None, REFUSALS[fate](f"{call}: {fate}")
    try:
        result = call.run()
    except Exception as error:  # an error for the caller
        return None, error
    return (result, None) if fate == "done" else (None, call.lost(f"{call}: connection reset"))
