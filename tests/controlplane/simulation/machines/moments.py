# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults at critical moments: between a read and the write that relies on it.

Random faults alone would hardly ever delete just that VMI just then. The call about to be carried out selects the
fault; the actions of users are in people.
"""

from __future__ import annotations

from collections.abc import Callable

from controlplane.api.objects.phase import SCHEDULED
from controlplane.api.objects.resources import POD, VIRTUAL_MACHINE, VIRTUAL_MACHINE_INSTANCE, Key
from tests.controlplane.simulation.machines.hands_on_pods import NOTHING, HandsOnPods
from tests.controlplane.simulation.machines.people import People
from tests.controlplane.simulation.machines.world import MachineWorld
from tests.controlplane.simulation.process import Process
from tests.support.calls import READ, Call

Change = Callable[[People, Key], str]


def _on_pods(change: Callable[[HandsOnPods, Key], str]) -> Change:
    return lambda people, key: change(people.pods, key)


STARTED: tuple[Change, ...] = (
    People.delete_vmi,
    _on_pods(HandsOnPods.delete_of),
    _on_pods(HandsOnPods.force_delete_of),
)
WANTED: tuple[Change, ...] = (People.switch, People.stop, People.delete_vm, People.squat)
CHANGES: dict[tuple[str, str, str], tuple[Change, ...]] = {
    ("handler", READ, VIRTUAL_MACHINE_INSTANCE.kind): (People.take_back, *STARTED),
    ("handler", "define", "domain"): STARTED,
    ("handler", "launch", "domain"): STARTED,
    ("handler", "finish start of", "domain"): STARTED,
    ("controller", READ, POD.kind): (_on_pods(HandsOnPods.replace), _on_pods(HandsOnPods.remove)),
    ("controller", "delete", POD.kind): (_on_pods(HandsOnPods.replace), _on_pods(HandsOnPods.hide)),
    ("controller", READ, VIRTUAL_MACHINE.kind): WANTED,
    ("controller", "create", VIRTUAL_MACHINE_INSTANCE.kind): WANTED,
    ("controller", "patch", VIRTUAL_MACHINE_INSTANCE.kind): (People.start, People.restart),
    ("controller", "patch status of", VIRTUAL_MACHINE.kind): (People.stop, People.start, People.restart),
    ("controller", "delete", VIRTUAL_MACHINE_INSTANCE.kind): (People.leave, People.switch, People.delete_vmi),
    ("controller", READ, VIRTUAL_MACHINE_INSTANCE.kind): (People.squat, People.leave),
    ("controller", "patch status of", VIRTUAL_MACHINE_INSTANCE.kind): (*STARTED, _on_pods(HandsOnPods.hide_of)),
}
"""By process and request."""
STARTS = ("launch", "finish start of")
"""Verbs during which the end of virt-handler leaves the most to find out."""
ENDS = 1.2
"""Relative to changed requests: starts are rare."""


class Moments:
    def __init__(self, world: MachineWorld) -> None:
        self._world = world

    def meddle(self, process: Process, call: Call) -> str:
        """Sometimes do the most harmful thing before this call; return what, "" for nothing."""
        return self.follow(process, call) if self._world.rng.random() < self._world.odds.meddling else ""

    def follow(self, process: Process, call: Call) -> str:
        """Do one of the harmful things for this call; return what, "" for nothing."""
        changes = CHANGES.get((process.role, call.verb, call.kind), ())
        if not changes:
            return ""
        self._world.store.actor = "user"
        done = self._world.rng.choice(changes)(self._world.people, call.key)
        return "" if done == NOTHING else f"user: {done}"

    def take_back(self, process: Process) -> str:
        """Withdraw the start whose grant is being requested; return how, "" without one."""
        call = process.passes[0].call
        is_about_start = (process.role, call.verb, call.kind) == ("handler", READ, VIRTUAL_MACHINE_INSTANCE.kind)
        vmi = self._world.store.find(VIRTUAL_MACHINE_INSTANCE, call.key) if is_about_start else None
        if vmi is None or vmi.get("status", {}).get("phase") != SCHEDULED:
            return ""
        self._world.store.actor = "user"
        done = self._world.rng.choice(STARTED)(self._world.people, call.key)
        return "" if done == NOTHING else f"user: {done}"

    def breaks(self, call: Call) -> bool:
        """Whether virt-handler ends before the response comes."""
        is_start = call.kind == "domain" and call.verb in STARTS
        return is_start and self._world.rng.random() < ENDS * self._world.odds.meddling
