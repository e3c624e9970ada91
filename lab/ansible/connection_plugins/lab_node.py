# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ansible's connection to a node of a lab: commands and files go through `lab node exec`."""

from __future__ import annotations

DOCUMENTATION = r"""
name: lab_node
short_description: Run tasks on a node of a lab
description:
  - Runs each command with C(lab node exec), so in the node's cgroups and namespaces, as root.
  - The host's Python serves on the node as well, because a node's root shows the host's files.
author: virtops.kubevirt contributors
version_added: 0.1.0
options:
  node:
    description: Name of the node.
    default: inventory_hostname
    type: str
    vars:
      - name: inventory_hostname
      - name: ansible_host
  lab:
    description: Name of the lab.
    default: virtops
    type: str
    vars:
      - name: ansible_lab_name
  python:
    description: A Python that has the package C(lab).
    default: python3
    type: str
    vars:
      - name: ansible_lab_python
  sources:
    description: The directory that holds the package C(lab), for a Python in which it is not installed.
    default: ""
    type: str
    vars:
      - name: ansible_lab_sources
  pipelining:
    description: Hand a module to the node's Python on its input and not in a file, with one command and not with six.
    default: true
    type: boolean
    vars:
      - name: ansible_pipelining
"""

import os
import shlex
import subprocess
from pathlib import Path

from ansible.errors import AnsibleConnectionFailure, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase
from ansible.utils.display import Display

display = Display()


class Connection(ConnectionBase):
    """A connection without state: every command enters the node again."""

    transport = "lab_node"
    has_pipelining = True

    def _connect(self) -> Connection:
        self._connected = True
        return self

    def close(self) -> None:
        self._connected = False

    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        done = self._run(["/bin/sh", "-c", cmd], data=in_data)
        return done.returncode, done.stdout, done.stderr

    def put_file(self, in_path: str, out_path: str) -> None:
        super().put_file(in_path, out_path)
        source = Path(in_path)
        if not source.exists():
            raise AnsibleFileNotFound(f"{in_path} does not exist on this machine")
        with source.open("rb") as stream:
            done = self._run(["/bin/sh", "-c", f"cat > {shlex.quote(out_path)}"], stream=stream.fileno())
        self._check(done, f"cannot write {out_path}")

    def fetch_file(self, in_path: str, out_path: str) -> None:
        super().fetch_file(in_path, out_path)
        done = self._run(["cat", in_path])
        self._check(done, f"cannot read {in_path}")
        Path(out_path).write_bytes(done.stdout)

    def _run(
        self, argv: list[str], *, data: bytes | None = None, stream: int | None = None
    ) -> subprocess.CompletedProcess[bytes]:
        node, lab = self.get_option("node"), self.get_option("lab")
        command = [self.get_option("python"), "-m", "lab", "node", "exec", "--name", lab, node, "--", *argv]
        display.vvv(f"EXEC {shlex.join(command)}", host=node)
        environment = dict(os.environ)
        if sources := self.get_option("sources"):
            environment["PYTHONPATH"] = sources
        streams = {"input": data or b""} if stream is None else {"stdin": stream}
        return subprocess.run(command, capture_output=True, check=False, env=environment, **streams)

    def _check(self, done: subprocess.CompletedProcess[bytes], attempt: str) -> None:
        if done.returncode != 0:
            reason = done.stderr.decode(errors="replace").strip()
            raise AnsibleConnectionFailure(f"{attempt} on {self.get_option('node')}: {reason}")
