# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many launchers at once leave no more memory behind than one.

In a process of its own, with the environment that the role gives virt-node: what the allocator keeps depends on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

from tests.controlplane.virt_api.test_manifests import render

pytestmark = pytest.mark.root  # network namespaces

PROGRAM = """
import ctypes, threading
from controlplane.node_link.messages import Masquerade
from controlplane.virt_node.network import masquerade, nft

RULES = masquerade.render_rules(Masquerade("10.0.2.0/24", ()))
libc = ctypes.CDLL(None)


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


def set_up(barrier):
    libc.unshare(0x40000000)
    barrier.wait()
    nft.run(RULES)


def at_once(count):
    barrier = threading.Barrier(count)
    threads = [threading.Thread(target=set_up, args=(barrier,)) for _unused in range(count)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()


at_once(1)
first = resident()
for _unused in range(3):
    at_once(16)
print(resident() - first)
"""


def environment() -> dict[str, str]:
    (node,) = (one for one in render("virt-node.yaml.j2") if one["kind"] == "DaemonSet")
    (container,) = node["spec"]["template"]["spec"]["containers"]
    listed: list[dict[str, Any]] = container["env"]
    return {one["name"]: one["value"] for one in listed if "value" in one}


def test_networks_that_are_set_up_at_once_leave_nothing_behind() -> None:
    """It was 20 MiB: each thread had a heap of its own, and none gave anything back."""
    variables = {**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-c", PROGRAM]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=True)
    assert int(done.stdout) < 4 << 10  # KiB
