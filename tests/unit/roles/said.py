# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run plays with ansible-playbook and return what their tasks keep in the fact `said` of each host."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
KEEP = {
    "name": "Keep what was said",
    "ansible.builtin.copy": {
        "content": "{{ dict(groups['all'] | zip(groups['all'] | map('extract', hostvars, 'said'))) | to_json }}",
        "dest": "{{ playbook_dir }}/said.json",
        "mode": "0600",
    },
    "run_once": True,
}


def run(folder: Path, groups: dict[str, Any], plays: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    """Return the fact `said` of each host.

    groups: of the inventory, each with its `hosts` and their variables. plays: tasks by their hosts.
    """
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "children": groups}}))
    written = [
        {"hosts": hosts, "gather_facts": False, "tasks": tasks} for hosts, tasks in {**plays, "all": [KEEP]}.items()
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(written))
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
    kept: dict[str, Any] = json.loads((folder / "said.json").read_text())
    return kept
