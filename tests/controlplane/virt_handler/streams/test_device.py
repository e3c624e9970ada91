# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection to a device's socket."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from kubevirt_api.close_codes import ENDED

from controlplane.links.relay import Close
from controlplane.virt_handler.streams import device
from tests.controlplane.links.node.lingering import is_refused

END = Close(ENDED, "the guest has stopped")


async def explain() -> Close:
    return END


@pytest.fixture
def listening(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(str(tmp_path / "device.sock"))
        sock.listen(0)
        yield sock


def fill(listening: socket.socket) -> socket.socket:
    """Take the only place in the queue."""
    waiting = socket.socket(socket.AF_UNIX)
    waiting.connect(listening.getsockname())
    return waiting


async def test_a_full_queue_is_no_connection(listening: socket.socket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device, "CONNECT_SECONDS", 0.01)
    with fill(listening), pytest.raises(TimeoutError):
        await device.connect(listening.getsockname(), 1.0, explain)


async def test_a_connection_waits_for_its_place_in_the_queue(listening: socket.socket) -> None:
    with fill(listening):
        connecting = asyncio.create_task(device.connect(listening.getsockname(), 1.0, explain))
        await asyncio.sleep(0)
        listening.accept()[0].close()
        connected = await connecting
    accepted, _unused = listening.accept()
    with accepted:
        accepted.sendall(b"login:")
        assert await connected.receive() == b"login:"
    assert await connected.receive() == END
    await connected.close()


async def test_a_launcher_can_pass_no_descriptor(listening: socket.socket) -> None:
    """Closing one could block the thread of all streams."""
    connected = await device.connect(listening.getsockname(), 1.0, explain)
    accepted, _unused = listening.accept()
    with accepted:
        assert is_refused(accepted)
    await connected.close()
