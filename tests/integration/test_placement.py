# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Scheduling of the controllers that the role renders, by the real scheduler and the real controller manager.

The nodes are only objects, so that nothing runs on them: one control-plane node and workers.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab import Lab
from lab.collection import linked_under
from lab.programs.ensure import ensure_programs
from lab.progress import silent
from tests.ad_hoc import run_module
from tests.unit.tasks import ROLES, Host, role_variables

pytestmark = pytest.mark.component

DIRECTORS = ("virt-api", "virt-controller")
CONTROL_PLANE = "node-role.kubernetes.io/control-plane"
NEEDED = ("Namespace", "PriorityClass", "ServiceAccount", "Deployment", "PodDisruptionBudget")
NOW_AND_THEN = 600
"""The nodes must stay Ready without heartbeats."""

Kubectl = Callable[..., str]


@pytest.fixture(scope="module")
def lab() -> Iterator[Lab]:
    with Lab("placement").running(nodes=0, node_grace_seconds=NOW_AND_THEN) as made:
        yield made


@pytest.fixture(scope="module")
def kubectl(lab: Lab) -> Kubectl:
    program = ensure_programs(lab.cache, silent).kube("kubectl")

    def run(*arguments: str, body: Any = None) -> str:
        command = [program, "--kubeconfig", lab.kubeconfig, *arguments]
        text = "" if body is None else json.dumps(body)
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
        return done.stdout

    return run


@pytest.fixture(scope="module")
def deployed(lab: Lab, kubectl: Kubectl, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    """Create nodes, inspect them as the role does, apply the rendered objects; return a kubectl for their namespace."""
    for name in ("control-plane", "worker-1", "worker-2", "worker-3"):
        add_node(kubectl, name)
    variables = role_variables("control_plane")
    asked = {name: variables[f"control_plane_{name}"] for name in ("node_selector", "tolerations")}
    place = linked_under(tmp_path_factory.mktemp("ansible"))
    installed = run_module(lab.kubeconfig, place, "kubevirt_control_plane_info", **asked)
    assert installed["control_plane_nodes"] == ["control-plane"], installed
    reported = {name: installed[name] for name in ("control_plane_nodes", "kept_control_plane_nodes")}
    variables["__control_plane_found"] = {"definitions_version": None, **reported}
    for item in Host(ROLES / "control_plane", variables).value("{{ __control_plane_components }}"):
        if item["kind"] in NEEDED:
            kubectl("apply", "-f", "-", body=item)
    return lambda *arguments, **options: kubectl("-n", "kubevirt", *arguments, **options)


def add_node(kubectl: Kubectl, name: str) -> None:
    is_of_control_plane = name == "control-plane"
    labels = {"kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", "kubernetes.io/hostname": name}
    taints = [{"key": CONTROL_PLANE, "effect": "NoSchedule"}] if is_of_control_plane else []
    metadata = {"name": name, "labels": {**labels, **({CONTROL_PLANE: ""} if is_of_control_plane else {})}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}
    kubectl("create", "-f", "-", body=node)
    resources = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    ready = {"type": "Ready", "status": "True", "reason": "Test", "message": ""}
    status = {"status": {"capacity": resources, "allocatable": resources, "conditions": [ready]}}
    kubectl("patch", "node", name, "--subresource=status", "--type=strategic", "-p", json.dumps(status))
    kubectl("wait", f"node/{name}", "--for=condition=Ready", "--timeout=300s")


def replicas(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    """Return the Pods of a component when all wanted replicas are up to date and scheduled."""
    kubectl("wait", f"deployment/{name}", "--for=jsonpath={.status.updatedReplicas}=2", "--timeout=300s")
    kubectl("wait", "pod", "-l", f"kubevirt.io={name}", "--for=condition=PodScheduled", "--timeout=300s")
    return those_there(kubectl, name)


def those_there(kubectl: Kubectl, name: str) -> list[dict[str, Any]]:
    """Return the Pods that are not being deleted: no kubelet ends the others."""
    pods = json.loads(kubectl("get", "pod", "-l", f"kubevirt.io={name}", "-o", "json"))["items"]
    return [pod for pod in pods if "deletionTimestamp" not in pod["metadata"]]


def say_that_they_serve(kubectl: Kubectl, pods: list[dict[str, Any]]) -> None:
    """Write the status that a kubelet would."""
    status = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    for pod in pods:
        name = pod["metadata"]["name"]
        kubectl("patch", "pod", name, "--subresource=status", "--type=strategic", "-p", json.dumps(status))


@pytest.mark.parametrize("name", DIRECTORS)
def test_every_replica_of_the_controllers_is_on_the_only_control_plane_node(deployed: Kubectl, name: str) -> None:
    assert [pod["spec"]["nodeName"] for pod in replicas(deployed, name)] == ["control-plane"] * 2


@pytest.mark.parametrize("name", DIRECTORS)
def test_an_upgrade_completes_on_that_node(deployed: Kubectl, name: str) -> None:
    say_that_they_serve(deployed, replicas(deployed, name))
    before = {pod["metadata"]["uid"] for pod in replicas(deployed, name)}
    deployed("set", "env", f"deployment/{name}", "VERSION=2")

    deployed("wait", f"deployment/{name}", "--for=jsonpath={.status.updatedReplicas}=1", "--timeout=300s")
    (new,) = (pod["metadata"]["name"] for pod in those_there(deployed, name) if pod["metadata"]["uid"] not in before)
    deployed("wait", f"pod/{new}", "--for=jsonpath={.spec.nodeName}=control-plane", "--timeout=300s")
    deployed("rollout", "undo", f"deployment/{name}")


@pytest.mark.parametrize("name", DIRECTORS)
def test_that_node_can_be_drained(deployed: Kubectl, name: str) -> None:
    pods = replicas(deployed, name)
    say_that_they_serve(deployed, pods)
    deployed("wait", f"pdb/{name}-pdb", "--for=jsonpath={.status.currentHealthy}=2", "--timeout=300s")
    deployed("cordon", "control-plane")
    try:
        for pod in pods:
            identity = {"name": pod["metadata"]["name"], "namespace": "kubevirt"}
            eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": identity}
            path = f"/api/v1/namespaces/kubevirt/pods/{identity['name']}/eviction"
            deployed("create", "--raw", path, "-f", "-", body={**eviction, "deleteOptions": {"gracePeriodSeconds": 0}})
    finally:
        deployed("uncordon", "control-plane")
