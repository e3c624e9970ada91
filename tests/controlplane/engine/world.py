# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A toy controller for the tests of the engine: it raises a counter to a goal, one step at a time."""

from __future__ import annotations

from dataclasses import dataclass, field

from controlplane.api.objects.resources import Key
from controlplane.engine.plan import Plan, RefusedStep, WriteStatus


@dataclass(frozen=True, slots=True)
class Count:
    value: int
    status: str


@dataclass(frozen=True, slots=True)
class Add:
    because: str = "it is too small"
    to: int = 0
    """The value before the addition: each action is different."""


@dataclass(slots=True)
class Counting:
    goal: int
    value: int = 0
    status: str = ""
    fail_with: list[Exception | None] = field(default_factory=list)
    """The results of the next writes; None: success."""
    writes: list[str] = field(default_factory=list)
    requeue_after: float | None = None
    is_absent: bool = False
    is_stuck: bool = False
    """Add has no effect."""
    status_first: bool = False
    """Each step waits until the status is current."""
    refusals: list[str] = field(default_factory=list)
    """Refusals reported beside the status."""

    def observe(self, key: Key) -> Count | None:
        return None if self.is_absent else Count(self.value, self.status)

    def decide(self, world: Count) -> Plan[Add]:
        steps: tuple[Add | WriteStatus, ...] = (Add(to=world.value),) if world.value < self.goal else ()
        return Plan(
            (WriteStatus("it is the first thing to know"), *steps) if self.status_first else steps, self.requeue_after
        )

    async def apply(self, world: Count, action: Add) -> None:
        self._write("add")
        self.value += 0 if self.is_stuck else 1

    def derive_status(self, world: Count, problem: RefusedStep[Add] | None) -> str | None:
        wanted = f"{world.value} of {self.goal}" + (f", {problem.error}" if problem else "")
        return None if wanted == world.status else wanted

    async def write_status(self, world: Count, status: str) -> None:
        self._write(status)
        self.status = status

    def report_refusal(self, world: Count, problem: RefusedStep[Add]) -> None:
        self.refusals.append(f"{type(problem.step).__name__}: {problem.error}")

    def _write(self, what: str) -> None:
        error = self.fail_with.pop(0) if self.fail_with else None
        if error is not None:
            raise error
        self.writes.append(what)
