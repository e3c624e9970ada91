# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""start, stop, restart: what cannot be carried out is refused, and what is accepted names what it is for."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LIFECYCLE = "controlplane/virt_api/lifecycle.py"
_REFUSALS = "controlplane/virt_api/refusals.py"
_BY_LIFECYCLE = ("tests/controlplane/virt_api/test_lifecycle.py",)
_BY_REMEDIES = ("tests/controlplane/virt_controller/vm/test_remedies.py",)
_BY_SUBRESOURCES = ("tests/controlplane/virt_api/test_subresources.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LIFECYCLE,
        line="    if strategy not in BUILT:",
        without="    if False:",
        because="A request under a strategy that is not built would wait for ever.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='    return {"action": "Stop", "uid": vmi.metadata.uid}',
        without='    return {"action": "Stop"}',
        because="A stop names its instance, or it stops the next one.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="one.controller and one.uid != vm.metadata.uid for one in owners) else vmi",
        without="False for one in owners) else vmi",
        because="An instance that another object controls is not this VM's to stop.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="or seconds >= vmi.spec.grace_period_seconds:",
        without="or False:",
        because="A stop may shorten the grace period, never lengthen it.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if vm.spec.running is not None and vm.spec.run_strategy is not None:",
        without="    if False:",
        because="Of two strategies one would be acted on by chance.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if machine.strategy == HALTED and not options.paused:\n        return (_switch(vm, on=True),)\n",
        without="",
        because="A start of a halted machine queued for nobody blocks every later request.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="        if live is None or (machine.is_going and machine.is_new_strategy):",
        without="        if live is None:",
        because="A stop of what goes already would be done at once, and its new strategy start the machine after it.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if machine.strategy == RERUN_ON_FAILURE:\n        status",
        without="    if False:\n        status",
        because="A start that was taken back would come by itself.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='status: Json = {"stateChangeRequests": [stop], ',
        without='status: Json = {"stateChangeRequests": [stop] if machine.vmi else [], ',
        because="A stop that comes while the instance is being made would be answered, and the machine would run.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='f"{because}{doubt(machine)}"',
        without="because",
        because="Who is refused because of a lost node must be told what would be proof.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="        return self.vmi if self.vmi is not None and is_alive(self.vmi.status.phase) else None",
        without=(
            '        idle = {"", "Unknown", "Succeeded", "Failed"}\n'
            "        return self.vmi if self.vmi is not None and self.vmi.status.phase not in idle else None"
        ),
        because="A start of what may still run would be accepted and dropped without a word.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="        return pending(queue, uid=meta.uid, is_own=is_own)",
        without="        return queue",
        because="What is done must not keep anybody out.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line=" or not self.is_going\n        return pending",
        without=" or True\n        return pending",
        because="A start that still comes, when an instance that is never adopted is gone, could not be taken back.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="        return _STOPPING if machine.alive else None\n    if",
        without="        return None\n    if",
        because="A start must not take back a stop that is being carried out.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.asked and machine.strategy != ONCE:\n",
        without="    if False:\n",
        because="A request that is being carried out must not be replaced by another.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.alive and not machine.is_going:\n        return _running(machine, machine.alive)\n",
        without="",
        because="A machine that runs cannot be started.",
        tests=_BY_REMEDIES,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.strategy == ONCE and machine.vmi is not None and not machine.is_going:",
        without="    if False:",
        because="A machine whose one run is over does not start by itself, whatever it is told.",
        tests=_BY_REMEDIES,
    ),
    Guard(
        file=_REFUSALS,
        line='    if machine.strategy in {ALWAYS, ONCE}:\n        return f"{machine',
        without='    if machine.strategy in {ALWAYS}:\n        return f"{machine',
        because="A start under Once would wait in the queue for ever.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.alive:\n        return _STOPPING\n",
        without="",
        because="What still runs is not started: clients rely on the refusal, as upstream gives it.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="FAILED and not self.is_going",
        without="FAILED",
        because="A failed run that somebody ended does not start by itself again.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.strategy == ONCE:\n        ends",
        without="    if False:\n        ends",
        because="A restart under Once would wait in the queue for ever.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="    if machine.asked:\n        return _busy(machine)\n    if machine.vmi is None:",
        without="    if machine.vmi is None:",
        because="A request that is being carried out must not be replaced by another.",
        tests=_BY_REMEDIES,
    ),
    Guard(
        file=_REFUSALS,
        line="queues and machine.alive is None and not machine.is_to_start else None",
        without="queues and machine.alive is None else None",
        because="Nothing else takes back a start while something is in its way.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="queues and machine.alive is None and not machine.is_to_start else None",
        without="False else None",
        because="A stop of what does not run and was not asked to must be refused.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_REFUSALS,
        line="{ONCE} {_NO_RESTART}; {_BY_ITSELF if ends else _ANEW}",
        without="{ONCE} {_NO_RESTART}; start it instead",
        because="A remedy that is refused in turn leaves a person nowhere.",
        tests=_BY_REMEDIES,
    ),
    Guard(
        file=_REFUSALS,
        line="said.message[:EVIDENCE] if",
        without="said.message if",
        because="An instance's words may be of any length, an answer not.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file="controlplane/virt_api/subresources.py",
        line="            async with self.places.turn(access.namespace):\n                decision",
        without="            if True:\n                decision",
        because="Whoever starts hundreds of machines at once would have everybody else's start wait for them.",
        tests=_BY_SUBRESOURCES,
        may_hang=True,
    ),
    Guard(
        file="controlplane/virt_api/subresources.py",
        line="vm, vmi = await self._read_vm(key), await self._read_vmi(key)",
        without="vmi, vm = await self._read_vmi(key), await self._read_vm(key)",
        because="A start would be written, by the version of now, for an instance that was not there a moment ago.",
        tests=_BY_SUBRESOURCES,
    ),
    Guard(
        file="controlplane/virt_api/subresources.py",
        line='                raise Conflict("the instance is gone by now") from error\n',
        without="                pass\n",
        because="A stop of what has ended would be queued, and the grace period of nobody shortened.",
        tests=_BY_SUBRESOURCES,
    ),
)
