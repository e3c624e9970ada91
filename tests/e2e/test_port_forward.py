# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays look into guests: the playbook of the guide of consoles and ports, and its tasks, as a user types them."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lab.collection import linked_under
from tests.ad_hoc import Result, run_module
from tests.e2e.cluster import Cluster
from tests.e2e.console import LIMIT_SECONDS
from tests.e2e.machines import a_vm, serves_commands, with_grace

pytestmark = pytest.mark.lab

GUIDE = Path(__file__).resolve().parents[2] / "docs/docsite/rst/guide_consoles.rst"
NAME, PORT, LOCAL = "ports", 8080, 15985
PLAYBOOK = re.compile(r"^    # database\.yml\n(?:    .*\n|\n)+", re.MULTILINE)
TASKS = re.compile(r"(?<=code-block:: yaml\n\n)    - name: .*\n(?:    .*\n|\n)+")
PLAY = """
- hosts: localhost
  gather_facts: false
  vars:
    root_password: virtops
  tasks:
"""
Task = Callable[..., Result]


@pytest.fixture(scope="module")
def machine(cluster: Cluster) -> Iterator[Cluster]:
    """A machine with a program that accepts requests and does not respond."""
    cluster.apply(with_grace(a_vm(NAME, user_data=serves_commands(slow="sleep 900", ready="true")), 0))
    cluster.running(NAME)
    cluster.run_in_guest(NAME, "ready")
    yield cluster
    cluster.kubectl("delete", "vm", NAME)


@pytest.fixture
def task(machine: Cluster, tmp_path: Path) -> Task:
    """Run one module on that machine; return its result."""
    collections = linked_under(tmp_path)

    def run(module: str, **options: Any) -> Result:
        return run_module(machine.kubeconfig, collections, module, name=NAME, namespace="default", **options)

    return run


def refusal(task: Task, port: int) -> str:
    """Return why a port is not forwarded."""
    options = {"local_port": LOCAL, "timeout": 1, "lifetime": 1, "idle_timeout": 1}
    text: str = task("kubevirt_port_forward", port=port, **options)["msg"]
    return text


def connected() -> socket.socket:
    """Connect as soon as the port is forwarded."""
    deadline = time.monotonic() + LIMIT_SECONDS
    while True:
        try:
            return socket.create_connection(("127.0.0.1", LOCAL), LIMIT_SECONDS)
        except ConnectionRefusedError:
            assert time.monotonic() < deadline, f"nothing listens on port {LOCAL}"
            time.sleep(0.2)


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


@pytest.fixture(scope="module")
def database(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What ansible-playbook prints about the guide's playbook, which leaves the machine `database`."""
    found = PLAYBOOK.search(GUIDE.read_text())
    assert found is not None
    return play(cluster, tmp_path_factory.mktemp("database"), textwrap.dedent(found.group()))


def test_the_playbook_of_the_guide_reaches_the_database(database: str) -> None:
    assert r'"msg": "{\"rows\": 42}\n"' in database
    assert '"ended_by": "idle_timeout", "errors": []' in database


@pytest.mark.usefixtures("database")
def test_the_tasks_of_the_guide_look_into_a_machine(cluster: Cluster, tmp_path: Path) -> None:
    """They log in twice, read the log and take a picture."""
    tasks = "".join(TASKS.findall(GUIDE.read_text())).replace("name: web\n", "name: database\n")
    tasks = tasks.replace("~/web.png", str(tmp_path / "web.png"))

    output = play(cluster, tmp_path, PLAY + tasks)

    assert re.search(r'"msg": "\d+\.\d+"', output), "the load of the guest"
    assert (tmp_path / "web.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.nightly
def test_an_error_names_the_machine_and_what_to_do(task: Task) -> None:
    closed = refusal(task, 9)
    assert f"port 9 of VirtualMachineInstance default/{NAME}" in closed
    assert "nothing listens there; have a program in the guest listen on this port" in closed

    assert task("kubevirt_vm", state="paused", wait=True)["changed"]
    assert "it is paused; unpause it first" in refusal(task, PORT)

    assert task("kubevirt_vm", state="stopped", wait=True)["changed"]
    assert "start it (kubevirt_vm with state=started)" in refusal(task, PORT)

    assert task("kubevirt_vm", state="started", wait=True)["changed"]


@pytest.mark.nightly
def test_a_guest_that_is_gone_ends_its_connections(task: Task) -> None:
    with ThreadPoolExecutor(1) as pool:
        forward = pool.submit(task, "kubevirt_port_forward", port=PORT, local_port=LOCAL, idle_timeout=5)
        with connected() as client:
            client.sendall(b"GET /cgi-bin/slow HTTP/1.0\r\n\r\n")
            assert task("kubevirt_vm", state="stopped", wait=True)["changed"]
            with pytest.raises(ConnectionResetError):
                client.recv(1)
        result = forward.result()
    assert result["failed"]
    assert f"the connection to port {PORT} of VirtualMachineInstance default/{NAME} ended" in result["msg"]
    assert "look whether the machine still runs" in result["msg"]
    assert task("kubevirt_vm", state="started", wait=True)["changed"]
