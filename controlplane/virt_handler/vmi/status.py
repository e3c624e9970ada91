# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The status of a VMI that its virt-handler writes, from phase Scheduled on. Final phases are never left. Pure.

status_conditions.py derives the conditions.
"""

from __future__ import annotations

import msgspec

from controlplane.api.objects.migration_state import MigrationState
from controlplane.api.objects.phase import AFTER_HAND_OVER, RUNNING, SCHEDULED, is_allowed_transition
from controlplane.api.objects.pod import reason_word
from controlplane.api.objects.vmi.domain import Machine
from controlplane.api.objects.vmi.instance import (
    InterfaceStatus,
    PhaseTransition,
    VirtualMachineInstance,
    VirtualMachineInstanceStatus,
)
from controlplane.api.objects.vmi.status import ADDRESSES_LIMIT
from controlplane.api.timestamps import format_timestamp
from controlplane.domain import layout
from controlplane.engine.plan import RefusedStep
from controlplane.virt_handler.vmi import agent_status
from controlplane.virt_handler.vmi.guest_network import interface_mac
from controlplane.virt_handler.vmi.hotplug import with_cpus, with_memory
from controlplane.virt_handler.vmi.liveness import Alive, Dead, Liveness, judge_run
from controlplane.virt_handler.vmi.migration_source import (
    Seen,
    awaits_hand_over,
    is_migrated,
    is_sending,
    migration_under_way,
    migration_when_ended,
    migration_when_gone,
    migration_while_up,
)
from controlplane.virt_handler.vmi.status_conditions import derive_conditions
from controlplane.virt_handler.vmi.world import Action, Launcher, World


def derive_status(world: World, problem: RefusedStep[Action] | None) -> VirtualMachineInstanceStatus | None:
    """Return the status to write; None if the written status is right, or if another component writes it now."""
    vmi = world.vmi
    if vmi is None or vmi.status.node_name != world.node or vmi.status.phase not in AFTER_HAND_OVER:
        return None
    liveness = judge_run(world)
    if isinstance(liveness, Dead) and (moved := _moved_state(world, vmi)) is not None:
        return msgspec.structs.replace(vmi.status, migration_state=moved)
    if isinstance(liveness, Dead) and world.launcher is not None and is_sending(world.launcher.status):
        return None  # the guest may be about to run at the target; the transfer's result is near
    if isinstance(liveness, Alive) and world.launcher is not None and world.launcher.is_gone:
        return None  # the guest is about to be ended, because its Pod was removed
    is_busy = world.launcher is not None and world.launcher.operation != ""
    if awaits_hand_over(vmi) or (isinstance(liveness, Alive) and vmi.status.phase == SCHEDULED and is_busy):
        return None  # the guest is the target's, or its start has not ended, or its addresses are unknown
    new = _with_agent_report(world, _with_pod_addresses(world, vmi, _move(world, vmi, liveness)), liveness)
    new = _with_migration(world, vmi, new, liveness)
    if isinstance(liveness, Alive) and new.phase == RUNNING and world.launcher is not None:
        new = with_memory(vmi, with_cpus(vmi, new, world.launcher), world.launcher)
    new = msgspec.structs.replace(new, conditions=derive_conditions(world, vmi, new, liveness, problem))
    return None if new == vmi.status else new


def _move(world: World, vmi: VirtualMachineInstance, liveness: Liveness) -> VirtualMachineInstanceStatus:
    old = vmi.status
    match liveness:
        case Alive():
            phase, reason = RUNNING, ""
        case Dead(outcome=outcome, reason=why):
            phase, reason = outcome, why
        case _:
            return old  # no proof of an end
    if phase == old.phase or not is_allowed_transition(old.phase, phase):
        return old
    moved = msgspec.structs.replace(
        old,
        phase=phase,
        reason=reason_word(reason) if reason else "",
        phase_transition_timestamps=_entered(old, phase, format_timestamp(world.now)),
    )
    return _describe(vmi, world.launcher, moved) if phase == RUNNING and world.launcher is not None else moved


def _moved_state(world: World, vmi: VirtualMachineInstance) -> MigrationState | None:
    """Return the migration state of a guest whose QEMU is gone because it moved; None if it has ended."""
    migration, launcher = migration_under_way(vmi), world.launcher
    if migration is None or migration.start_timestamp is None or launcher is None:
        return None
    return migration_when_gone(migration, launcher.status, format_timestamp(world.now))


def _with_migration(
    world: World, vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus, liveness: Liveness
) -> VirtualMachineInstanceStatus:
    """Add the state of its migration."""
    current, launcher, stamp = migration_under_way(vmi), world.launcher, format_timestamp(world.now)
    if current is None or launcher is None:
        return new
    migration: MigrationState | None = None
    match liveness:
        case Alive(state=state):
            is_to_end = world.deleting_since is not None
            migration = migration_while_up(
                Seen(vmi=vmi, launcher=launcher, state=state, is_to_end=is_to_end, monotonic=world.monotonic), stamp
            )
        case Dead():
            migration = migration_when_ended(current, stamp)
        case _ if launcher.status.state is not None and is_migrated(launcher.status.state):
            migration = migration_when_gone(current, launcher.status, stamp)
    return new if migration is None else msgspec.structs.replace(new, migration_state=migration)


def _with_pod_addresses(
    world: World, vmi: VirtualMachineInstance, new: VirtualMachineInstanceStatus
) -> VirtualMachineInstanceStatus:
    """Set the addresses of this Pod for a guest that arrived by a migration."""
    moved, launcher = new.migration_state, world.launcher
    if moved is None or launcher is None or new.phase != RUNNING or moved.target_pod_uid != launcher.pod.uid:
        return new
    pod = launcher.status.interface
    listed = new.interfaces[0].ip_addresses if new.interfaces else ()
    if pod is None or not new.interfaces or listed == pod.addresses[:ADDRESSES_LIMIT]:
        return new
    return msgspec.structs.replace(new, interfaces=_interfaces(vmi, launcher))


def _with_agent_report(
    world: World, new: VirtualMachineInstanceStatus, liveness: Liveness
) -> VirtualMachineInstanceStatus:
    """Add the report of the guest's agent, while the guest runs."""
    agent = None if world.launcher is None else world.launcher.status.agent
    is_reported = isinstance(liveness, Alive) and new.phase == RUNNING and agent is not None
    return agent_status.with_agent_report(new, agent) if is_reported and agent is not None else new


def _entered(old: VirtualMachineInstanceStatus, phase: str, stamp: str) -> tuple[PhaseTransition, ...]:
    """Append a phase that is entered for the first time.

    A run that alternates between Running and Unknown must not grow the list beyond its limit.
    """
    times = old.phase_transition_timestamps
    if any(transition.phase == phase for transition in times):
        return times
    return (*times, PhaseTransition(phase=phase, phase_transition_timestamp=stamp))


def _describe(
    vmi: VirtualMachineInstance, launcher: Launcher, moved: VirtualMachineInstanceStatus
) -> VirtualMachineInstanceStatus:
    """Add the facts about a running guest to the write that makes it Running."""
    observed = launcher.status.observed
    guest_memory = moved.memory
    return msgspec.structs.replace(
        moved,
        interfaces=_interfaces(vmi, launcher) or moved.interfaces,
        machine=Machine(type=observed.machine) if observed is not None and observed.machine else moved.machine,
        memory=None
        if guest_memory is None
        else msgspec.structs.replace(guest_memory, guest_current=guest_memory.guest_at_boot),
    )


def _interfaces(vmi: VirtualMachineInstance, launcher: Launcher) -> tuple[InterfaceStatus, ...]:
    pod = launcher.status.interface
    addresses = () if pod is None else pod.addresses[:ADDRESSES_LIMIT]
    return tuple(
        InterfaceStatus(
            name=interface.name,
            ip_address=addresses[0] if addresses else "",
            ip_addresses=addresses,
            mac=interface_mac(vmi, launcher.pod, interface),
            pod_interface_name=layout.POD_INTERFACE,
            info_source="domain",
            queue_count=1,
            link_state="up",
        )
        for interface in vmi.spec.domain.devices.interfaces
    )
