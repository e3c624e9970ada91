# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The contract between the engine and reconcilers. Only values and protocols.

reconcile.py runs one reconcile, work_queue.py chooses the next key, runner.py is the asyncio shell.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from controlplane.api.objects.resources import Key
from controlplane.engine.errors import ApiError


class Action(Protocol):
    """One write. `because` says why, in a short clause for log lines and Events."""

    @property
    def because(self) -> str: ...


WorldT = TypeVar("WorldT")
StatusT = TypeVar("StatusT")
ActionT = TypeVar("ActionT", bound=Action)


@dataclass(frozen=True, slots=True)
class WriteStatus:
    """A step of a plan: write the derived status before the next steps.

    If the status differs, it is written, and the reconcile observes again. Otherwise the plan goes on. Each plan ends
    in such a step, written or not.
    """

    because: str


@dataclass(frozen=True, slots=True)
class IndependentActions(Generic[ActionT]):
    """A step of actions that do not depend on each other: a refused action does not stop the others.

    Nor does a conflict or a missing object. An API server that does not answer stops the step.
    """

    actions: tuple[ActionT, ...]


@dataclass(frozen=True, slots=True)
class Plan(Generic[ActionT]):
    """What to do now, in this order, and when to reconcile again without an event."""

    steps: tuple[ActionT | IndependentActions[ActionT] | WriteStatus, ...] = ()
    requeue_after: float | None = None
    """Seconds; None: at the next event."""


@dataclass(frozen=True, slots=True)
class RefusedStep(Generic[ActionT]):
    """A step of a plan that the API refused, and its error."""

    step: ActionT | WriteStatus
    error: ApiError


class Reconciler(Protocol[WorldT, ActionT, StatusT]):
    """One controller: observe, decide, apply, and a status derived from the result.

    observe, decide and derive_status do no I/O and do not read a clock; observe may put `now` into the world.
    """

    def observe(self, key: Key) -> WorldT | None:
        """Read the caches. None: nothing to do for this key. Raises Unavailable if a cache is incomplete."""

    def decide(self, world: WorldT) -> Plan[ActionT]: ...

    async def apply(self, world: WorldT, action: ActionT) -> None:
        """Carry out one action, without decisions. Raises ApiError.

        A patch names the observed uid and resourceVersion: a stale cache would repeat a write.
        """

    def derive_status(self, world: WorldT, problem: RefusedStep[ActionT] | None) -> StatusT | None:
        """Derive the status; None if it is already written."""

    async def write_status(self, world: WorldT, status: StatusT) -> None:
        """Write this status, with the observed resourceVersion as precondition. Raises ApiError."""

    def report_refusal(self, world: WorldT, problem: RefusedStep[ActionT]) -> None:
        """Report a refusal outside the status: an Event, a log line. Never raises, never waits.

        A refused action is in the next status as well. A refused status (WriteStatus) is reported only here.
        """


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one reconcile ended."""

    requeue_after: float | None = None
    """Seconds; with an error: the server's Retry-After, the least time to wait."""
    error: Exception | None = None
    """Not None: the key backs off."""
