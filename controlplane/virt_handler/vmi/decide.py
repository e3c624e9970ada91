# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What to do about a VMI of this node. Pure.

A guest never runs twice: a domain starts only in the Pod that the API server's newest VMI grants the run, and only if
no domain ever ran there. A launcher carries out one operation at a time.
A guest is ended only for a cause that is in an object (deletion, the end of the run, a Pod removed by force), and only
over a working connection. The table BY_PHASE maps each phase to its steps.
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
)
from controlplane.virt_handler.vmi.status_conditions import (
    REPORT_AFTER_SECONDS,
    lasting_node_trouble,
    seconds_since_hand_over,
)
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
"""First pause before a failed start or network setup is retried (FailedOperation.seconds_left)."""
ORPHAN_SECONDS = 60.0
BLOCKED_SECONDS = 15.0
"""Pause between reconciles while a start waits for the node to be clear."""
_POSSIBLE_WHILE_BUSY = (WriteStatus, IndependentActions, LookForLauncher, Dial, ReadVmi)
"""Actions that are possible while the launcher is busy."""
UNKNOWN_SECONDS = 10.0
"""Pause between reconciles while the node's Pods cannot be listed: nothing enqueues the VMI when they are listed."""
LOOK_SECONDS = (1.0, 2.0, 4.0, 8.0, 15.0)
"""Pauses between searches for a launcher that is not listed: no watch shows when the kubelet has removed it."""


def decide(world: World) -> Plan[Action]:
    """Choose the next step."""
    plan = _decide(world)
    if not world.are_launchers_known:
        plan = Plan(plan.steps, min(UNKNOWN_SECONDS, plan.requeue_after or UNKNOWN_SECONDS))
    busy = {launcher.pod.uid for launcher in world.launchers if launcher.operation}
    steps = tuple(step for step in plan.steps if isinstance(step, _POSSIBLE_WHILE_BUSY) or step.pod_uid not in busy)
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
    """Return why this VMI does not allow a start in this Pod; None if it does. vmi: just read from the API server."""
    owner = launcher.pod.owner
    reasons = {
        "the Pod belongs to another VMI": owner is None or owner.uid != vmi.metadata.uid,
        "the VMI is being deleted": vmi.metadata.deletion_timestamp is not None,
        f"its phase is {vmi.status.phase or 'unset'}": vmi.status.phase != SCHEDULED,
        "it was handed to another node": vmi.status.node_name != node,
        "it was granted to another Pod": set(vmi.status.active_pods) != {launcher.pod.uid},
        "the Pod is or will be deleted": launcher.is_gone or launcher.pod.is_deleting or launcher.pod.is_over,
    }
    return next((reason for reason, applies in reasons.items() if applies), None)


def _dial(world: World, vmi: VirtualMachineInstance) -> tuple[Action, ...]:
    """Connect only to the Pod that has the grant: any user can create a Pod that looks like a launcher."""
    launcher = world.launcher
    if launcher is None or launcher.status.is_admitted or launcher.pod.is_over:
        return ()
    is_granted = vmi.status.active_pods.get(launcher.pod.uid) == world.node
    return (Dial(launcher.pod.uid, because="its VMI grants it the run"),) if is_granted else ()


def _nothing(_unused: World, __: VirtualMachineInstance) -> Plan[Action]:
    return Plan()


def _scheduled(world: World, vmi: VirtualMachineInstance) -> Plan[Action]:
    """Start the guest, unless it runs already."""
    launcher, liveness = world.launcher, judge_run(world)
    if launcher is not None and isinstance(liveness, Alive):
        if _lacks_network(world, launcher):
            return _prepare(world, launcher, "its addresses are unknown")
        return _while_alive(world, vmi, launcher, liveness)
    if missing_pod(world):
        return _look(world, liveness)
    return Plan() if launcher is None else _before_start(world, vmi, launcher)


def _running(world: World, vmi: VirtualMachineInstance) -> Plan[Action]:
    """Keep the guest running until it has to end.

    A restarted virt-handler prepares the network once: the rules may be lost, or an older version wrote them.
    """
    launcher, liveness = world.launcher, judge_run(world)
    if launcher is not None and isinstance(liveness, Alive):
        plan = _while_alive(world, vmi, launcher, liveness)
        has_interface = bool(vmi.spec.domain.devices.interfaces)
        if plan.steps or not has_interface or not _lacks_network(world, launcher):
            return plan
        prepare = _prepare(world, launcher, "this process has not set up its network")
        pauses = [choice.requeue_after for choice in (plan, prepare) if choice.requeue_after is not None]
        return Plan(prepare.steps, min(pauses, default=None))
    return _look(world, liveness) if missing_pod(world) else Plan()


def _after_run(world: World, _unused: VirtualMachineInstance) -> Plan[Action]:
    """End a guest that still runs after the end of the run."""
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
    SUCCEEDED: _after_run,
    FAILED: _after_run,
}
"""All phases. In an unknown phase, virt-handler does nothing and writes nothing."""


def _look(world: World, liveness: Liveness) -> Plan[Action]:
    """Search the node for an unlisted launcher, until its directory and processes are gone."""
    if not isinstance(liveness, Unknown):
        return Plan()
    if lasting_node_trouble(world) is not None:
        return Plan(requeue_after=LOOK_SECONDS[0])  # the VMI reports the trouble instead
    pause = 0.0
    if world.look is not None:
        interval = LOOK_SECONDS[min(world.look.count, len(LOOK_SECONDS)) - 1]
        pause = interval - (world.monotonic - world.look.at)
    if pause > 0:
        return Plan(requeue_after=pause)
    because = "its Pod is not listed on this node any more" if world.lost_pod else "libvirt lost its domain"
    return Plan((LookForLauncher(missing_pod(world), because=because),), requeue_after=LOOK_SECONDS[0])


def _before_start(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    status, uid = launcher.status, launcher.pod.uid
    if vmi.metadata.deletion_timestamp is not None or launcher.is_gone or launcher.pod.is_over:
        return Plan()
    is_up_without_network = status.is_here and status.failure is None and not status.is_network_ready
    if not (is_startable(status) or is_up_without_network):
        return _wait_for_contact(world)
    if (pause := _pause(world, launcher)) > 0:
        return Plan(requeue_after=pause)
    if not status.is_network_ready:  # also while virt-handler is connecting
        return Plan((PrepareNetwork(uid, because="its launcher is up"),))
    return _start(world, vmi, launcher)


def _start(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    if refuse_start(vmi, world.node, launcher) is not None:
        return Plan()
    if world.start_blocked_reason:  # the end of the recovery enqueues all VMIs, as the end of an operation does
        return Plan(requeue_after=None if launcher.operation else BLOCKED_SECONDS)
    return Plan((StartDomain(launcher.pod.uid, because="it was handed to this Pod and has no domain"),))


def _lacks_network(world: World, launcher: Launcher) -> bool:
    return not launcher.status.is_network_ready and not launcher.is_gone and world.deleting_since is None


def _prepare(world: World, launcher: Launcher, because: str) -> Plan[Action]:
    if (pause := _pause(world, launcher)) > 0:
        return Plan(requeue_after=pause)
    return Plan((PrepareNetwork(launcher.pod.uid, because=because),))


def _wait_for_contact(world: World) -> Plan[Action]:
    """Reconcile again after REPORT_AFTER_SECONDS, to report what the start waits for, and regularly after that."""
    if (waited := seconds_since_hand_over(world)) is None:
        return Plan()
    remaining = REPORT_AFTER_SECONDS - waited
    return Plan(requeue_after=remaining if remaining > 0 else REPORT_AFTER_SECONDS)


def _pause(world: World, launcher: Launcher) -> float:
    """Return the seconds to wait after a failed operation."""
    failed_operation = launcher.failed_operation
    return 0.0 if failed_operation is None else failed_operation.seconds_left(world.monotonic, AGAIN_SECONDS)


def _while_alive(world: World, vmi: VirtualMachineInstance, launcher: Launcher, liveness: Alive) -> Plan[Action]:
    if launcher.is_gone:
        # After an ordinary deletion the Pod exists until its containers have ended.
        return _destroy_with_pause(
            world, launcher, DestroyRemoved(launcher.pod.uid, because="its Pod was removed by force")
        )
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
        return PlugCpus(launcher.pod.uid, count, because="its Pod has the resources for them")
    if (requested := missing_memory(vmi, launcher)) is not None:
        return PlugMemory(launcher.pod.uid, requested, because="its Pod has the resources for it")
    return None


def _leave(world: World, vmi: VirtualMachineInstance, launcher: Launcher, liveness: Alive) -> Plan[Action] | None:
    """Take the next step of a migration; resume a guest that the migration left paused, after growing pauses."""
    transfer = launcher.status.transfer
    has_left = transfer is not None and transfer.has_moved  # libvirt may still report the guest as paused here
    if has_arrived_paused(vmi, launcher.status) and not has_left:
        plan: Plan[Action] | None = Plan((Resume(launcher.pod.uid, because="it arrived by its migration"),))
    else:
        is_to_end = world.deleting_since is not None
        plan = decide_migration_source(
            Seen(vmi=vmi, launcher=launcher, state=liveness.state, is_to_end=is_to_end, monotonic=world.monotonic)
        )
    is_begun = plan is not None and any(isinstance(step, BeginTransfer) for step in plan.steps)
    if is_begun and is_paused_by_user(vmi, launcher.status) is not vmi.is_user_pause_reported:
        return None  # only the VMI tells the target of a user's pause: write the status first
    is_resumed = plan is not None and any(isinstance(step, Resume) for step in plan.steps)
    return Plan(requeue_after=pause) if is_resumed and (pause := _pause(world, launcher)) > 0 else plan


def _end(world: World, vmi: VirtualMachineInstance, launcher: Launcher) -> Plan[Action]:
    """Ask the guest to shut down, repeat it, and end the guest when its grace period is over.

    The period starts when this process observes the deletion, so clocks of other machines do not matter. It starts
    again when this process restarts. The launcher, which got the kubelet's SIGTERM, measures its own period.
    """
    uid, asked_at = launcher.pod.uid, launcher.status.shutdown_asked_at
    since = world.monotonic if world.deleting_since is None else world.deleting_since
    remaining = vmi.spec.grace_period_seconds - (world.monotonic - since)
    if remaining <= 0:
        return _end_now(world, launcher, "its grace period is over")
    next_in = 0.0 if asked_at is None else POWER_BUTTON_SECONDS - (world.monotonic - asked_at)
    if next_in > 0:
        return Plan(requeue_after=min(next_in, remaining))
    return Plan((ShutDown(uid, because="its VMI is deleted"),), requeue_after=min(POWER_BUTTON_SECONDS, remaining))


def _end_now(world: World, launcher: Launcher, because: str) -> Plan[Action]:
    return _destroy_with_pause(world, launcher, Destroy(launcher.pod.uid, because=because))


def _destroy_with_pause(world: World, launcher: Launcher, action: Action) -> Plan[Action]:
    """Ask libvirt to end a guest, at most every DESTROY_AGAIN_SECONDS: the end of each request enqueues the VMI."""
    asked_at = launcher.status.destroy_asked_at
    pause = 0.0 if asked_at is None else DESTROY_AGAIN_SECONDS - (world.monotonic - asked_at)
    return Plan(requeue_after=pause) if pause > 0 else Plan((action,), requeue_after=DESTROY_AGAIN_SECONDS)


def _with_io_errors(world: World, launcher: Launcher, liveness: Alive) -> Plan[Action]:
    """Resume a guest that an I/O error paused, after growing pauses. A pause for another reason stays."""
    wait = resume.seconds_until_next(launcher.status, world.monotonic)
    if is_paused_by_user(world.vmi, launcher.status):
        return Plan()
    if (liveness.state.life, liveness.state.reason) != (Life.PAUSED, "ioerror"):
        trial = resume.seconds_on_trial(launcher.status, world.monotonic)
        return Plan(requeue_after=trial if trial > 0 else None)
    if wait > 0:
        return Plan(requeue_after=wait)
    action = Resume(launcher.pod.uid, because="it was paused by an I/O error, which may be over")
    return Plan((action,), requeue_after=resume.FIRST_SECONDS)


def _without_vmi(world: World) -> Plan[Action]:
    """Prepare an expected launcher, and end guests whose VMI does not exist."""
    alive = [
        launcher
        for launcher in world.launchers
        if launcher.pod.owner is not None and isinstance(judge(launcher, launcher.pod.owner.uid), Alive)
    ]
    if not alive:
        return _expect(world)
    if world.orphaned_since is None:
        return Plan()
    remaining = ORPHAN_SECONDS - (world.monotonic - world.orphaned_since)
    if remaining > 0:
        return Plan(requeue_after=remaining)
    ends = tuple(
        DestroyOrphan(launcher.pod.uid, launcher.pod.owner.uid, because="this node has no VMI of its UID")
        for launcher in alive
        if launcher.pod.owner is not None
    )
    return Plan(ends, requeue_after=ORPHAN_SECONDS)


def _expect(world: World) -> Plan[Action]:
    """Prepare a start as far as that needs no grant, for the only Pod that may get the grant.

    With two Pods it is unknown which one gets the guest: neither gets a network.
    """
    candidates = [
        candidate
        for candidate in world.launchers
        if not (candidate.is_gone or candidate.pod.is_over or candidate.pod.is_deleting)
    ]
    if len(candidates) != 1:
        return Plan()
    (launcher,) = candidates
    uid, vmi = launcher.pod.uid, None if launcher.expected is None else launcher.expected.vmi
    if launcher.expected is None:
        return Plan((ReadVmi(uid, because="its launcher exists before the hand-over"),))
    is_wanted = vmi is not None and vmi.metadata.deletion_timestamp is None and _may_get_guest(vmi, launcher)
    status = launcher.status
    if not is_wanted or status.is_network_ready or not status.is_here or status.failure is not None:
        return Plan()
    return _prepare(world, launcher, "its launcher is up")


def _may_get_guest(vmi: VirtualMachineInstance, launcher: Launcher) -> bool:
    """Tell whether this Pod may get the guest: no node has it yet, or it migrates here."""
    if vmi.status.phase in BEFORE_HAND_OVER:
        return True
    return vmi.status.phase == RUNNING and MIGRATION_JOB in launcher.pod.metadata.labels
