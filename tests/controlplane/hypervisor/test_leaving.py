# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Messages that arrive while a connection closes must not reach libvirt.

When the last reference to a connection is dropped, libvirt sends CLOSE and reads until the answer. An event in between
makes its client use the freed connection and wait forever for a lock that it holds itself. The next keepalive blocks
the event loop as well. Therefore the tests run in a separate process.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.controlplane.hypervisor import hostile
from tests.controlplane.hypervisor.hostile import EVENT_OF_START, EVENTS, Caller, Spawn

pytestmark = pytest.mark.asyncio(loop_scope="session")

LEAVE = """
import asyncio, os, sys, threading
from controlplane.hypervisor.connection import open_connection, register_event_loop

async def main():
    register_event_loop()
    asyncio.get_running_loop().call_later(20, os._exit, 3)
    for _unused in range(4):
        made = await open_connection(sys.argv[1], keepalive_seconds=1)
        await made.guest("web")
        await made.close()
    while any(thread.name.startswith("libvirt: ") for thread in threading.enumerate()):
        await asyncio.sleep(0.01)
    await asyncio.sleep(1.5)  # a keepalive would be due
    print("left")

threading.Timer(30, os._exit, (4,)).start()
asyncio.run(main())
sys.stdout.flush()
os._exit(0)
"""


def instead(procedure: int, data: bytes) -> hostile.Behaviour:
    """Send this data instead of the answer to a call."""

    def behave(caller: Caller, _program: int, called: int, _serial: int) -> bool:
        if called != procedure:
            return False
        caller.transport.sendall(data)
        return True

    return behave


@pytest.mark.parametrize(
    ("procedure", "data"),
    [(hostile.CLOSE, EVENT_OF_START), (hostile.CLOSE, EVENTS), (hostile.DEREGISTER, EVENT_OF_START)],
    ids=["an event at CLOSE", "a flood at CLOSE", "an event at the end of a subscription"],
)
async def test_an_event_during_close_blocks_neither_a_thread_nor_the_loop(
    spawn: Spawn, procedure: int, data: bytes
) -> None:
    server = spawn(instead(procedure, data))
    done = await asyncio.to_thread(hostile.in_own_process, LEAVE, server.uri)
    assert (done.returncode, done.stdout, done.stderr) == (0, "left\n", "")
