# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the playbooks with Ansible on a few hosts, with plays that only print which hosts they would act on."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
NAMES = ("deploy", "provision", "remove", "upgrade")
LOCAL = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
INVENTORY: dict[str, dict[str, Any]] = {
    "kubevirt_nodes": {"hosts": {"node-1": {}, "node-2": {}}},
    "others": {"hosts": {"bastion": {}, "spare": {}}},
}
EVERYWHERE = "was done to"
# The replacement for the tasks of a play: connect, maybe fail, print.
WORK = (
    {"ansible.builtin.raw": "true", "changed_when": False, "check_mode": False, "when": "touched | default(false)"},
    {
        "ansible.builtin.debug": {"msg": EVERYWHERE + " {{ inventory_hostname }}."},
        "failed_when": "broken | default(false)",
    },
)


def in_small(play: dict[str, Any]) -> dict[str, Any]:
    """Return a play whose roles and tasks are replaced by WORK."""
    framed = {name: value for name, value in play.items() if name not in ("roles", "become")}
    return framed | {"tasks": [dict(item) for item in WORK]}


def looked(
    folder: Path, groups: dict[str, Any], *arguments: str, playbook: str = "deploy", **variables: Any
) -> tuple[int, str]:
    """Run playbooks one after the other, with WORK in each play after the first; return the code and the output."""
    plays: list[dict[str, Any]] = []
    for name in playbook.split():
        first, *others = yaml.safe_load((PLAYBOOKS / f"{name}.yml").read_text())
        plays += [first, *map(in_small, others)]
    shutil.copytree(PLAYBOOKS / "tasks", folder / "tasks")
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": LOCAL, "children": groups}}))
    (folder / "first.retry").write_text("node-1\n")
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml", "-e", json.dumps(variables)]
    done = subprocess.run([*command, *arguments], cwd=folder, capture_output=True, text=True, check=False)
    return done.returncode, " ".join((done.stdout + done.stderr).split())


def acted_on(said: str) -> set[str]:
    """Return the hosts that plays have acted on."""
    return {word.partition('."')[0].strip() for word in said.split(EVERYWHERE)[1:]}
