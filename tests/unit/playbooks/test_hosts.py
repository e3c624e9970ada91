# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The first play of every playbook checks which hosts are meant, or refuses before anything is done."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.virtops.kubevirt.tests.unit.tasks import PLAYBOOKS, Host, load

NAMES = ("deploy", "provision", "remove", "upgrade")
TASKS = PLAYBOOKS / "tasks"
GROUPS = {"kubevirt_nodes": ["node-1", "node-2"], "others": ["bastion", "spare"]}
EVERY = ["localhost", "node-1", "node-2", "bastion", "spare"]


def a_host(
    limit: str | None = None,
    remaining: list[str] | None = None,
    groups: dict[str, list[str]] | None = None,
    hosts: dict[str, dict[str, Any]] | None = None,
    **extra: Any,
) -> Host:
    """Return localhost in an inventory.

    limit, remaining: the argument --limit, and the hosts that it selects. hosts: variables of hosts.
    """
    grouped = GROUPS if groups is None else groups
    names = [name for group in grouped.values() for name in group]
    hostvars = {name: {"inventory_hostname": name, **(hosts or {}).get(name, {})} for name in [*names, "localhost"]}
    variables = {
        "inventory_hostname": "localhost",
        "groups": {**grouped, "all": names, "ungrouped": []},
        "hostvars": hostvars,
        "ansible_play_hosts_all": remaining or ["localhost", *names],
        **({"ansible_limit": limit} if limit else {}),
        **extra,
    }
    return Host(TASKS, variables)


def meant(host: Host) -> dict[str, Any]:
    """Return the hosts that the later plays take."""
    host.run(TASKS / "hosts.yml")
    selected: dict[str, Any] = host.variables["hostvars"]["localhost"]["__kubevirt_selected"]
    return selected


@pytest.mark.parametrize(
    ("case", "nodes", "client"),
    [
        pytest.param({}, ["node-1", "node-2"], "localhost", id="the group, and localhost"),
        pytest.param({"kubevirt_nodes": "node-2", "kubevirt_client": "bastion"}, ["node-2"], "bastion", id="by name"),
        pytest.param({"kubevirt_nodes": ["node-2", "spare"]}, ["node-2", "spare"], "localhost", id="a list"),
        pytest.param({"kubevirt_nodes": "node-2, node-1"}, ["node-1", "node-2"], "localhost", id="a text with a comma"),
        pytest.param({"kubevirt_nodes": "all:!others:!node-1"}, ["node-2"], "localhost", id="all but some"),
        pytest.param({"kubevirt_nodes": "localhost"}, ["localhost"], "localhost", id="a cluster of localhost alone"),
        pytest.param(
            {"hosts": {"node-1": {"kubevirt_nodes": "node-2", "kubevirt_client": "bastion"}}},
            ["node-2"],
            "bastion",
            id="variables of a host, which the pattern of a play cannot read",
        ),
        pytest.param(
            {"limit": "@first.retry,localhost", "remaining": ["node-1", "localhost"]},
            ["node-1"],
            "localhost",
            id="a limit in a file",
        ),
        pytest.param(
            {"limit": "all:!node-1", "remaining": ["node-2", "bastion", "spare"], "kubevirt_client": "bastion"},
            ["node-2"],
            "bastion",
            id="a limit that excludes a node",
        ),
    ],
)
def test_plays_act_on_the_selected_hosts(case: dict[str, Any], nodes: list[str], client: str) -> None:
    selected = meant(a_host(**case))

    assert (selected["nodes"], selected["client"], selected["checks"]) == (nodes, [client], [client])
    assert selected["run"] == 1


def test_later_plays_know_the_nodes_that_the_limit_excludes() -> None:
    assert meant(a_host("all,localhost,!node-2", ["localhost", "node-1"]))["left_out"] == ["node-2"]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        pytest.param({"kubevirt_nodes": "node-3"}, "matches kubevirt_nodes: node-3.", id="no such node"),
        pytest.param({"kubevirt_nodes": "node-1,node-9"}, "kubevirt_nodes: node-9.", id="one of the nodes"),
        pytest.param({"kubevirt_nodes": "node-1:!node-1"}, "kubevirt_nodes: node-1:!node-1.", id="none remains"),
        pytest.param({"kubevirt_nodes": ""}, 'or a list of them, not "".', id="an empty text"),
        pytest.param({"kubevirt_nodes": None}, "kubevirt_nodes must be a host, a group or", id="null"),
        pytest.param({"kubevirt_nodes": []}, "or a list of them, not [].", id="an empty list"),
        pytest.param({"kubevirt_nodes": {"a": 1}}, "kubevirt_nodes must be a host, a group or", id="a mapping"),
        pytest.param({"kubevirt_nodes": [1]}, "kubevirt_nodes must be a host, a group or", id="a number"),
        pytest.param({"kubevirt_client": ""}, "kubevirt_client must be a host, a group or", id="no client"),
        pytest.param({"kubevirt_client": "bastoin"}, "matches kubevirt_client: bastoin.", id="no such client"),
        pytest.param({"kubevirt_client": "others"}, "others matches bastion, spare.", id="two clients"),
        pytest.param(
            {"hosts": {"node-1": {"kubevirt_client": "a"}, "node-2": {"kubevirt_client": "b"}}},
            "kubevirt_client has several values: [",
            id="hosts with different values",
        ),
        pytest.param({"groups": {"others": ["bastion"]}}, "no host in group kubevirt_nodes", id="no group"),
        pytest.param(
            {"limit": "localhost,spare", "remaining": ["localhost", "spare"]},
            "excludes all nodes that kubevirt_nodes matches",
            id="a limit to others",
        ),
        *(
            pytest.param({"limit": limit, "remaining": remaining}, f"Add it: --limit '{wider}'.", id=limit)
            for limit, remaining, wider in (
                ("node-1", ["node-1"], "node-1,localhost"),
                ("node-1:node-2", ["node-1", "node-2"], "node-1:node-2:localhost"),
                ("!node-1", ["node-2", "bastion", "spare"], "all,!node-1,localhost"),
                ("@first.retry", ["node-1"], "@first.retry,localhost"),
            )
        ),
        pytest.param(
            {"limit": "all:!bastion", "remaining": ["node-1", "node-2", "spare"], "kubevirt_client": "bastion"},
            "reaches the Kubernetes API. Use a limit that includes it.",
            id="a limit against the client",
        ),
    ],
)
def test_a_selection_without_hosts_is_refused(case: dict[str, Any], words: str) -> None:
    host = a_host(**case)

    assert words in host.refusal(TASKS / "hosts.yml")
    assert "__kubevirt_selected" not in host.variables["hostvars"]["localhost"]


@pytest.mark.parametrize(
    ("state", "variable", "value", "is_refused"),
    [
        ("present", "control_plane_state", "absent", True),
        ("present", "launcher_image_state", "absent", True),
        ("absent", "control_plane_state", "present", True),
        ("absent", "launcher_image_state", "present", True),
        ("absent", "launcher_image_state", "absent", False),
    ],
)
def test_a_state_that_contradicts_the_playbook_is_refused(
    state: str, variable: str, value: str, is_refused: bool
) -> None:
    host = a_host(__kubevirt_state=state)
    host.extra = {variable: value}

    assert (f"{variable}={value} contradicts this playbook." in host.refusal(TASKS / "hosts.yml")) is is_refused


@pytest.mark.parametrize("playbook", [*NAMES, "drain_node"])
def test_a_playbook_selects_its_hosts_first(playbook: str) -> None:
    first, *others = load(PLAYBOOKS / f"{playbook}.yml")
    assert first["ansible.builtin.import_playbook"] == "select-hosts.yml"
    assert [item["hosts"] for item in others if ".__kubevirt_selected." not in item["hosts"]] == []


def test_the_selection_comes_before_all_tags_and_limits() -> None:
    (play,) = load(PLAYBOOKS / "select-hosts.yml")
    assert (play["hosts"], play["tags"], play["any_errors_fatal"]) == ("localhost,all", "always", True)
    assert [task["run_once"] for task in play["tasks"]] == [True]


@pytest.mark.parametrize("playbook", NAMES)
def test_a_playbook_sets_the_state_of_each_role(playbook: str) -> None:
    first, *others = load(PLAYBOOKS / f"{playbook}.yml")
    steps = [step for play in others for step in play.get("roles", play.get("tasks"))]
    given = [step["vars"] for step in steps if "vars" in step and "ansible.builtin.import_tasks" not in step]
    assert given
    for item in given:
        assert [value for name, value in item.items() if name.endswith("_state")] == [first["vars"]["__kubevirt_state"]]
