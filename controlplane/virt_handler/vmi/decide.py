# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VMI of this node: pure.

Never two: a domain is started only in the Pod that the API server's newest VMI grants, and only where none ever ran.
One verb at a time: while one is carried out in a launcher, nothing else is asked of it.
Never taken for dead: a guest is ended only for a cause that is in an object (deletion, the end of the run, a Pod
removed by force), and only over a working connection. Which phase leads where is one table, BY_PHASE.
"""

from __future__ import annotations

from collections.abc import Callable

from kubevirt_api.names import MIGRATION_JOB

from controlplane.api.objects.phase import (
    BEFORE_HAND_OVER,
    FAILED,
    PENDING,
    RUNNING,
    SCHEDULED,
    SCHEDULING,
    SUCCEEDED,
    UNKNOWN,
)
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.domain.state import POWER_BUTTON_SECONDS, Life
from controlplane.engine.plan import IndependentActions, Plan, WriteStatus
from controlplane.virt_handler.vmi import io_error_resume as resume
from controlplane.virt_handler.vmi.hotplug import missing_cpus, missing_memory
from controlplane.virt_handler.vmi.liveness import Alive, Liveness, Unknown, is_startable, judge, judge_run, missing_pod
from controlplane.virt_handler.vmi.migration_source import (
    Seen,
    decide_migration_source,
    has_arrived_paused,
    is_user_pause_reported,
)
from controlplane.virt_handler.vmi.status import PATIENCE_SECONDS, lasting_node_trouble, seconds_since_hand_over
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user
from controlplane.virt_handler.vmi.world import (
    Action,
    BeginTransfer,
    Destroy,
    DestroyOrphan,
    DestroyRemoved,
    Dial,
    Launcher,
    LookForLauncher,
    PlugCpus,
    PlugMemory,
    PrepareNetwork,
    ReadVmi,
    Resume,
    ShutDown,
    StartDomain,
    World,
)

DESTROY_AGAIN_SECONDS = 10.0
AGAIN_SECONDS = 0.05
"""A start or a network of which nothing came is tried again after so long at first (FailedOperation.seconds_left)."""
ORPHAN_SECONDS = 60.0
HELD_SECONDS = 15.0
"""Between looks at a start that waits for the node to be clear."""
_NO_VERBS = (WriteStatus, IndependentActions, LookForLauncher, Dial, ReadVmi)
"""Steps that wait for no launcher."""
UNKNOWN_SECONDS = 10.0
"""While the node's Pods cannot be listed: nobody tells when they can again."""
LOOK_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Between looks for a launcher that is not listed: nothing tells when the kubelet is done with it."""


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    plan = _decide(world)
    if not world.are_launchers_known:
        plan = Plan(plan.steps, min(UNKNOWN_SECONDS, plan.requeue_after or UNKNOWN_SECONDS))
    busy = {one.pod.uid for one in world.launchers if one.operation}
    steps = tuple(one for one in plan.steps if isinstance(one, _NO_VERBS) or one.pod_uid not in busy)
    return plan if steps == plan.steps else Plan(steps, plan.requeue_after)


def _decide(world: World) -> Plan[Action]:
    vmi = world.vmi
    if vmi is None:
        return _without_vmi(world)
    by_phase = BY_PHASE.get(vmi.status.phase)
    if by_phase is None:
        return Plan()
    plan = by_phase(world, vmi)
    return Plan((*_dial(world, vmi), *plan.steps), plan.requeue_after)


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


def _dial(world: World, vmi: VirtualMachineInstance) -> tuple[Action, ...]:
    """Make contact with the Pod that is granted the run and no other: whoever looks like a launcher may be none."""
    launcher = world.launcher
    if launcher is None or launcher.status.is_admitted or launcher.pod.is_over:
        return ()
    is_granted = vmi.status.active_pods.get(launcher.pod.uid) == world.node
    return (Dial(launcher.pod.uid, because="its VMI grants it the run"),) if is_granted else ()


def _nothing(_unused: World, __: VirtualMachineInstance) -> Plan[Action]:
    return Plan()


def _scheduled(world: World, vmi: VirtualMachineInstance) -> Plan[Action]:
    """Start it, if it is not on already."""
    launcher, liveness = world.launcher, judge_run(world)
    if launcher is not None and isinstance(liveness, Alive):
        if _lacks_network(world, launcher):
            return _prepare(world, launcher, "its addresses are not known")
        return _while_alive(world, vmi, launcher, liveness)
    if missing_pod(world):
        return _look(world, liveness)
    return Plan() if launcher is None else _before_start(world, vmi, launcher)


def _running(world: World, vmi: VirtualMachineInstance) -> Plan[Action]:
    """Keep it going until it is to end; what each virt-handler finds of its network may be lost, or of an older one."""
    launcher, liveness = world.launcher, judge_run(world)
    if launcher is not None and isinstance(liveness, Alive):
        plan = _while_alive(world, vmi, launcher, liveness)
        has_interface = bool(vmi.spec.domain.devices.interfaces)
        if plan.steps or not has_interface or not _lacks_network(world, launcher):
            return plan
        found = _prepare(world, launcher, "this process has not seen to its network")
        looks = [one.requeue_after for one in (plan, found) if one.requeue_after is not None]
        return Plan(found.steps, min(looks, default=None))
    return _look(world, liveness) if missing_pod(world) else Plan()


def _over(world: World, _unused: VirtualMachineInstance) -> Plan[Action]:
    """See that nothing of it goes on."""
    launcher = world.launcher
    if launcher is None or not isinstance(judge_run(world), Alive):
        return Plan()
    return _end_now(world, launcher, "its run is over")


BY_PHASE: dict[str, Callable[[World, VirtualMachineInstance], Plan[Action]]] = {
    "": _nothing,
    PENDING: _nothing,
    SCHEDULING: _nothing,
    SCHEDULED: _scheduled,
    RUNNING: _running,
    UNKNOWN: _running,
    SUCCEEDED: _over,
    FAILED: _over,
}
"""Every phase there is. About a phase that is not in here (of another version) nothing is done and nothing written."""


def _look(world: World, liveness: Liveness) -> Plan[Action]:
    """Look for a launcher that is not listed, until nothing of it is left."""
    if not isinstance(liveness, Unknown):
        return Plan()
    if lasting_node_trouble(world) is not None:
        return Plan(requeue_after=LOOK_SECONDS[0])  # so that the VMI says so; until then it is tried
    pause = 0.0
    if world.look is not None:
        due_in = LOOK_SECONDS[min(world.look.count, len(LOOK_SECONDS)) - 1]
        pause = due_in - (world.monotonic - world.look.at)
    if pause > 0:
        return Plan(requeue_after=pause)
    because = "its Pod is not listed on this node any more" if world.lost_pod else "libvirt lost its domain"
    return Plan((LookForLauncher(missing_pod(world), because=because),), requeue_after=LOOK_SECONDS[0])


def _before_start(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    status, uid = launcher.status, launcher.pod.uid
    if vmi.metadata.deletion_timestamp is not None or launcher.is_gone or launcher.pod.is_over:
        return Plan()
    if not is_startable(status):
        return _wait_for_contact(world)
    if (pause := _pause(world, launcher)) > 0:
        return Plan(requeue_after=pause)
    if not status.is_network_ready:
        return Plan((PrepareNetwork(uid, because="its launcher is up"),))
    return _start(world, vmi, launcher)


def _start(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    if refuse_start(vmi, world.node, launcher) is not None:
        return Plan()
    if world.held:  # its end wakes all, as that of a verb does
        return Plan(requeue_after=None if launcher.operation else HELD_SECONDS)
    return Plan((StartDomain(launcher.pod.uid, because="it was handed to this Pod and has no domain"),))


def _lacks_network(world: World, launcher: Launcher) -> bool:
    return not launcher.status.is_network_ready and not launcher.is_gone and world.deleting_since is None


def _prepare(world: World, launcher: Launcher, because: str) -> Plan[Action]:
    if (pause := _pause(world, launcher)) > 0:
        return Plan(requeue_after=pause)
    return Plan((PrepareNetwork(launcher.pod.uid, because=because),))


def _wait_for_contact(world: World) -> Plan[Action]:
    """Look when patience ends, to say what is waited for, and now and then after that: it may be something else."""
    if (waited := seconds_since_hand_over(world)) is None:
        return Plan()
    left = PATIENCE_SECONDS - waited
    return Plan(requeue_after=left if left > 0 else PATIENCE_SECONDS)


def _pause(world: World, launcher: Launcher) -> float:
    """Tell how long to wait after a verb of which nothing came."""
    failed_operation = launcher.failed_operation
    return 0.0 if failed_operation is None else failed_operation.seconds_left(world.monotonic, AGAIN_SECONDS)


def _while_alive(world: World, vmi: VirtualMachineInstance, launcher: Launcher, liveness: Alive) -> Plan[Action]:
    if launcher.is_gone:
        # A Pod that goes in the ordinary way is there until its containers are dead.
        return _paced(world, launcher, DestroyRemoved(launcher.pod.uid, because="its Pod was removed by force"))
    if vmi.status.phase == RUNNING and (leaving := _leave(world, vmi, launcher, liveness)) is not None:
        return leaving
    if world.deleting_since is not None:
        return _end(world, vmi, launcher)
    if vmi.status.phase == RUNNING and (plug := _plug(vmi, launcher)) is not None:
        if (pause := _pause(world, launcher)) > 0:
            return Plan(requeue_after=pause)
        return Plan((plug,))
    return _with_io_errors(world, launcher, liveness)


def _plug(vmi: VirtualMachineInstance, launcher: Launcher) -> PlugCpus | PlugMemory | None:
    if count := missing_cpus(vmi, launcher):
        return PlugCpus(launcher.pod.uid, count, because="it is in a Pod that was made for them")
    if (requested := missing_memory(vmi, launcher)) is not None:
        return PlugMemory(launcher.pod.uid, requested, because="it is in a Pod that was made for it")
    return None


def _leave(world: World, vmi: VirtualMachineInstance, launcher: Launcher, liveness: Alive) -> Plan[Action] | None:
    """Take the next step of a migration; a guest that it has left paused is let go on, ever less often."""
    if has_arrived_paused(vmi, launcher.status):
        plan: Plan[Action] | None = Plan((Resume(launcher.pod.uid, because="it has come here by its migration"),))
    else:
        is_to_end = world.deleting_since is not None
        plan = decide_migration_source(
            Seen(vmi=vmi, launcher=launcher, state=liveness.state, is_to_end=is_to_end, monotonic=world.monotonic)
        )
    is_begun = plan is not None and any(isinstance(one, BeginTransfer) for one in plan.steps)
    if is_begun and is_paused_by_user(vmi, launcher.status) is not is_user_pause_reported(vmi):
        return None  # whoever has the guest next knows of a person's pause by the VMI alone: first that is written
    is_resumed = plan is not None and any(isinstance(one, Resume) for one in plan.steps)
    return Plan(requeue_after=pause) if is_resumed and (pause := _pause(world, launcher)) > 0 else plan


def _end(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    """Ask the guest, again now and then, and end it when its grace period is over.

    The period is counted from when this process saw the deletion: clocks of other machines do not matter. A restart
    of this process begins it anew; the launcher, which got the kubelet's SIGTERM, counts on its own.
    """
    uid, asked = launcher.pod.uid, launcher.status.shutdown_asked_at
    since = world.monotonic if world.deleting_since is None else world.deleting_since
    left = vmi.spec.grace_period_seconds - (world.monotonic - since)
    if left <= 0:
        return _end_now(world, launcher, "its grace period is over")
    next_in = 0.0 if asked is None else POWER_BUTTON_SECONDS - (world.monotonic - asked)
    if next_in > 0:
        return Plan(requeue_after=min(next_in, left))
    return Plan((ShutDown(uid, because="its VMI is deleted"),), requeue_after=min(POWER_BUTTON_SECONDS, left))


def _end_now(world: World, launcher: Launcher, because: str) -> Plan[Action]:
    return _paced(world, launcher, Destroy(launcher.pod.uid, because=because))


def _paced(world: World, launcher: Launcher, action: Action) -> Plan[Action]:
    """Ask libvirt to end a guest now and then: whoever asks is woken by having asked."""
    asked = launcher.status.destroy_asked_at
    left = 0.0 if asked is None else DESTROY_AGAIN_SECONDS - (world.monotonic - asked)
    return Plan(requeue_after=left) if left > 0 else Plan((action,), requeue_after=DESTROY_AGAIN_SECONDS)


def _with_io_errors(world: World, launcher: Launcher, liveness: Alive) -> Plan[Action]:
    """Let a guest go on that was paused by an I/O error, ever less often; whoever else paused it has their reason."""
    wait = resume.seconds_until_next(launcher.status, world.monotonic)
    if is_paused_by_user(world.vmi, launcher.status):
        return Plan()
    if (liveness.state.life, liveness.state.reason) != (Life.PAUSED, "ioerror"):
        left = resume.seconds_on_trial(launcher.status, world.monotonic)
        return Plan(requeue_after=left if left > 0 else None)
    if wait > 0:
        return Plan(requeue_after=wait)
    action = Resume(launcher.pod.uid, because="it was paused by an I/O error, which may be over")
    return Plan((action,), requeue_after=resume.FIRST_SECONDS)


def _without_vmi(world: World) -> Plan[Action]:
    """Prepare what is expected, and end what nobody owns."""
    alive = [
        one for one in world.launchers if one.pod.owner is not None and isinstance(judge(one, one.pod.owner.uid), Alive)
    ]
    if not alive:
        return _expect(world)
    if world.orphaned_since is None:
        return Plan()
    left = ORPHAN_SECONDS - (world.monotonic - world.orphaned_since)
    if left > 0:
        return Plan(requeue_after=left)
    ends = tuple(
        DestroyOrphan(one.pod.uid, one.pod.owner.uid, because="no VMI of its UID is known here")
        for one in alive
        if one.pod.owner is not None
    )
    return Plan(ends, requeue_after=ORPHAN_SECONDS)


def _expect(world: World) -> Plan[Action]:
    """Take the steps towards a start that need no grant, for the only Pod that may get it."""
    staying = [one for one in world.launchers if not (one.is_gone or one.pod.is_over or one.pod.is_deleting)]
    if len(staying) != 1:
        return Plan()
    (launcher,) = staying
    uid, vmi = launcher.pod.uid, None if launcher.expected is None else launcher.expected.vmi
    if launcher.expected is None:
        return Plan((ReadVmi(uid, because="its launcher is here before it was handed over"),))
    is_wanted = vmi is not None and vmi.metadata.deletion_timestamp is None and _may_come(vmi, launcher)
    status = launcher.status
    if not is_wanted or status.is_network_ready or not status.is_here or status.failure is not None:
        return Plan()
    return _prepare(world, launcher, "its launcher is up")


def _may_come(vmi: VirtualMachineInstance, launcher: Launcher) -> bool:
    """Tell whether a guest may be given to this Pod: nobody has it yet, or it is to move here."""
    if vmi.status.phase in BEFORE_HAND_OVER:
        return True
    return vmi.status.phase == RUNNING and MIGRATION_JOB in launcher.pod.metadata.labels
