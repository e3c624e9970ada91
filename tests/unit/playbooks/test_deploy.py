# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What playbook deploy hands from the nodes to the control plane, rendered by Ansible itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

DEPLOY = Path(__file__).resolve().parents[3] / "playbooks" / "deploy.yml"
DIGESTS = {"control-plane": "sha256:" + "1" * 64, "virt-launcher": "sha256:" + "2" * 64}


def revisions(folder: Path, digests: dict[str, dict[str, str]]) -> Any:
    """Return control_plane_image_revisions of the client after role launcher_image has set facts of hosts."""
    _hosts, _nodes, client = yaml.safe_load(DEPLOY.read_text())
    (role,) = client["roles"]
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts = {name: {"has": given} if given else {} for name, given in digests.items()}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "hosts": {**hosts, "client": {}}}}))
    fact = {"ansible.builtin.set_fact": {"launcher_image_digests": "{{ has }}"}, "when": "has is defined"}
    keep = {"content": "{{ control_plane_image_revisions | to_json }}", "dest": f"{folder}/said.json", "mode": "0600"}
    plays = [
        {"hosts": "all,!client", "gather_facts": False, "tasks": [fact]},
        {"hosts": "client", "gather_facts": False, "tasks": [{"ansible.builtin.copy": keep, "vars": role["vars"]}]},
    ]
    (folder / "play.yml").write_text(yaml.safe_dump(plays))
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "said.json").read_text())


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        pytest.param(
            {"other": {}, "n1": DIGESTS, "n2": DIGESTS},
            DIGESTS,
            id="two nodes beside another host",
        ),
        pytest.param({"other": {}, "n1": {}}, {}, id="images that nobody brought to the nodes"),
    ],
)
def test_the_revisions_are_the_digests_that_the_nodes_have(
    digests: dict[str, dict[str, str]], expected: dict[str, str], tmp_path: Path
) -> None:
    """What makes an image that was built anew under its tag be rolled out."""
    assert revisions(tmp_path, digests) == expected
