# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A hostile launcher hurts its own session only: its neighbour's goes on, and nothing is left of it."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import threading
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

import pytest
from kubevirt_api.close_codes import ENDED

from controlplane.links import streams as link
from controlplane.links.handler import Guest, NotDone
from controlplane.links.relay import Close
from controlplane.links.streams import OpenStream, StreamOpened
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.launchers.ports import LauncherSocket
from controlplane.virt_handler.streams.guest_sockets import StreamRefused
from tests.controlplane.virt_handler.fakes import until
from tests.controlplane.virt_handler.streams import hostile_launcher
from tests.controlplane.virt_handler.streams.hostile_launcher import Behaviour
from tests.controlplane.virt_handler.streams.stage import GUEST
from tests.controlplane.virt_handler.streams.test_sessions import Socket, Stage

HOSTILE = OpenStream(Guest("node-1", "vmi-hostile", "pod-hostile"), "serial", "joe")
ROUND_TRIPS = 30
MUCH_BYTES = 8 << 20
SHARE = 4
"""How much more may be copied for the hostile session than for the neighbour while both have data."""


class Launchers:
    """The sockets of two guests."""

    def __init__(self, paths: dict[str, str]) -> None:
        self._paths = paths

    async def open(self, opening: OpenStream) -> LauncherSocket:
        try:
            return LauncherSocket(os.open(self._paths[opening.guest.pod_uid], os.O_PATH))
        except OSError as error:  # as virt-node, which looks once more
            raise StreamRefused(NotDone("lost", str(error))) from error

    async def explain_end(self, guest: Guest) -> Close:
        return Close(ENDED, f"the guest of {guest.pod_uid} has stopped")


class SharedNode(Stage):
    """A node with a well-behaved guest and a hostile launcher."""

    def __init__(self, pair: SelfSignedPair, directory: Path) -> None:
        self.hostile_path = str(directory / "hostile.sock")
        paths = {HOSTILE.guest.pod_uid: self.hostile_path, GUEST.pod_uid: str(directory / "device.sock")}
        super().__init__(pair, directory, Launchers(paths))
        self.copied = 0
        """Bytes that the hostile session has brought."""
        self.tries = 0

    async def answer(self, neighbour: Socket) -> None:
        """Let a character reach the neighbour's guest and its echo come back."""
        device = self.device
        device.read.clear()
        await neighbour.send_bytes(b"k")
        await until(lambda: bool(device.read), "the input at the neighbour's guest")
        device.write(b"k")
        assert await neighbour.receive_bytes() == b"k"

    async def write_much(self, neighbour: Socket) -> None:
        """Let the neighbour's guest write, in a thread as the hostile one does, and its client read all."""
        device = self.device.writer.get_extra_info("socket").fileno()
        guest = threading.Thread(target=_write_all, args=(device,), name="neighbour")
        guest.start()
        count = 0
        while count < MUCH_BYTES:
            count += len(await neighbour.receive_bytes())
        guest.join()

    async def provoke(self) -> None:
        """Open the hostile guest's console again and again, read all, and send what it takes, until cancelled."""
        while True:
            async with self.dial(link.encode(HOSTILE)) as websocket:
                answer = link.read_answer(await websocket.receive_str())
                self.tries += 1
                if answer == StreamOpened():
                    await self._use(websocket)

    async def _use(self, websocket: Socket) -> None:
        sending = asyncio.create_task(_send(websocket))
        try:
            async for message in websocket:
                self.copied += len(message.data)
        finally:
            sending.cancel()
            await asyncio.wait({sending})

    def remains(self) -> tuple[int, int, list[str]]:
        """Return the numbers of sessions and tasks of the endpoint, and the threads."""
        tasks = asyncio.all_tasks(self.endpoint._thread._loop)
        return len(self.endpoint._sessions), len(tasks), sorted(thread.name for thread in threading.enumerate())


def _write_all(device: int) -> None:
    """Write to a descriptor that does not block."""
    data = memoryview(bytes(MUCH_BYTES))
    while data:
        select.select([], [device], [])
        data = data[os.write(device, data) :]


async def _send(websocket: Socket) -> None:
    with suppress(ConnectionError):
        while True:
            await websocket.send_bytes(b"x" * 16384)
            await asyncio.sleep(0)


def descriptors() -> int:
    gc.collect()
    return len(os.listdir("/proc/self/fd"))


@pytest.fixture
async def node(pair: SelfSignedPair, tmp_path: Path) -> AsyncIterator[SharedNode]:
    node = SharedNode(pair, tmp_path)
    await node.open()
    yield node
    await node.endpoint.close()
    await node.device.close()


@pytest.mark.parametrize("behaviour", hostile_launcher.ALL, ids=lambda behaviour: behaviour.__name__)
async def test_only_its_own_session_is_hurt(node: SharedNode, behaviour: Behaviour) -> None:
    async with node.stream() as neighbour:
        await node.answer(neighbour)
        before, open_before = node.remains(), descriptors()
        with hostile_launcher.running(behaviour, node.hostile_path):
            hostile = asyncio.create_task(node.provoke())
            await until(lambda: node.tries > 0 or len(node.endpoint._sessions) == 2, "the hostile session")
            for _unused in range(ROUND_TRIPS):
                await node.answer(neighbour)
            copied = node.copied
            await node.write_much(neighbour)
            assert not hostile.done(), hostile.exception()
            assert (node.copied - copied) / MUCH_BYTES < SHARE
            hostile.cancel()
            await asyncio.wait({hostile})
        await until(lambda: node.remains() <= before, "the end of the hostile session")
        await until(lambda: descriptors() <= open_before, "the descriptors")
        await node.answer(neighbour)
