# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A run whose launcher Pod is evicted or deleted: its condition, and the Events of instance and machine."""

from __future__ import annotations

import pytest

from controlplane.api.objects import conditions
from controlplane.virt_controller.vmi.events import record_disruption_event
from controlplane.virt_controller.vmi.status import derive_status
from controlplane.virt_controller.vmi.world import World
from tests.controlplane.simulation.controller import RecordedEvents
from tests.controlplane.virt_controller.builders import (
    POD_UID,
    a_condition,
    a_pod,
    a_running_pod,
    a_vmi,
    vmi_world,
)

GRANTED = {"attempt": 1, "epoch": 1, "activePods": {POD_UID: "node-1"}, "nodeName": "node-1"}
TARGET = a_condition("DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
BY_KUBELET = a_condition("DisruptionTarget", "True", "TerminationByKubelet")
RUNNING, GOING = a_vmi("Running", **GRANTED), a_vmi("Running", deleting=True, **GRANTED)
MARKED = a_vmi("Running", conditions=[TARGET], **GRANTED)
EVICTED, DELETED = a_running_pod(deleting=True, conditions=(TARGET,)), a_running_pod(deleting=True)
SPARED = a_running_pod(conditions=(TARGET,))
NEXT = "the run strategy decides what is next"
POD = "launcher Pod virt-launcher-web-bbbbbbbb-1 on node node-1 was"

CASES: dict[str, tuple[World, tuple[str, str] | None]] = {
    "evicted": (vmi_world(RUNNING, EVICTED), ("EvictionByEvictionAPI", f"{POD} evicted: its guest is shut down")),
    "deleted": (vmi_world(RUNNING, DELETED), ("PodDeleted", f"{POD} deleted: its guest is shut down")),
    "to be evicted": (vmi_world(RUNNING, SPARED), ("EvictionByEvictionAPI", f"{POD} evicted: its guest is shut down")),
    "evicted by the kubelet, its guest obeyed": (
        vmi_world(RUNNING, a_pod("Failed", node="node-1", reason="Evicted", conditions=(BY_KUBELET,))),
        ("TerminationByKubelet", f"{POD} evicted: its guest is shut down"),
    ),
    "left alone": (vmi_world(RUNNING, a_running_pod()), None),
    "its machine is stopped": (vmi_world(GOING, DELETED), None),
    "the guest has moved": (vmi_world(MARKED, a_running_pod(), a_pod(uid="old", attempt=2, deleting=True)), None),
    "a migration's target": (vmi_world(RUNNING, a_running_pod(), a_pod(uid="t", attempt=2, deleting=True)), None),
    "the Pod is gone": (vmi_world(MARKED), ("EvictionByEvictionAPI", "Eviction API: evicting")),
    "evicted, it has ended": (
        vmi_world(RUNNING, a_pod("Succeeded", node="node-1", deleting=True, conditions=(TARGET,))),
        ("EvictionByEvictionAPI", f"{POD} evicted: its guest is shut down"),
    ),
    "over, its Pod is deleted later": (vmi_world(a_vmi("Succeeded", **GRANTED), EVICTED), None),
    "over, evicted before": (
        vmi_world(a_vmi("Succeeded", conditions=[TARGET], **GRANTED), EVICTED),
        ("EvictionByEvictionAPI", "Eviction API: evicting"),
    ),
}


@pytest.mark.parametrize(("world", "reported"), CASES.values(), ids=CASES.keys())
def test_a_pod_that_is_taken_from_a_run_is_reported(world: World, reported: tuple[str, str] | None) -> None:
    status = derive_status(world, None) or world.vmi.status
    condition = conditions.find(status.conditions, "DisruptionTarget")
    assert (condition and (condition.reason, condition.message)) == reported
    assert condition is None or condition.status == "True"


@pytest.mark.parametrize(
    ("world", "event"),
    [
        (
            vmi_world(RUNNING, EVICTED),
            (
                "Evicted",
                f"The {POD} evicted: its guest is shut down (EvictionByEvictionAPI); {NEXT}",
            ),
        ),
        (
            vmi_world(RUNNING, DELETED),
            ("PodDeleted", f"The {POD} deleted: its guest is shut down; {NEXT}"),
        ),
    ],
    ids=["evicted", "deleted"],
)
def test_instance_and_machine_say_once_that_it_was_evicted(world: World, event: tuple[str, str]) -> None:
    """Normal: to end a guest for maintenance is no failure of it."""
    recorder, status = RecordedEvents(), derive_status(world, None)
    assert status is not None
    record_disruption_event(recorder, world, status)
    marked = vmi_world(a_vmi("Running", conditions=[TARGET], **GRANTED), *world.pods)
    record_disruption_event(recorder, marked, marked.vmi.status)
    assert [recorded[1:] for recorded in recorder.events] == [event, event]
    assert recorder.kinds == ["Normal", "Normal"]
