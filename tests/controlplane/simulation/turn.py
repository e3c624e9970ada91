# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work in progress in a process: a reconcile, or another task, and its current call."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from controlplane.api.objects.resources import Key
from tests.controlplane.simulation.answers import Answers, View
from tests.support.calls import Call


@dataclass(slots=True, eq=False)
class Turn:
    """A reconcile in progress."""

    work: str
    """The queue; "" for a guest request of a session, or its own task."""
    key: Key
    since: int
    """The version of the store at its start."""
    answers: Answers
    view: View
    began: float
    """By its own clock."""
    troubles: list[str] = field(default_factory=list)
    """Calls without a result."""
    calls: list[Call] = field(default_factory=list)
    stood: tuple[int, ...] = ()
    """The number of events and responses of others at its start."""
    task: asyncio.Task[Any] | None = None


TURN: ContextVar[Turn | None] = ContextVar("turn", default=None)
"""The reconcile in progress, or the one that started this task."""


@dataclass(frozen=True, slots=True)
class Came:
    """The result of a call before its caller has received it."""

    result: Any
    error: Exception | None
    version: int
    """The version of the store after the call."""


@dataclass(frozen=True, slots=True)
class Pass:
    """A task in progress, stopped at a call."""

    turn: Turn
    call: Call
    answer: asyncio.Future[Any]
    view: View
    came: Came | None = None
    """None: not carried out yet."""
    is_known: bool = False
    """Whether the cache shows an object under the key of the call."""
