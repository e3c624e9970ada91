# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what moves a guest. The play of migrations (transit) must find those that are PLANTED."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

import msgspec

from controlplane.api.objects.migration import FAILED, RUNNING, TARGET_READY
from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.domain.state import State
from controlplane.engine.plan import Plan
from controlplane.hypervisor.errors import HypervisorError
from controlplane.hypervisor.guest import Guest
from controlplane.virt_controller.migration import decide as migration_decide
from controlplane.virt_controller.migration.world import World as MigrationWorld
from controlplane.virt_controller.orphan import reconciler as orphan_reconciler
from controlplane.virt_controller.vmi import decide as vmi_decide
from controlplane.virt_controller.vmi import reconciler as vmi_reconciler
from controlplane.virt_controller.vmi import status as vmi_status
from controlplane.virt_controller.vmi.world import SetUnpausedCondition, World
from controlplane.virt_handler.incoming import decide as incoming_decide
from controlplane.virt_handler.incoming import status as incoming_status
from controlplane.virt_handler.incoming.world import World as IncomingWorld
from controlplane.virt_handler.migration.convergence import Watch
from controlplane.virt_handler.migration.sender import Sender
from controlplane.virt_handler.vmi import decide as handler_decide
from controlplane.virt_handler.vmi import hotplug as plugging
from controlplane.virt_handler.vmi import migration_source as leaving
from controlplane.virt_handler.vmi import migration_writes as writes
from controlplane.virt_handler.vmi import status as handler_status
from controlplane.virt_handler.vmi import user_requests as person
from controlplane.virt_handler.vmi.world import Launcher
from tests.controlplane.simulation.breach import Breach
from tests.controlplane.simulation.transit import TransitPlay


async def _waits_for_nothing(_unused: Sender, __: Guest) -> None:
    """Let the guest go on at the target as soon as libvirt's call has ended."""


async def _ends_who_did_not_hear(one: Sender, guest: Guest) -> None:
    """End a source that did not hear that it has left, so that the target can go on."""
    while not leaving.is_migrated(state := await guest.state()) and state.life.is_up:
        await guest.destroy()


async def _stops_unsaid(one: Watch) -> None:
    """Stop the guest, and have nobody know that it was not a person who did."""
    one._stopping = asyncio.create_task(one._guest.stop_to_send())
    with suppress(HypervisorError):
        await asyncio.shield(one._stopping)
        one._pace.stopped()


def _when_it_is_said_to_be_there(world: World) -> MigrationState | None:
    """Give the run to the target when it says that it has a domain."""
    moving = world.vmi.status.migration_state
    if moving is None or moving.target_pod_uid in world.vmi.status.active_pods or not world.is_granted:
        return None
    return moving if moving.target_node_domain_detected else None


def _as_if_not_begun(world: MigrationWorld) -> Plan[Any]:
    """End what is cancelled, whether it has begun or not."""
    is_going = world.state is not None and world.state.is_under_way
    return migration_decide._until_begun(world) if is_going else Plan()


def _in_the_same_epoch(world: World, moving: MigrationState) -> VirtualMachineInstanceStatus:
    return msgspec.structs.replace(_give(world, moving), epoch=world.vmi.status.epoch)


def _as_if_it_had_failed(world: IncomingWorld, launcher: Launcher) -> Plan[Any]:
    """End what is here and is waited for no more, though it has moved and is yet to be given to this node."""
    vmi, moving = world.vmi, world.moving
    if vmi is None:
        return Plan()
    failed = msgspec.structs.replace(vmi.status, migration_state=msgspec.structs.replace(moving, failed=True))
    return _end(replace(world, vmi=msgspec.structs.replace(vmi, status=failed)), launcher)


def _up(state: State) -> bool:
    return state.life.is_up


def _nothing(*_unused: Any) -> None:
    return None


def _never(*_unused: Any) -> bool:
    return False


Swaps = tuple[tuple[Any, str, Any], ...]
_end, _give = incoming_decide._end, vmi_reconciler.commit_migration
_EARLY = _when_it_is_said_to_be_there


def _serves_wherever_it_may_be(world: World) -> Plan[Any]:
    """Have Services send to whatever waits for it, whether the guest is there or not."""
    waiting = (one for one in world.pods if one.is_kept_from_services and not one.is_deleting)
    return Plan(tuple(SetUnpausedCondition(one.metadata.name, one.uid, because="") for one in waiting))


PLANTED: dict[str, Swaps] = {
    "Services told of a target": ((vmi_decide, "_label", lambda world, _node: _serves_wherever_it_may_be(world)),),
    "Services not told": ((vmi_decide, "_let_serve", lambda _world, _pod: ()),),
    "the target goes on before the source is gone": ((Sender, "_until_gone", _waits_for_nothing),),
    "committed when the target has a domain": (
        (vmi_decide, "find_arrived_migration", _EARLY),
        (vmi_status, "find_arrived_migration", _EARLY),
        (vmi_reconciler, "find_arrived_migration", _EARLY),
    ),
    "a failed one taken for done": ((MigrationState, "has_moved", property(lambda state: state.completed)),),
    "whole taken for going on": ((incoming_status, "goes_on", _up),),
    "a guest ended that has come": ((incoming_decide, "_end", _as_if_it_had_failed),),
    "a target's Pod left": ((migration_decide, "RULES", {**migration_decide.RULES, FAILED: migration_decide._end}),),
    "two at once": (
        (MigrationWorld, "preceding_migration", property(_nothing)),
        (MigrationWorld, "other_under_way", property(_never)),
    ),
    "virtual CPUs never given where it has come": ((handler_decide, "missing_cpus", lambda *_unused: 0),),
    "virtual CPUs told that it has not got": ((plugging, "_has", lambda vmi, _unused: vmi.spec.domain.cpu.vcpus),),
    "stopped before that is written": ((Watch, "stop", _stops_unsaid),),
    "the epoch of before": ((vmi_reconciler, "commit_migration", _in_the_same_epoch),),
    "left by one that was deleted by force": ((orphan_reconciler, "decide", lambda _unused: Plan()),),
}

SELDOM: dict[str, Swaps] = {
    "a source ended that did not hear of its leaving": ((Sender, "_until_gone", _ends_who_did_not_hear),),
    "begun in whatever state": ((writes, "refuse_transfer", lambda *_unused, **__: ""),),
    "a source left paused for ever": ((leaving, "is_left_paused_by_migration", _never),),
    "a source that is gone taken for dead": ((handler_status, "_has_left", _nothing),),
    "what is gone has moved": ((leaving, "is_migrated", lambda state: not state.life.is_up),),
    "what was stopped left so": ((leaving, "is_stopped_to_send", _never),),
    "a cancel ignored": ((leaving, "_while_sending", lambda *_unused: leaving.Plan()),),
    "a guest that has come left paused": (
        (handler_decide, "has_arrived_paused", _never),
        (handler_status, "has_arrived_paused", _never),
        (person, "has_arrived_paused", _never),
    ),
    "ended from afar when it has begun": (
        (
            migration_decide,
            "RULES",
            {**migration_decide.RULES, **dict.fromkeys((TARGET_READY, RUNNING), _as_if_not_begun)},
        ),
    ),
}
"""Bugs that few seeds find, or none did: no test rests on them yet."""


@contextmanager
def planted(swaps: Swaps) -> Iterator[None]:
    """Have what is there otherwise so inside the block."""
    before = [(where, name, where.__dict__[name]) for where, name, _unused in swaps]
    try:
        for where, name, instead in swaps:
            setattr(where, name, instead)
        yield
    finally:
        for where, name, was in before:
            setattr(where, name, was)


def failure_of(swaps: Swaps, seed: int, steps: int) -> str | None:
    """Play with the bug in place; return how it was found, or None."""
    with planted(swaps):
        try:
            TransitPlay(seed).run(steps)
        except Breach as breach:
            return str(breach)
    return None
