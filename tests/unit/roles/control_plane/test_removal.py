# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role control_plane deletes what it made, and nothing that only has the same name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.module_utils._client.api import FIELD_MANAGER
from ansible_collections.virtops.kubevirt.plugins.module_utils._cluster.owned_objects import MARKS

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
K8S = "kubernetes.core.k8s"
USERS = "{{ __control_plane_found.workload_objects }}"
"""Machines of users; removed only with control_plane_remove_with_workloads."""
MADE = {"{{ __control_plane_serving.superfluous }}", "{{ __control_plane_left.made }}"}
"""Objects that kubevirt_control_plane_info returned because of our marks."""
KNOWN = yaml.safe_load((ROLE / "vars/main.yml").read_text())


def tasks(*names: str) -> list[dict[str, Any]]:
    paths = [ROLE / "tasks" / name for name in names] or sorted((ROLE / "tasks").glob("*.yml"))
    return [task for path in paths for task in yaml.safe_load(path.read_text())]


def deletions() -> list[str]:
    results = [task[K8S] for task in tasks() if task.get(K8S, {}).get("state") == "absent"]
    return [options["definition"] for options in results if options["definition"] != USERS]


def test_only_objects_with_the_marks_of_the_role_are_deleted() -> None:
    assert set(deletions()) == MADE
    assert len(deletions()) == 2


def test_machines_are_deleted_only_after_the_check_of_the_option() -> None:
    first, second, *_others = tasks("remove.yml")

    assert "control_plane_remove_with_workloads | bool or" in first["ansible.builtin.assert"]["that"]
    assert second[K8S]["definition"] == USERS


def test_no_contents_of_machines_are_shown_and_remaining_ones_are_named() -> None:
    """A removal that timed out once showed the cloud-init of a machine, password included."""
    _first, second, _look, third, *_others = tasks("remove.yml")
    assert (second["no_log"], second["failed_when"]) == (True, False)
    assert "__control_plane_left.workloads | intersect(" in third["vars"]["__control_plane_staying"]
    assert "{{ __control_plane_staying | join(', ') }}" in third["ansible.builtin.assert"]["fail_msg"]
    assert "out-of-service" in third["ansible.builtin.assert"]["fail_msg"]


def refusal(found: list[str], left: list[str], *, is_check: bool = False) -> str:
    """Return the message of the first assertion that fails before the role's own objects are deleted; "" when all
    hold.

    found, left: the machines at the start, and after their deletion.
    """
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, autoescape=False)
    environment.filters |= {"bool": bool, "intersect": lambda ours, theirs: [item for item in ours if item in theirs]}
    variables = {
        "__control_plane_found": {"workloads": found, "check_mode": is_check},
        "__control_plane_left": {"workloads": left},
        "__control_plane_machines": {"results": []},
        "__control_plane_staying": [item for item in left if item in found],
        "control_plane_remove_with_workloads": True,
        "control_plane_wait_timeout": 300,
        "control_plane_namespace": "kubevirt",
    }
    for task in tasks("remove.yml"):
        if task.get(K8S, {}).get("definition") in MADE:
            return ""
        check = task.get("ansible.builtin.assert")
        if check is None or not environment.compile_expression(task.get("when", "true"))(**variables):
            continue
        if not environment.compile_expression(check["that"])(**variables):
            return environment.from_string(check["fail_msg"]).render(variables)
    raise AssertionError("nothing of the role's own is removed")


@pytest.mark.parametrize(
    ("found", "left", "said"),
    [
        pytest.param(["shop/web"], [], "", id="all are gone"),
        pytest.param(["shop/web"], ["shop/new"], "Virtual machines were made while", id="made meanwhile"),
        pytest.param([], ["shop/new"], "Virtual machines were made while", id="made where none was"),
        pytest.param(["shop/web"], ["shop/new", "shop/web"], "These machines are not gone", id="stays"),
    ],
)
def test_the_roles_own_objects_stay_while_there_are_machines(found: list[str], left: list[str], said: str) -> None:
    """Without the CRDs the machines would be deleted, and without virt-handler their guests would never end."""
    message = refusal(found, left)

    assert message[: len(said) or None] == said
    assert ("shop/new. Nothing of the control plane was removed" in message) is ("were made" in said)
    assert refusal(found, left, is_check=True) == "", "nothing was deleted that could be gone"


def test_every_applied_object_has_the_marks_and_an_upgrade_keeps_them() -> None:
    applied = [task[K8S] for task in tasks() if task.get(K8S, {}).get("apply")]

    assert KNOWN["__control_plane_marks"] == MARKS
    assert "app.kubernetes.io/version" not in MARKS
    assert KNOWN["__control_plane_labels"].startswith("{{ __control_plane_marks | combine(")
    assert [item["definition"].split()[1] for item in applied] == [
        "__control_plane_configuration",
        "__control_plane_definitions",
        "__control_plane_definitions",
        "__control_plane_definitions",
    ]
    for name in ("__control_plane_definitions", "__control_plane_configuration"):
        assert "{'metadata': {'labels': __control_plane_labels}}, recursive=true)" in KNOWN[name]


def test_the_role_writes_as_the_field_manager_that_pruning_looks_for() -> None:
    assert KNOWN["__control_plane_apply"]["field_manager"] == FIELD_MANAGER
    for task in tasks():
        if task.get(K8S, {}).get("apply"):
            assert task[K8S]["server_side_apply"] == "{{ __control_plane_apply }}"


def test_a_handed_over_namespace_is_not_deleted_before_the_role_adopted_it() -> None:
    """A removal without an installation: managed-by alone says that the role may adopt it, not that it did."""
    assert len(MARKS) > 1


@pytest.mark.parametrize("task", [pytest.param(item, id=item["name"]) for item in tasks() if K8S in item])
def test_no_result_and_no_diff_shows_the_contents_of_a_secret(task: dict[str, Any]) -> None:
    assert task[K8S]["hidden_fields"] == "{{ __control_plane_hidden_fields }}"
    assert "data" in KNOWN["__control_plane_hidden_fields"]


@pytest.mark.parametrize("task", [pytest.param(item, id=item["name"]) for item in tasks() if K8S in item])
def test_every_task_uses_the_selected_cluster(task: dict[str, Any]) -> None:
    assert task[K8S]["kubeconfig"] == "{{ control_plane_kubeconfig | default(omit, true) }}"
    assert task[K8S]["context"] == "{{ control_plane_context | default(omit, true) }}"
