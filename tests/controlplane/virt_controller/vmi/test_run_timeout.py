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
SILENT, UP_POD = a_pod(node="node-1"), a_pod("Running", node="node-1", compute=UP)
PULLING = waiting("ContainerCreating", READY)
MISSING = {POD_UID: Failure("FailedMount", 'secret "user" not found')}
NO_SANDBOX = {POD_UID: Failure("FailedCreatePodSandBox", "no address is left")}
ASKED = KubeVirtConfiguration(run_timeout_seconds=100)
NEVER = KubeVirtConfiguration(run_timeout_seconds=0)

PLAIN, SHORT = a_vmi_with(), a_vmi_with("100")
GRANTED = a_vmi_with("100", phase="Scheduled", activePods={POD_UID: "node-1"})
NO_SECRET: Any = {"event_troubles": MISSING}
CONFIGURED, OFF = {"configuration": ASKED}, {"configuration": NEVER}
CASES: dict[str, tuple[World, float | None]] = {
    "no report": (vmi_world(PLAIN, SILENT, placed_for=1.0), 599.0),
    "no sandbox, no report": (vmi_world(PLAIN, waiting("ContainerCreating")), 600.0),
    "no sandbox, reported": (vmi_world(PLAIN, SILENT, event_troubles=NO_SANDBOX), 600.0),
    "no Secret": (vmi_world(PLAIN, SILENT, **NO_SECRET), None),
    "images are pulled": (vmi_world(PLAIN, PULLING), None),
    "no image of a user": (vmi_world(PLAIN, waiting("ErrImagePull", message='"disk:1"')), None),
    "no launcher image": (vmi_world(PLAIN, waiting("ErrImagePull", message='"launcher:1"')), 600.0),
    "no container": (vmi_world(PLAIN, waiting("CreateContainerError", READY)), 600.0),
    "no node": (vmi_world(SHORT, a_pod()), None),
    "up": (vmi_world(SHORT, UP_POD), None),
    "ended": (vmi_world(SHORT, a_pod("Failed", node="node-1")), None),
    "deleted": (vmi_world(SHORT, a_pod(node="node-1", deleting=True)), None),
    "granted": (vmi_world(GRANTED, SILENT), None),
    "own time, images are pulled": (vmi_world(SHORT, PULLING, placed_for=30.0), 70.0),
    "configured, images are pulled": (vmi_world(PLAIN, PULLING, **CONFIGURED), 100.0),
    "configured, no Secret": (vmi_world(PLAIN, SILENT, **NO_SECRET, **CONFIGURED), 100.0),
    "configured, own time never": (vmi_world(a_vmi_with("0"), SILENT, **CONFIGURED), None),
    "configured never, own time": (vmi_world(a_vmi_with("50"), SILENT, **OFF), 50.0),
    "configured never": (vmi_world(PLAIN, SILENT, **OFF), None),
    "configured, own time is malformed": (vmi_world(a_vmi_with("soon"), SILENT, **CONFIGURED), 100.0),
}


@pytest.mark.parametrize(("world", "expected"), CASES.values(), ids=CASES)
def test_how_much_time_is_left(world: World, expected: float | None) -> None:
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
    world = vmi_world(a_vmi_with("1"), UP_POD, placed_for=9000.0)
    assert [type(step).__name__ for step in decide(world).steps] == ["GrantStart"]


def test_the_time_counts_for_each_pod_from_its_observed_placement() -> None:
    state = VmiState("uid")
    assert state.placed_for(None, 5.0) == 0.0
    assert state.placed_for(a_pod(), 5.0) == 0.0
    assert state.placed_for(SILENT, 10.0) == 0.0
    assert state.placed_for(SILENT, 25.0) == 15.0
    assert state.placed_for(a_pod(node="node-2", uid="another"), 30.0) == 0.0
