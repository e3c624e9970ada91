# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every playbook refuses patterns that mean no host before it does anything. Ansible itself runs its first play."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
NAMES = ("deploy", "provision", "remove")
NODES = {"node-1": {}, "node-2": {}}
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
INVENTORY = {"kubevirt_nodes": {"hosts": NODES}, "others": {"hosts": {"bastion": {}}}}


def looked(folder: Path, groups: dict[str, Any], *arguments: str, **variables: str) -> tuple[int, str]:
    """Run the first play of a playbook, and a second one everywhere; return its code and what was said on one line."""
    first, *_others = yaml.safe_load((PLAYBOOKS / "deploy.yml").read_text())
    everywhere = {"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.debug": {"msg": "was done"}}]}
    shutil.copytree(PLAYBOOKS / "tasks", folder / "tasks")
    (folder / "play.yml").write_text(yaml.safe_dump([first, everywhere]))
    inventory = {"all": {"vars": LOCAL, "children": groups}}
    (folder / "hosts.yml").write_text(yaml.safe_dump(inventory))
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml", "-e", json.dumps(variables)]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        pytest.param((), {}, id="the group, and this machine"),
        pytest.param((), {"kubevirt_nodes": "node-2", "kubevirt_client": "bastion"}, id="hosts of the inventory"),
        pytest.param((), {"kubevirt_nodes": "localhost"}, id="a cluster of this machine alone"),
        pytest.param(("--limit", "node-1,localhost"), {}, id="one node, and the client"),
        pytest.param(("--limit", "all:!node-1"), {"kubevirt_client": "bastion"}, id="all but a node"),
    ],
)
def test_what_means_hosts_is_taken(arguments: tuple[str, ...], variables: dict[str, str], tmp_path: Path) -> None:
    code, said = looked(tmp_path, INVENTORY, *arguments, **variables)

    assert code == 0, said
    assert "was done" in said


@pytest.mark.parametrize(
    ("arguments", "variables", "words"),
    [
        pytest.param((), {"kubevirt_nodes": "node-3"}, "is meant by kubevirt_nodes: node-3.", id="nodes"),
        pytest.param((), {"kubevirt_client": "bastoin"}, "is meant by kubevirt_client: bastoin.", id="the client"),
        pytest.param(("--limit", "node-1"), {}, "--limit node-1 leaves out localhost", id="a limit to nodes"),
        pytest.param(
            ("--limit", "all:!bastion"),
            {"kubevirt_client": "bastion"},
            "--limit all:!bastion leaves out bastion",
            id="a limit without the client",
        ),
    ],
)
def test_what_means_no_host_is_refused_before_anything_is_done(
    arguments: tuple[str, ...], variables: dict[str, str], words: str, tmp_path: Path
) -> None:
    code, said = looked(tmp_path, INVENTORY, *arguments, **variables)

    assert code != 0, said
    assert words in said
    assert "was done" not in said


def test_an_inventory_without_the_group_is_told_of_it(tmp_path: Path) -> None:
    code, said = looked(tmp_path, {"others": {"hosts": {"bastion": {}}}})

    assert code != 0
    assert "The inventory has no host in group kubevirt_nodes" in said


@pytest.mark.parametrize("playbook", NAMES)
def test_every_playbook_looks_at_its_hosts_first_of_all(playbook: str) -> None:
    plays = yaml.safe_load((PLAYBOOKS / f"{playbook}.yml").read_text())
    (like,) = yaml.safe_load((PLAYBOOKS / "deploy.yml").read_text())[:1]

    assert plays[0] == like
    assert [one["ansible.builtin.include_tasks"] for one in like["tasks"]] == ["tasks/hosts.yml"]
