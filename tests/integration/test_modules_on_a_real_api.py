# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The modules, run by Ansible on a real API server with our CRDs (no control plane, no nodes).

These tests cover what a fake cannot: managed fields, dry run, strict validation and watches of Kubernetes.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from lab import Lab
from lab.cluster.api import Api
from tests.integration.conftest import Task

pytestmark = pytest.mark.component

ROOT = Path(__file__).resolve().parents[2]
VMS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachines"
INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


def definition(name: str, **labels: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "runStrategy": "Halted",
            "template": {
                "spec": {
                    "domain": {"memory": {"guest": "256Mi"}, "devices": {"disks": [{"name": "a"}, {"name": "b"}]}},
                    "volumes": [
                        {"name": "a", "containerDisk": {"image": "registry/guest:1"}},
                        {"name": "b", "emptyDisk": {"capacity": "1Gi"}},
                    ],
                }
            },
        },
    }


def read(api: Api, name: str) -> dict[str, Any]:
    vm = api.get(f"{VMS}/{name}")
    assert vm is not None
    return vm


def test_options_create_change_and_keep(task: Task, api: Api) -> None:
    machine = {"name": "options", "memory": "256Mi", "image": "registry/guest:1", "running": False}
    assert task(**machine)["method"] == "create"
    version = read(api, "options")["metadata"]["resourceVersion"]
    assert task(**machine)["changed"] is False
    assert task("kubevirt_vm", "--check", **{**machine, "memory": "512Mi"})["changed"] is True
    assert read(api, "options")["metadata"]["resourceVersion"] == version
    changed = task(name="options", memory="512Mi")
    assert (changed["changed"], changed["method"]) == (True, "patch")
    spec = read(api, "options")["spec"]
    assert spec["runStrategy"] == "Halted"
    assert spec["template"]["spec"]["volumes"], "what is not named stays"


RIVAL = """
import json, os, sys
from ansible_collections.virtops.kubevirt.plugins.module_utils._client import api, endpoint
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm import batch
from ansible_collections.virtops.kubevirt.plugins.module_utils._vm.write import ensure_state

looks = []
read = ensure_state.read
ensure_state.read = lambda *where: read(*where) if looks or looks.append(1) else None
there = api.Api.connect(endpoint.resolve({"kubeconfig": sys.argv[1]}, os.environ))
result = batch.run(json.loads(sys.argv[2]), there, check_mode=False, diff=False)
print(json.dumps([result["changed"], result["method"], len(looks)]))
"""
"""A task whose first read finds nothing, although the machine exists by then."""


def test_a_machine_created_before_the_write_is_not_created_again(task: Task, api: Api, lab: Lab, place: Path) -> None:
    assert task(definition=definition("rival"))["method"] == "create"
    params = {"name": "rival", "namespace": "default", "state": "present", "memory": "512Mi"}
    done = subprocess.run(
        [sys.executable, "-c", RIVAL, str(lab.kubeconfig), json.dumps(params)],
        env={**os.environ, "PYTHONPATH": str(place)},
        capture_output=True,
        text=True,
        check=True,
    )

    assert json.loads(done.stdout) == [True, "patch", 1]
    spec = read(api, "rival")["spec"]
    assert (spec["runStrategy"], len(spec["template"]["spec"]["volumes"])) == ("Halted", 2)


def test_a_definition_removes_only_what_it_declared_before(task: Task, api: Api) -> None:
    declared = definition("whole", mine="1", old="2")
    assert task(definition=declared)["method"] == "create"
    assert task(definition=declared)["changed"] is False
    task(name="whole", labels={"foreign": "3"})
    del declared["metadata"]["labels"]["old"]
    declared["spec"]["template"]["spec"]["domain"]["devices"]["disks"].pop()
    declared["spec"]["template"]["spec"]["volumes"].pop()
    result = task("kubevirt_vm", "--diff", definition=declared)
    assert (result["changed"], result["method"]) == (True, "apply")
    vm = read(api, "whole")
    assert vm["metadata"]["labels"] == {"mine": "1", "foreign": "3"}
    assert [item["name"] for item in vm["spec"]["template"]["spec"]["volumes"]] == ["a"]
    assert task(definition=declared)["changed"] is False


def machine(api: Api, name: str) -> dict[str, Any]:
    spec: dict[str, Any] = read(api, name)["spec"]["template"]["spec"]
    return spec


def names(items: list[dict[str, Any]]) -> list[str]:
    return [item["name"] for item in items]


def test_a_disk_hotplugged_by_somebody_else_stays(task: Task, api: Api) -> None:
    declared = definition("plugged")
    task(definition=declared)
    hot = {"name": "hot", "emptyDisk": {"capacity": "1Gi"}}
    plugged = {"template": {"spec": {"volumes": [*machine(api, "plugged")["volumes"], hot]}}}
    api.patch(f"{VMS}/plugged", {"spec": plugged})
    assert task(definition=declared)["changed"] is False
    declared["spec"]["template"]["spec"]["hostname"] = "h"
    declared["spec"]["template"]["spec"]["domain"]["devices"]["disks"].pop()
    declared["spec"]["template"]["spec"]["volumes"].pop()
    for volumes in (["a", "hot"], ["a", "hot", "c"]):
        assert names(machine(api, "plugged")["volumes"]) != volumes
        options = {"volumes": [{"name": "c", "emptyDisk": {"capacity": "1Gi"}}], "disks": [{"name": "c"}]}
        arguments = {"name": "plugged", **options} if "c" in volumes else {"definition": declared}
        assert task(**arguments)["changed"] is True
        assert names(machine(api, "plugged")["volumes"]) == volumes
        assert task(**arguments)["changed"] is False
        assert task(definition=declared)["changed"] is False


def test_a_null_removes_fields_of_others_and_fields_written_beside_it_can_be_removed(task: Task, api: Api) -> None:
    declared = definition("nulls")
    task(definition=declared)
    spec = declared["spec"]["template"]["spec"]
    bios = {"nodeSelector": {"zone": "a"}, "domain": {"firmware": {"bootloader": {"bios": {}}}}}
    api.patch(f"{VMS}/nulls", {"spec": {"template": {"spec": bios}}})
    spec.update({"nodeSelector": None, "hostname": "h"})
    spec["domain"]["firmware"] = {"bootloader": {"efi": {"secureBoot": False}}}
    assert task(definition=declared)["changed"] is True
    vm = machine(api, "nulls")
    assert ("nodeSelector" in vm, vm["hostname"]) == (False, "h")
    assert list(vm["domain"]["firmware"]["bootloader"]) == ["efi"]
    assert task(definition=declared)["changed"] is False
    del spec["hostname"]
    assert task(definition=declared)["changed"] is True
    assert "hostname" not in machine(api, "nulls")
    assert task(definition=declared)["changed"] is False


def test_force_changes_nothing_again_after_an_annotation_of_a_controller(task: Task, api: Api) -> None:
    declared = definition("forced")
    task(definition=declared)
    api.patch(f"{VMS}/forced", {"metadata": {"annotations": {"controller.example.org/seen": "1"}}})
    declared["spec"]["template"]["spec"]["hostname"] = "h"
    assert task(definition=declared, force=True)["method"] == "replace"
    assert task(definition=declared, force=True)["changed"] is False
    assert read(api, "forced")["metadata"]["annotations"]["controller.example.org/seen"] == "1"
    del declared["spec"]["template"]["spec"]["hostname"]
    assert task(definition=declared)["changed"] is True
    assert "hostname" not in machine(api, "forced"), "a replacement is taken back like any other declaration"


def test_stopped_is_created_halted(task: Task, api: Api) -> None:
    stopped = {"name": "stopped", "memory": "64Mi", "image": "registry/guest:1", "run_strategy": "Always"}
    assert task(state="stopped", **stopped)["method"] == "create"
    assert read(api, "stopped")["spec"]["runStrategy"] == "Halted"
    assert task(state="stopped", **stopped)["changed"] is False


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        pytest.param({"runStrategy": "Sometimes"}, "runStrategy", id="unknown value"),
        pytest.param({"running": True}, "running", id="fields that exclude one another"),
        pytest.param({"template": {"spec": {"domain": {"cpu": {"cores": "two"}}}}}, "cores", id="wrong type"),
    ],
)
def test_a_field_that_the_server_refuses_is_named_and_nothing_is_created(
    task: Task, api: Api, spec: dict[str, Any], words: str
) -> None:
    declared = definition("refused")
    declared["spec"].update(spec)
    result = task(definition=declared)
    assert result["failed"] is True
    assert words in result["msg"]
    assert len(result["msg"]) < 600
    assert "Traceback" not in json.dumps(result)
    assert api.get(f"{VMS}/refused") is None


def test_waiting_sees_the_change_and_a_timeout_has_its_reason(task: Task, api: Api) -> None:
    task(definition=definition("waits"))
    vain = task(name="waits", running=True, wait=True, wait_timeout=1)
    assert vain["failed"] is True
    assert "default/waits is not running after 1 s: it has no instance" in vain["msg"]
    assert vain["changed"] is True

    def become_ready() -> None:
        time.sleep(2)
        conditions = [{"type": "Ready", "status": "True", "lastProbeTime": None, "lastTransitionTime": None}]
        instance = {
            "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": "waits"},
            "spec": {"domain": {"devices": {}}},
        }  # fmt: skip
        api.create(INSTANCES, instance)
        api.patch(f"{INSTANCES}/waits/status", {"status": {"phase": "Running", "conditions": conditions}})
        api.patch(f"{VMS}/waits/status", {"status": {"ready": True, "created": True, "conditions": conditions}})

    thread = threading.Thread(target=become_ready)
    thread.start()
    result = task(name="waits", running=True, wait=True, wait_timeout=300)
    thread.join()
    assert result["result"]["status"]["ready"] is True
    assert result["duration"] < 20
    assert task("kubevirt_vmi_info", name="waits", wait=True)["resources"][0]["status"]["phase"] == "Running"


def test_a_machine_that_is_being_deleted_is_waited_for_and_created_again(task: Task, api: Api) -> None:
    machine = definition("again")
    task(definition={**machine, "metadata": {**machine["metadata"], "finalizers": ["example.com/hold"]}})
    uid = read(api, "again")["metadata"]["uid"]
    assert task(name="again", state="absent")["method"] == "delete"
    late = task(definition=machine, wait_timeout=1)
    assert late["failed"] is True
    assert "it waits for its finalizers: example.com/hold" in late["msg"]
    assert read(api, "again")["metadata"]["uid"] == uid

    def release() -> None:
        time.sleep(2)
        api.patch(f"{VMS}/again", {"metadata": {"finalizers": None}})

    thread = threading.Thread(target=release)
    thread.start()
    result = task(definition=machine, wait_timeout=60)
    thread.join()
    assert (result["changed"], result["method"]) == (True, "create")
    assert read(api, "again")["metadata"]["uid"] == result["result"]["metadata"]["uid"] != uid


def test_check_mode_gets_through_a_first_run(task: Task, api: Api) -> None:
    """Nothing exists that earlier tasks of the playbook would have created: not even the namespace."""
    machine = {"name": "first", "namespace": "not-yet", "memory": "64Mi", "image": "registry/guest:1", "wait": True}
    created = task("kubevirt_vm", "--check", **machine)
    paused = task("kubevirt_vm", "--check", name="first", state="paused", wait=True)
    exposed = task("kubevirt_service", "--check", vm="first", namespace="not-yet", ports=[{"port": 22}])
    seen = task("kubevirt_vmi_info", "--check", name="first", wait=True, wait_timeout=240)

    assert [item["changed"] for item in (created, paused, exposed)] == [True, True, True]
    assert created["result"]["metadata"]["namespace"] == "not-yet"
    assert (paused["method"], seen["resources"]) == ("pause", [])
    assert task("kubevirt_vm", **machine)["failed"] is True


def test_many_are_created_read_and_deleted_at_once(task: Task) -> None:
    vms = [{"name": f"many-{index}"} for index in range(12)]
    machine = {"memory": "64Mi", "image": "registry/guest:1", "running": False, "labels": {"app": "many"}}
    assert task(vms=vms, **machine)["changed"] is True
    assert task(vms=vms, **machine)["changed"] is False
    machines = task("kubevirt_vm_info", label_selectors=["app=many"])["resources"]
    assert len(machines) == 12
    gone = task(vms=vms, state="absent", wait=True, wait_timeout=300)
    assert [item["method"] for item in gone["results"]] == ["delete"] * 12
    assert task("kubevirt_vm_info", label_selectors=["app=many"])["resources"] == []
    assert task(vms=vms, state="absent")["changed"] is False


def test_an_instance_is_created_labelled_refused_and_deleted(task: Task, api: Api) -> None:
    machine = {"name": "bare", "memory": "256Mi", "image": "registry/guest:1"}
    assert task("kubevirt_vmi", "--check", **machine)["changed"] is True
    assert api.get(f"{INSTANCES}/bare") is None
    assert task("kubevirt_vmi", **machine)["method"] == "create"
    assert task("kubevirt_vmi", **machine)["changed"] is False
    assert task("kubevirt_vmi", labels={"app": "bare"}, **machine)["method"] == "patch"
    other = {**machine, "memory": "512Mi"}
    assert "spec.domain.memory.guest differ" in task("kubevirt_vmi", **other)["msg"]
    assert task("kubevirt_vmi", force=True, **other)["method"] == "replace"
    assert task("kubevirt_vmi", force=True, **other)["changed"] is False
    assert "is not yet seen by virt-controller" in task("kubevirt_vmi", name="bare", state="paused")["msg"]
    assert task("kubevirt_vmi", name="bare", state="absent", wait=True)["method"] == "delete"
    assert task("kubevirt_vmi", name="bare", state="absent", wait=True)["changed"] is False
    several = {"vmis": [{"name": "bare-1"}, {"name": "bare-2", "labels": {"app": "bare"}}]}
    both = task("kubevirt_vmi", memory="256Mi", image="registry/guest:1", **several)
    assert [item["method"] for item in both["results"]] == ["create", "create"]
    gone = task("kubevirt_vmi", state="absent", wait=True, **several)
    assert [item["method"] for item in gone["results"]] == ["delete", "delete"]


def test_a_set_is_created_scaled_and_left_to_an_autoscaler(task: Task, api: Api) -> None:
    labels = {"app": "workers"}
    whole = {
        "metadata": {"name": "workers"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"domain": {"devices": {}}}},
        },
    }
    assert task("kubevirt_replicaset", definition=whole)["method"] == "create"
    assert task("kubevirt_replicaset", definition=whole)["changed"] is False
    assert task("kubevirt_replicaset", name="workers", replicas=3)["method"] == "patch"
    del whole["spec"]["replicas"]
    whole["spec"]["template"]["spec"]["hostname"] = "h"
    assert task("kubevirt_replicaset", definition=whole)["method"] == "apply"
    assert task("kubevirt_replicaset", definition=whole)["changed"] is False
    (replica_set,) = task("kubevirt_replicaset_info", name="workers")["resources"]
    assert (replica_set["spec"]["replicas"], replica_set["spec"]["template"]["spec"]["hostname"]) == (3, "h")
    late = task("kubevirt_replicaset_info", name="workers", wait=True, wait_timeout=1)
    assert "default/workers is not ready after 1 s: 0 of 3 instances are ready, 0 exist" in late["msg"]
    assert task("kubevirt_replicaset", name="workers", state="absent", wait=True)["method"] == "delete"
    assert task("kubevirt_replicaset", name="workers", state="absent")["changed"] is False


def test_a_pool_is_created_changed_and_left_to_an_autoscaler(task: Task, api: Api) -> None:
    labels = {"app": "pooled"}
    machine = {"runStrategy": "Halted", "template": {"spec": {"domain": {"devices": {}}}}}
    whole = {
        "metadata": {"name": "pooled"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "virtualMachineTemplate": {"metadata": {"labels": labels}, "spec": machine},
        },
    }
    assert task("kubevirt_pool", definition=whole)["method"] == "create"
    assert task("kubevirt_pool", definition=whole)["changed"] is False
    assert task("kubevirt_pool", name="pooled", replicas=3)["method"] == "patch"
    proactive = {"type": "proactive", "sort_policy": "Oldest"}
    assert task("kubevirt_pool", name="pooled", update_strategy=proactive, max_unavailable="50%")["method"] == "patch"
    assert task("kubevirt_pool", name="pooled", update_strategy={"type": "unmanaged"})["method"] == "patch"
    del whole["spec"]["replicas"]
    machine["template"]["spec"]["hostname"] = "h"
    assert task("kubevirt_pool", definition=whole)["method"] == "apply"
    assert task("kubevirt_pool", definition=whole)["changed"] is False
    (pool,) = task("kubevirt_pool_info", name="pooled")["resources"]
    assert (pool["spec"]["replicas"], pool["spec"]["updateStrategy"]) == (3, {"unmanaged": {}})
    assert pool["spec"]["virtualMachineTemplate"]["spec"]["template"]["spec"]["hostname"] == "h"
    late = task("kubevirt_pool_info", name="pooled", wait=True, wait_timeout=1)
    assert "default/pooled is not ready after 1 s: 0 of 3 machines are ready, 0 exist" in late["msg"]
    assert task("kubevirt_pool", name="pooled", state="absent", wait=True)["method"] == "delete"
    assert task("kubevirt_pool", name="pooled", state="absent")["changed"] is False


def test_a_service_is_created_changed_and_deleted(task: Task, api: Api) -> None:
    task(name="exposed", memory="64Mi", image="registry/guest:1", running=False)
    web = {"vm": "exposed", "ports": [{"port": 80, "target_port": 8080}]}
    assert task("kubevirt_service", "--check", **web)["changed"] is True
    created = task("kubevirt_service", **web)
    assert (created["method"], created["result"]["spec"]["selector"]) == ("create", {"vmi.kubevirt.io/id": "exposed"})
    assert created["result"]["metadata"]["ownerReferences"][0]["uid"] == read(api, "exposed")["metadata"]["uid"]
    assert task("kubevirt_service", **web)["changed"] is False
    node_port = task("kubevirt_service", vm="exposed", type="NodePort")
    assert node_port["method"] == "patch"
    (port,) = node_port["result"]["spec"]["ports"]
    assert (port["port"], port["targetPort"], port["nodePort"] >= 30000) == (80, 8080, True)
    assert task("kubevirt_service", type="NodePort", **web)["changed"] is False
    several = [{"name": "http", "port": 80}, {"name": "more", "port": 81}]
    assert len(task("kubevirt_service", vm="exposed", ports=several)["result"]["spec"]["ports"]) == 2
    assert task("kubevirt_service", vm="exposed", ports=several)["changed"] is False
    assert task("kubevirt_service", name="exposed", state="absent", wait=True)["method"] == "delete"
    assert task("kubevirt_service", name="exposed", state="absent")["changed"] is False


OURS = {"app.kubernetes.io/managed-by": "virtops.kubevirt", "app.kubernetes.io/part-of": "kubevirt"}


def a_deployment(name: str) -> dict[str, Any]:
    labels = {"app": "never"}
    pod = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "one", "image": "registry/none:1"}]}}
    metadata = {"name": name, "namespace": "default", "labels": OURS}
    spec = {"selector": {"matchLabels": labels}, "template": pod}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}


def test_an_object_that_does_not_serve_in_time_is_named_with_its_problem(task: Task, api: Api) -> None:
    api.create(DEPLOYMENTS, a_deployment("never"))
    late = task("kubevirt_control_plane_info", namespace="default", wait=True, wait_timeout=1)
    api.delete(f"{DEPLOYMENTS}/never")
    assert late["failed"]
    assert late["msg"].startswith("Deployment never: its controller has not seen the latest change yet")


def test_objects_of_the_role_and_foreign_ones_of_the_same_name_are_told_apart(task: Task, api: Api) -> None:
    wanted = [a_deployment("made"), a_deployment("foreign")]
    api.create(DEPLOYMENTS, wanted[0])
    api.create(DEPLOYMENTS, {**wanted[1], "metadata": {"name": "foreign", "namespace": "default"}})
    installed = task("kubevirt_control_plane_info", namespace="default", definitions=wanted)
    for item in wanted:
        api.delete(f"{DEPLOYMENTS}/{item['metadata']['name']}")
    assert [item["metadata"]["name"] for item in installed["made"]] == ["made"]
    assert installed["namesakes"] == ["Deployment default/foreign"]
    assert installed["superfluous"] == []


def test_a_cluster_without_a_control_plane_is_reported(task: Task) -> None:
    """The CRDs of this lab have no label of an installer."""
    installed = task("kubevirt_control_plane_info", validate_certs=True)
    assert (installed["owner"], installed["version"], installed["namespace"]) == ("other", None, None)
    assert "unknown installer" in installed["evidence"]
