# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Roles and playbooks refuse mistyped variables before everything else, on the hosts that have them.

One run of Ansible, each host with its own variables. The filters have tables of their own: plugins/filter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.filter._misused import misused
from ansible_collections.virtops.kubevirt.tests.unit.tasks import PLAYBOOKS, ROLES, ROOT

NAMES = ("control_plane", "drain_node", "launcher_image", "node_kvm", "virtual_machine")
OPTIONS = yaml.safe_load((ROLES / "control_plane/vars/main.yml").read_text())["__control_plane_options"]
# Variables of a host, and what its refusal says: "" if it is accepted.
Cases = dict[str, tuple[dict[str, Any], str]]
ACCEPTED = {
    "control_plane_other_variables": ["launcher_image_of_mine", "kubevirt_notes", "controlplane_replicas"],
    "launcher_image_of_mine": "mine",
    "launcher_image_digests": {},
    "launcher_image_names": ["test-guest"],
    "node_kvm_usable": True,
    "node_kvm_reason": "",
    "kubevirt_version": "v1.7.0",
    "provision_user": "of another collection",
    "kubevirt_notes": "near, and allowed",
    "kubevirt_client_ip": "192.0.2.1",
    "my_control_plane_namespace": "mine",
    "provison_name": "of no play here",
    "Control_plane_of_mine": "mine",
    "controlplane_replicas": "allowed",
    "control_plane_node_selector": {"a": "b"},
}
ROLE_CASES: Cases = {
    "right": ({"role": "control_plane"} | ACCEPTED, ""),
    "own": ({"role": "launcher_image", "launcher_image_name": ["x"]}, "launcher_image_name (is launcher_image_names m"),
    "own_kvm": ({"role": "node_kvm", "node_kvm_require": False}, "node_kvm_require (is node_kvm_required meant?)."),
    "own_drain": ({"role": "drain_node", "drain_node_nmae": "a"}, "drain_node_nmae (is drain_node_name meant?)."),
    "own_vm": ({"role": "virtual_machine", "virtual_machine_machine": []}, "(is virtual_machine_machines meant?)."),
    "other_role": (
        {"role": "node_kvm", "control_plane_replica": 1},
        "control_plane_replica (is control_plane_replicas",
    ),
    "playbook": ({"role": "node_kvm", "kubevirt_node": "workers"}, "knows: kubevirt_node (is kubevirt_nodes meant?)."),
    "prefix": ({"role": "node_kvm", "contol_plane_replicas": 1}, "knows: contol_plane_replicas (is control_plane_rep"),
    "case": ({"role": "control_plane", "CONTROL_PLANE_REPLICAS": 1}, "CONTROL_PLANE_REPLICAS (is control_plane_"),
    "type": (
        {"role": "node_kvm", "launcher_image_names": "a"},
        "launcher_image_names must be a list, which with -e is",
    ),
}
PROVISION: Cases = {
    "machine": (
        {"provision_name": "web", "provision_namespace": "shop", "provision_image": "registry/guest:1"}
        | {"provisioner_name": "terraform", "provision_user": "of another collection"},
        "",
    ),
    "provision_typo": ({"provision_names": "web"}, "does not know: provision_names (is provision_name meant?)."),
    "provision_prefix": ({"provison_name": "web"}, "does not know: provison_name (is provision_name meant?)."),
    "no_name": ({"provision_name": ""}, "provision_name must be like first, not ''."),
    "no_namespace": (
        {"provision_namespace": "Two Words"},
        "provision_namespace must be like default, not 'Two Words'.",
    ),
    "no_definition": ({"provision_definition": "vm.yml"}, "provision_definition must be a mapping, "),
}
UPGRADE: Cases = {
    "waits": (
        {"upgrade_wait_machines": "yes", "control_plane_workload_update_methods": ["LiveMigrate"]}
        | {"upgrade_packages": True, "upgrade_wait": 5, "upgrade_reboot": "if_needed"},
        "",
    ),
    "upgrade_typo": ({"upgrade_wait_machine": True}, "know: upgrade_wait_machine (is upgrade_wait_machines meant?)."),
    "upgrade_near": ({"upgrade_wait_time": 5}, "does not know: upgrade_wait_time (is upgrade_wait_timeout meant?)."),
    "no_number": ({"upgrade_wait_timeout": "soon"}, "upgrade_wait_timeout must be a number from 1, not 'soon'."),
    "no_boolean": ({"upgrade_not_ready_nodes": "maybe"}, "upgrade_not_ready_nodes must be true or false, not 'maybe'."),
    "no_wait": ({"control_plane_wait": "false"}, "control_plane_wait is false."),
    "no_method": ({"upgrade_wait_machines": True}, "methods is empty, so nothing moves them."),
}
GROUPS = {"role": ROLE_CASES, "provision": PROVISION, "upgrade": UPGRADE}
CASES = {host: words for cases in GROUPS.values() for host, (_variables, words) in cases.items()}


def kept(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks; a failure of one becomes the fact `refusal`."""
    keep = {"ansible.builtin.set_fact": {"refusal": "{{ ansible_failed_result.msg }}"}}
    return [{"block": list(tasks), "rescue": [keep]}]


PLAYS = {
    "right": [
        {"ansible.builtin.include_role": {"name": "virtops.kubevirt.{{ role }}", "tasks_from": "variables.yml"}},
    ],
    "role:!right": kept({"ansible.builtin.include_role": {"name": "virtops.kubevirt.{{ role }}"}}),
    "provision": kept({"ansible.builtin.include_tasks": f"{PLAYBOOKS}/tasks/provision-variables.yml"}),
    "upgrade": kept({"ansible.builtin.include_tasks": f"{PLAYBOOKS}/tasks/upgrade-variables.yml"}),
    "localhost": [
        {
            "ansible.builtin.copy": {
                "content": "{{ dict(groups.all | zip(groups.all | map('extract', hostvars, 'refusal'))) | to_json }}",
                "dest": "{{ playbook_dir }}/refusals.json",
                "mode": "0600",
            }
        }
    ],
}


@pytest.fixture(scope="module")
def refusals(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the messages by host."""
    folder = tmp_path_factory.mktemp("variables")
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "refusal": ""}
    children = {
        group: {"hosts": {host: variables for host, (variables, _words) in cases.items()}}
        for group, cases in GROUPS.items()
    }
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "children": children}}))
    plays = [{"hosts": hosts, "gather_facts": False, "tasks": tasks} for hosts, tasks in PLAYS.items()]
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    collection = folder / "ansible_collections/virtops/kubevirt"
    collection.parent.mkdir(parents=True)
    collection.symlink_to(ROOT)
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    done = subprocess.run(
        [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"],
        cwd=folder,
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    result: dict[str, str] = json.loads((folder / "refusals.json").read_text())
    return result


@pytest.mark.parametrize("host", CASES)
def test_a_mistyped_variable_is_refused_where_it_is_set(host: str, refusals: dict[str, str]) -> None:
    assert CASES[host] in refusals[host]
    assert bool(refusals[host]) is bool(CASES[host])


@pytest.mark.parametrize("host", ["own", "provision_typo", "upgrade_typo"])
def test_a_refusal_says_how_to_allow_a_variable_of_something_else(host: str, refusals: dict[str, str]) -> None:
    assert "belongs to something else, list it in control_plane_other_variables." in refusals[host]


@pytest.mark.parametrize(
    ("name", "value", "problem"),
    [
        ("drain_node_state", "cordoned", "must be one of drained, uncordoned, not 'cordoned'"),
        ("virtual_machine_defaults", "memory=1Gi", "must be a mapping, which"),
        ("control_plane_image_pull_secrets", '["registry"]', "must be a list, which"),
        ("control_plane_other_variables", "launcher_image_of_mine", "must be a list, which"),
        ("control_plane_smoke_test", "y", "must be true or false, not 'y'"),
        ("kubevirt_become", "perhaps", "must be true or false, not 'perhaps'"),
        ("control_plane_replicas", "0", "must be a number from 1, not '0'"),
        ("launcher_image_runtime", "docker", "must be one of auto, containerd, cri-o, not 'docker'"),
        ("launcher_image_names", ["test-gest"], "must have only control-plane, virt-launcher, test-guest, not 'test-g"),
        ("control_plane_workload_tolerations", ["NoSchedule"], "must have only mappings, not 'NoSchedule'"),
        ("control_plane_namespace", "Two Words", "must be like kubevirt, not 'Two Words'"),
        ("virtual_machine_namespace", "", "must be like default, not ''"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(name: str, value: Any, problem: str) -> None:
    """Limits of numbers, times and sizes: control_plane/test_bounds.py."""
    context = jinja2.Environment(autoescape=True).from_string("").new_context({name: value})

    (text,) = misused(context, OPTIONS)

    assert text.startswith(f"{name} {problem}")


@pytest.mark.parametrize("role", NAMES)
def test_a_role_checks_its_variables_first_and_accepts_its_defaults(role: str) -> None:
    first: dict[str, Any] = yaml.safe_load((ROLES / role / "tasks/main.yml").read_text())[0]
    assert first["name"] == "Check the variables"
    assert "when" not in first
    defaults = yaml.safe_load((ROLES / role / "defaults/main.yml").read_text())
    plain = {name: value for name, value in defaults.items() if "{{" not in str(value)}
    assert misused(jinja2.Environment(autoescape=True).from_string("").new_context(plain), OPTIONS) == []


def plays_of(playbook: str) -> list[dict[str, Any]]:
    """Return the plays after the one that looks at the hosts."""
    _hosts, *plays = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())
    return plays


@pytest.mark.parametrize("playbook", ["deploy", "drain_node", "provision", "remove", "upgrade"])
def test_a_playbook_checks_the_variables_first(playbook: str) -> None:
    for play in plays_of(playbook):
        first = (play.get("roles") or play["tasks"])[0]
        role = first.get("role") or first["ansible.builtin.import_role"]["name"]
        assert role.removeprefix("virtops.kubevirt.") in NAMES


def test_provision_checks_its_variables_on_the_nodes_too() -> None:
    for play in plays_of("provision"):
        check, refuse, *_others = play["tasks"]
        assert check["ansible.builtin.import_role"]["tasks_from"] == "variables.yml"
        assert refuse["ansible.builtin.import_tasks"] == "tasks/provision-variables.yml"
        assert "when" not in check.keys() | refuse.keys()


def test_the_cluster_validates_an_upgrade_before_any_node_changes() -> None:
    checks, *_plays = plays_of("upgrade")
    (dry_run,) = yaml.safe_load((ROLES / "control_plane/tasks/dry-run.yml").read_text())

    includes = [task.get("ansible.builtin.import_role", {}).get("tasks_from") for task in checks["tasks"]]
    assert includes == ["variables.yml", None, "preflight.yml", None, "dry-run.yml"]
    files = [task["ansible.builtin.import_tasks"] for task in checks["tasks"] if "ansible.builtin.import_tasks" in task]
    assert files == ["tasks/upgrade-variables.yml", "tasks/upgrade-checks.yml"]
    assert (dry_run["check_mode"], dry_run["changed_when"]) == (True, False)


@pytest.mark.parametrize("playbook", ["deploy", "provision"])
def test_a_failing_node_ends_the_playbook_before_the_cluster_changes(playbook: str) -> None:
    nodes, *_client = plays_of(playbook)
    assert "__kubevirt_selected.nodes" in nodes["hosts"]
    assert nodes["any_errors_fatal"] is True


def test_the_table_of_options_matches_the_argument_specs() -> None:
    specs = [yaml.safe_load((ROLES / name / "meta/argument_specs.yml").read_text()) for name in NAMES]
    options = {name: item for spec in specs for name, item in spec["argument_specs"]["main"]["options"].items()}

    assert list(OPTIONS) == [*options, "kubevirt_become"]
    assert {path.name for path in ROLES.iterdir()} == set(NAMES)
    for name, option in options.items():
        for key in ("type", "elements", "choices"):
            assert OPTIONS[name].get(key) == option.get(key), name
