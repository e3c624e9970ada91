# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""kubevirt_migration and role drain_node, run by Ansible on a real API server with a fake virt-controller."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import Lab
from lab.cluster.api import Api
from tests.integration.conftest import Task

pytestmark = pytest.mark.component

INSTANCES = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstances"
MIGRATIONS = "/apis/kubevirt.io/v1/namespaces/default/virtualmachineinstancemigrations"
NODES = "/api/v1/nodes"
PODS = "/api/v1/namespaces/default/pods"
HOSTNAME = "kubernetes.io/hostname"
FINALIZER = "kubevirt.io/migrationJobFinalize"
TIME = "2026-01-31T12:00:00Z"


class VirtController(threading.Thread):
    """Moves each migration to the phase of the test: Succeeded, Failed, or another.

    holds: machines whose migration goes no further than this phase.
    """

    def __init__(self, lab: Lab) -> None:
        super().__init__()
        self.api = lab.api()
        self.brings_to = "Succeeded"
        self.holds: dict[str, str] = {}
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            for item in (self.api.get(MIGRATIONS) or {"items": []})["items"]:
                self._look(item)
        self.api.close()

    def _look(self, migration: dict[str, Any]) -> None:
        path = f"{MIGRATIONS}/{migration['metadata']['name']}"
        status = migration.get("status") or {}
        if migration["metadata"].get("deletionTimestamp"):
            self.api.patch(f"{path}/status", {"status": {"phase": "Failed"}})
            self.api.patch(path, {"metadata": {"finalizers": None}})
        elif status.get("phase") in ("Succeeded", "Failed"):
            return
        elif not migration["metadata"].get("finalizers"):
            self.api.patch(path, {"metadata": {"finalizers": [FINALIZER]}})
        elif not status.get("phase"):
            self._enter(path, status, "Scheduling")
        elif status["phase"] == "Scheduling":
            self._go_on(path, migration, status)

    def _go_on(self, path: str, migration: dict[str, Any], status: dict[str, Any]) -> None:
        phase = self.holds.get(migration["spec"]["vmiName"], self.brings_to)
        if phase == "Running":
            self._enter(path, status, phase)
        elif phase != "Scheduling":
            self._end(path, migration, status)

    def _end(self, path: str, migration: dict[str, Any], status: dict[str, Any]) -> None:
        vmi = f"{INSTANCES}/{migration['spec']['vmiName']}"
        fails = self.brings_to == "Failed"
        to = (migration["spec"].get("addedNodeSelector") or {}).get(HOSTNAME, "node-2")
        state = {"migrationUid": migration["metadata"]["uid"], "targetNode": to, "completed": True, "failed": fails}
        ended = {"migrationState": {**state, **({"failureReason": "the tunnel broke"} if fails else {})}}
        self.api.patch(f"{vmi}/status", {"status": {**ended, **({} if fails else {"nodeName": to})}})
        self._enter(path, status, self.brings_to)

    def _enter(self, path: str, status: dict[str, Any], phase: str) -> None:
        listed = [*(status.get("phaseTransitionTimestamps") or ()), {"phase": phase, "phaseTransitionTimestamp": TIME}]
        self.api.patch(f"{path}/status", {"status": {"phase": phase, "phaseTransitionTimestamps": listed}})


@pytest.fixture
def controller(lab: Lab, api: Api) -> Iterator[VirtController]:
    """Two guests on the first of two nodes, and a fake virt-controller."""
    for name in ("node-1", "node-2"):
        labels = {HOSTNAME: name, "kubevirt.io/schedulable": "true"}
        api.create(NODES, {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}})
    for name in ("moves", "stays"):
        a_guest(api, name)
    played = VirtController(lab)
    played.start()
    yield played
    for item in (api.get(MIGRATIONS) or {"items": []})["items"]:
        api.delete(f"{MIGRATIONS}/{item['metadata']['name']}")
    played.over.set()
    played.join()
    for item in (api.get(MIGRATIONS) or {"items": []})["items"]:
        api.patch(f"{MIGRATIONS}/{item['metadata']['name']}", {"metadata": {"finalizers": None}})
    for path in (f"{INSTANCES}/moves", f"{INSTANCES}/stays", f"{NODES}/node-1", f"{NODES}/node-2"):
        api.delete(path)


def a_guest(api: Api, name: str) -> None:
    conditions = [
        {"type": kind, "status": "True", "lastProbeTime": None, "lastTransitionTime": None}
        for kind in ("Ready", "LiveMigratable")
    ]
    instance = {
        "apiVersion": "kubevirt.io/v1", "kind": "VirtualMachineInstance", "metadata": {"name": name},
        "spec": {"domain": {"devices": {}}},
    }  # fmt: skip
    api.create(INSTANCES, instance)
    status = {"phase": "Running", "nodeName": "node-1", "conditions": conditions}
    api.patch(f"{INSTANCES}/{name}/status", {"status": status})


def pin(api: Api, name: str, **spec: str) -> None:
    """Make a guest unable to migrate."""
    fixed = {"type": "LiveMigratable", "status": "False", "reason": "HostDeviceNotLiveMigratable", "message": "a GPU"}
    times = {"lastProbeTime": None, "lastTransitionTime": None}
    api.patch(f"{INSTANCES}/{name}", {"spec": spec})
    api.patch(f"{INSTANCES}/{name}/status", {"status": {"conditions": [{**fixed, **times}]}})


def node(api: Api, name: str) -> str:
    node: str = (api.get(f"{INSTANCES}/{name}") or {})["status"]["nodeName"]
    return node


def test_a_machine_is_moved_once(task: Task, api: Api, controller: VirtController) -> None:
    foreseen = task("kubevirt_migration", "--check", name="moves", target_node="node-2")
    assert (foreseen["changed"], foreseen["node"], node(api, "moves")) == (True, "node-1", "node-1")
    assert foreseen["result"]["spec"]["vmiName"] == "moves"
    assert task("kubevirt_migration_info")["resources"] == []
    moved = task("kubevirt_migration", name="moves", target_node="node-2")
    assert (moved["changed"], moved["method"], moved["node"], moved["phase"]) == (True, "create", "node-2", "Succeeded")
    assert [item["phase"] for item in moved["phases"]] == ["Scheduling", "Succeeded"]
    assert task("kubevirt_migration", name="moves", target_node="node-2")["changed"] is False
    (migration,) = task("kubevirt_migration_info", vm="moves", wait=True)["resources"]
    assert migration["status"]["phase"] == "Succeeded"


def test_a_failure_and_a_timeout_report_the_phase(task: Task, controller: VirtController) -> None:
    controller.brings_to = "Failed"
    failed = task("kubevirt_migration", name="moves")
    assert "failed: the tunnel broke; VirtualMachineInstance default/moves is on node node-1" in failed["msg"]
    assert (failed["changed"], failed["phase"]) == (True, "Failed")
    controller.brings_to = "Scheduling"
    late = task("kubevirt_migration", name="moves", wait_timeout=3)
    assert "is not over after 3 s, it is Scheduling" in late["msg"]
    (migration,) = task("kubevirt_migration_info", unfinished=True)["resources"]
    again = task("kubevirt_migration", "--check", name="moves")
    assert (again["changed"], again["result"]["metadata"]["name"]) == (False, migration["metadata"]["name"])
    cancelled = task("kubevirt_migration", name="moves", state="absent")
    assert (cancelled["changed"], cancelled["method"]) == (True, "delete")
    assert task("kubevirt_migration", name="moves", state="absent")["changed"] is False
    assert task("kubevirt_migration_info", unfinished=True)["resources"] == []


def test_an_unmovable_machine_is_refused_and_nothing_is_created(
    task: Task, api: Api, controller: VirtController
) -> None:
    pin(api, "stays")
    assert (
        "LiveMigratable is False (HostDeviceNotLiveMigratable: a GPU)"
        in task("kubevirt_migration", name="stays")["msg"]
    )
    assert "the cluster has no node node-9" in task("kubevirt_migration", name="moves", target_node="node-9")["msg"]
    assert task("kubevirt_migration_info")["resources"] == []
    both = task("kubevirt_migration", from_node="node-1", unmovable="leave")
    assert (both["summary"]["moved"], [item["name"] for item in both["unmovable"]]) == (1, ["stays"])


def drained(lab: Lab, place: Path, *flags: str, by: dict[str, str] | None = None, **variables: Any) -> tuple[int, str]:
    """Run the role; return the code and the output with the recap. by: a user other than admin."""
    play = [{"hosts": "localhost", "gather_facts": False, "roles": ["virtops.kubevirt.drain_node"]}]
    (place / "drain.yml").write_text(yaml.safe_dump(play))
    environment = {
        **os.environ,
        "ANSIBLE_COLLECTIONS_PATH": str(place),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "K8S_AUTH_KUBECONFIG": str(lab.kubeconfig),
        **(by or {}),
    }
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "drain.yml", "-e", json.dumps(variables), *flags]
    done = subprocess.run(command, env=environment, cwd=place, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def is_cordoned(api: Api) -> bool:
    return bool((api.get(f"{NODES}/node-1") or {})["spec"].get("unschedulable"))


@pytest.mark.nightly
def test_check_mode_leaves_the_node_as_it_is(lab: Lab, place: Path, api: Api, controller: VirtController) -> None:
    code, output = drained(lab, place, "--check", drain_node_name="node-1")
    assert (code, is_cordoned(api), node(api, "moves")) == (0, False, "node-1"), output


@pytest.mark.nightly
def test_a_node_is_drained_once_and_uncordoned(lab: Lab, place: Path, api: Api, controller: VirtController) -> None:
    here = {"drain_node_name": "node-1", "drain_node_wait_timeout": 60}
    code, output = drained(lab, place, **here)
    assert code == 0, output
    assert (is_cordoned(api), node(api, "moves"), node(api, "stays")) == (True, "node-2", "node-2")
    code, output = drained(lab, place, **here)
    assert (code, "changed=0" in output) == (0, True), output
    code, output = drained(lab, place, **here, drain_node_state="uncordoned")
    assert (code, "changed=1" in output, is_cordoned(api)) == (0, True, False), output


def test_a_failed_drain_names_the_machines_that_cannot_move_and_uncordons_the_node(
    lab: Lab, place: Path, api: Api, controller: VirtController
) -> None:
    pin(api, "stays", evictionStrategy="LiveMigrate")
    code, output = drained(lab, place, drain_node_name="node-1", drain_node_wait_timeout=60)
    assert code != 0
    assert (
        "cannot leave, and their evictionStrategy is LiveMigrate. default/stays: its condition LiveMigratable" in output
    )
    assert "It takes Pods again, as before." in output
    assert (is_cordoned(api), node(api, "moves")) == (False, "node-2")


@pytest.mark.nightly
def test_migrations_that_have_not_started_are_cancelled_when_the_node_is_uncordoned(
    lab: Lab, place: Path, task: Task, api: Api, controller: VirtController
) -> None:
    """Such a migration would leave a schedulable node as soon as another node has room."""
    controller.holds = {"moves": "Running", "stays": "Scheduling"}
    code, output = drained(lab, place, drain_node_name="node-1", drain_node_wait_timeout=6)
    assert code != 0
    assert "It takes Pods again, as before. Cancelled, because it had not started to move: default/stays." in output, (
        output
    )
    assert not is_cordoned(api)
    assert unfinished(task) == {"moves"}


@pytest.mark.nightly
def test_pending_migrations_continue_when_the_node_stays_cordoned(
    lab: Lab, place: Path, task: Task, api: Api, controller: VirtController
) -> None:
    """Migrations that others requested always continue."""
    controller.holds = {"moves": "Scheduling", "stays": "Scheduling"}
    api.patch(f"{NODES}/node-1", {"spec": {"unschedulable": True}})
    here = {"drain_node_name": "node-1", "drain_node_wait_timeout": 6}
    code, output = drained(lab, place, **here)
    assert (code != 0, "It stays cordoned, as before." in output, "Cancelled" in output) == (True, True, False), output
    assert unfinished(task) == {"moves", "stays"}
    api.patch(f"{NODES}/node-1", {"spec": {"unschedulable": None}})
    code, output = drained(lab, place, **here)
    assert (code != 0, "It takes Pods again, as before." in output, "Cancelled" in output) == (True, True, False), (
        output
    )
    assert unfinished(task) == {"moves", "stays"}


def unfinished(task: Task) -> set[str]:
    """Return the machines with a migration that is neither over nor being cancelled."""
    listed = task("kubevirt_migration_info", unfinished=True)["resources"]
    return {item["spec"]["vmiName"] for item in listed if not item["metadata"].get("deletionTimestamp")}


@pytest.fixture
def launcher(api: Api) -> Iterator[str]:
    """The path of a launcher Pod without an instance on the first node. No kubelet ends it here."""
    account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
    api.create("/api/v1/namespaces/default/serviceaccounts", account)
    spec = {"nodeName": "node-1", "containers": [{"name": "compute", "image": "registry/none:1"}]}
    metadata = {"name": "launcher", "labels": {"kubevirt.io": "virt-launcher"}}
    api.create(PODS, {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    api.patch(f"{PODS}/launcher/status", {"status": {"phase": "Running"}})
    yield f"{PODS}/launcher"
    api.delete(f"{PODS}/launcher?gracePeriodSeconds=0")


@pytest.mark.nightly
def test_machines_that_others_evict_are_reported(
    lab: Lab, place: Path, api: Api, controller: VirtController, launcher: str
) -> None:
    """A budget refuses the eviction as virt-api does for External: try again later."""
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"maxUnavailable": 0, "selector": {"matchLabels": {"kubevirt.io": "virt-launcher"}}}
    metadata = {"name": "external"}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}
    api.create(budgets, budget)
    pin(api, "stays", evictionStrategy="External")

    code, output = drained(lab, place, drain_node_name="node-1", drain_node_wait_timeout=6)
    api.delete(f"{budgets}/external")

    assert code != 0
    assert (
        "Node node-1 is not empty: these machines are still there, and their evictionStrategy is External, so another"
        " controller has to move or stop them. default/stays: its condition LiveMigratable is False"
        " (HostDeviceNotLiveMigratable: a GPU)" in output
    ), output[-3000:]
    assert "stop them yourself (kubevirt_vm with state=stopped). Failed to delete pod default/launcher" in output
    assert "It takes Pods again, as before." in output
    assert not (api.get(launcher) or {})["metadata"].get("deletionTimestamp")
    assert node(api, "moves") == "node-2"


@pytest.mark.nightly
def test_a_node_that_could_not_be_cordoned_is_not_reported_as_cordoned(
    lab: Lab, place: Path, api: Api, controller: VirtController
) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "reads-nodes"}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    whole = {"apiVersion": "rbac.authorization.k8s.io/v1", "metadata": {"name": "reads-nodes"}}
    rules = [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "list"]}]
    api.create(f"{rbac}/clusterroles", {**whole, "kind": "ClusterRole", "rules": rules})
    subjects = [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "reader"}]
    binding = {**whole, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": subjects}
    api.create(f"{rbac}/clusterrolebindings", binding)

    reader = {"K8S_AUTH_IMPERSONATE_USER": "reader"}
    code, output = drained(lab, place, drain_node_name="node-1", drain_node_wait_timeout=6, by=reader)

    assert code != 0
    assert "Node node-1 could not be cordoned, and nothing was done: " in output, output[-3000:]
    assert 'User "reader" cannot patch resource "nodes"' in output.replace("\\", "")
    assert "The role needs the right to patch nodes." in output
    assert "stays cordoned" not in output
    assert not is_cordoned(api)


@pytest.mark.nightly
def test_a_drain_whose_pods_do_not_end_times_out(
    lab: Lab, place: Path, api: Api, controller: VirtController, launcher: str
) -> None:
    code, output = drained(lab, place, drain_node_name="node-1", drain_node_wait_timeout=12)
    remaining = api.get(launcher) or {"metadata": {}}

    assert code != 0
    assert remaining["metadata"].get("deletionTimestamp"), output
    assert "Node node-1 is not empty: Pods remain there: launcher." in output, output[-2500:]
    assert "It takes Pods again, as before." in output
    assert not is_cordoned(api)
