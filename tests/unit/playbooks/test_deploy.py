# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts that the playbooks pass from the nodes to the control plane, rendered by Ansible."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

PLAYBOOKS = Path(__file__).resolve().parents[3] / "playbooks"
DIGESTS = {"control-plane": "sha256:" + "1" * 64, "virt-launcher": "sha256:" + "2" * 64}


def handed(folder: Path, nodes: dict[str, dict[str, Any]], expression: str) -> Any:
    """Return the value of an expression on the client after roles have set facts on hosts."""
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
    hosts: dict[str, Any] = {name: {} for name in nodes if name != "localhost"}
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "hosts": {**hosts, "client": {}}}}))
    plays = [
        {"hosts": name, "gather_facts": False, "tasks": [{"ansible.builtin.set_fact": facts}]}
        for name, facts in nodes.items()
        if facts
    ]
    keep = {"content": "{{ handed | to_json }}", "dest": f"{folder}/said.json", "mode": "0600"}
    look = {"ansible.builtin.copy": keep, "vars": {"handed": expression}}
    (folder / "play.yml").write_text(
        yaml.safe_dump([*plays, {"hosts": "client", "gather_facts": False, "tasks": [look]}])
    )
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"]
    done = subprocess.run(command, cwd=folder, env=os.environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads((folder / "said.json").read_text())


@pytest.mark.parametrize(
    ("digests", "expected"),
    [
        pytest.param({"other": {}, "n1": DIGESTS, "n2": DIGESTS}, DIGESTS, id="two nodes beside another host"),
        pytest.param({"other": {}, "localhost": DIGESTS}, DIGESTS, id="this machine, which no inventory has"),
        pytest.param({"other": {}, "n1": {}}, {}, id="images that nobody brought to the nodes"),
    ],
)
def test_the_revisions_are_the_digests_on_the_nodes(
    digests: dict[str, dict[str, str]], expected: dict[str, str], tmp_path: Path
) -> None:
    """A new digest rolls out an image that was rebuilt under its tag."""
    _hosts, _nodes, client = yaml.safe_load((PLAYBOOKS / "deploy.yml").read_text())
    (role,) = client["roles"]
    facts = {name: {"launcher_image_digests": one} if one else {} for name, one in digests.items()}

    assert handed(tmp_path, facts, role["vars"]["control_plane_image_revisions"]) == expected


@pytest.mark.parametrize(
    ("usable", "emulates"),
    [
        pytest.param({"n1": True, "n2": False}, False, id="a node with KVM"),
        pytest.param({"n1": False, "n2": False}, True, id="nodes without"),
        pytest.param({"localhost": True}, False, id="this machine, with KVM"),
    ],
)
def test_the_quickstart_emulates_without_kvm_on_any_node_whatever_the_group_is_called(
    usable: dict[str, bool], emulates: bool, tmp_path: Path
) -> None:
    """This inventory has no group kubevirt_nodes; the variable of that name means another group."""
    deploy, _provision = yaml.safe_load((PLAYBOOKS / "quickstart.yml").read_text())
    facts: dict[str, dict[str, Any]] = {name: {"node_kvm_usable": one} for name, one in usable.items()}

    assert handed(tmp_path, facts, deploy["vars"]["control_plane_use_emulation"]) is emulates
