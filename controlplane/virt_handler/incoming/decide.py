# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Decides what a target node does for a VMI that migrates to it. Pure.

It never resumes the guest: the source does that, or vmi/ after the commit. It destroys the guest only if the migration
has failed: then the guest never ran here (docs/adr/0016).
"""

from __future__ import annotations

from controlplane.engine.plan import Plan
from controlplane.virt_handler.incoming.world import Action, CloseTunnel, OpenTunnel, World
from controlplane.virt_handler.vmi.world import Destroy, Dial, Launcher, PrepareNetwork

AGAIN_SECONDS = 0.1
"""The first pause before a failed network setup is retried (FailedOperation.seconds_left)."""
END_AGAIN_SECONDS = 10.0


def decide(world: World) -> Plan[Action]:
    """Choose the next actions."""
    stale = [
        migration_uid
        for migration_uid in sorted(world.open_tunnels)
        if migration_uid != world.moving.migration_uid or not world.is_expected
    ]
    if stale:
        return Plan(tuple(CloseTunnel(migration_uid, because="its migration is over") for migration_uid in stale))
    launcher = world.launcher
    if launcher is None or launcher.is_gone or launcher.pod.is_over:
        return Plan()
    if world.is_expected:
        return Plan() if launcher.pod.is_deleting else _prepare(world, launcher)
    return _end(world, launcher)


def _prepare(world: World, launcher: Launcher) -> Plan[Action]:
    """Open the tunnel, and prepare the launcher to receive the guest. The tunnel does not need the launcher."""
    open_tunnel: tuple[Action, ...] = ()
    if world.tunnel is None:
        open_tunnel = (OpenTunnel(world.moving.migration_uid, because="a guest migrates to this node"),)
    status, uid = launcher.status, launcher.pod.uid
    if not status.is_here or launcher.operation:
        return Plan(open_tunnel)
    if not status.is_network_ready:
        pause = _pause(world, launcher)
        if pause > 0:
            return Plan(open_tunnel, requeue_after=pause)
        return Plan((PrepareNetwork(uid, because="a guest migrates to its launcher"), *open_tunnel))
    if not status.is_admitted:
        return Plan((Dial(uid, because="a guest migrates to its launcher"), *open_tunnel))
    return Plan(open_tunnel)


def _end(world: World, launcher: Launcher) -> Plan[Action]:
    """Destroy the domain that a failed migration has left here."""
    state, migration = world.state, world.moving
    granted = {} if world.vmi is None else world.vmi.status.active_pods
    is_unused_target = migration.target_pod_uid == launcher.pod.uid and launcher.pod.uid not in granted
    if not is_unused_target or not migration.failed or state is None or not state.life.is_up or launcher.operation:
        return Plan()
    asked_at = launcher.status.destroy_asked_at
    seconds = 0.0 if asked_at is None else END_AGAIN_SECONDS - (world.monotonic - asked_at)
    if seconds > 0:
        return Plan(requeue_after=seconds)
    return Plan((Destroy(launcher.pod.uid, because="its migration has failed"),), requeue_after=END_AGAIN_SECONDS)


def _pause(world: World, launcher: Launcher) -> float:
    failed_operation = launcher.failed_operation
    return 0.0 if failed_operation is None else failed_operation.seconds_left(world.monotonic, AGAIN_SECONDS)
