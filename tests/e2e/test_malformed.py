# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed VMs are refused by name within a second; an error that only a start can find ends the run with its
reason.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.cluster import Cluster
from tests.e2e.machines import GUEST, a_vm

pytestmark = [pytest.mark.lab, pytest.mark.nightly]

CORPUS = yaml.safe_load((Path(__file__).parent / "manifests/malformed.yaml").read_text())


Pod = dict[str, Any]


def is_unschedulable(pod: Pod) -> bool:
    conditions = pod["status"].get("conditions", ())
    return any((condition["type"], condition["status"]) == ("PodScheduled", "False") for condition in conditions)


def has_state(pod: Pod, state: str, reasons: tuple[str, ...]) -> bool:
    """Whether a container is in a state for one of these reasons."""
    parts = ("initContainerStatuses", "containerStatuses")
    states = [container["state"].get(state) or {} for part in parts for container in pod["status"].get(part, ())]
    return any(state_.get("reason") in reasons for state_ in states)


def lacks_an_image(pod: Pod) -> bool:
    return has_state(pod, "waiting", ("ErrImagePull", "ImagePullBackOff"))


def has_ended(pod: Pod) -> bool:
    return has_state(pod, "terminated", ("Error",))


def merged(target: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    """Apply a JSON merge patch."""
    result = dict(target)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict) and isinstance(result.get(key), dict):
            result[key] = merged(result[key], value)
        else:
            result[key] = value
    return result


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in CORPUS])
def test_a_malformed_vm_is_refused_by_name(cluster: Cluster, row: dict[str, Any]) -> None:
    malformed = merged(a_vm("malformed", runStrategy="Halted"), row["patch"])
    done = cluster.try_kubectl("create", "--validate=false", "-f", "-", given=json.dumps(malformed))

    assert done.returncode != 0, "it was accepted"
    for words in row["says"]:
        assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert cluster.list("vm") == []


def test_a_missing_kernel_ends_the_run_with_its_reason(cluster: Cluster) -> None:
    """QEMU runs for some 20 ms before it fails: observed at that moment, the machine once stayed Running."""
    name = "no-kernel"
    kernel = {"container": {"image": GUEST, "kernelPath": "/disk/no-such-kernel"}}
    spec = {"domain": {"memory": {"guest": "96Mi"}, "devices": {}, "firmware": {"kernelBoot": kernel}}}
    cluster.apply(
        {"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance"}
        | {"metadata": {"name": name, "namespace": "default"}, "spec": spec}
    )

    cluster.wait("vmi", name, ".status.phase", "Failed")
    vmi = cluster.get("vmi", name)
    assert vmi is not None
    conditions = {condition["type"]: condition for condition in vmi["status"]["conditions"]}
    assert "no-such-kernel" in conditions["Synchronized"]["message"]
    assert conditions["Ready"]["status"] == "False"
    assert "Running" not in [timestamp["phase"] for timestamp in vmi["status"]["phaseTransitionTimestamps"]]
    cluster.kubectl("delete", "vmi", name)
    cluster.wait_gone("vmi", name)


def test_a_missing_secret_is_in_the_vm_status_until_it_exists(cluster: Cluster) -> None:
    vm = a_vm("no-secret", user_data="unused")
    vm["spec"]["template"]["spec"]["volumes"][1] = {"name": "seed", "cloudInitNoCloud": {"secretRef": {"name": "seed"}}}
    cluster.apply(vm)

    def about_its_pod() -> bool:
        events = cluster.list("events", "--field-selector", "reason=FailedMount")
        return any(
            "no-secret" in event["involvedObject"]["name"]
            for event in events
            if event["involvedObject"]["kind"] == "Pod"
        )

    def mount_error() -> str:
        conditions = (cluster.get("vm", "no-secret") or {}).get("status", {}).get("conditions", ())
        return next((condition["message"] for condition in conditions if condition.get("reason") == "FailedMount"), "")

    cluster.eventually(about_its_pod, what="an Event FailedMount about the Pod")
    assert '"seed" not found' in cluster.eventually(mount_error, what="the VM's status has the error")

    cluster.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "seed", "namespace": "default"}}
        | {"stringData": {"userdata": "#!/bin/sh\n"}}
    )
    cluster.running("no-secret")
    cluster.eventually(lambda: not mount_error(), what="the error is gone from the VM's status")
    cluster.kubectl("delete", "vm/no-secret", "secret/seed")
    cluster.wait_gone("vmi", "no-secret")


@pytest.mark.parametrize(
    ("changes", "is_told", "words"),
    [
        pytest.param({"nodeSelector": {"no": "such-node"}}, is_unschedulable, "node affinity/selector", id="no-node"),
        pytest.param(
            {"volumes": [{"name": "root", "containerDisk": {"image": "localhost/virtops/no-such:1"}}]},
            lacks_an_image,
            "localhost/virtops/no-such:1",
            id="no-image",
        ),
        pytest.param(
            {"volumes": [{"name": "root", "containerDisk": {"image": GUEST, "path": "/disk/no-such.img"}}]},
            has_ended,
            "InvalidDisk",
            id="bad-disk",
        ),
    ],
)
def test_the_error_of_a_pod_is_in_the_vm_status(
    cluster: Cluster, request: pytest.FixtureRequest, changes: Pod, is_told: Callable[[Pod], bool], words: str
) -> None:
    name = request.node.callspec.id
    vm = a_vm(name)
    vm["spec"]["template"]["spec"] |= changes
    cluster.apply(vm)

    def is_in_pod_status() -> bool:
        return any(is_told(pod) for pod in cluster.list("pods", "-n", "default", "-l", f"vmi.kubevirt.io/id={name}"))

    def is_in_vm_status() -> bool:
        conditions = (cluster.get("vm", name) or {}).get("status", {}).get("conditions", ())
        return any(words in condition.get("message", "") for condition in conditions)

    cluster.eventually(is_in_pod_status, what="the Pod's status has the error")
    cluster.eventually(is_in_vm_status, what="the VM's status has the error")
    cluster.kubectl("delete", "vm", name)
