# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Derives the target's fields of status.migrationState. Pure."""

from __future__ import annotations

import msgspec

from controlplane.api.objects.migration_state import TUNNEL, MigrationState
from controlplane.api.objects.pod import sanitize
from controlplane.api.objects.vmi.instance import VirtualMachineInstanceStatus
from controlplane.api.timestamps import format_timestamp
from controlplane.engine.plan import RefusedStep
from controlplane.virt_handler.incoming.ports import NoMigrationAddress
from controlplane.virt_handler.incoming.world import Action, OpenTunnel, World

TRIES = 5
"""Attempts to set up the network before the migration fails."""


def derive_status(world: World, problem: RefusedStep[Action] | None = None) -> VirtualMachineInstanceStatus | None:
    """Derive the status; None when nothing changes. problem: the step that was refused, if any."""
    old, vmi = world.moving, world.vmi
    if vmi is None or not world.is_expected:
        return None
    new = _with_tunnel(world, _with_domain(world, old))
    if old.start_timestamp is None and (failure := _trouble(world, problem)):
        new = msgspec.structs.replace(
            old,
            failed=True,
            completed=True,
            failure_reason=sanitize(failure),
            end_timestamp=format_timestamp(world.now),
        )
    return None if new == old else msgspec.structs.replace(vmi.status, migration_state=new)


def _with_domain(world: World, old: MigrationState) -> MigrationState:
    state = world.state
    if state is None or not state.life.is_up or not _is_own(world):
        return old
    # A complete transfer is not enough: until the guest runs here, the source may still resume it.
    is_first = state.life.is_going_on and old.target_node_domain_ready_timestamp is None
    ready = format_timestamp(world.now) if is_first else old.target_node_domain_ready_timestamp
    return msgspec.structs.replace(old, target_node_domain_detected=True, target_node_domain_ready_timestamp=ready)


def _with_tunnel(world: World, new: MigrationState) -> MigrationState:
    """Publish the tunnel's address, once the launcher can receive the guest and until the source has begun."""
    can_receive = world.launcher is not None and world.launcher.status.is_connected
    if world.tunnel is None or not can_receive or new.start_timestamp is not None:
        return new
    ports = {str(world.tunnel.port): TUNNEL}
    return msgspec.structs.replace(
        new, target_node_address=world.tunnel.address, target_direct_migration_node_ports=ports
    )


def _is_own(world: World) -> bool:
    launcher, vmi = world.launcher, world.vmi
    observed = None if launcher is None else launcher.status.observed
    identity = None if observed is None else observed.identity
    return (
        launcher is not None
        and vmi is not None
        and identity is not None
        and (identity.uid, identity.pod_uid) == (vmi.metadata.uid, launcher.pod.uid)
    )


def _trouble(world: World, problem: RefusedStep[Action] | None) -> str:
    """Return why the migration to this node must fail before anything is sent; "" if it need not."""
    if problem is not None and isinstance(problem.step, OpenTunnel) and isinstance(problem.error, NoMigrationAddress):
        return f"the target cannot be prepared: {problem.error}"
    launcher = world.launcher
    if launcher is None:
        return ""
    failed_operation = launcher.failed_operation
    if (
        failed_operation is not None
        and failed_operation.is_refusal
        and not launcher.status.is_network_ready
        and failed_operation.count > TRIES
    ):
        return f"the target cannot be prepared: {failed_operation.message}"
    return ""
