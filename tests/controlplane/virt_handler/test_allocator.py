# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A launcher may send messages of many MiB. Their memory is given back afterwards.

Runs in its own process with virt-handler's environment, because that configures the allocator.
"""

from __future__ import annotations

from pathlib import Path

import pytest

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


@pytest.mark.nightly
def test_memory_of_large_launcher_messages_is_given_back(tmp_path: Path) -> None:
    """It kept 64 MiB after three connections: after one freed block of 16 MiB, malloc took the next from a heap."""
    behave, options = ATTACKS["16 MiB of XML"]
    server = Hostile(tmp_path / "s", behave, **options)
    try:
        grown = run_as("virt-handler", CLIENT, server.uri)
    finally:
        server.close()
    assert int(grown) < 8 << 10  # KiB
