# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bugs planted in what moves a guest. The play of migrations (transit) must find every one of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from controlplane.api.objects.migration import FAILED
from controlplane.api.objects.migration_state import MigrationState
from controlplane.domain.state import State
from controlplane.hypervisor.guest import Guest
from controlplane.virt_controller.migration import decide as migration_decide
from controlplane.virt_controller.vmi import decide as vmi_decide
from controlplane.virt_controller.vmi import reconciler as vmi_reconciler
from controlplane.virt_controller.vmi import status as vmi_status
from controlplane.virt_controller.vmi.world import World
from controlplane.virt_handler.incoming import decide as incoming_decide
from controlplane.virt_handler.incoming import status as incoming_status
from controlplane.virt_handler.migration import sending
from controlplane.virt_handler.migration.sending import Sending
from controlplane.virt_handler.vmi import leaving
from controlplane.virt_handler.vmi import reconciler as handler_reconciler
from controlplane.virt_handler.vmi import status as handler_status


async def _waits_for_nothing(_unused: Sending, __: Guest) -> None:
    """Let the guest go on at the target as soon as libvirt's call has ended."""


async def _ends_who_did_not_hear(one: Sending, guest: Guest) -> None:
    """End a source that did not hear that it has left, so that the target can go on."""
    while not leaving.is_migrated(state := await guest.state()) and state.life.is_up:
        await guest.destroy()


def _when_it_is_said_to_be_there(world: World) -> MigrationState | None:
    """Give the run to the target when it says that it has a domain."""
    moving = world.vmi.status.migration_state
    if moving is None or moving.target_pod_uid in world.vmi.status.active_pods or not world.is_granted:
        return None
    return moving if moving.target_node_domain_detected else None


def _up(state: State) -> bool:
    return state.life.is_up


def _nothing(*_unused: Any) -> None:
    return None


def _never(*_unused: Any) -> bool:
    return False


Swaps = tuple[tuple[Any, str, Any], ...]
_EARLY = _when_it_is_said_to_be_there

PLANTED: dict[str, Swaps] = {
    "the target goes on before the source is gone": ((Sending, "_until_gone", _waits_for_nothing),),
    "a source ended that did not hear of its leaving": ((Sending, "_until_gone", _ends_who_did_not_hear),),
    "committed when the target has a domain": (
        (vmi_decide, "arrived", _EARLY),
        (vmi_status, "arrived", _EARLY),
        (vmi_reconciler, "arrived", _EARLY),
    ),
    "a failed one taken for done": ((MigrationState, "has_moved", property(lambda state: state.completed)),),
    "begun in whatever state": ((handler_reconciler, "refuse_transfer", lambda *_unused: ""),),
    "whole taken for going on": ((incoming_status, "goes_on", _up),),
    "a source left paused for ever": ((leaving, "is_left_paused", _never),),
    "a source that is gone taken for dead": ((handler_status, "_has_left", _nothing),),
    "what is gone has moved": ((leaving, "is_migrated", lambda state: not state.life.is_up),),
    "a target's guest never ended": ((incoming_decide, "_end", lambda *_unused: incoming_decide.Plan()),),
    "a target's Pod left": (
        (migration_decide, "RULES", {**migration_decide.RULES, FAILED: migration_decide._end}),
    ),
    "a cancel ignored": ((leaving, "_while_sending", lambda *_unused: leaving.Plan()),),
    "the target not let go on": ((sending, "_let_go_on", _waits_for_nothing),),
}


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
