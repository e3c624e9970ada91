# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The conditions of a VMI that its virt-handler writes. Pure."""

from __future__ import annotations

from kubevirt_api import condition_types

from controlplane.api.objects import conditions
from controlplane.api.objects.meta import Condition
from controlplane.api.objects.migration_state import PAUSED_FOR_MIGRATION_MESSAGE
from controlplane.api.objects.phase import RUNNING, SCHEDULED
from controlplane.api.objects.pod import reason_word, sanitize
from controlplane.api.objects.readiness import readiness
from controlplane.api.objects.vmi.instance import VirtualMachineInstance, VirtualMachineInstanceStatus
from controlplane.api.timestamps import format_timestamp, read_timestamp
from controlplane.domain.migratable import find_obstacle
from controlplane.domain.state import Life
from controlplane.engine.plan import RefusedStep
from controlplane.virt_handler.vmi import agent_status
from controlplane.virt_handler.vmi import io_error_resume as resume
from controlplane.virt_handler.vmi.events import PAUSED_IO_ERROR
from controlplane.virt_handler.vmi.liveness import Alive, Dead, Liveness, Unknown, is_startable, missing_pod
from controlplane.virt_handler.vmi.migration_source import has_arrived_paused, is_stopped_to_send
from controlplane.virt_handler.vmi.user_requests import is_paused_by_user
from controlplane.virt_handler.vmi.world import Action, NodeTrouble, PrepareNetwork, StartDomain, World

TCG_MESSAGE = "QEMU emulates the processor (TCG): slow, and not an isolation boundary"
REPORT_AFTER_SECONDS = 30.0
"""After this time the VMI reports what its start waits for. A launcher connects half a second after the hand-over."""
VIRT_NODE_NOT_READY = "VirtNodeNotReady"
_PAUSE_MESSAGES = {
    condition_types.PAUSED_BY_MONITOR: PAUSED_FOR_MIGRATION_MESSAGE,
    condition_types.PAUSED_BY_USER: "VMI was paused by user",
    PAUSED_IO_ERROR: "VMI was paused, low-level IO error detected",
}


def derive_conditions(
    world: World,
    vmi: VirtualMachineInstance,
    new: VirtualMachineInstanceStatus,
    liveness: Liveness,
    problem: RefusedStep[Action] | None,
) -> conditions.Conditions:
    """Derive all conditions. new: the status without them. problem: the step that was refused, if any."""
    stamp = format_timestamp(world.now)
    listed = new.conditions
    stale = _stale(world, liveness, listed)
    paused = _paused(world, liveness) or _still_paused(world, new, liveness)
    for kind, condition in (
        (condition_types.SOFTWARE_EMULATION, _emulation(world, liveness)),
        (condition_types.LIVE_MIGRATABLE, _migratable(vmi, liveness)),
        (condition_types.PAUSED, paused),
        (
            condition_types.SYNCHRONIZED,
            _trouble(world, liveness, problem) or _waiting(world, liveness) or _lost(world, new, liveness),
        ),
        (condition_types.READY, _ready(world, new, is_paused=paused is not None)),
    ):
        if condition is not None:
            listed = conditions.put(listed, condition, stamp)
        elif kind in stale:
            listed = conditions.remove(listed, kind)
    return _with_agent(world, new, liveness, listed)


def _with_agent(
    world: World, new: VirtualMachineInstanceStatus, liveness: Liveness, listed: conditions.Conditions
) -> conditions.Conditions:
    """Set the agent's conditions. They stay while its state is unknown, and are removed when the run is over."""
    agent = None if world.launcher is None else world.launcher.status.agent
    if not isinstance(liveness, Dead) and (not isinstance(liveness, Alive) or agent is None or new.phase != RUNNING):
        return listed
    reported = agent_status.agent_conditions(new, agent) if isinstance(liveness, Alive) and agent is not None else ()
    true_by_type = {condition.type: condition for condition in reported}
    for kind in agent_status.KINDS:
        listed = (
            conditions.put(listed, true_by_type[kind], format_timestamp(world.now))
            if kind in true_by_type
            else conditions.remove(listed, kind)
        )
    return listed


def _ready(world: World, new: VirtualMachineInstanceStatus, *, is_paused: bool) -> Condition | None:
    """Set Ready together with a new phase, as virt-controller would right after it: this saves a write."""
    vmi, pod = world.vmi, None if world.launcher is None else world.launcher.pod
    if vmi is None or new.phase == vmi.status.phase:
        return None
    is_deleting = vmi.metadata.deletion_timestamp is not None
    ready = readiness(new.phase, pod, is_paused=is_paused, is_deleting=is_deleting)
    is_news = ready.status == "True" or ready.reason == condition_types.PAUSED
    return ready if is_news or conditions.is_true(vmi.status.conditions, ready.type) else None


def _emulation(world: World, liveness: Liveness) -> Condition | None:
    launcher = world.launcher
    observed = None if launcher is None else launcher.status.observed
    if not isinstance(liveness, Alive) or observed is None or observed.is_kvm:
        return None
    return Condition(type=condition_types.SOFTWARE_EMULATION, status="True", reason="NoKvmDevice", message=TCG_MESSAGE)


def _migratable(vmi: VirtualMachineInstance, liveness: Liveness) -> Condition | None:
    if not isinstance(liveness, Alive):
        return None
    obstacle = find_obstacle(vmi)
    if obstacle is None:
        return Condition(type=condition_types.LIVE_MIGRATABLE, status="True")
    return Condition(
        type=condition_types.LIVE_MIGRATABLE, status="False", reason=obstacle.reason, message=sanitize(obstacle.message)
    )


def _paused(world: World, liveness: Liveness) -> Condition | None:
    if not isinstance(liveness, Alive) or liveness.state.life is not Life.PAUSED or world.launcher is None:
        return None
    if has_arrived_paused(world.vmi, world.launcher.status):
        return None
    if is_paused_by_user(world.vmi, world.launcher.status):
        reason = condition_types.PAUSED_BY_USER
    elif is_stopped_to_send(world.vmi, world.launcher.status):
        reason = condition_types.PAUSED_BY_MONITOR
    elif liveness.state.reason == "ioerror":
        reason = PAUSED_IO_ERROR
    else:
        return None
    return Condition(type=condition_types.PAUSED, status="True", reason=reason, message=_PAUSE_MESSAGES[reason])


def _still_paused(world: World, new: VirtualMachineInstanceStatus, liveness: Liveness) -> Condition | None:
    """Keep the I/O error pause until the guest has run for a while: otherwise each resume would cost two writes."""
    paused, launcher = conditions.find(new.conditions, condition_types.PAUSED), world.launcher
    if paused is None or paused.reason != PAUSED_IO_ERROR or launcher is None or not isinstance(liveness, Alive):
        return None
    is_on_trial = resume.seconds_on_trial(launcher.status, world.monotonic) > 0
    return paused if is_on_trial and liveness.state.life is not Life.PAUSED else None


def _trouble(world: World, liveness: Liveness, problem: RefusedStep[Action] | None) -> Condition | None:
    """Return why the run failed, or why its start makes no progress."""
    match liveness:
        case Dead(outcome="Failed", reason=reason, message=message):
            return _out_of_sync(reason, message)
        case Alive() if world.launcher is not None and world.launcher.status.network_trouble:
            return _out_of_sync("NetworkNotReady", world.launcher.status.network_trouble)
    failed_operation = None if world.launcher is None else world.launcher.failed_operation
    if problem is not None and isinstance(problem.step, StartDomain | PrepareNetwork):
        return _out_of_sync("StartFailed", str(problem.error))
    if (
        failed_operation is not None
        and failed_operation.is_refusal
        and not isinstance(liveness, Alive)
        and failed_operation.message
    ):
        return _out_of_sync("StartFailed", failed_operation.message)
    return None


def _out_of_sync(reason: str, message: str) -> Condition:
    """Return a false Synchronized condition. The message can be QEMU's, a launcher's or a kubelet's: it is bounded."""
    return Condition(
        type=condition_types.SYNCHRONIZED, status="False", reason=reason_word(reason), message=sanitize(message)
    )


def seconds_since_hand_over(world: World) -> float | None:
    """Return how long a VMI has been Scheduled; None in another phase. It compares two clocks: for messages only."""
    vmi = world.vmi
    if vmi is None or vmi.status.phase != SCHEDULED:
        return None
    stamps = [
        transition.phase_transition_timestamp
        for transition in vmi.status.phase_transition_timestamps
        if transition.phase == SCHEDULED
    ]
    entered = read_timestamp(stamps[-1]) if stamps else None
    return None if entered is None else world.now - entered


def _waiting(world: World, liveness: Liveness) -> Condition | None:
    waited, launcher = seconds_since_hand_over(world), world.launcher
    if not isinstance(liveness, Unknown) or waited is None or waited < REPORT_AFTER_SECONDS:
        return None
    if world.node_trouble is not None:
        return _out_of_sync(VIRT_NODE_NOT_READY, f"waiting for virt-node on {world.node}: {world.node_trouble.why}")
    if launcher is None:
        return None
    if world.start_blocked_reason and is_startable(launcher.status) and not launcher.operation:
        return _out_of_sync("NodeNotClear", f"waiting for {world.node}: {world.start_blocked_reason}")
    message = f"waiting for libvirt in the launcher Pod: {launcher.status.trouble or liveness.why}"
    return _out_of_sync("LauncherNotReady", message)


def lasting_node_trouble(world: World) -> NodeTrouble | None:
    """Return virt-node's trouble if it lasts. At each roll-out, virt-node is unreachable for a moment."""
    trouble = world.node_trouble
    return trouble if trouble is not None and world.monotonic - trouble.since >= REPORT_AFTER_SECONDS else None


def _stale(world: World, liveness: Liveness, listed: conditions.Conditions) -> tuple[str, ...]:
    """Return the conditions to remove if nothing else sets them."""
    if isinstance(liveness, Alive):
        return condition_types.PAUSED, condition_types.SYNCHRONIZED
    synchronized = conditions.find(listed, condition_types.SYNCHRONIZED)
    is_node_back = (
        synchronized is not None and synchronized.reason == VIRT_NODE_NOT_READY and world.node_trouble is None
    )
    return (condition_types.SYNCHRONIZED,) if is_node_back or isinstance(liveness, Dead) else ()


def _lost(world: World, new: VirtualMachineInstanceStatus, liveness: Liveness) -> Condition | None:
    """Report an unlisted launcher, unless the VMI already reports another trouble.

    One search is not enough: the watch of Pods may only be behind the watch of VMIs.
    """
    synchronized = conditions.find(new.conditions, condition_types.SYNCHRONIZED)
    is_reported = synchronized is not None and synchronized.reason not in (
        VIRT_NODE_NOT_READY,
        condition_types.VIRT_HANDLER_SILENT,
    )
    if not isinstance(liveness, Unknown) or is_reported:
        return None
    if missing_pod(world) and (trouble := lasting_node_trouble(world)) is not None:
        return _out_of_sync(
            VIRT_NODE_NOT_READY, f"{liveness.why}, and virt-handler cannot search for it: {trouble.why}"
        )
    is_early = world.look is None or world.look.count < 2
    if not world.lost_pod or is_early:
        return None
    message = f"{liveness.why}; the guest counts as running until the node has no trace of it"
    return _out_of_sync("LauncherLost", message)
