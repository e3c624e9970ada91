# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every role refuses mistyped variables on the hosts that have them, before everything else. Ansible runs it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import pytest
import yaml
from ansible_collections.virtops.kubevirt.plugins.filter.misused import misused
from ansible_collections.virtops.kubevirt.tests.unit.roles.said import run

ROOT = Path(__file__).resolve().parents[3]
ROLES = ("control_plane", "drain_node", "launcher_image", "node_kvm", "virtual_machine")
FACTS = ("launcher_image_digests", "node_kvm_usable", "node_kvm_reason")
RIGHT = {
    "control_plane_other_variables": ["launcher_image_of_mine", "kubevirt_notes", "controlplane_replicas"],
    "launcher_image_of_mine": "mine",
    "launcher_image_digests": {},
    "launcher_image_names": ["test-guest"],
    "node_kvm_usable": True,
    "node_kvm_reason": "",
    "kubevirt_version": "v1.7.0",
    "provision_user": "of another collection",
    "kubevirt_notes": "near, and let by",
    "kubevirt_client_ip": "192.0.2.1",
    "kubevirt_nodes_ip": ["192.0.2.2"],
    "my_control_plane_namespace": "mine",
    "provison_name": "of no play here",
    "Control_plane_of_mine": "mine",
    "controlplane_replicas": "let by",
    "control_plane_node_selector": {"a": "b"},
}
WRONG = {
    "typo_for_nodes": ("launcher_image", {"launcher_image_name": ["test-guest"]}),
    "typo_for_kvm": ("node_kvm", {"node_kvm_require": False}),
    "typo_for_others": ("node_kvm", {"control_plane_use_emulatoin": True}),
    "typo_for_the_client": ("control_plane", {"control_plane_replica": 1}),
    "typo_for_machines": ("virtual_machine", {"virtual_machine_machine": []}),
    "typo_for_a_drain": ("drain_node", {"drain_node_nmae": "node-1"}),
    "no_state_of_a_drain": ("drain_node", {"drain_node_state": "cordoned"}),
    "word_for_machines": ("virtual_machine", {"virtual_machine_defaults": "memory=1Gi"}),
    "word_for_a_list": ("launcher_image", {"launcher_image_names": "test-guest"}),
    "word_for_a_mapping": ("control_plane", {"control_plane_node_selector": "a=b"}),
    "json_in_a_word": ("control_plane", {"control_plane_image_pull_secrets": '["registry"]'}),
    "word_for_what_is_let_by": ("control_plane", {"control_plane_other_variables": "launcher_image_of_mine"}),
    "no_truth": ("node_kvm", {"control_plane_use_emulation": "maybe"}),
    "half_a_truth": ("launcher_image", {"control_plane_smoke_test": "y"}),
    "no_number": ("node_kvm", {"control_plane_replicas": "two"}),
    "no_replica": ("node_kvm", {"control_plane_replicas": "0"}),
    "no_choice": ("node_kvm", {"launcher_image_runtime": "docker"}),
    "no_image": ("control_plane", {"launcher_image_names": ["test-gest"]}),
    "no_time": ("launcher_image", {"control_plane_workload_eviction_interval": "24h1s"}),
    "no_mapping_in_it": ("launcher_image", {"control_plane_workload_tolerations": ["NoSchedule"]}),
    "no_size": ("launcher_image", {"control_plane_container_disk_limit": "large"}),
    "no_namespace": ("launcher_image", {"control_plane_namespace": ""}),
    "namespace_of_words": ("control_plane", {"control_plane_namespace": "Two Words"}),
    "no_place_for_machines": ("virtual_machine", {"virtual_machine_namespace": ""}),
    "no_root": ("node_kvm", {"kubevirt_become": "perhaps"}),
    "typo_for_a_playbook": ("node_kvm", {"kubevirt_node": "workers"}),
    "typo_for_the_client_s_name": ("node_kvm", {"kubevirt_cleint": "bastion"}),
    "typo_before_it": ("node_kvm", {"contol_plane_use_emulation": True}),
    "another_case": ("launcher_image", {"CONTROL_PLANE_USE_EMULATION": True}),
    "other_strokes": ("virtual_machine", {"controlplane_namespace": "prod"}),
    "typo_before_a_playbook_s": ("control_plane", {"kubvirt_nodes": "workers"}),
    "typo_for_root": ("launcher_image", {"kubevirt_becom": False}),
}
PROVISION = {
    "typo_of_a_machine": {"provision_names": "web"},
    "typo_of_its_image": {"provision_imgae": "registry/guest:1"},
    "typo_before_its_name": {"provison_name": "web"},
    "no_name": {"provision_name": ""},
    "no_place": {"provision_namespace": "Two Words"},
    "no_definition": {"provision_definition": "vm.yml"},
    "a_machine": {
        "provisioner_name": "terraform",
        "provision_user": "of another collection",
        "provision_name": "web",
        "provision_namespace": "shop",
        "provision_image": "registry/guest:1",
    },
}
REFUSED = [
    {
        "name": "Run the role",
        "block": [{"name": "It refuses", "ansible.builtin.include_role": {"name": "virtops.kubevirt.{{ role }}"}}],
        "rescue": [{"name": "Keep why", "ansible.builtin.set_fact": {"said": "{{ ansible_failed_result.msg }}"}}],
    }
]
OF_PROVISION = [
    {
        "name": "Look",
        "block": [
            {
                "name": "At the variables",
                "ansible.builtin.include_tasks": str(ROOT / "playbooks/tasks/provision-variables.yml"),
            },
            {"name": "Keep that it passed", "ansible.builtin.set_fact": {"said": ""}},
        ],
        "rescue": REFUSED[0]["rescue"],
    }
]
TAKEN = [
    {
        "name": "Check the variables",
        "ansible.builtin.include_role": {"name": "virtops.kubevirt.control_plane", "tasks_from": "variables.yml"},
    },
    {"name": "Keep that it passed", "ansible.builtin.set_fact": {"said": ""}},
]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Return the messages for each host."""
    wrong = {name: {"role": role, **variables} for name, (role, variables) in WRONG.items()}
    groups = {"right": {"hosts": {"all_right": RIGHT}}, "wrong": {"hosts": wrong}, "provision": {"hosts": PROVISION}}
    plays = {"right": TAKEN, "wrong": REFUSED, "provision": OF_PROVISION}
    return run(tmp_path_factory.mktemp("variables"), groups, plays)


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("typo_for_nodes", "knows: launcher_image_name (is launcher_image_names meant?)."),
        ("typo_for_kvm", "knows: node_kvm_require (is node_kvm_required meant?)."),
        ("typo_for_others", "knows: control_plane_use_emulatoin (is control_plane_use_emulation meant?)."),
        ("typo_for_the_client", "knows: control_plane_replica (is control_plane_replicas meant?)."),
        (
            "word_for_a_list",
            """_names must be a list, which with -e is written as JSON: -e '{"launcher_image_names": ...}'""",
        ),
        ("typo_for_machines", "knows: virtual_machine_machine (is virtual_machine_machines meant?)."),
        ("typo_for_a_drain", "knows: drain_node_nmae (is drain_node_name meant?)."),
        ("no_state_of_a_drain", "value of drain_node_state must be one of: drained, uncordoned, got: cordoned"),
        ("word_for_machines", "virtual_machine_defaults must be a mapping, "),
        ("word_for_a_mapping", "control_plane_node_selector must be a mapping, "),
        ("json_in_a_word", "control_plane_image_pull_secrets must be a list, "),
        ("word_for_what_is_let_by", "control_plane_other_variables must be a list, "),
        ("no_truth", "control_plane_use_emulation must be true or false, not 'maybe'."),
        ("half_a_truth", "control_plane_smoke_test must be true or false, not 'y'."),
        ("no_number", "control_plane_replicas must be a number from 1, not 'two'."),
        ("no_replica", "control_plane_replicas must be a number from 1, not '0'."),
        ("no_choice", "launcher_image_runtime must be one of auto, containerd, cri-o, not 'docker'."),
        (
            "no_image",
            "launcher_image_names must have only control-plane, virt-launcher, test-guest, not 'test-gest'.",
        ),
        ("no_time", "control_plane_workload_eviction_interval must be like 1m30s, to 24h, not '24h1s'."),
        ("no_mapping_in_it", "control_plane_workload_tolerations must have only mappings, not 'NoSchedule'."),
        ("no_size", "control_plane_container_disk_limit must be like 64Gi, not 'large'."),
        ("no_namespace", "control_plane_namespace must be like kubevirt, not ''."),
        ("namespace_of_words", "control_plane_namespace must be like kubevirt, not 'Two Words'."),
        ("no_place_for_machines", "virtual_machine_namespace must be like default, not ''."),
        ("no_root", "kubevirt_become must be true or false, not 'perhaps'."),
        ("typo_for_a_playbook", "knows: kubevirt_node (is kubevirt_nodes meant?)."),
        ("typo_for_the_client_s_name", "knows: kubevirt_cleint (is kubevirt_client meant?)."),
        ("typo_before_it", "knows: contol_plane_use_emulation (is control_plane_use_emulation meant?)."),
        ("another_case", "knows: CONTROL_PLANE_USE_EMULATION (is control_plane_use_emulation meant?)."),
        ("other_strokes", "knows: controlplane_namespace (is control_plane_namespace meant?)."),
        ("typo_before_a_playbook_s", "knows: kubvirt_nodes (is kubevirt_nodes meant?)."),
        ("typo_for_root", "knows: kubevirt_becom (is kubevirt_become meant?)."),
        ("typo_of_a_machine", "does not know: provision_names (is provision_name meant?)."),
        ("typo_before_its_name", "does not know: provison_name (is provision_name meant?)."),
        ("no_name", "provision_name must be like first, not ''."),
        ("no_place", "provision_namespace must be like default, not 'Two Words'."),
        ("no_definition", "provision_definition must be a mapping, "),
        ("typo_of_its_image", "does not know: provision_imgae (is provision_image meant?)."),
    ],
)
def test_a_mistyped_variable_is_refused_where_it_is_set(host: str, words: str, said: dict[str, str]) -> None:
    assert words in said[host]


@pytest.mark.parametrize("host", ["typo_for_nodes", "typo_of_a_machine"])
def test_a_refusal_says_how_to_allow_a_variable_of_something_else(host: str, said: dict[str, str]) -> None:
    assert "is let by when control_plane_other_variables names it" in said[host]


def test_valid_and_allowed_variables_are_accepted(said: dict[str, str]) -> None:
    assert said["all_right"] == said["a_machine"] == ""


@pytest.mark.parametrize("role", ROLES)
def test_a_role_checks_its_variables_first(role: str) -> None:
    first: dict[str, Any] = yaml.safe_load((ROOT / "roles" / role / "tasks/main.yml").read_text())[0]
    assert first["name"] == "Check the variables"
    assert "when" not in first


@pytest.mark.parametrize("playbook", ["deploy", "drain_node", "provision", "remove", "upgrade"])
def test_a_playbook_checks_the_variables_first(playbook: str) -> None:
    _hosts, *plays = yaml.safe_load((ROOT / f"playbooks/{playbook}.yml").read_text())
    for play in plays:
        first = (play.get("roles") or play["tasks"])[0]
        role = first.get("role") or first["ansible.builtin.include_role"]["name"]
        assert role.removeprefix("virtops.kubevirt.") in ROLES


def test_provision_checks_its_variables_on_the_nodes_too() -> None:
    _hosts, *plays = yaml.safe_load((ROOT / "playbooks/provision.yml").read_text())
    for play in plays:
        look, refuse, *_others = play["tasks"]
        assert look["ansible.builtin.include_role"]["tasks_from"] == "variables.yml"
        assert refuse["ansible.builtin.include_tasks"] == "tasks/provision-variables.yml"
        assert "when" not in look.keys() | refuse.keys()


def test_an_upgrade_is_judged_by_the_cluster_before_any_node_changes() -> None:
    _hosts, checks, *_plays = yaml.safe_load((ROOT / "playbooks/upgrade.yml").read_text())
    (judged,) = yaml.safe_load((ROOT / "roles/control_plane/tasks/judge.yml").read_text())

    assert checks["tasks"][-1]["ansible.builtin.include_role"]["tasks_from"] == "judge.yml"
    assert (judged["check_mode"], judged["changed_when"]) == (True, False)


@pytest.mark.parametrize("playbook", ["deploy", "provision"])
def test_a_failing_node_ends_the_playbook_before_the_cluster_changes(playbook: str) -> None:
    _hosts, nodes, *_client = yaml.safe_load((ROOT / f"playbooks/{playbook}.yml").read_text())
    assert "__kubevirt_meant.nodes" in nodes["hosts"]
    assert nodes["any_errors_fatal"] is True


def test_the_table_of_options_matches_the_argument_specs() -> None:
    specs = {
        path.name: yaml.safe_load((path / "meta/argument_specs.yml").read_text())
        for path in sorted(ROOT.glob("roles/*"))
    }
    options = {role: spec["argument_specs"]["main"]["options"] for role, spec in specs.items()}
    written = yaml.safe_load((ROOT / "roles/control_plane/vars/main.yml").read_text())["__control_plane_options"]

    assert set(options) == set(ROLES)
    assert list(written) == [*(name for item in options.values() for name in item), "kubevirt_become"]
    for name, option in ((name, option) for item in options.values() for name, option in item.items()):
        for key in ("type", "elements", "choices"):
            assert written[name].get(key) == option.get(key), name


@pytest.mark.parametrize("role", ROLES)
def test_the_defaults_are_accepted(role: str) -> None:
    environment = jinja2.Environment()
    written = yaml.safe_load((ROOT / "roles/control_plane/vars/main.yml").read_text())["__control_plane_options"]
    defaults = yaml.safe_load((ROOT / "roles" / role / "defaults/main.yml").read_text())
    context = environment.from_string("").new_context({name: x for name, x in defaults.items() if "{{" not in str(x)})

    assert misused(context, written) == []
