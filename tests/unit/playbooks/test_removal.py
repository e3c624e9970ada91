# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role control_plane removes machines when the option says so, and never on a text that means no. Ansible runs it.

Two action plug-ins stand in for a cluster: one records deletions, the other returns what remains.
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

ROOT = Path(__file__).resolve().parents[3]
MACHINE = {"kind": "VirtualMachine", "metadata": {"name": "web", "namespace": "shop"}}
OURS = {"kind": "Namespace", "metadata": {"name": "kubevirt"}}
NOTHING = {
    "server_version": None,
    "nodes": [],
    "nodes_without_image_volumes": [],
    "node_patches": [],
    "namesakes": [],
    "owner": "ours",
    "evidence": "",
    "version": None,
    "definitions_version": None,
    "has_pod_monitors": False,
    "namespace_terminating": False,
    "namespace": "kubevirt",
    "namespace_owner": "ours",
    "check_mode": False,
}
LEFT_BEHIND = [{"metadata": {"name": "virt-handler-1"}, "spec": {"nodeName": "node-2"}}]
NO = ("false", "no", "False", "0", 0)
YES = ("true", "yes", True)
K8S = """
import json
from pathlib import Path
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        gone = Path(task_vars["playbook_dir"], task_vars["inventory_hostname"] + ".json")
        before = json.loads(gone.read_text()) if gone.exists() else []
        wanted = self._task.args["definition"] if self._task.args["state"] == "absent" else []
        if task_vars["keeps"] in [one["kind"] for one in wanted]:
            return dict(failed=True, msg="Timed out waiting on resource")
        gone.write_text(json.dumps(before + [one for one in wanted if one not in before]))
        return dict(changed=True)
"""
INFO = f"""
import json
from pathlib import Path
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        gone = Path(task_vars["playbook_dir"], task_vars["inventory_hostname"] + ".json")
        there = [] if gone.exists() else [{MACHINE}]
        names = [one["metadata"]["namespace"] + "/" + one["metadata"]["name"] for one in there]
        return dict({NOTHING}, changed=False, workloads=names, workload_objects=there, made=[{OURS}])
"""
PODS = f"""
from ansible.plugins.action import ActionBase

class ActionModule(ActionBase):
    def run(self, tmp=None, task_vars=None):
        return dict(changed=False, resources={LEFT_BEHIND})
"""
TRIED = [
    {
        "block": [
            {
                "ansible.builtin.include_role": {"name": "virtops.kubevirt.control_plane"},
                "vars": {"__control_plane_wanted": [], "__control_plane_crds": []},  # rendering them takes a second
            }
        ],
        "rescue": [{"ansible.builtin.set_fact": {"said": "{{ ansible_failed_result.msg }}"}}],
    },
    {
        "ansible.builtin.copy": {
            "content": "{{ dict(groups['all'] | zip(groups['all'] | map('extract', hostvars, 'said'))) | to_json }}",
            "dest": "{{ playbook_dir }}/said",
            "mode": "0600",
        },
        "run_once": True,
    },
]


def a_collection(folder: Path) -> None:
    """Lay out the collection with the cluster's plug-ins beside its own."""
    ours, theirs = (folder / "ansible_collections" / name for name in ("virtops/kubevirt", "kubernetes/core"))
    plugins = (("k8s", theirs, K8S), ("k8s_info", theirs, PODS), ("kubevirt_control_plane_info", ours, INFO))
    for plugin, where, text in plugins:
        (where / "plugins/action").mkdir(parents=True, exist_ok=True)
        (where / f"plugins/action/{plugin}.py").write_text(text)
    for name in ("roles", "meta", "plugins/filter", "plugins/modules", "plugins/module_utils", "plugins/doc_fragments"):
        (ours / name).symlink_to(ROOT / name)


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[list[Any], str]]:
    """Return the deletions and the output, by the value of the option."""
    folder = tmp_path_factory.mktemp("removal")
    a_collection(folder)
    values = {repr(item): {"control_plane_remove_with_workloads": item} for item in (*NO, *YES)}
    values["stays"] = {"control_plane_remove_with_workloads": "true", "keeps": "Namespace"}
    hosts = {f"host-{at}": variables for at, variables in enumerate([{}, *values.values()])}
    local = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, "said": "", "keeps": ""}
    local["control_plane_state"] = "absent"
    (folder / "hosts.yml").write_text(yaml.safe_dump({"all": {"vars": local, "hosts": hosts}}))
    (folder / "play.yml").write_text(yaml.safe_dump([{"hosts": "all", "gather_facts": False, "tasks": TRIED}]))
    environment = {**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(folder)}
    python = os.environ.get("ANSIBLE_PYTHON", sys.executable)
    command = [python, "-m", "ansible", "playbook", "-i", "hosts.yml", "play.yml"]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    output = json.loads((folder / "said").read_text())
    deleted = {host: json.loads(path.read_text()) for host in hosts if (path := folder / f"{host}.json").exists()}
    return {name: (deleted.get(host, []), output[host]) for name, host in zip(["", *values], hosts, strict=True)}


@pytest.mark.parametrize("value", ["", *map(repr, NO)])
def test_a_text_that_means_no_keeps_the_machines_and_the_control_plane(
    value: str, done: dict[str, tuple[list[Any], str]]
) -> None:
    deleted, output = done[value]

    assert deleted == []
    assert output.startswith("There are virtual machines: shop/web.")


@pytest.mark.parametrize("value", [*map(repr, YES)])
def test_a_text_that_means_yes_removes_the_machines_before_the_control_plane(
    value: str, done: dict[str, tuple[list[Any], str]]
) -> None:
    assert done[value] == ([MACHINE, OURS], "")


def test_an_object_that_does_not_go_is_named_with_its_node(done: dict[str, tuple[list[Any], str]]) -> None:
    """The kubelet of an unreachable node ends no Pod, and the namespace waits for it."""
    deleted, output = done["stays"]

    assert deleted == [MACHINE]
    assert "Pods that have not ended: virt-handler-1 on node-2. A node that is away keeps its Pods until" in output
    assert "out-of-service" in output
