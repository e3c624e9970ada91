# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The reconcile contract: what a reconciler offers and what one pass hands around.

Only values and protocols. reconcile.py runs one pass, queue.py says whose turn it is, runner.py is the asyncio shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError


class Action(Protocol):
    """Something to do to the outside world. `because` is a short clause for log lines and Events."""

    @property
    def because(self) -> str: ...


WorldT = TypeVar("WorldT")
StatusT = TypeVar("StatusT")
ActionT = TypeVar("ActionT", bound=Action)


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """A step of a plan: write the status that the world deserves, before what comes after it.

    What is written opens the next look; where the status is right already, the plan goes on. Every plan ends in one,
    written or not.
    """

    because: str


@dataclass(frozen=True, slots=True)
class IndependentActions(Generic[ActionT]):
    """A step of many actions, none of which depends on another: that one is refused holds none of the others up.

    A conflict or a vanished object holds none up either; no answer does: who does not hear one will not hear the next.
    """

    actions: tuple[ActionT, ...]


@dataclass(frozen=True, slots=True)
class Plan(Generic[ActionT]):
    """What to do now, in this order, and when to look again without being called."""

    steps: tuple[ActionT | IndependentActions[ActionT] | WriteStatus, ...] = ()
    requeue_after: float | None = None
    """Seconds; None means: wait for a change."""


@dataclass(frozen=True, slots=True)
class RefusedStep(Generic[ActionT]):
    """The step of a plan that was refused, and why."""

    step: ActionT | WriteStatus
    error: ApiError


class Reconciler(Protocol[WorldT, ActionT, StatusT]):
    """One controller: observe -> decide -> apply, and a status derived from what is true afterwards.

    observe, decide and derive_status do no I/O and do not read a clock; observe may put `now` into the world.
    """

    def observe(self, key: Key) -> WorldT | None:
        """Read the caches; None when there is nothing to do about this key. Unavailable: they are not complete."""

    def decide(self, world: WorldT) -> Plan[ActionT]: ...

    async def apply(self, world: WorldT, action: ActionT) -> None:
        """Write one action, without choosing. Raises ApiError."""

    def derive_status(self, world: WorldT, problem: RefusedStep[ActionT] | None) -> StatusT | None:
        """Compute the status that the world deserves; None when nothing needs to be written."""

    async def write_status(self, world: WorldT, status: StatusT) -> None:
        """Write exactly that status, with the observed resourceVersion as precondition. Raises ApiError."""

    def report_refusal(self, world: WorldT, problem: RefusedStep[ActionT]) -> None:
        """Say beside the status (an Event, a log line) what was refused. Never raises, never waits.

        A refused action is in the next status as well. A refused status (WriteStatus) is reported only here.
        """


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one pass over a key ended."""

    requeue_after: float | None = None
    """Seconds; with an error: the least time to wait, as the server asked."""
    error: Exception | None = None
    """Not None: the key backs off."""
