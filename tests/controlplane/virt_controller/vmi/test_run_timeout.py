# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The timeout of a launcher that does not come up, as a table."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controlplane.api.objects.decode import decode_vmi
from controlplane.api.objects.kubevirt import KubeVirtConfiguration
from controlplane.api.objects.pod import Failure, Pod
from controlplane.api.objects.vmi.instance import VirtualMachineInstance
from controlplane.virt_controller.vmi.controller_state import VmiState
from controlplane.virt_controller.vmi.decide import decide
from controlplane.virt_controller.vmi.run_timeout import find_timeout, seconds_left
from controlplane.virt_controller.vmi.status import next_phase
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    UP,
    a_condition,
    a_pod,
    a_vmi,
    vmi_world,
)


def a_vmi_with(seconds: str | None = None, **status: Any) -> VirtualMachineInstance:
    vmi = a_vmi(node="node-1", **{"phase": "Scheduling", "attempt": 1, **status})
    body = msgspec.json.decode(msgspec.json.encode(vmi))
    if seconds is not None:
        body["metadata"]["annotations"] = {"virtops.kubevirt/run-timeout-seconds": seconds}
    return decode_vmi(body)


def waiting(reason: str, *conditions: Any, message: str = "") -> Pod:
    compute = {"waiting": {"reason": reason, "message": message}}
    return a_pod(node="node-1", compute=compute, conditions=tuple(conditions))


READY = a_condition("PodReadyToStartContainers", "True")
SILENT = a_pod(node="node-1")
PULLING = waiting("ContainerCreating", READY)
MISSING = {POD_UID: Failure("FailedMount", 'secret "user" not found')}
NO_SANDBOX = {POD_UID: Failure("FailedCreatePodSandBox", "no address is left")}
ASKED = KubeVirtConfiguration(run_timeout_seconds=100)
NEVER = KubeVirtConfiguration(run_timeout_seconds=0)

CASES: dict[str, tuple[World, float | None]] = {
    "the kubelet says nothing": (vmi_world(a_vmi_with(), SILENT, placed_for=1.0), 599.0),
    "no sandbox, nothing said": (vmi_world(a_vmi_with(), waiting("ContainerCreating")), 600.0),
    "no sandbox, said to be refused": (vmi_world(a_vmi_with(), SILENT, event_troubles=NO_SANDBOX), 600.0),
    "a Secret is waited for": (vmi_world(a_vmi_with(), SILENT, event_troubles=MISSING), None),
    "images are pulled": (vmi_world(a_vmi_with(), PULLING), None),
    "a user's image cannot be": (vmi_world(a_vmi_with(), waiting("ErrImagePull", message='"disk:1"')), None),
    "the launcher's cannot be": (vmi_world(a_vmi_with(), waiting("ErrImagePull", message='"launcher:1"')), 600.0),
    "its container is not made": (vmi_world(a_vmi_with(), waiting("CreateContainerError", READY)), 600.0),
    "no node was found": (vmi_world(a_vmi_with("100"), a_pod()), None),
    "it is up": (vmi_world(a_vmi_with("100"), a_pod("Running", node="node-1", compute=UP)), None),
    "it has ended": (vmi_world(a_vmi_with("100"), a_pod("Failed", node="node-1")), None),
    "its Pod is deleted": (vmi_world(a_vmi_with("100"), a_pod(node="node-1", deleting=True)), None),
    "it was granted the start": (
        vmi_world(a_vmi_with("100", phase="Scheduled", activePods={POD_UID: "node-1"}), SILENT),
        None,
    ),
    "asked for, images are pulled": (vmi_world(a_vmi_with("100"), PULLING, placed_for=30.0), 70.0),
    "configured, images are pulled": (vmi_world(a_vmi_with(), PULLING, configuration=ASKED), 100.0),
    "configured, a Secret is waited for": (
        vmi_world(a_vmi_with(), SILENT, event_troubles=MISSING, configuration=ASKED),
        100.0,
    ),
    "configured, and the machine says never": (vmi_world(a_vmi_with("0"), SILENT, configuration=ASKED), None),
    "configured never, and the machine says so": (vmi_world(a_vmi_with("50"), SILENT, configuration=NEVER), 50.0),
    "configured never": (vmi_world(a_vmi_with(), SILENT, configuration=NEVER), None),
    "no number": (vmi_world(a_vmi_with("soon"), SILENT, configuration=ASKED), 100.0),
}


@pytest.mark.parametrize("title", CASES)
def test_how_much_time_is_left(title: str) -> None:
    world, expected = CASES[title]
    assert seconds_left(world) == expected


def test_a_waiting_vmi_is_requeued_at_its_timeout() -> None:
    assert decide(vmi_world(a_vmi_with(), SILENT, placed_for=100.0)).requeue_after == 500.0


def test_a_run_that_timed_out_reports_the_events() -> None:
    world = vmi_world(
        a_vmi_with(),
        SILENT,
        event_troubles=NO_SANDBOX,
        placed_for=600.0,
        configuration=KubeVirtConfiguration(further_attempts=0),
    )
    step = next_phase(world)
    assert step.phase == "Failed"
    assert step.trouble == find_timeout(world)
    assert step.trouble is not None
    assert step.trouble.reason == "RunTimedOut"
    assert "node-1 did not come up within 600 s; FailedCreatePodSandBox: no address is left" in step.trouble.message


def test_a_launcher_that_comes_up_at_the_last_moment_is_granted_the_start() -> None:
    world = vmi_world(a_vmi_with("1"), a_pod("Running", node="node-1", compute=UP), placed_for=9000.0)
    assert [type(step).__name__ for step in decide(world).steps] == ["GrantStart"]


def test_the_time_counts_for_each_pod_from_its_observed_placement() -> None:
    state = VmiState("uid")
    assert state.placed_for(None, 5.0) == 0.0
    assert state.placed_for(a_pod(), 5.0) == 0.0
    assert state.placed_for(SILENT, 10.0) == 0.0
    assert state.placed_for(SILENT, 25.0) == 15.0
    assert state.placed_for(a_pod(node="node-2", uid="another"), 30.0) == 0.0
