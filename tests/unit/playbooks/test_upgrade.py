# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Refusals, waits and messages of playbook upgrade. Ansible runs its tasks, each host with its own cluster.

Two action plug-ins stand in for a cluster; they return what the variables of the host contain.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.virtops.kubevirt.tests.unit.playbooks.upgrades import (
    CHECKS,
    FOUND,
    MACHINES,
    NEW,
    OLD,
    STANDING,
    VARIABLES,
)

ROOT = Path(__file__).resolve().parents[3]
TASKS = ROOT / "playbooks/tasks"
SAY = """
from ansible.plugins.action import ActionBase

ASKED = set()  # of one task, whose tries are made in one process

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        said = task_vars["said_by_{name}"]
        if "{name}" in ASKED:
            said = said | task_vars.get("later", {})
        ASKED.add("{name}")
        return dict(said, changed=False, waited=self._task.args.get("wait", False))
"""


FAILED = (
    "{{ ansible_failed_result.results | default([ansible_failed_result])"
    " | map(attribute='msg', default='') | join(' ') }}"
)


def kept(*tasks: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the tasks, and one that keeps their last message as a fact of the host."""
    refused = {"ansible.builtin.set_fact": {"said": FAILED}}
    return [{"block": list(tasks), "rescue": [refused]}]


def included(name: str) -> dict[str, Any]:
    return {"ansible.builtin.include_tasks": str(TASKS / name)}


BROKEN_OFF = {
    "block": [{"name": "Apply it", "ansible.builtin.fail": {"msg": "webhook says no."}}],
    "rescue": [included("upgrade-standing.yml")],
}
PLAYS = {
    "variables": kept(included("upgrade-variables.yml")),
    "checks": [
        {"ansible.builtin.set_fact": {"__control_plane_found": "{{ said_by_kubevirt_control_plane_info }}"}},
        *kept(
            included("upgrade-checks.yml"),
            {"ansible.builtin.set_fact": {"waited": "{{ __kubevirt_waited.waited | default(false) }}"}},
        ),
    ],
    "machines": kept(included("upgrade-machines.yml")),
    "standing": kept(BROKEN_OFF),
}


def hosts() -> dict[str, Any]:
    names: dict[str, Any] = {"variables": VARIABLES}
    for group, cases in (("checks", CHECKS), ("machines", MACHINES), ("standing", STANDING)):
        names[group] = {
            name: {
                "said_by_kubevirt_control_plane_info": case.get("answer", FOUND | case.get("found", {})),
                "said_by_kubevirt_migration_info": {"resources": case.get("migrations", [])},
                **{key: value for key, value in case.items() if key not in ("found", "migrations", "answer")},
            }
            for name, case in cases.items()
        }
    return names


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, str], dict[str, bool], str]:
    """Return by host why it was refused and whether it waited, and all output."""
    folder = tmp_path_factory.mktemp("upgrade")
    ours = folder / "ansible_collections/virtops/kubevirt"
    (ours / "plugins/action").mkdir(parents=True)
    for name in ("kubevirt_control_plane_info", "kubevirt_migration_info"):
        (ours / f"plugins/action/{name}.py").write_text(SAY.replace("{name}", name))
    for name in ("meta", "plugins/filter", "plugins/modules", "plugins/module_utils", "plugins/doc_fragments"):
        (ours / name).symlink_to(ROOT / name)
    local = {
        "ansible_connection": "local",
        "ansible_python_interpreter": sys.executable,
        "said": "",
        "waited": False,
        "__control_plane_version": "0.2.0",
        "__control_plane_image": "registry/control-plane:0.2.0",
        "__control_plane_launcher_image": NEW,
        "control_plane_namespace": "kubevirt",
        "__kubevirt_left_out": [],
        "__kubevirt_brought_to": ["{{ inventory_hostname }}"],
        "__kubevirt_delay": 0,
    }
    groups = {group: {"hosts": cases} for group, cases in hosts().items()}
    methods = {"control_plane_workload_update_methods": []}
    groups["machines"]["vars"] = methods
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "children": groups}}))
    keep = {
        "content": "{{ dict(groups['all'] | zip(groups['all'] | map('extract', hostvars, 'said'))) | to_json }}\n"
        "{{ dict(groups['all'] | zip(groups['all'] | map('extract', hostvars, 'waited'))) | to_json }}",
        "dest": f"{folder}/said",
        "mode": "0600",
    }
    plays = [{"hosts": group, "gather_facts": False, "tasks": tasks} for group, tasks in PLAYS.items()]
    plays.append({"hosts": "localhost", "gather_facts": False, "tasks": [{"ansible.builtin.copy": keep}]})
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    output, waited = map(json.loads, (folder / "said").read_text().splitlines())
    return output, waited, " ".join(ran.stdout.split())


@pytest.mark.parametrize(
    ("host", "words"),
    [
        ("mistyped", "does not know: upgrade_wait_machine (is upgrade_wait_machines meant?)."),
        ("rather_mistyped", "does not know: upgrade_wait_time (is upgrade_wait_timeout meant?)."),
        ("no_number", "upgrade_wait_timeout must be a number from 1, not 'soon'."),
        ("no_truth", "upgrade_not_ready_nodes must be true or false, not 'perhaps'."),
        ("unwaited", "control_plane_wait is false."),
        ("in_vain", "control_plane_workload_update_methods has nobody move them."),
        ("empty", "no control plane of this collection that could be upgraded. Playbook virtops.kubevirt.deploy"),
        ("definitions_alone", "no control plane of this collection that could be upgraded."),
        ("away", "Not Ready: node-3."),
        ("limited", "leaves out nodes: node-2, node-3. The control plane is replaced on all nodes"),
        ("limited_to_the_ready", "leaves out nodes: node-2, node-33. The"),
        ("limited_without_leave", "Not Ready: 10.0.0.2."),
        ("limited_by_addresses", "leaves out nodes: 10.0.0.3. The"),
        ("limited_to_others", "leaves out nodes: node-1. The"),
        ("limited_to_too_few", "leaves out nodes: 10.0.0.3. The"),
        (
            "of_another_tag",
            "would run localhost/virtops/control-plane:0.3.0, and of_another_tag gets localhost/virtops/",
        ),
        (
            "of_another_place",
            "virt-launcher:0.2.0, and of_another_place gets registry.example/virtops/control-plane:0.2",
        ),
        ("moving", "Machines are being moved: shop/web, shop/db. virt-handler"),
        ("cannot_leave", "still in an older launcher: shop/db (" + OLD + ", cannot be moved: a disk is the node's)."),
        (
            "cannot_leave",
            "Restart them (kubevirt_vm with state=restarted), have them evicted (control_plane_workload_upd",
        ),
        (
            "is_too_slow",
            "have them evicted (control_plane_workload_update_methods with Evict), wait longer for those that",
        ),
        (
            "is_not_evicted",
            "state=restarted), look who refuses their evictions (their evictionStrategy, budgets), wait l",
        ),
        ("stands", "Apply it: webhook says no. Where it stands: definitions 0.2.0; virt-api 0.2.0; "),
        ("stands", "virt-handler 0.1.0 (1 of 3 updated, 1 ready). Machines run on."),
        ("is_silent", "Where it stands: the cluster does not say (the API server does not answer)."),
    ],
)
def test_a_refusal_says_why(host: str, words: str, done: tuple[dict[str, str], Any, str]) -> None:
    assert words in done[0][host]


@pytest.mark.parametrize(
    "host",
    [
        *(
            "limited_to_all_that_are_there",
            "limited_to_its_cluster",
            "limited_but_one_that_is_off",
            "moved",
            "of_the_same_place",
            "by_hand",
            "by_digest",
            "of_another_tool",
            "nothing_said",
            "left_behind",
            "awaited",
            "not_awaited_in_check_mode",
            "own",
            "well",
        ),
        *("none_older", "stays_put", "is_moved", "is_starting", "has_left", "check_mode"),
    ],
)
def test_healthy_hosts_pass(host: str, done: tuple[dict[str, str], Any, str]) -> None:
    assert done[0][host] == ""


def test_refused_evictions_and_missing_evictions_get_different_remedies(
    done: tuple[dict[str, str], Any, str],
) -> None:
    assert "have them evicted" not in done[0]["is_not_evicted"]
    assert "wait longer" not in done[0]["cannot_leave"]


def test_only_a_host_with_the_option_waits_for_migrations_and_none_in_check_mode(done: tuple[Any, Any, str]) -> None:
    assert [host for host, waited in done[1].items() if waited] == ["awaited"]


@pytest.mark.parametrize(
    "words",
    [
        f"All machines are in launcher {NEW}.",
        f"shop/web ({OLD}); shop/db ({OLD}, cannot be moved: a disk is the node's). They stay there until they are",
        f"shop/web ({OLD}). They are brought to it (Evict).",
        "goes from version 0.1.0 to 0.2.0 (registry/control-plane:0.2.0, launchers: " + NEW + ").",
    ],
)
def test_the_last_message(words: str, done: tuple[Any, Any, str]) -> None:
    assert words in done[2]
