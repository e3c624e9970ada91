# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play reaches a database in a guest without a Service: the playbook of the guide, as a user types it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from lab.collection import linked_under
from tests.ad_hoc import Result, run_module
from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS

pytestmark = pytest.mark.lab

GUIDE = Path(__file__).resolve().parents[2] / "docs/docsite/rst/guide_consoles.rst"
PLAYBOOK = re.compile(r"^    # database\.yml\n(?:    .*\n|\n)+", re.MULTILINE)
Task = Callable[..., Result]


@pytest.fixture
def task(cluster: Cluster, tmp_path: Path) -> Task:
    """Run one module by Ansible on localhost; return its result."""
    collections = linked_under(tmp_path)

    def run(module: str, **options: Any) -> Result:
        return run_module(cluster.kubeconfig, collections, module, name="database", namespace="default", **options)

    return run


def forward(task: Task, port: int) -> Result:
    return task("kubevirt_port_forward", port=port, local_port=15984, timeout=1, lifetime=1, idle_timeout=1)


def play(cluster: Cluster, folder: Path, text: str) -> str:
    """Run a playbook; return what ansible-playbook prints."""
    playbook = folder / "database.yml"
    playbook.write_text(text)
    environment = {
        "ANSIBLE_COLLECTIONS_PATH": str(linked_under(folder)),
        "ANSIBLE_ASYNC_DIR": str(folder / "async"),
        "K8S_AUTH_KUBECONFIG": str(cluster.kubeconfig),
    }
    done = subprocess.run(
        [Path(sys.executable).parent / "ansible-playbook", "-v", playbook],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=4 * LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-6000:]
    return done.stdout


def test_the_playbook_of_the_guide_reaches_the_database(cluster: Cluster, tmp_path: Path) -> None:
    found = PLAYBOOK.search(GUIDE.read_text())
    assert found is not None

    output = play(cluster, tmp_path, textwrap.dedent(found.group()))

    assert r'"msg": "{\"rows\": 42}\n"' in output
    assert '"ended_by": "idle_timeout", "errors": []' in output
    assert cluster.kubectl("get", "services", "-o", "name").split() == ["service/kubernetes"]


def test_an_error_names_the_machine_and_what_to_do(task: Task) -> None:
    closed = forward(task, 9)
    assert "port 9 of VirtualMachineInstance default/database" in closed["msg"]
    assert "nothing listens there; have a program in the guest listen on this port" in closed["msg"]

    assert task("kubevirt_vm", state="paused", wait=True)["changed"]
    assert "kubevirt_vm with state=unpaused unpauses it" in forward(task, 5984)["msg"]

    assert task("kubevirt_vm", state="stopped", wait=True)["changed"]
    assert "start it (kubevirt_vm with state=started)" in forward(task, 5984)["msg"]
