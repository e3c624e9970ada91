# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An answer that announces descriptors but has none must not reach libvirt.

libvirt's client fails to receive the first descriptor and continues to read in the wrong place. With two calls under
way the second loops endlessly and holds a lock that the event loop needs at the next keepalive. Therefore the test
runs in a separate process.
"""

from __future__ import annotations

import asyncio
import struct

import pytest

from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import QEMU, STATE, Caller, Spawn, message

pytestmark = pytest.mark.asyncio(loop_scope="session")

WITH_DESCRIPTORS = 5

ASK_TWICE = """
import asyncio, os, sys, threading
from controlplane.hypervisor.connection import open_connection, register_event_loop
from controlplane.hypervisor.errors import HypervisorError

async def main():
    register_event_loop()
    made = await open_connection(sys.argv[1], deadline_seconds=0.5, keepalive_seconds=1)
    guest = await made.guest("web")
    asked = asyncio.create_task(guest.ask_agent("{}", 1))
    for response in (guest.state(), asked):
        try:
            await response
        except HypervisorError as error:
            print(type(error).__name__)
    await made.close()
    await asyncio.sleep(1.5)  # a keepalive would be due
    while any(thread.name.startswith("libvirt: ") for thread in threading.enumerate()):
        await asyncio.sleep(0.01)
    print("left")

threading.Timer(20, os._exit, (4,)).start()
asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""


def promise(caller: Caller, program: int, procedure: int, serial: int) -> bool:
    """Never answer agent commands. Answer the state call by announcing descriptors."""
    if program == QEMU:
        return True
    if procedure != STATE:
        return False
    caller.transport.sendall(message(STATE, WITH_DESCRIPTORS, serial, struct.pack(">Iii", 1, 1, 1)))
    return True


async def test_announced_descriptors_block_neither_a_thread_nor_the_loop(spawn: Spawn) -> None:
    server = spawn(promise)
    done = await asyncio.to_thread(hostile.in_own_process, ASK_TWICE, server.uri)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["Disconnected", "Disconnected", "left"]
    assert hostile.STATE in server.calls
