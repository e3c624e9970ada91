# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which states of a machine end a wait early."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.wait import stuck

CLAIM = "PersistentVolumeClaim default/data not found"
PULL = "registry/guest:1: not found"


def obj(kind: str, reason: str, message: str = "", status: str = "False") -> dict[str, Any]:
    return {"status": {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}}


@pytest.mark.parametrize(
    ("machine", "key"),
    [
        pytest.param(obj("Synchronized", "FailedPvcNotFound", CLAIM), "claim", id="no claim"),
        pytest.param(obj("Synchronized", "ErrImagePull", PULL), "image", id="no image"),
        pytest.param(obj("Synchronized", "ImagePullBackOff", PULL), "image", id="no image, tried again"),
        pytest.param(obj("Synchronized", "ErrImageNeverPull"), "image", id="not on the node, and never pulled"),
        pytest.param(obj("Synchronized", "InvalidImageName"), "image", id="no name of an image"),
        pytest.param(obj("Synchronized", "FailedPvcNotFound", status="True"), None, id="healed"),
        pytest.param(obj("Synchronized", "FailedMount"), None, id="a mount is tried again"),
        pytest.param(obj("Synchronized", "FurtherAttempt"), None, id="another node is tried"),
        pytest.param(obj("Synchronized", "VirtHandlerSilent"), None, id="virt-handler comes back"),
        pytest.param(obj("Synchronized", "FailedCreate", "exceeded quota"), None, id="a quota may be free again"),
        pytest.param(obj("PodScheduled", "Unschedulable"), None, id="depends on the nodes"),
        pytest.param({}, None, id="nothing is known"),
    ],
)
def test_a_state_that_does_not_end_by_itself(machine: dict[str, Any], key: str | None) -> None:
    found = stuck.of_machine(machine)
    assert (found.key if found else None) == key


def test_the_text_has_the_cause_the_remedy_and_the_way_to_wait_all_the_same() -> None:
    found = stuck.of_machine(obj("Synchronized", "FailedPvcNotFound", CLAIM))
    assert (found and found.text) == (
        "FailedPvcNotFound: PersistentVolumeClaim default/data not found; create it, or correct the name in the volume"
        " (fail_fast=false waits all the same)"
    )


@pytest.mark.parametrize(("reason", "key"), [("ErrImagePull", "image"), ("ContainerCreating", None), (None, None)])
@pytest.mark.parametrize("containers", ["initContainerStatuses", "containerStatuses"])
def test_a_pod_with_a_container_that_cannot_start(containers: str, reason: str | None, key: str | None) -> None:
    running = {"state": {"running": {}}}
    pod = {"status": {containers: [running, {"state": {"waiting": {"reason": reason}}}]}}
    found = stuck.of_pod(pod)
    assert (found.key if found else None) == key


@pytest.mark.parametrize(
    ("machine", "expected"),
    [
        (obj("PodScheduled", "Unschedulable"), True),
        (obj("PodScheduled", "SchedulingGated"), False),
        (obj("PodScheduled", "Unschedulable", status="True"), False),
        ({}, False),
    ],
)
def test_whether_the_scheduler_finds_no_node(machine: dict[str, Any], expected: bool) -> None:
    assert stuck.is_unschedulable(machine) is expected
