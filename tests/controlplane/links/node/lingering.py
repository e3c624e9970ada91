# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A socket whose last close blocks: TCP with unsent data, a peer that does not read, and a long SO_LINGER."""

from __future__ import annotations

import array
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from controlplane.process import fd_passing as passed

SECONDS = 20
"""How long the close blocks unless it is interrupted."""


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel before Linux 6.16, which cannot refuse descriptors."""
    monkeypatch.setattr(passed, "_SO_PASSRIGHTS", 9999)


@pytest.fixture
def others_closed() -> None:
    """Wait for the closing threads of earlier tests, so that descriptors can be counted."""
    for thread in threading.enumerate():
        if thread.name == "close":
            thread.join(5)


@contextmanager
def lingering() -> Iterator[socket.socket]:
    """Make a lingering socket to send away. At the end its close no longer blocks."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        sock = socket.create_connection(server.getsockname())
        peer, _unused = server.accept()
    sock.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            sock.send(b"x" * 65536)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SECONDS))
    try:
        yield sock
    finally:
        peer.close()  # with unread data: the kernel sends a reset
        sock.close()


def give_away(to: socket.socket, data: bytes, sock: socket.socket, count: int = 1) -> None:
    """Send a packet with `count` descriptors, the socket as the last one, and close the socket here."""
    descriptors = array.array("i", [*[to.fileno()] * (count - 1), sock.fileno()])
    to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, descriptors)])
    sock.close()


def is_refused(sender: socket.socket) -> bool:
    """Send a lingering socket and return whether the kernel refused it."""
    with lingering() as sock:
        try:
            give_away(sender, b"x", sock)
        except PermissionError:
            return True
    return False
