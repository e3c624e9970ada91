# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Render the objects of role control_plane from its options, with Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import yaml

ROLE = Path(__file__).resolve().parents[4] / "roles" / "control_plane"
DIRECTORS = ("virt-api", "virt-controller")
FOUND = {"definitions_version": None, "namespace_owner": "none", "check_mode": False, "control_plane_nodes": []}
CONTENT = "{{ {'definitions': __control_plane_definitions, 'configuration': __control_plane_configuration} | to_json }}"


def render(folder: Path, options: dict[str, Any], **found: Any) -> dict[str, Any]:
    (folder / "templates").symlink_to(ROLE / "templates")
    copy = {"content": CONTENT, "dest": str(folder / "made.json"), "mode": "0600"}
    play = {
        "hosts": "localhost",
        "gather_facts": False,
        "vars_files": [str(ROLE / "defaults/main.yml"), str(ROLE / "vars/main.yml")],
        "tasks": [{"name": "Render", "ansible.builtin.copy": copy}],
    }
    (folder / "play.yml").write_text(yaml.safe_dump([play]))
    extra = {**options, "role_path": str(ROLE), "__control_plane_found": {**FOUND, **found}}
    command = [sys.executable, "-m", "ansible", "playbook", "--extra-vars", json.dumps(extra), str(folder / "play.yml")]
    done = subprocess.run(
        command, capture_output=True, text=True, env={**os.environ, "ANSIBLE_LOCALHOST_WARNING": "false"}, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "made.json").read_text())
