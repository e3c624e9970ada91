# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes of new processes at rest: there must be none, whatever the running ones have learned.

Two exceptions: a virt-handler sets up the network of each guest once, which changes nothing; and a time written by a
process whose clock was far ahead is replaced.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection
from typing import Any

from controlplane.api.objects.resources import LEASE, Key
from tests.controlplane.simulation.controller import Controller
from tests.controlplane.simulation.handler import Handler
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.process import Process
from tests.support.calls import PREPARE, Call
from tests.support.clock import WrongClock

ROUNDS = 100
"""Enough for all its reads."""


def work_found_afresh(world: MachineWorld, restless: Collection[str]) -> str | None:
    """Return what a new process would write, without applying it. restless: names that always have work."""
    seed, clock = random.Random(world.store.version), WrongClock(world.true, world.controllers[-1].clock.offset)
    began: list[Process] = [
        Controller("a new controller", world.store, clock, seed, world.configuration),
        *(Handler(node, world.store, seed) for node in world.nodes),
    ]
    problems = [_work_of(item, lambda name: any(each in name.replace("-", ".") for each in restless)) for item in began]
    return next(filter(None, problems), None)


def _work_of(process: Process, is_restless: Callable[[str], bool]) -> str | None:
    wanted, prepared = None, set[Key]()
    for _unused in range(ROUNDS):
        wanted = _write_wanted(process, is_restless, prepared)
        if wanted is not None or not _go_on(process, prepared):
            break
    result = wanted or next(iter((*process.bugs, *process.unmet_preconditions)), None)
    process.die(None, is_request_out=False)
    return result


def _write_wanted(process: Process, is_restless: Callable[[str], bool], prepared: Collection[Key]) -> str | None:
    for each in [each for each in process.passes if not each.call.is_question and each.call.kind != LEASE.kind]:
        if _is_first(each.call, prepared):
            continue
        if not is_restless(each.call.key.name) and not _is_about_clocks(each.call):
            return f"{process.name} would {each.call}, at rest: {each.call.asked.get('patch') or ''}"
        process.abandon(each)
    return None


def _go_on(process: Process, prepared: set[Key]) -> bool:
    """Let it read, prepare, and look at its launchers; return whether there was something to do."""
    moved = sum(process.begin(name) for name in process.work) > 0
    steps: list[Any] = process.sessions.steps() if isinstance(process, Handler) else []
    for step in steps:
        step()
    while calls := [
        at for at, each in enumerate(process.passes) if each.call.is_question or _is_first(each.call, prepared)
    ]:
        if _is_first(call := process.passes[calls[0]].call, prepared):
            prepared.add(call.key)
        process.carry_out(calls[0], "done")
        moved = True
    return moved or bool(steps)


def _is_about_clocks(call: Call) -> bool:
    changed = (call.asked.get("patch") or {}).get("status", {})
    return [*changed] == ["startFailure"] and [*(changed["startFailure"] or ())] == ["retryAfterTimestamp"]


def _is_first(call: Call, prepared: Collection[Key]) -> bool:
    return call.verb == PREPARE and call.key not in prepared
