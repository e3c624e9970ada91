# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a run that did not begin on its node is tried again, with a further Pod: pure.

Before the grant only: nothing was started in such a Pod, so what becomes of it says nothing of a guest. The failure is
written first, with the attempt's number; the Pod is deleted then, and the next is made when it is known to be gone.
What is the machine's own fault (its disks, its images, its Secrets) fails, or waits, as it would anywhere.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import DOMAIN, FURTHER_ATTEMPTS

from controlplane.api.launch_plan import PLAN_ANNOTATION
from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.pod import Failure, Pod, find_end_failure, find_start_failure, sanitize
from controlplane.api.objects.start_limits import read_limit
from controlplane.api.objects.vmi.instance import FailedAttempt, VirtualMachineInstanceStatus
from controlplane.domain.volumes.kind import Mounted
from controlplane.domain.volumes.registry import volumes_in_pod
from controlplane.virt_controller.vmi.run_timeout import find_timeout, has_sandbox, names_time
from controlplane.virt_controller.vmi.world import World, lacks_launcher_image

REFUSED = frozenset(
    {"UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError", "NodeShutdown", "Terminated", "Evicted"}
)
"""Reasons with which a kubelet ends a Pod before its containers, or for its node's sake."""
OUT_OF = "OutOf"
"""Begins such a reason, too: the node has not enough of something."""
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of a container that the runtime could not start: a device that is not there, a fault of the runtime."""
DEVICES_FAILED = "UnexpectedAdmissionError"
"""A device plugin did not give what it had offered."""
OURS = frozenset({DOMAIN, PLAN_ANNOTATION, "kubectl.kubernetes.io/default-container", "kubevirt.io/kept-from-nodes"})
"""Annotations of every launcher Pod; others may be a user's, and may be what a sandbox is not made for."""
FROM_NODE = frozenset({"name", "image", "emptyDir"})
"""Kinds of a Pod's volumes that nothing but its node has to give; an image comes after the sandbox."""
MESSAGE_LENGTH = 256


class FailedStart(NamedTuple):
    """A Pod of which no start will come."""

    trouble: Failure
    is_nodes: bool
    """Nobody else than the node can be the cause, whatever a tenant does: it counts for quarantine."""


def max_further_attempts(world: World) -> int:
    """Return how many may follow the first one."""
    try:
        own = read_limit(world.vmi.metadata.annotations, FURTHER_ATTEMPTS)
    except ValueError:  # admission was not asked
        own = None
    return world.configuration.further_attempts if own is None else own


def find_retriable_failure(world: World) -> FailedStart | None:
    """Say what the current attempt has failed of, if another one is to follow."""
    if len(world.vmi.status.failed_attempts) >= max_further_attempts(world):
        return None
    return _find_setback(world)


def _find_setback(world: World) -> FailedStart | None:
    pod = world.source
    if pod is None or not pod.spec.node_name or pod.is_deleting or world.is_deleting or world.is_granted:
        return None
    if world.vmi.status.phase not in BEFORE_HAND_OVER or world.vmi.status.attempt == 0:
        return None
    ended = pod.compute.terminated
    if pod.is_over or ended is not None:
        return _refused(pod)
    if lacks_launcher_image(pod):
        return FailedStart(find_start_failure(pod) or Failure("ErrImagePull", ""), _is_pull_unspoilt(world, pod))
    timeout = find_timeout(world)
    return None if timeout is None else FailedStart(timeout, _is_sandbox_unspoilt(pod, world))


def _refused(pod: Pod) -> FailedStart | None:
    """Judge a Pod that has ended: was it its node, or what the launcher found in it?"""
    ended, reason = pod.compute.terminated, pod.status.reason
    if ended is not None:
        if ended.reason not in NOT_STARTED:
            return None
        return FailedStart(
            Failure(ended.reason, sanitize(ended.message) or "the container could not be started"), False
        )
    if reason in REFUSED or reason.startswith(OUT_OF):
        return FailedStart(find_end_failure(pod), reason == DEVICES_FAILED)
    return None


def _is_pull_unspoilt(world: World, pod: Pod) -> bool:
    """Tell whether no user can have made the launcher's image impossible to pull.

    A credential of the Pod's own that is wrong does it, as does that image asked for as a disk, by other rules.
    """
    disks = {mounted.volume["image"]["reference"] for mounted in _mounted(world) if "image" in mounted.volume}
    return not pod.spec.image_pull_secrets and pod.launcher_image not in disks


def _is_sandbox_unspoilt(pod: Pod, world: World) -> bool:
    """Tell whether no user can have kept the Pod from its sandbox for as long as it was waited for.

    Whoever may take a Secret away and put it back, or hold a disk elsewhere, makes a Pod fail here and come up there;
    so does who names a time in which no node is done that is kept busy for a moment.
    """
    is_plain = not names_time(world) and all(set(mounted.volume) <= FROM_NODE for mounted in _mounted(world))
    return is_plain and not has_sandbox(pod) and not set(pod.metadata.annotations) - OURS and _says_nothing(pod)


def _says_nothing(pod: Pod) -> bool:
    return pod.compute.waiting is None or pod.compute.waiting.reason in ("", "ContainerCreating", "PodInitializing")


def _mounted(world: World) -> list[Mounted]:
    return [mounted for volume in volumes_in_pod(world.vmi.spec) for mounted in volume.mounted]


def record_failed_attempt(
    world: World, setback: FailedStart, status: VirtualMachineInstanceStatus
) -> VirtualMachineInstanceStatus:
    """Record what failed, and the attempt that follows."""
    node = world.source.spec.node_name if world.source is not None else ""
    failed = FailedAttempt(
        attempt=world.attempt,
        node_name=node,
        reason=setback.trouble.reason,
        message=sanitize(setback.trouble.message)[:MESSAGE_LENGTH],
        node_fault=setback.is_nodes,
    )
    return msgspec.structs.replace(status, attempt=world.attempt + 1, failed_attempts=(*status.failed_attempts, failed))


def explain_next_attempt(world: World, failed: tuple[FailedAttempt, ...]) -> Failure | None:
    """Say, while a further attempt is made, what became of the last one and what is tried now."""
    if not failed:
        return None
    last, count = failed[-1], max_further_attempts(world)
    left = max(count - len(failed), 0)
    return Failure(
        condition_types.FURTHER_ATTEMPT,
        f"attempt {last.attempt} failed on node {last.node_name}: {last.reason}: {last.message}; "
        f"attempt {last.attempt + 1} follows when its Pod is gone, on another node if one fits; {left} more may follow",
    )
