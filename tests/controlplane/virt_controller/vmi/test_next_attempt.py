# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which runs are retried on another node, which failures are the node's fault, and the messages: tables."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from kubevirt_api.names import RUN_TIMEOUT

from controlplane.api.objects.decode import decode
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Pod
from controlplane.engine.errors import Forbidden
from controlplane.engine.plan import RefusedStep
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.launcher_pod import build_launcher_pod
from controlplane.virt_controller.vmi.next_attempt import MESSAGE_LENGTH, explain_next_attempt, find_retriable_failure
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
VMI = a_vmi(node="node-1", **S)
IMPATIENT = msgspec.structs.replace(VMI, metadata=msgspec.structs.replace(VMI.metadata, annotations={RUN_TIMEOUT: "1"}))
OLD = {"attempt": 1, "nodeName": "node-0", "reason": "ErrImagePull", "message": "x"}
SECRET = {"volumes": [{"name": "s", "cloudInitNoCloud": {"secretRef": {"name": "user"}}}]}
LAUNCHER_DISK = {"volumes": [{"name": "root", "containerDisk": {"image": "launcher:1"}}]}
CLAIM = {"volumes": [{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}]}
DISK = {"volumes": [{"name": "root", "containerDisk": {"image": "disk:1"}}]}
LATE = {"placed_for": 601.0}


def refused(reason: str, **more: Any) -> Pod:
    return a_pod("Failed", node="node-1", reason=reason, message="not here", **more)


def waiting(reason: str, message: str = "", **more: Any) -> Pod:
    return a_pod(node="node-1", compute={"waiting": {"reason": reason, "message": message}}, **more)


def ended(reason: str, message: str = "") -> Pod:
    state = {"terminated": {"exitCode": 128, "reason": reason, "message": message}}
    return a_pod("Failed", node="node-1", compute=state)


def with_secret(pod: Pod) -> Pod:
    return decode(
        {
            "metadata": _plain(pod)["metadata"],
            "spec": {**_plain(pod)["spec"], "imagePullSecrets": [{"name": "r"}]},
            "status": _plain(pod)["status"],
        },
        Pod,
    )


def _plain(pod: Pod) -> Any:
    return msgspec.json.decode(msgspec.json.encode(pod))


def annotated(pod: Pod) -> Pod:
    body = _plain(pod)
    body["metadata"]["annotations"] = {"kubernetes.io/ingress-bandwidth": "1M"}
    return decode(body, Pod)


LACKING = waiting("ImagePullBackOff", 'Back-off pulling image "launcher:1": not found')
SANDBOX = (a_condition("PodReadyToStartContainers", "True"),)
CASES: dict[str, tuple[World, str | None, bool]] = {
    # world, reason of the failure (None: not retried), whether it is the node's fault
    "a device plugin fails": (vmi_world(VMI, refused("UnexpectedAdmissionError")), "UnexpectedAdmissionError", True),
    "the node has no room after all": (vmi_world(VMI, refused("OutOfcpu")), "OutOfcpu", False),
    "the node is shut down": (vmi_world(VMI, refused("NodeShutdown")), "NodeShutdown", False),
    "the kubelet disagrees with the scheduler": (vmi_world(VMI, refused("NodeAffinity")), "NodeAffinity", False),
    "the node has no room on its disk": (vmi_world(VMI, refused("Evicted")), "Evicted", False),
    "a reason that nobody knows": (vmi_world(VMI, refused("Whatever")), None, False),
    "the runtime cannot start it": (vmi_world(VMI, ended("StartError", "no /dev/kvm")), "StartError", False),
    "the launcher finds no disk image": (vmi_world(VMI, ended("Error", "volume root: not a disk image")), None, False),
    "the launcher is killed": (vmi_world(VMI, ended("OOMKilled")), None, False),
    "the launcher's image is not there": (vmi_world(VMI, LACKING), "ImagePullBackOff", True),
    "it is not there, and a credential is the Pod's": (vmi_world(VMI, with_secret(LACKING)), "ImagePullBackOff", False),
    "it is not there, and a disk is that image, too": (
        vmi_world(a_vmi(node="node-1", spec=LAUNCHER_DISK, **S), LACKING),
        "ImagePullBackOff",
        False,
    ),
    "a user's image is not there": (vmi_world(VMI, waiting("ErrImagePull", 'pulling image "disk:1"')), None, False),
    "a user's image that begins like the launcher's": (
        vmi_world(VMI, waiting("ErrImagePull", 'pulling image "launcher:10"')),
        None,
        False,
    ),
    "images are pulled": (vmi_world(VMI, waiting("ContainerCreating", conditions=SANDBOX), **LATE), None, False),
    "no sandbox comes": (vmi_world(VMI, waiting("ContainerCreating"), **LATE), "RunTimedOut", True),
    "no sandbox yet": (vmi_world(VMI, waiting("ContainerCreating"), placed_for=599.0), None, False),
    "no sandbox comes, and a Secret is mounted": (
        vmi_world(a_vmi(node="node-1", spec=SECRET, **S), waiting("ContainerCreating"), **LATE),
        "RunTimedOut",
        False,
    ),
    "no sandbox comes, and a claim is mounted, which may be held elsewhere": (
        vmi_world(a_vmi(node="node-1", spec=CLAIM, **S), waiting("ContainerCreating"), **LATE),
        "RunTimedOut",
        False,
    ),
    "no sandbox comes, and a disk is an image, which comes later": (
        vmi_world(a_vmi(node="node-1", spec=DISK, **S), waiting("ContainerCreating"), **LATE),
        "RunTimedOut",
        True,
    ),
    "no sandbox comes in the time that the machine names": (
        vmi_world(IMPATIENT, waiting("ContainerCreating"), **LATE),
        "RunTimedOut",
        False,
    ),
    "no sandbox comes in the time that the configuration names": (
        vmi_world(
            VMI,
            waiting("ContainerCreating"),
            placed_for=61.0,
            configuration=KubeVirtConfiguration(run_timeout_seconds=60),
        ),
        "RunTimedOut",
        True,
    ),
    "its sandbox is there, and the time that the configuration names is over": (
        vmi_world(
            VMI,
            waiting("ContainerCreating", conditions=SANDBOX),
            placed_for=61.0,
            configuration=KubeVirtConfiguration(run_timeout_seconds=60),
        ),
        "RunTimedOut",
        False,
    ),
    "no sandbox comes, and something is annotated": (
        vmi_world(VMI, annotated(waiting("ContainerCreating")), **LATE),
        "RunTimedOut",
        False,
    ),
    "its container is not made": (vmi_world(VMI, waiting("CreateContainerError"), **LATE), "RunTimedOut", False),
    "it is up": (vmi_world(VMI, a_pod("Running", node="node-1", compute=UP), **LATE), None, False),
    "it has no node": (vmi_world(VMI, a_pod(), **LATE), None, False),
    "its Pod is deleted": (vmi_world(VMI, refused("UnexpectedAdmissionError", deleting=True)), None, False),
    "the VMI is deleted": (
        vmi_world(a_vmi(node="node-1", deleting=True, **S), refused("UnexpectedAdmissionError")),
        None,
        False,
    ),
    "it was granted the start": (
        vmi_world(
            a_vmi("Scheduled", attempt=1, activePods={POD_UID: "node-1"}, nodeName="node-1"),
            refused("UnexpectedAdmissionError"),
        ),
        None,
        False,
    ),
    "it was granted the start, and its phase was set back": (
        vmi_world(a_vmi("Scheduling", attempt=1, activePods={POD_UID: "node-1"}), refused("UnexpectedAdmissionError")),
        None,
        False,
    ),
    "no attempt was recorded": (vmi_world(a_vmi("Scheduling"), refused("UnexpectedAdmissionError")), None, False),
    "two were tried again": (
        vmi_world(
            a_vmi("Scheduling", attempt=3, failedAttempts=[OLD, OLD]), refused("UnexpectedAdmissionError", attempt=3)
        ),
        None,
        False,
    ),
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
        vmi, attempt=1, image="launcher:1", configuration=KubeVirtConfiguration(), kept_from=("node-2",)
    )
    body["spec"]["nodeName"] = "node-1"
    failure = find_retriable_failure(vmi_world(vmi, decode(body, Pod), **LATE))
    assert failure is not None
    assert failure.is_nodes


@pytest.mark.parametrize(
    ("annotation", "configured", "is_tried"),
    [(None, 2, True), (None, 0, False), ("0", 2, False), ("1", 0, True), ("many", 2, True), ("many", 0, False)],
)
def test_the_machines_limit_of_attempts_overrides_the_configuration(
    annotation: str | None, configured: int, is_tried: bool
) -> None:
    vmi = a_vmi(node="node-1", **S)
    if annotation is not None:
        body = _plain(vmi)
        body["metadata"]["annotations"] = {"virtops.kubevirt/further-attempts": annotation}
        vmi = decode(body, type(vmi))
    world = vmi_world(
        vmi, refused("UnexpectedAdmissionError"), configuration=KubeVirtConfiguration(further_attempts=configured)
    )
    assert (find_retriable_failure(world) is not None) == is_tried


def test_the_failure_and_the_next_attempt_are_one_write() -> None:
    world = vmi_world(VMI, refused("UnexpectedAdmissionError"))
    status = derive_status(world, None)
    assert status is not None
    assert (status.phase, status.reason, status.attempt) == ("Scheduling", "", 2)
    (failed,) = status.failed_attempts
    assert (failed.attempt, failed.node_name, failed.reason, failed.node_fault) == (
        1,
        "node-1",
        "UnexpectedAdmissionError",
        True,
    )
    (synchronized,) = (condition for condition in status.conditions if condition.type == "Synchronized")
    assert (synchronized.status, synchronized.reason) == ("False", "FurtherAttempt")
    assert (
        "attempt 1 failed on node node-1: UnexpectedAdmissionError: not here; attempt 2 follows" in synchronized.message
    )
    assert synchronized.message.endswith("; 1 more may follow")


def test_a_failure_message_in_the_status_has_a_limited_length() -> None:
    """It is written again with every status of the instance, up to ten of them."""
    status = derive_status(vmi_world(VMI, ended("StartError", "x" * 10_000)), None)
    assert status is not None
    assert len(status.failed_attempts[0].message) == MESSAGE_LENGTH


def test_the_condition_of_a_second_failure_names_the_second_node() -> None:
    """Conditions that differ only in numbers otherwise count as equal."""
    old = {"attempt": 1, "nodeName": "node-0", "reason": "UnexpectedAdmissionError", "message": "not here"}
    text = (
        "attempt 1 failed on node node-0: UnexpectedAdmissionError: not here; "
        "attempt 2 follows when its Pod is gone, on another node if one fits; 1 more may follow"
    )
    first = a_condition("Synchronized", "False", "FurtherAttempt", text)
    vmi = a_vmi("Scheduling", attempt=2, failedAttempts=[old], conditions=[first])
    status = derive_status(vmi_world(vmi, refused("UnexpectedAdmissionError", attempt=2)), None)
    assert status is not None
    (synchronized,) = (condition for condition in status.conditions if condition.type == "Synchronized")
    assert "attempt 2 failed on node node-1" in synchronized.message


def test_the_failed_attempt_is_reported_until_the_grant() -> None:
    vmi = a_vmi("Scheduling", attempt=2, failedAttempts=[OLD])
    assert explain_next_attempt(vmi_world(vmi), vmi.status.failed_attempts) is not None
    first = derive_status(vmi_world(vmi), None)
    assert first is not None
    assert [condition.reason for condition in first.conditions if condition.type == "Synchronized"] == [
        "FurtherAttempt"
    ]


def test_a_refused_action_on_the_former_pod_is_not_reported_for_the_next_attempt() -> None:
    """Another leader has begun the next attempt; this leader's create of the former Pod was refused."""
    vmi = a_vmi("Scheduling", attempt=2, failedAttempts=[OLD])
    reasons = []
    for attempt in (1, 2):
        refusal = RefusedStep(CreatePod(attempt, because="x"), Forbidden("one of this name exists and is not ours"))
        status = derive_status(vmi_world(vmi), refusal)
        assert status is not None
        reasons += [condition.reason for condition in status.conditions if condition.type == "Synchronized"]
    assert reasons == ["FurtherAttempt", "FailedCreate"]


def test_the_former_pod_is_deleted_before_the_next_is_created() -> None:
    vmi = a_vmi("Scheduling", attempt=2, failedAttempts=[OLD])
    steps = [
        vmi_world(vmi, refused("UnexpectedAdmissionError")),
        vmi_world(vmi, refused("UnexpectedAdmissionError", deleting=True)),
        vmi_world(vmi),
        vmi_world(vmi, is_absence_confirmed=True),
    ]
    names = [[type(step).__name__ for step in decide(world).steps] for world in steps]
    assert names == [["DeletePod"], [], ["ConfirmPodsAbsent"], ["CreatePod"]]


def test_the_last_failure_ends_the_run_with_its_reason() -> None:
    world, _unused, _unused = CASES["two were tried again"]
    step = next_phase(world)
    assert (step.phase, step.trouble.reason if step.trouble else "") == ("Failed", "UnexpectedAdmissionError")


def test_the_last_attempt_fails_by_timeout_when_the_launcher_image_is_missing() -> None:
    vmi = a_vmi("Scheduling", attempt=3, failedAttempts=[OLD, OLD])
    pod = waiting("ErrImagePull", 'pulling image "launcher:1"', attempt=3)
    assert next_phase(vmi_world(vmi, pod)).phase == "Scheduling"
    assert next_phase(vmi_world(vmi, pod, **LATE))[0] == "Failed"
