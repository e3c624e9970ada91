# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects of role control_plane applied and pruned on a real API server, with kubernetes.core as in the role."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import yaml

from lab.cluster.api import Api, ApiError
from tests.controlplane.virt_api.test_manifests import ROLE, render
from tests.integration import pod_monitors
from tests.integration.conftest import Task

pytestmark = pytest.mark.component

CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
MONITORS = "/apis/monitoring.coreos.com/v1/namespaces/default/podmonitors"
KNOWN = yaml.safe_load((ROLE / "vars/main.yml").read_text())


@pytest.fixture
def monitors(api: Api) -> Iterator[None]:
    """Install the Prometheus operator's kind on the API server."""
    api.create(CRDS, pod_monitors.DEFINITION)
    deadline = time.monotonic() + 30
    while not is_served(api):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    yield
    api.delete(f"{CRDS}/{pod_monitors.DEFINITION['metadata']['name']}")


def is_served(api: Api) -> bool:
    try:
        return api.get(MONITORS) is not None
    except ApiError:
        return False


@pytest.mark.usefixtures("monitors")
def test_a_monitor_is_accepted_and_pruned_when_no_longer_wanted(task: Task, api: Api) -> None:
    (monitor,) = render("pod-monitor.yaml.j2", control_plane_namespace="default")
    monitor["metadata"]["labels"] = KNOWN["__control_plane_marks"]
    applied = {"apply": True, "server_side_apply": KNOWN["__control_plane_apply"]}
    assert task("kubernetes.core.k8s", definition=[monitor], **applied)["failed"] is False
    assert (api.get(f"{MONITORS}/kubevirt") or {})["spec"] == monitor["spec"], "no field is one that nobody knows"
    assert task("kubernetes.core.k8s", definition=[monitor], **applied)["changed"] is False

    kept = task("kubevirt_control_plane_info", namespace="default", definitions=[monitor])
    assert ([item["kind"] for item in kept["made"]], kept["superfluous"]) == (["PodMonitor"], [])
    assert kept["has_pod_monitors"] is True
    others = render("virt-api.yaml.j2", control_plane_namespace="default")
    dropped = task("kubevirt_control_plane_info", namespace="default", definitions=others)["superfluous"]
    assert [(item["kind"], item["metadata"]["name"]) for item in dropped] == [("PodMonitor", "kubevirt")]

    assert task("kubernetes.core.k8s", state="absent", definition=dropped)["changed"] is True
    assert api.get(f"{MONITORS}/kubevirt") is None
