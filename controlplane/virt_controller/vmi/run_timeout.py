# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeout of a launcher's start, once its Pod has a node: pure.

This process's own clock measures it, from when it first observes the Pod on a node. A new leader starts at zero. A Pod
that no node fits waits without a timeout. A Pod that was granted the start has none either: its guest may run, and only
its node can report whether it does.

Without a configured timeout, the start only times out if the node does not respond (USUAL_SECONDS), and not if the
machine itself is the cause: an image that cannot be pulled, a missing Secret.
"""

from __future__ import annotations

from kubevirt_api.condition_types import RUN_TIMED_OUT
from kubevirt_api.names import RUN_TIMEOUT

from controlplane.api.objects import conditions
from controlplane.api.objects.pod import Failure, Pod, find_start_failure
from controlplane.api.objects.start_limits import read_limit
from controlplane.virt_controller.vmi.world import World, lacks_launcher_image

USUAL_SECONDS = 600
"""A sandbox takes seconds to create. Kubernetes deletes a Pod 300 s after its node became unreachable."""
SANDBOX_READY = "PodReadyToStartContainers"
"""Condition of a Pod: volumes are mounted and the sandbox exists. Only the images are still to be pulled."""
WAITS_FOR_VOLUMES = frozenset({"FailedMount", "FailedMapVolume", "FailedAttachVolume"})
PREPARING = frozenset({"", "ContainerCreating", "PodInitializing"})
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"})


def seconds_left(world: World) -> float | None:
    """Return the rest of the timeout in seconds, 0 or less when it is over; None without a timeout."""
    pod = world.source
    if pod is None or world.is_granted or not pod.spec.node_name or pod.is_up or pod.is_deleting or pod.is_over:
        return None
    configured = configured_seconds(world)
    if configured == 0 or (configured is None and not _is_waiting_for_node(world, pod)):
        return None
    return (USUAL_SECONDS if configured is None else configured) - world.placed_for


def configured_seconds(world: World) -> int | None:
    """Return the timeout that the machine or the KubeVirt object sets, if any."""
    own = _own_seconds(world)
    return world.configuration.run_timeout_seconds if own is None else own


def names_time(world: World) -> bool:
    """Tell whether the machine sets the timeout, which a tenant can do."""
    return _own_seconds(world) is not None


def _own_seconds(world: World) -> int | None:
    try:
        return read_limit(world.vmi.metadata.annotations, RUN_TIMEOUT)
    except ValueError:  # admission was bypassed
        return None


def find_timeout(world: World) -> Failure | None:
    """Describe a launcher that did not start in time, and why, if that is known."""
    pod, remaining = world.source, seconds_left(world)
    if pod is None or remaining is None or remaining > 0:
        return None
    failure = find_start_failure(pod, world.event_troubles.get(pod.uid))
    cause = f"{failure.reason}: {failure.message}" if failure is not None else "its kubelet reports no reason"
    configured = configured_seconds(world)
    seconds = USUAL_SECONDS if configured is None else configured
    return Failure(
        RUN_TIMED_OUT, f"the launcher on node {pod.spec.node_name} did not come up within {seconds} s; {cause}"
    )


def has_sandbox(pod: Pod) -> bool:
    """Tell whether the kubelet reports that the Pod's sandbox is ready."""
    return conditions.is_true(pod.status.conditions, SANDBOX_READY)


def _is_waiting_for_node(world: World, pod: Pod) -> bool:
    """Tell whether the Pod waits for its node alone, and the machine cannot be the cause."""
    failure, waiting = world.event_troubles.get(pod.uid), pod.compute.waiting
    reason = "" if waiting is None else waiting.reason
    if reason in PREPARING:
        return not has_sandbox(pod) and (failure is None or failure.reason not in WAITS_FOR_VOLUMES)
    return reason not in PULLING or lacks_launcher_image(pod)
