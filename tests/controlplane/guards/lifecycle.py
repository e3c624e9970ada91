# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""start, stop, restart: what cannot be carried out is refused, and what is accepted names what it is for."""

from __future__ import annotations

from tests.controlplane.guards.guard import Guard

_LIFECYCLE = "controlplane/virt_api/lifecycle.py"
_BY_LIFECYCLE = ("tests/controlplane/virt_api/test_lifecycle.py",)

GUARDS: tuple[Guard, ...] = (
    Guard(
        file=_LIFECYCLE,
        line="    if options.paused:\n        raise NotBuiltError",
        without="    if False:\n        raise NotBuiltError",
        because="A start that asks for a paused machine must not start it running.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if vmi is not None and vmi.status.phase not in _NOT_LIVE:\n        raise",
        without="    if False:\n        raise",
        because="A machine that runs cannot be started.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='    if strategy in {"Always", "Once"}:\n        raise',
        without='    if strategy in {"Always"}:\n        raise',
        because="A start under Once would wait in the queue for ever.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='    if strategy == "Halted":\n        return (_switch(vm, on=True),)\n',
        without="",
        because="A start of a halted machine queued for nobody blocks every later request.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='    if strategy in {"Halted", "Once"}:\n        raise',
        without='    if strategy in {"Halted"}:\n        raise',
        because="A restart under Once would wait in the queue for ever.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line='    if vmi is None:\n        raise RefusedError("the machine is not running")\n    _no_queue',
        without="    if vmi is None:\n        return (_queue(_START),)\n    _no_queue",
        because="A restart of what does not run must be refused, not a start.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if vm.status.state_change_requests:\n        action",
        without="    if False:\n        action",
        because="A request that is being carried out must not be replaced by another.",
        tests=_BY_LIFECYCLE,
    ),
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
        line='    if not any(one.action == "Start" for one in vm.status.state_change_requests):',
        without="    if False:",
        because="A stop of what does not run and was not asked to must be refused.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if vm.run_strategy == RERUN_ON_FAILURE:\n        status",
        without="    if False:\n        status",
        because="A start that was taken back would come by itself.",
        tests=_BY_LIFECYCLE,
    ),
    Guard(
        file=_LIFECYCLE,
        line="    if vm.spec.running is not None and vm.spec.run_strategy is not None:",
        without="    if False:",
        because="Of two strategies one would be acted on by chance.",
        tests=_BY_LIFECYCLE,
    ),
)
