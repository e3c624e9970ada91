# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VMI of this node: pure.

Never two: a domain is started only in the Pod that the API server's newest VMI grants, and only where none ever ran.
Never taken for dead: a guest is ended only for a cause that is in an object (deletion, the end of the run, a Pod
removed by force), and only over a working connection.
"""

from __future__ import annotations

from controlplane.api.objects.phase import SCHEDULED, is_final
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import Life
from controlplane.engine.plan import Plan
from controlplane.virt_handler.vmi.status import PATIENCE_SECONDS, seconds_since_hand_over
from controlplane.virt_handler.vmi.verdict import Alive, is_startable, judge
from controlplane.virt_handler.vmi.world import (
    Action,
    Destroy,
    DestroyOrphan,
    Launcher,
    PrepareNetwork,
    Resume,
    ShutDown,
    StartDomain,
    World,
)

SHUTDOWN_AGAIN_SECONDS = 5.0
"""Some guests miss the power button while they boot."""
DESTROY_AGAIN_SECONDS = 10.0
RESUME_SECONDS = 10.0
"""A guest paused by an I/O error tries again this often."""
ORPHAN_SECONDS = 60.0


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    vmi = world.vmi
    if vmi is None:
        return _without_vmi(world)
    launcher = world.launcher
    if launcher is None or vmi.status.node_name not in ("", world.node):
        return Plan()
    if isinstance(judge(launcher, vmi.metadata.uid), Alive):
        return _while_alive(world, vmi, launcher)
    return _before_start(world, vmi, launcher)


def refuse_start(vmi: VirtualMachineInstance, node: str, launcher: Launcher) -> str | None:
    """Say why this VMI, as the API server has it now, does not allow a start in this Pod; None when it does."""
    owner = launcher.pod.owner
    reasons = {
        "the Pod belongs to another VMI": owner is None or owner.uid != vmi.metadata.uid,
        "the VMI is being deleted": vmi.metadata.deletion_timestamp is not None,
        f"its phase is {vmi.status.phase or 'unset'}": vmi.status.phase != SCHEDULED,
        "it was handed to another node": vmi.status.node_name != node,
        "it was granted to another Pod": set(vmi.status.active_pods) != {launcher.pod.uid},
        "the Pod is going": launcher.is_gone or launcher.pod.is_deleting or launcher.pod.is_over,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def _before_start(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    sighting, uid = launcher.sighting, launcher.pod.uid
    is_wanted = vmi.metadata.deletion_timestamp is None and not is_final(vmi.status.phase)
    if not is_wanted or launcher.is_gone or launcher.pod.is_over:
        return Plan()
    if not is_startable(sighting):
        waited = seconds_since_hand_over(world)
        left = 0.0 if waited is None else PATIENCE_SECONDS - waited
        return Plan(look_again_in=left if left > 0 else None)
    prepare: tuple[Action, ...] = (
        () if sighting.is_network_ready else (PrepareNetwork(uid, because="its launcher is up"),)
    )
    if refuse_start(vmi, world.node, launcher) is not None:
        return Plan(prepare)
    return Plan((*prepare, StartDomain(uid, because="it was handed to this Pod and has no domain")))


def _while_alive(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    uid, sighting = launcher.pod.uid, launcher.sighting
    if is_final(vmi.status.phase):
        return _end_now(launcher, "its run is over")
    if launcher.is_gone:
        # A Pod that goes in the ordinary way is there until its containers are dead.
        return _end_now(launcher, "its Pod was removed by force")
    if world.deleting_since is not None:
        return _end(world, vmi, launcher, world.deleting_since)
    if vmi.status.phase == SCHEDULED and not sighting.is_network_ready:
        return Plan((PrepareNetwork(uid, because="its addresses are not known"),))  # started before a restart
    if sighting.state is not None and (sighting.state.life, sighting.state.reason) == (Life.PAUSED, "ioerror"):
        return _resume(world, launcher)
    return Plan()


def _end(world: World, vmi: VirtualMachineInstance, launcher: Launcher, since: float) -> Plan[Action]:
    """Ask the guest, again now and then, and end it when its grace period is over.

    The period is counted from when this process saw the deletion: clocks of other machines do not matter. A restart
    of this process begins it anew; the launcher, which got the kubelet's SIGTERM, counts on its own.
    """
    uid, asked = launcher.pod.uid, launcher.sighting.shutdown_asked_at
    left = vmi.spec.grace_period_seconds - (world.monotonic - since)
    if left <= 0:
        return _end_now(launcher, "its grace period is over")
    next_in = 0.0 if asked is None else SHUTDOWN_AGAIN_SECONDS - (world.monotonic - asked)
    if next_in > 0:
        return Plan(look_again_in=min(next_in, left))
    return Plan((ShutDown(uid, because="its VMI is deleted"),), look_again_in=min(SHUTDOWN_AGAIN_SECONDS, left))


def _end_now(launcher: Launcher, because: str) -> Plan[Action]:
    return Plan((Destroy(launcher.pod.uid, because=because),), look_again_in=DESTROY_AGAIN_SECONDS)


def _resume(world: World, launcher: Launcher) -> Plan[Action]:
    asked = launcher.sighting.resume_asked_at
    if asked is not None and (waited := world.monotonic - asked) < RESUME_SECONDS:
        return Plan(look_again_in=RESUME_SECONDS - waited)
    action = Resume(launcher.pod.uid, because="it was paused by an I/O error, which may be over")
    return Plan((action,), look_again_in=RESUME_SECONDS)


def _without_vmi(world: World) -> Plan[Action]:
    alive = [
        one for one in world.launchers if one.pod.owner is not None and isinstance(judge(one, one.pod.owner.uid), Alive)
    ]
    if not alive or world.orphaned_since is None:
        return Plan()
    left = ORPHAN_SECONDS - (world.monotonic - world.orphaned_since)
    if left > 0:
        return Plan(look_again_in=left)
    ends = tuple(
        DestroyOrphan(one.pod.uid, one.pod.owner.uid, because="no VMI of its UID is known here")
        for one in alive
        if one.pod.owner is not None
    )
    return Plan(ends, look_again_in=ORPHAN_SECONDS)
