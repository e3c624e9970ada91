# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook acts on the hosts that its first play has checked, or refuses before it does anything.

Ansible runs the plays; their work is replaced by a message.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.playbooks.plays import (
    INVENTORY,
    NAMES,
    PLAYBOOKS,
    acted_on,
    looked,
)


def with_vars(group: str, **variables: Any) -> dict[str, Any]:
    return INVENTORY | {group: INVENTORY[group] | {"vars": variables}}


@pytest.mark.parametrize(
    ("arguments", "variables", "hosts"),
    [
        pytest.param((), {}, {"node-1", "node-2", "localhost"}, id="the group, and this machine"),
        pytest.param(
            (), {"kubevirt_nodes": "node-2", "kubevirt_client": "bastion"}, {"node-2", "bastion"}, id="hosts by name"
        ),
        pytest.param((), {"kubevirt_nodes": ["node-2", "spare"]}, {"node-2", "spare", "localhost"}, id="a list"),
        pytest.param((), {"kubevirt_nodes": "all:!others:!node-1"}, {"node-2", "localhost"}, id="all but some"),
        pytest.param((), {"kubevirt_nodes": "localhost"}, {"localhost"}, id="a cluster of this machine alone"),
        pytest.param(("--limit", "node-1,localhost"), {}, {"node-1", "localhost"}, id="one node, and the client"),
        pytest.param(("--limit", "@first.retry,localhost"), {}, {"node-1", "localhost"}, id="a limit in a file"),
        pytest.param(
            ("--limit", "all:!node-1"), {"kubevirt_client": "bastion"}, {"node-2", "bastion"}, id="all but a node"
        ),
        pytest.param(("--check",), {}, {"node-1", "node-2", "localhost"}, id="in check mode"),
    ],
)
def test_plays_act_on_the_selected_hosts(
    arguments: tuple[str, ...], variables: dict[str, Any], hosts: set[str], tmp_path: Path
) -> None:
    code, output = looked(tmp_path, INVENTORY, *arguments, **variables)

    assert code == 0, output
    assert acted_on(output) == hosts


@pytest.mark.parametrize("playbook", NAMES)
def test_variables_of_the_inventory_select_hosts(playbook: str, tmp_path: Path) -> None:
    """Also when they are set for a group without this machine: the pattern of a play cannot read variables of hosts."""
    groups = with_vars("kubevirt_nodes", kubevirt_nodes="node-2", kubevirt_client="bastion")

    code, output = looked(tmp_path, groups, playbook=playbook)

    assert code == 0, output
    assert acted_on(output) == {"node-2", "bastion"}


def test_later_plays_know_the_nodes_that_the_limit_excludes(tmp_path: Path) -> None:
    is_unknown = "{{ hostvars['localhost'].__kubevirt_meant.left_out != ['node-2'] }}"

    code, output = looked(tmp_path, with_vars("kubevirt_nodes", broken=is_unknown), "--limit", "all,localhost,!node-2")

    assert code == 0, output
    assert "node-1" in acted_on(output)


def test_this_machine_may_be_in_the_inventory_by_its_address(tmp_path: Path) -> None:
    code, output = looked(tmp_path, {"kubevirt_nodes": {"hosts": {"127.0.0.1": {}}}})

    assert code == 0, output
    assert acted_on(output) == {"127.0.0.1"}


def test_tags_do_not_skip_the_check_of_the_hosts(tmp_path: Path) -> None:
    code, output = looked(tmp_path, INVENTORY, "--tags", "mine", kubevirt_client="bastoin")

    assert code != 0
    assert "is meant by kubevirt_client: bastoin." in output


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        pytest.param((), {"kubevirt_nodes": "node-3"}, "is meant by kubevirt_nodes: node-3.", id="nodes"),
        pytest.param((), {"kubevirt_nodes": "node-1,node-9"}, "kubevirt_nodes: node-9.", id="one of the nodes"),
        pytest.param((), {"kubevirt_nodes": "node-1:!node-1"}, "kubevirt_nodes: node-1:!node-1.", id="none is left"),
        pytest.param((), {"kubevirt_nodes": ""}, 'or a list of such, not \\"\\".', id="nothing"),
        pytest.param((), {"kubevirt_nodes": None}, "kubevirt_nodes is to be a host, a group or", id="null"),
        pytest.param((), {"kubevirt_nodes": []}, "or a list of such, not [].", id="an empty list"),
        pytest.param((), {"kubevirt_nodes": {"a": 1}}, "kubevirt_nodes is to be a host, a group or", id="a mapping"),
        pytest.param((), {"kubevirt_client": ""}, "kubevirt_client is to be a host, a group or", id="no client"),
        pytest.param((), {"kubevirt_client": "bastoin"}, "is meant by kubevirt_client: bastoin.", id="the client"),
        pytest.param((), {"kubevirt_client": "others"}, "others means bastion, spare.", id="two clients"),
        pytest.param(
            ("--limit", "localhost,spare"), {}, "leaves out all nodes that kubevirt_nodes means", id="a limit to others"
        ),
        pytest.param(("--limit", "node-1"), {}, "Add it: --limit 'node-1,localhost'.", id="a limit to a node"),
        pytest.param(
            ("--limit", "node-1:node-2"), {}, "Add it: --limit 'node-1:node-2:localhost'.", id="a limit with colons"
        ),
        pytest.param(("--limit", "!node-1"), {}, "Add it: --limit 'all,!node-1,localhost'.", id="a limit by what not"),
        pytest.param(("--limit", "@first.retry"), {}, "Add it: --limit '@first.retry,localhost'.", id="in a file"),
        pytest.param(
            ("--limit", "all:!bastion"),
            {"kubevirt_client": "bastion"},
            "which reaches the Kubernetes API, and nothing would be done there. Write one that does not.",
            id="a limit against the client",
        ),
    ],
)
def test_a_selection_without_hosts_is_refused_before_any_work(
    arguments: tuple[str, ...], variables: dict[str, Any], words: str, tmp_path: Path
) -> None:
    code, output = looked(tmp_path, INVENTORY, *arguments, playbook="remove", **variables)

    assert code != 0, output
    assert words in output
    assert not acted_on(output)


def test_hosts_with_different_values_are_refused(tmp_path: Path) -> None:
    differing = {"kubevirt_nodes": {"hosts": {"node-1": {"kubevirt_client": "a"}, "node-2": {"kubevirt_client": "b"}}}}

    code, output = looked(tmp_path, differing)

    assert code != 0, output
    assert "differ in what kubevirt_client is" in output
    assert not acted_on(output)


def test_an_inventory_without_the_group_is_refused_with_its_name(tmp_path: Path) -> None:
    code, output = looked(tmp_path, {"others": {"hosts": {"bastion": {}}}})

    assert code != 0
    assert "The inventory has no host in group kubevirt_nodes" in output


@pytest.mark.parametrize(
    ("playbook", "variable", "value"),
    [
        ("deploy", "control_plane_state", "absent"),
        ("deploy", "launcher_image_state", "absent"),
        ("provision", "launcher_image_state", "absent"),
        ("remove", "control_plane_state", "present"),
        ("remove", "launcher_image_state", "present"),
    ],
)
def test_a_state_that_contradicts_the_playbook_is_refused(
    playbook: str, variable: str, value: str, tmp_path: Path
) -> None:
    code, output = looked(tmp_path, INVENTORY, playbook=playbook, **{variable: value})

    assert code != 0, output
    assert f"{variable}={value} would turn this playbook round." in output
    assert not acted_on(output)


@pytest.mark.parametrize("playbook", NAMES)
def test_a_playbook_sets_the_state_of_each_role_whatever_the_inventory_says(playbook: str) -> None:
    first, *others = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())
    (state,) = (item["vars"]["__kubevirt_state"] for item in first["tasks"] if "vars" in item)
    steps = [step for play in others for step in play.get("roles", play.get("tasks"))]
    given = [step["vars"] for step in steps if "vars" in step and "ansible.builtin.include_tasks" not in step]

    assert given
    for item in given:
        assert [value for name, value in item.items() if name.endswith("_state")] == [state]


@pytest.mark.parametrize("playbook", NAMES)
def test_every_playbook_checks_its_hosts_first(playbook: str) -> None:
    first, *_others = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())

    assert first["hosts"] == "localhost,all"
    assert first["tags"] == "always"
    assert [task["ansible.builtin.include_tasks"] for task in first["tasks"]] == ["tasks/states.yml", "tasks/hosts.yml"]
