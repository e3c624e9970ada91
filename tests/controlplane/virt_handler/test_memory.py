# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher may send messages of many MiB: the memory for one is given back when it was dealt with.

In a process of its own, with the environment that the role gives virt-handler: what the allocator keeps depends on it.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.controlplane.hypervisor.hostile import ATTACKS, Hostile
from tests.controlplane.virt_api.test_manifests import render

CONTACTS = 8
CLIENT = f"""
import asyncio, sys
from contextlib import suppress
from controlplane.hypervisor.connection import open_connection, register_event_loop
from controlplane.hypervisor.errors import HypervisorError


def resident():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmRSS"))


async def ask():
    made = await open_connection(sys.argv[1], deadline_seconds=5)
    with suppress(HypervisorError):
        guest = await made.guest("web")
        await guest.xml()
    await made.close()


async def main():
    register_event_loop()
    await ask()
    first = resident()
    for _unused in range({CONTACTS}):
        await ask()
    print(resident() - first)


asyncio.run(main())
"""


def environment() -> dict[str, str]:
    (handler,) = (one for one in render("virt-handler.yaml.j2") if one["kind"] == "DaemonSet")
    (container,) = handler["spec"]["template"]["spec"]["containers"]
    listed: list[dict[str, Any]] = container["env"]
    return {one["name"]: one["value"] for one in listed if "value" in one}


def test_what_a_launcher_sends_is_not_kept_however_large(tmp_path: Path) -> None:
    """It was 64 MiB after three contacts with one launcher: a freed block of 16 MiB made the next come from a heap."""
    behave, options = ATTACKS["16 MiB of XML"]
    server = Hostile(tmp_path / "s", behave, **options)
    try:
        command = [sys.executable, "-c", CLIENT, server.uri]
        variables = {**os.environ, **environment(), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        done = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60, check=True)
    finally:
        server.close()
    assert int(done.stdout) < 8 << 10  # KiB
