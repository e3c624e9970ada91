# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program in its own process, with the environment that the role gives the container of a DaemonSet."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.controlplane.virt_api.test_manifests import render

RESIDENT = '''
def resident():
    """Return this process's memory in KiB."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))
'''
"""For such a program."""


def run_as(daemon_set: str, program: str, *arguments: str) -> str:
    """Run the program and return its output."""
    (deployed,) = (item for item in render(f"{daemon_set}.yaml.j2") if item["kind"] == "DaemonSet")
    (container,) = deployed["spec"]["template"]["spec"]["containers"]
    given = {item["name"]: item["value"] for item in container["env"] if "value" in item}
    variables = {**os.environ, **given, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=True).stdout
