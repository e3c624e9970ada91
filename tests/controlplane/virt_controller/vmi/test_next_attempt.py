# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runs are retried on another node, which failures are the node's fault, and the messages: tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Pod, SecretName
from controlplane.api.objects.vmi.instance import FailedAttempt, VirtualMachineInstance
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.next_attempt import MESSAGE_LENGTH, find_retriable_failure
from controlplane.virt_controller.vmi.status import derive_status, next_phase
from controlplane.virt_controller.vmi.world import CreatePod, World
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    UP,
    a_condition,
    a_pod,
    a_vmi,
    vmi_world,
)

S = {"phase": "Scheduling", "attempt": 1}
VMI, SECOND = a_vmi(node="node-1", **S), {"phase": "Scheduling", "attempt": 2}
OLD = {"attempt": 1, "nodeName": "node-0", "reason": "ErrImagePull", "message": "x"}
LATE = {"placed_for": 601.0}
SHORTER: Any = {"configuration": KubeVirtConfiguration(run_timeout_seconds=60), "placed_for": 61.0}


def with_annotations(vmi: VirtualMachineInstance, **annotations: str) -> VirtualMachineInstance:
    given = {f"virtops.kubevirt/{name.replace('_', '-')}": value for name, value in annotations.items()}
    meta = msgspec.structs.replace(vmi.metadata, annotations=given)
    return msgspec.structs.replace(vmi, metadata=meta)


def with_volume(**source: Any) -> VirtualMachineInstance:
    return a_vmi(node="node-1", spec={"volumes": [{"name": "v", **source}]}, **S)


IMPATIENT = with_annotations(VMI, run_timeout_seconds="1")
SECRET = with_volume(cloudInitNoCloud={"secretRef": {"name": "user"}})
LAUNCHER_DISK = with_volume(containerDisk={"image": "launcher:1"})
CLAIM, DISK = with_volume(persistentVolumeClaim={"claimName": "data"}), with_volume(containerDisk={"image": "disk:1"})
DELETED = a_vmi(node="node-1", deleting=True, **S)
GRANTED = a_vmi("Scheduled", attempt=1, activePods={POD_UID: "node-1"}, nodeName="node-1")
SET_BACK = a_vmi("Scheduling", attempt=1, activePods={POD_UID: "node-1"})
"""It was granted the start, and its phase was set back."""
LAST = a_vmi("Scheduling", attempt=3, failedAttempts=[OLD, OLD])


def refused(reason: str = "UnexpectedAdmissionError", **more: Any) -> Pod:
    return a_pod("Failed", node="node-1", reason=reason, message="not here", **more)


def waiting(reason: str, message: str = "", **more: Any) -> Pod:
    return a_pod(node="node-1", compute={"waiting": {"reason": reason, "message": message}}, **more)


def ended(reason: str, message: str = "") -> Pod:
    state = {"terminated": {"exitCode": 128, "reason": reason, "message": message}}
    return a_pod("Failed", node="node-1", compute=state)


LACKING = waiting("ImagePullBackOff", 'Back-off pulling image "launcher:1": not found')
WITH_SECRET = msgspec.structs.replace(
    LACKING, spec=msgspec.structs.replace(LACKING.spec, image_pull_secrets=(SecretName(name="r"),))
)
CREATING = waiting("ContainerCreating")
PULLING = waiting("ContainerCreating", conditions=(a_condition("PodReadyToStartContainers", "True"),))
ANNOTATED = msgspec.structs.replace(
    CREATING,
    metadata=msgspec.structs.replace(CREATING.metadata, annotations={"kubernetes.io/ingress-bandwidth": "1M"}),
)
LAST_REFUSED = vmi_world(LAST, refused(attempt=3))
UP_POD = a_pod("Running", node="node-1", compute=UP)
PULLS_DISK = waiting("ErrImagePull", 'pulling image "disk:1"')
PULLS_SIMILAR = waiting("ErrImagePull", 'pulling image "launcher:10"')

CASES: dict[str, tuple[World, str | None, bool]] = {
    # world, reason of the failure (None: not retried), whether it is the node's fault
    "a device plugin fails": (vmi_world(VMI, refused()), "UnexpectedAdmissionError", True),
    "the node lacks a resource": (vmi_world(VMI, refused("OutOfcpu")), "OutOfcpu", False),
    "the node is shut down": (vmi_world(VMI, refused("NodeShutdown")), "NodeShutdown", False),
    "the kubelet disagrees with the scheduler": (vmi_world(VMI, refused("NodeAffinity")), "NodeAffinity", False),
    "the node's disk is full": (vmi_world(VMI, refused("Evicted")), "Evicted", False),
    "an unknown reason": (vmi_world(VMI, refused("Whatever")), None, False),
    "the runtime cannot start it": (vmi_world(VMI, ended("StartError", "no /dev/kvm")), "StartError", False),
    "the launcher finds no disk image": (vmi_world(VMI, ended("Error", "volume root: not a disk image")), None, False),
    "the launcher is killed": (vmi_world(VMI, ended("OOMKilled")), None, False),
    "no launcher image": (vmi_world(VMI, LACKING), "ImagePullBackOff", True),
    "no launcher image, a pull secret": (vmi_world(VMI, WITH_SECRET), "ImagePullBackOff", False),
    "no launcher image, also a disk": (vmi_world(LAUNCHER_DISK, LACKING), "ImagePullBackOff", False),
    "no image of a user": (vmi_world(VMI, PULLS_DISK), None, False),
    "no image with a similar name": (vmi_world(VMI, PULLS_SIMILAR), None, False),
    "images are pulled": (vmi_world(VMI, PULLING, **LATE), None, False),
    "no sandbox": (vmi_world(VMI, CREATING, **LATE), "RunTimedOut", True),
    "no sandbox yet": (vmi_world(VMI, CREATING, placed_for=599.0), None, False),
    "no sandbox, a Secret": (vmi_world(SECRET, CREATING, **LATE), "RunTimedOut", False),
    "no sandbox, a claim that may be attached elsewhere": (vmi_world(CLAIM, CREATING, **LATE), "RunTimedOut", False),
    "no sandbox, an image, which comes later": (vmi_world(DISK, CREATING, **LATE), "RunTimedOut", True),
    "no sandbox in the machine's own time": (vmi_world(IMPATIENT, CREATING, **LATE), "RunTimedOut", False),
    "no sandbox in the configured time": (vmi_world(VMI, CREATING, **SHORTER), "RunTimedOut", True),
    "a sandbox, and the configured time is over": (vmi_world(VMI, PULLING, **SHORTER), "RunTimedOut", False),
    "no sandbox, an annotation of a user": (vmi_world(VMI, ANNOTATED, **LATE), "RunTimedOut", False),
    "no container": (vmi_world(VMI, waiting("CreateContainerError"), **LATE), "RunTimedOut", False),
    "up": (vmi_world(VMI, UP_POD, **LATE), None, False),
    "no node": (vmi_world(VMI, a_pod(), **LATE), None, False),
    "its Pod is deleted": (vmi_world(VMI, refused(deleting=True)), None, False),
    "the VMI is deleted": (vmi_world(DELETED, refused()), None, False),
    "granted": (vmi_world(GRANTED, refused()), None, False),
    "granted, phase set back": (vmi_world(SET_BACK, refused()), None, False),
    "no attempt was recorded": (vmi_world(a_vmi("Scheduling"), refused()), None, False),
    "two were retried": (LAST_REFUSED, None, False),
}


@pytest.mark.parametrize("title", CASES)
def test_which_failures_are_retried_and_which_are_the_nodes_fault(title: str) -> None:
    world, reason, is_nodes = CASES[title]
    failure = find_retriable_failure(world)
    assert (failure.trouble.reason if failure else None) == reason
    assert (failure is not None and failure.is_nodes) == is_nodes


def test_the_control_planes_own_annotations_do_not_hide_that_the_node_made_no_sandbox() -> None:
    """The Pod as it is built, with every annotation of a first Pod and none of a user."""
    devices = {"interfaces": [{"name": "n", "masquerade": {}}]}
    domain = {"memory": {"guest": "1Gi", "maxGuest": "2Gi"}, "devices": devices}
    vmi = a_vmi(node="node-1", spec={"domain": domain, "networks": [{"name": "n", "pod": {}}]}, **S)
    body = build_launcher_pod(
        vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration(), excluded_nodes=("node-2",)
    )
    body["spec"]["nodeName"] = "node-1"
    failure = find_retriable_failure(vmi_world(vmi, decode(body, Pod), **LATE))
    assert failure is not None
    assert failure.is_nodes


@pytest.mark.parametrize(
    ("annotation", "configured", "is_retried"),
    [(None, 2, True), (None, 0, False), ("0", 2, False), ("1", 0, True), ("many", 2, True), ("many", 0, False)],
)
def test_the_machines_limit_of_attempts_overrides_the_configuration(
    annotation: str | None, configured: int, is_retried: bool
) -> None:
    vmi = VMI if annotation is None else with_annotations(VMI, further_attempts=annotation)
    world = vmi_world(vmi, refused(), configuration=KubeVirtConfiguration(further_attempts=configured))
    assert (find_retriable_failure(world) is not None) == is_retried


def derived(vmi: VirtualMachineInstance, *pods: Pod, problem: RefusedStep[Any] | None = None) -> Any:
    """The new status, and the reason and message of its condition Synchronized."""
    status = derive_status(vmi_world(vmi, *pods), problem)
    assert status is not None
    (synchronized,) = (condition for condition in status.conditions if condition.type == "Synchronized")
    assert synchronized.status == "False"
    return status, synchronized.reason, synchronized.message


def test_the_failure_and_the_next_attempt_are_one_write() -> None:
    status, reason, message = derived(VMI, refused())
    assert (status.phase, status.reason, status.attempt) == ("Scheduling", "", 2)
    failed = FailedAttempt(
        attempt=1, node_name="node-1", reason="UnexpectedAdmissionError", message="not here", node_fault=True
    )
    assert status.failed_attempts == (failed,)
    assert reason == "FurtherAttempt"
    assert "attempt 1 failed on node node-1: UnexpectedAdmissionError: not here; attempt 2 follows" in message
    assert message.endswith("; 1 more may follow")


def test_a_failure_message_in_the_status_has_a_limited_length() -> None:
    """It is written again with every status of the instance, up to ten of them."""
    status, *_unused = derived(VMI, ended("StartError", "x" * 10_000))
    assert len(status.failed_attempts[0].message) == MESSAGE_LENGTH


def test_the_condition_of_a_second_failure_names_the_second_node() -> None:
    """Conditions that differ only in numbers otherwise count as equal."""
    old = {"attempt": 1, "nodeName": "node-0", "reason": "UnexpectedAdmissionError", "message": "not here"}
    text = (
        "attempt 1 failed on node node-0: UnexpectedAdmissionError: not here; "
        "attempt 2 follows when that Pod is deleted, on another node if one fits; 1 more may follow"
    )
    first = a_condition("Synchronized", "False", "FurtherAttempt", text)
    vmi = a_vmi(**SECOND, failedAttempts=[old], conditions=[first])
    assert "attempt 2 failed on node node-1" in derived(vmi, refused(attempt=2))[2]


def test_a_refusal_of_the_former_pod_is_not_reported_for_the_next_attempt() -> None:
    """Another leader has begun the next attempt; this leader's create of the former Pod was refused."""
    vmi = a_vmi(**SECOND, failedAttempts=[OLD])
    error = Forbidden("one of this name exists and is not ours")
    reasons = [derived(vmi, problem=RefusedStep(CreatePod(at, because="x"), error))[1] for at in (1, 2)]
    assert reasons == ["FurtherAttempt", "FailedCreate"]
    assert derived(vmi)[1] == "FurtherAttempt", "it is reported until the grant"


def test_the_last_failure_ends_the_run_with_its_reason() -> None:
    step = next_phase(LAST_REFUSED)
    assert (step.phase, step.trouble.reason if step.trouble else "") == ("Failed", "UnexpectedAdmissionError")


def test_the_last_attempt_fails_by_timeout_when_the_launcher_image_is_missing() -> None:
    pod = waiting("ErrImagePull", 'pulling image "launcher:1"', attempt=3)
    assert next_phase(vmi_world(LAST, pod)).phase == "Scheduling"
    assert next_phase(vmi_world(LAST, pod, **LATE))[0] == "Failed"
