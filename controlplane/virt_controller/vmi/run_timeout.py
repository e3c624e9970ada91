# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a launcher may take to come up once its Pod has a node: pure.

Counted by the clock of the virt-controller that looks on, from when it first saw the Pod placed: no other machine's
clock is asked, and a new leader begins to count anew. A Pod that no node fits waits as long as it likes. Nothing is
said here of a Pod that was granted the start: its guest may run, and nobody but its node can tell.

Unless somebody names a time, what may be the machine's own doing waits as long as it likes, too: images that are pulled
or cannot be, Secrets that are not there. What is left is a node of which nothing comes.
"""

from __future__ import annotations

from kubevirt_api.condition_types import RUN_TIMED_OUT
from kubevirt_api.names import RUN_TIMEOUT

from controlplane.api.objects import conditions
from controlplane.api.objects.pod import Failure, Pod, find_start_failure
from controlplane.api.objects.start_limits import read_limit
from controlplane.virt_controller.vmi.world import World, lacks_launcher_image

USUAL_SECONDS = 600
"""A sandbox takes seconds. Kubernetes itself gives a Pod up 300 s after its node has fallen silent."""
SANDBOX_READY = "PodReadyToStartContainers"
"""Condition of a Pod: the kubelet has mounted its volumes and made its sandbox; what takes time now is images."""
WAITS_FOR_VOLUMES = frozenset({"FailedMount", "FailedMapVolume", "FailedAttachVolume"})
PREPARING = frozenset({"", "ContainerCreating", "PodInitializing"})
PULLING = frozenset({"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName", "ImageInspectError"})


def seconds_left(world: World) -> float | None:
    """Return how long the launcher may still take, 0 or less when its time is over; None when nothing bounds it."""
    pod = world.source
    if pod is None or world.is_granted or not pod.spec.node_name or pod.is_up or pod.is_deleting or pod.is_over:
        return None
    asked = asked_seconds(world)
    if asked == 0 or (asked is None and not _is_nodes_silence(world, pod)):
        return None
    return (USUAL_SECONDS if asked is None else asked) - world.placed_for


def asked_seconds(world: World) -> int | None:
    """Return the time that the machine names, or the KubeVirt object; None when neither does."""
    own = _own_seconds(world)
    return world.configuration.run_timeout_seconds if own is None else own


def names_time(world: World) -> bool:
    """Tell whether the time is the machine's own word, and so a tenant's."""
    return _own_seconds(world) is not None


def _own_seconds(world: World) -> int | None:
    try:
        return read_limit(world.vmi.metadata.annotations, RUN_TIMEOUT)
    except ValueError:  # admission was not asked
        return None


def find_timeout(world: World) -> Failure | None:
    """Say that a launcher did not come up in time, and what is known of why."""
    pod, left = world.source, seconds_left(world)
    if pod is None or left is None or left > 0:
        return None
    why = find_start_failure(pod, world.heard.get(pod.uid))
    known = f"{why.reason}: {why.message}" if why is not None else "its kubelet says nothing of why"
    asked = asked_seconds(world)
    seconds = USUAL_SECONDS if asked is None else asked
    return Failure(
        RUN_TIMED_OUT, f"the launcher on node {pod.spec.node_name} did not come up within {seconds} s; {known}"
    )


def has_sandbox(pod: Pod) -> bool:
    """Tell whether the kubelet says that all is ready for the containers of a Pod."""
    return conditions.is_true(pod.status.conditions, SANDBOX_READY)


def _is_nodes_silence(world: World, pod: Pod) -> bool:
    """Tell whether what is waited for can be nothing of the machine's own."""
    heard, waiting = world.heard.get(pod.uid), pod.compute.waiting
    reason = "" if waiting is None else waiting.reason
    if reason in PREPARING:
        return not has_sandbox(pod) and (heard is None or heard.reason not in WAITS_FOR_VOLUMES)
    return reason not in PULLING or lacks_launcher_image(pod)
