# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher may send messages of many MiB: the memory for one is given back when it was dealt with.

In a process of its own, with the environment that the role gives virt-handler: what the allocator keeps depends on it.
"""

from __future__ import annotations

from pathlib import Path

from tests.controlplane.as_deployed import RESIDENT, run_as
from tests.controlplane.hypervisor.hostile import ATTACKS, Hostile

CONTACTS = 8
CLIENT = f"""
import asyncio, sys
from contextlib import suppress
from controlplane.hypervisor.connection import open_connection, register_event_loop
from controlplane.hypervisor.errors import HypervisorError
{RESIDENT}

async def ask():
    made = await open_connection(sys.argv[1], deadline_seconds=5)
    with suppress(HypervisorError):
        guest = await made.guest("web")
        await guest.described(str)
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


def test_what_a_launcher_sends_is_not_kept_however_large(tmp_path: Path) -> None:
    """It was 64 MiB after three contacts with one launcher: a freed block of 16 MiB made the next come from a heap."""
    behave, options = ATTACKS["16 MiB of XML"]
    server = Hostile(tmp_path / "s", behave, **options)
    try:
        grown = run_as("virt-handler", CLIENT, server.uri)
    finally:
        server.close()
    assert int(grown) < 8 << 10  # KiB
