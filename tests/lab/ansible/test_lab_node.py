# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plug-in, with a fake `lab` that counts its calls. The real one is in test_lab_cluster.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from lab.cluster.inventory import build_inventory
from lab.collection import ROOT

COUNTING_LAB = """
import os, sys
with open({count!r}, "a") as count:
    count.write("one\\n")
argv = sys.argv[sys.argv.index("--") + 1 :]
os.execvp(argv[0], argv)
"""
PLAY = [{"hosts": "all", "gather_facts": False, "tasks": [{"ansible.builtin.ping": {"data": "there"}}]}]


def test_a_task_runs_one_command_on_its_node(tmp_path: Path) -> None:
    """Each command starts a Python, which dominates the time of a task."""
    package, count = tmp_path / "sources/lab", tmp_path / "count"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "__main__.py").write_text(COUNTING_LAB.format(count=str(count)))
    inventory = build_inventory(
        "t", ["node-1"], kubeconfig="/k", python=sys.executable, sources=str(tmp_path / "sources")
    )
    (tmp_path / "inventory.yml").write_text(json.dumps(inventory))
    (tmp_path / "play.yml").write_text(json.dumps(PLAY))
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "--inventory", "inventory.yml", "play.yml"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={
            **os.environ,
            "HOME": str(tmp_path),
            "ANSIBLE_CONNECTION_PLUGINS": str(ROOT / "lab/ansible/connection_plugins"),
        },
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert count.read_text().splitlines() == ["one"]
