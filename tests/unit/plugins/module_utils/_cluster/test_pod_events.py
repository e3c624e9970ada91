# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Events tell of Pods that do not start."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.pod_events import event_troubles

TYPE_CHECK = 'MountVolume.SetUp failed for volume "pods" : hostPath type check failed: /x/pods is not a directory'
SECRET = 'MountVolume.SetUp failed for volume "certs" : secret "a" not found'
REMEDY = " (set control_plane_kubelet_root to the root directory, --root-dir, of the kubelets)"
SCC = "pods is forbidden: unable to validate against any security context constraint"


def a_pod(reason: str | None = "ContainerCreating") -> dict[str, Any]:
    state = {"waiting": {"reason": reason}} if reason else {"running": {}}
    return {
        "metadata": {"name": "virt-node-1"},
        "spec": {"nodeName": "a"},
        "status": {"containerStatuses": [{"state": state}]},
    }


def an_event(reason: str, kind: str, name: str, message: str, at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return {
        "reason": reason,
        "involvedObject": {"kind": kind, "name": name},
        "message": message,
        "lastTimestamp": at,
    }


def failed_mount(message: str, at: str = "2026-01-01T00:00:00Z") -> dict[str, Any]:
    return an_event("FailedMount", "Pod", "virt-node-1", message, at)


@pytest.mark.parametrize(
    ("pods", "events", "expected"),
    [
        pytest.param(
            [a_pod()], [failed_mount(TYPE_CHECK)], [f"Pod virt-node-1 on node a: {TYPE_CHECK}{REMEDY}"], id="wrong root"
        ),
        pytest.param(
            [a_pod("PodInitializing")], [failed_mount(SECRET)], [f"Pod virt-node-1 on node a: {SECRET}"], id="a Secret"
        ),
        pytest.param(
            [a_pod()],
            [failed_mount(SECRET), failed_mount("newer", "2026-01-01T00:01:00Z")],
            ["Pod virt-node-1 on node a: newer"],
            id="the newest",
        ),
        pytest.param([a_pod(None)], [failed_mount(TYPE_CHECK)], [], id="it runs by now"),
        pytest.param([a_pod()], [an_event("FailedMount", "Pod", "another", SECRET)], [], id="of another Pod"),
        pytest.param([a_pod()], [], [], id="no Event"),
        pytest.param(
            [],
            [an_event("FailedCreate", "DaemonSet", "virt-node", SCC)],
            [f"its Pods are refused: {SCC}"],
            id="refused to a DaemonSet",
        ),
        pytest.param(
            [],
            [an_event("FailedCreate", "ReplicaSet", "virt-node-5d4f", SCC)],
            [f"its Pods are refused: {SCC}"],
            id="refused to a Deployment",
        ),
        pytest.param([], [an_event("FailedCreate", "DaemonSet", "virt-handler", SCC)], [], id="of another component"),
        pytest.param([a_pod()], [an_event("FailedCreate", "DaemonSet", "virt-node", SCC)], [], id="not refused now"),
    ],
)
def test_the_cause_is_in_events(pods: list[Any], events: list[Any], expected: list[str]) -> None:
    assert event_troubles("virt-node", pods, events) == expected
