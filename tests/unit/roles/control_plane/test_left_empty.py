# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An option of role control_plane that is left empty is as good as none. Ansible itself says so."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

from tests.unit.roles.control_plane.rendered import ROLE, render

MODULE = "virtops.kubevirt.kubevirt_control_plane_info"
EMPTY = {"control_plane_tolerations": None, "control_plane_node_selector": None}


def asked(folder: Path) -> Any:
    """Return what directs nodes as preflight hands it to the module."""
    (task,) = [one for one in yaml.safe_load((ROLE / "tasks/preflight.yml").read_text()) if MODULE in one]
    content = {name: task[MODULE][name] for name in ("node_selector", "tolerations")}
    copy = {"content": "{{ asked | to_json }}", "dest": str(folder / "asked.json"), "mode": "0600"}
    tasks = [{"ansible.builtin.copy": copy, "vars": {"asked": content}}]
    (folder / "play.yml").write_text(yaml.safe_dump([{"hosts": "localhost", "gather_facts": False, "tasks": tasks}]))
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-e", json.dumps(EMPTY), "play.yml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "asked.json").read_text())


def test_what_directs_nodes_is_asked_about_as_if_there_were_none(tmp_path: Path) -> None:
    assert asked(tmp_path) == {"node_selector": {}, "tolerations": []}


def test_what_directs_nodes_is_rendered_as_if_there_were_none(tmp_path: Path) -> None:
    workloads = {"control_plane_workload_tolerations": None, "control_plane_workload_node_selector": None}
    made = render(tmp_path, {**EMPTY, **workloads})["definitions"]
    specs = [one["spec"]["template"]["spec"] for one in made if one["kind"] in ("Deployment", "DaemonSet")]

    assert [one["tolerations"] for one in specs] == [[]] * 4
    assert None not in [one.get("nodeSelector", {}) for one in specs]
