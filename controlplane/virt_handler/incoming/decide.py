# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a target does for an instance that is on its way: pure.

It never lets the guest go on: that is the source's, or comes after the commit. It ends it only when its migration has
failed: then it never ran here (docs/adr/0016).
"""

from __future__ import annotations

from controlplane.engine.plan import Plan
from controlplane.virt_handler.incoming.world import Action, CloseTunnel, OpenTunnel, World
from controlplane.virt_handler.vmi.world import Destroy, Dial, Launcher, PrepareNetwork

AGAIN_SECONDS = 0.1
"""A network of which nothing came is tried again after so long at first (FailedOperation.seconds_left)."""
END_AGAIN_SECONDS = 10.0


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    stale = [one for one in sorted(world.open_tunnels) if one != world.moving.migration_uid or not world.is_expected]
    if stale:
        return Plan(tuple(CloseTunnel(one, because="nothing comes by it any more") for one in stale))
    launcher = world.launcher
    if launcher is None or launcher.is_gone or launcher.pod.is_over:
        return Plan()
    if world.is_expected:
        return Plan() if launcher.pod.is_deleting else _prepare(world, launcher)
    return _end(world, launcher)


def _prepare(world: World, launcher: Launcher) -> Plan[Action]:
    """Towards a launcher that can take a guest in, and a door for it, which needs no launcher: both at once."""
    door: tuple[Action, ...] = ()
    if world.door is None:
        door = (OpenTunnel(world.moving.migration_uid, because="a guest is to come"),)
    status, uid = launcher.status, launcher.pod.uid
    if not status.is_here or launcher.operation:
        return Plan(door)
    if not status.is_network_ready:
        pause = _pause(world, launcher)
        if pause > 0:
            return Plan(door, requeue_after=pause)
        return Plan((PrepareNetwork(uid, because="a guest is to come to its launcher"), *door))
    if not status.is_admitted:
        return Plan((Dial(uid, because="a guest is to come to its launcher"), *door))
    return Plan(door)


def _end(world: World, launcher: Launcher) -> Plan[Action]:
    """End what a failed migration has left here."""
    state, moving = world.state, world.moving
    granted = {} if world.vmi is None else world.vmi.status.active_pods
    is_mine = moving.target_pod_uid == launcher.pod.uid and launcher.pod.uid not in granted
    if not is_mine or not moving.failed or state is None or not state.life.is_up or launcher.operation:
        return Plan()
    asked = launcher.status.destroy_asked_at
    left = 0.0 if asked is None else END_AGAIN_SECONDS - (world.monotonic - asked)
    if left > 0:
        return Plan(requeue_after=left)
    return Plan((Destroy(launcher.pod.uid, because="its migration has failed"),), requeue_after=END_AGAIN_SECONDS)


def _pause(world: World, launcher: Launcher) -> float:
    failed_operation = launcher.failed_operation
    return 0.0 if failed_operation is None else failed_operation.seconds_left(world.monotonic, AGAIN_SECONDS)
