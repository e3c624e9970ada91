# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role control_plane deletes what it made, nothing that only has the same name, and machines only with the option."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.owned_objects import MARKS
from ansible_collections.virtops.kubevirt.tests.unit.tasks import ROLES, Host, load, role_variables

ROLE = ROLES / "control_plane"
K8S = "kubernetes.core.k8s"
VARIABLES = role_variables("control_plane")
LABELLED = ("__control_plane_definitions", "__control_plane_labelled_components", "__control_plane_configuration")
MADE = {"kind": "Namespace", "metadata": {"name": "kubevirt"}}
NODE = {"kind": "Node", "metadata": {"name": "node-1"}}
MIGRATION = {"kind": "VirtualMachineInstanceMigration", "metadata": {"namespace": "shop", "name": "move"}}
FOUND = {"owner": "ours", "namespace": "kubevirt", "evidence": ""}
LINGERING = {"metadata": {"name": "virt-handler-1"}, "spec": {"nodeName": "node-2"}}


def every_task() -> list[dict[str, Any]]:
    """Return all tasks of the role that write, also those in blocks."""
    tasks = [task for path in sorted((ROLE / "tasks").glob("*.yml")) for task in load(path)]
    inner = [item for task in tasks for part in ("block", "always") for item in task.get(part, [])]
    return [task for task in [*tasks, *inner] if K8S in task]


class Cluster:
    """Machines by name, a migration, the role's namespace, and what stays after a deletion."""

    def __init__(
        self,
        *machines: str,
        stays: tuple[str, ...] = (),
        created: tuple[str, ...] = (),
        has_migration: bool = False,
    ) -> None:
        self.has_migration = has_migration
        self.machines, self.stays, self.created = list(machines), stays, created
        self.writes: list[tuple[str, Any]] = []

    def k8s(self, arguments: dict[str, Any]) -> dict[str, Any]:
        self.writes.append((arguments["state"], arguments["definition"]))
        if arguments["definition"] == [MADE]:
            return {"failed": True, "msg": "Timed out waiting on resource"} if "kubevirt" in self.stays else {}
        if arguments["state"] == "absent":
            self.machines = [name for name in self.machines if name in self.stays]
            self.machines += self.created
            self.has_migration = self.has_migration and "migration" in self.stays
        return {"changed": True}

    def info(self) -> dict[str, Any]:
        objects = [{"kind": "VirtualMachine", "metadata": {"name": name}} for name in self.machines]
        objects += [MIGRATION] if self.has_migration else []
        lists = {"workloads": list(self.machines), "workload_objects": objects, "made": [MADE]}
        return {**FOUND, **lists, "namesakes": [], "node_patches": [NODE], "check_mode": False}


def remove(cluster: Cluster, *, is_check: bool = False, **options: Any) -> str:
    """Run the removal; return its refusal."""
    host = Host(
        ROLE / "tasks",
        VARIABLES
        | {"control_plane_state": "absent", "__control_plane_crds": [], "__control_plane_wanted": []}
        | options,
        k8s=cluster.k8s,
        k8s_info=lambda _arguments: {"resources": [LINGERING]},
        kubevirt_control_plane_info=lambda _arguments: cluster.info() | {"check_mode": is_check},
    )
    return host.refusal(load(ROLE / "tasks/preflight.yml")) or host.refusal(ROLE / "tasks/remove.yml")


@pytest.mark.parametrize("value", [{}, *({"control_plane_remove_with_workloads": item} for item in ("false", "no", 0))])
def test_machines_and_control_plane_stay_without_the_option(value: dict[str, Any]) -> None:
    cluster = Cluster("shop/web")

    assert remove(cluster, **value).startswith("There are virtual machines: shop/web.")
    assert cluster.writes == []


@pytest.mark.parametrize("value", ["true", "yes", True])
def test_with_the_option_machines_go_before_the_control_plane(value: Any) -> None:
    cluster = Cluster("shop/web")
    machines = cluster.info()["workload_objects"]

    assert remove(cluster, control_plane_remove_with_workloads=value) == ""
    absent = ("absent", machines)
    assert cluster.writes == [absent, absent, ("absent", [MADE]), ("patched", [NODE])], "deleted, then waited for"


@pytest.mark.parametrize(
    ("cluster", "start", "names"),
    [
        pytest.param(Cluster("web", created=("new",)), "Virtual machines were created", "new", id="created meanwhile"),
        pytest.param(Cluster("web", stays=("web",)), "These machines still exist", "web", id="stays"),
        pytest.param(
            Cluster(stays=("migration",), has_migration=True),
            "These machines still exist",
            "migration shop/move",
            id="a migration stays, and its finalizer would keep the definitions",
        ),
    ],
)
def test_the_control_plane_stays_while_there_are_machines(cluster: Cluster, start: str, names: str) -> None:
    """Without the CRDs the machines would be deleted, and without virt-handler their guests would never end."""
    message = remove(cluster, control_plane_remove_with_workloads=True)

    assert message.startswith(start)
    assert f": {names}. Nothing of the control plane was removed" in message
    assert ("absent", [MADE]) not in cluster.writes


def test_a_migration_without_a_machine_stops_nothing_and_is_deleted_first() -> None:
    """Migrations that are over are kept for a while."""
    cluster = Cluster(has_migration=True)

    assert remove(cluster) == ""
    assert cluster.writes[0] == ("absent", [MIGRATION])


def test_in_check_mode_machines_that_are_still_there_stop_nothing() -> None:
    cluster = Cluster("web", stays=("web",))

    assert remove(cluster, is_check=True, control_plane_remove_with_workloads=True) == ""


def test_an_object_that_does_not_go_is_named_with_its_node() -> None:
    """The kubelet of an unreachable node ends no Pod, and the namespace waits for it."""
    message = remove(Cluster(stays=("kubevirt",)))

    assert "Remaining Pods: virt-handler-1 on node-2. An unreachable node keeps its Pods until" in message
    assert "out-of-service" in message


def test_no_contents_of_machines_are_shown() -> None:
    """A removal that timed out once showed the cloud-init of a machine, password included."""
    (task,) = (task for task in every_task() if "workload_objects" in str(task[K8S].get("definition")))
    assert (task["no_log"], task["failed_when"]) == (True, False)


def test_only_objects_with_the_marks_of_the_role_are_deleted() -> None:
    """kubevirt_control_plane_info selects them by the marks. The smoke test deletes its own namespace."""
    absent = [task[K8S] for task in every_task() if task[K8S].get("state") == "absent"]
    assert {item.get("definition", item.get("name")) for item in absent} == {
        "{{ __control_plane_found.workload_objects }}",
        "{{ __control_plane_serving.superfluous }}",
        "{{ __control_plane_remaining.made }}",
        "{{ __control_plane_smoke_test.result.metadata.name }}",
    }


def test_every_applied_object_has_the_marks_and_an_upgrade_keeps_them() -> None:
    assert VARIABLES["__control_plane_marks"] == MARKS
    assert "app.kubernetes.io/version" not in MARKS
    assert len(MARKS) > 1, "managed-by alone says that the role may adopt a namespace, not that it did"
    assert VARIABLES["__control_plane_labels"].startswith("{{ __control_plane_marks | combine(")
    for name in LABELLED:
        assert "{'metadata': {'labels': __control_plane_labels}}, recursive=true)" in VARIABLES[name]


def test_the_role_applies_as_the_field_manager_that_pruning_looks_for() -> None:
    applied = [task[K8S] for task in every_task() if task[K8S].get("apply")]

    assert {item["definition"] for item in applied} == {
        f"{{{{ {LABELLED[0]} + {LABELLED[1]} }}}}",
        f"{{{{ {LABELLED[2]} }}}}",
    }
    assert {item["server_side_apply"] for item in applied} == {"{{ __control_plane_apply }}"}
    assert VARIABLES["__control_plane_apply"]["field_manager"] == FIELD_MANAGER


@pytest.mark.parametrize("task", [pytest.param(task, id=task["name"]) for task in every_task()])
def test_every_write_uses_the_selected_cluster(task: dict[str, Any]) -> None:
    assert task[K8S]["kubeconfig"] == "{{ control_plane_kubeconfig | default(omit, true) }}"
    assert task[K8S]["context"] == "{{ control_plane_context | default(omit, true) }}"


@pytest.mark.parametrize(
    "task", [pytest.param(task, id=task["name"]) for task in every_task() if "Create a namesp" not in task["name"]]
)
def test_no_result_and_no_diff_shows_the_contents_of_a_secret(task: dict[str, Any]) -> None:
    is_hidden = task[K8S].get("hidden_fields") == "{{ __control_plane_hidden_fields }}"
    assert is_hidden or task.get("no_log") is True or task[K8S].get("kind") == "Namespace"
    assert "data" in VARIABLES["__control_plane_hidden_fields"]
