# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a start that failed on a node is followed by a further attempt, with another Pod: pure.

A further attempt is possible only before the grant: no guest was started in the Pod. The failure is recorded first,
with the attempt's number. Then the Pod is deleted. When the API server confirms that it is absent, the next Pod is
created. A failure that the machine causes itself (its disks, images, Secrets) would recur on any node: the run fails or
waits.
"""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from kubevirt_api import condition_types
from kubevirt_api.names import FURTHER_ATTEMPTS

from controlplane.api.objects.phase import BEFORE_HAND_OVER
from controlplane.api.objects.pod import Failure, Pod, find_end_failure, find_start_failure, sanitize
from controlplane.api.objects.start_limits import read_limit
from controlplane.api.objects.vmi.instance import FailedAttempt, VirtualMachineInstanceStatus
from controlplane.domain.volumes.kind import Mounted
from controlplane.domain.volumes.registry import volumes_in_pod
from controlplane.virt_controller.vmi.launcher_pod import OWN_ANNOTATIONS
from controlplane.virt_controller.vmi.run_timeout import find_timeout, has_sandbox, names_time
from controlplane.virt_controller.vmi.world import World, lacks_launcher_image

REFUSED = frozenset(
    {"UnexpectedAdmissionError", "NodeAffinity", "TopologyAffinityError", "NodeShutdown", "Terminated", "Evicted"}
)
"""Reasons of a kubelet that ends a Pod before its containers start, or because of the node."""
OUT_OF = "OutOf"
"""Prefix of further such reasons: the node lacks a resource."""
NOT_STARTED = frozenset({"StartError", "ContainerCannotRun"})
"""Reasons of a container that the runtime could not start: a missing device, or a runtime error."""
DEVICES_FAILED = "UnexpectedAdmissionError"
"""A device plugin did not provide an allocated device."""
FROM_NODE = frozenset({"name", "image", "emptyDir"})
"""Kinds of volumes that depend on the node alone. The kubelet pulls images after it creates the sandbox."""
MESSAGE_LENGTH = 256
"""Characters of a recorded failure's message."""


class FailedStart(NamedTuple):
    """A Pod that will not start its guest."""

    trouble: Failure
    is_nodes: bool
    """Only the node can be the cause. The failure counts for quarantine, so no tenant must be able to cause it."""


def max_further_attempts(world: World) -> int:
    """Return how many attempts may follow the first one."""
    try:
        own = read_limit(world.vmi.metadata.annotations, FURTHER_ATTEMPTS)
    except ValueError:  # admission was bypassed
        own = None
    return world.configuration.further_attempts if own is None else own


def find_retriable_failure(world: World) -> FailedStart | None:
    """Return the failure of the current attempt if a further attempt follows."""
    if len(world.vmi.status.failed_attempts) >= max_further_attempts(world):
        return None
    return _find_failure(world)


def _find_failure(world: World) -> FailedStart | None:
    pod = world.source
    if pod is None or not pod.spec.node_name or pod.is_deleting or world.is_deleting or world.is_granted:
        return None
    if world.vmi.status.phase not in BEFORE_HAND_OVER or world.vmi.status.attempt == 0:
        return None
    ended = pod.compute.terminated
    if pod.is_over or ended is not None:
        return _failure_of_ended_pod(pod)
    if lacks_launcher_image(pod):
        return FailedStart(find_start_failure(pod) or Failure("ErrImagePull", ""), _is_pull_failure_of_node(world, pod))
    timeout = find_timeout(world)
    return None if timeout is None else FailedStart(timeout, _is_sandbox_delay_of_node(pod, world))


def _failure_of_ended_pod(pod: Pod) -> FailedStart | None:
    """Return why a Pod ended if the node or the container runtime is the cause, not the launcher in it."""
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


def _is_pull_failure_of_node(world: World, pod: Pod) -> bool:
    """Tell whether no user can have caused the failed pull of the launcher image.

    A wrong pull secret of the Pod can, and so can a disk of the same image with another pull policy.
    """
    disks = {mounted.volume["image"]["reference"] for mounted in _mounted(world) if "image" in mounted.volume}
    return not pod.spec.image_pull_secrets and pod.launcher_image not in disks


def _is_sandbox_delay_of_node(pod: Pod, world: World) -> bool:
    """Tell whether no user can have delayed the Pod's sandbox until the timeout.

    A user who removes and restores a Secret, or attaches a disk elsewhere, makes a Pod fail on one node and start on
    another. So does a timeout that is too short for a busy node.
    """
    is_plain = not names_time(world) and all(set(mounted.volume) <= FROM_NODE for mounted in _mounted(world))
    # Another annotation may be a user's, and may make the creation of the sandbox fail.
    is_plain = is_plain and set(pod.metadata.annotations) <= OWN_ANNOTATIONS
    return is_plain and not has_sandbox(pod) and _has_no_waiting_reason(pod)


def _has_no_waiting_reason(pod: Pod) -> bool:
    return pod.compute.waiting is None or pod.compute.waiting.reason in ("", "ContainerCreating", "PodInitializing")


def _mounted(world: World) -> list[Mounted]:
    return [mounted for volume in volumes_in_pod(world.vmi.spec) for mounted in volume.mounted]


def record_failed_attempt(
    world: World, failure: FailedStart, status: VirtualMachineInstanceStatus
) -> VirtualMachineInstanceStatus:
    """Record the failed attempt, and begin the next."""
    node = world.source.spec.node_name if world.source is not None else ""
    failed = FailedAttempt(
        attempt=world.attempt,
        node_name=node,
        reason=failure.trouble.reason,
        message=sanitize(failure.trouble.message)[:MESSAGE_LENGTH],
        node_fault=failure.is_nodes,
    )
    return msgspec.structs.replace(status, attempt=world.attempt + 1, failed_attempts=(*status.failed_attempts, failed))


def explain_next_attempt(world: World, failed: tuple[FailedAttempt, ...]) -> Failure | None:
    """Describe the last failed attempt and the one that follows; None if there is none."""
    if not failed:
        return None
    last, count = failed[-1], max_further_attempts(world)
    more = max(count - len(failed), 0)
    return Failure(
        condition_types.FURTHER_ATTEMPT,
        f"attempt {last.attempt} failed on node {last.node_name}: {last.reason}: {last.message}; "
        f"attempt {last.attempt + 1} follows when that Pod is deleted, on another node if one fits; "
        f"{more} more may follow",
    )
