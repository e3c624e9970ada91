# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A socket whose last close waits: TCP, with something unsent, for a peer that does not read, and a long SO_LINGER."""

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
"""It waits so long, unless it is ended."""


@pytest.fixture
def old_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """One of before Linux 6.16, which refuses nothing that is sent along."""
    monkeypatch.setattr(passed, "_SO_PASSRIGHTS", 9999)


@pytest.fixture
def others_closed() -> None:
    """What the tests before have left to a thread is closed: descriptors can be counted."""
    for item in threading.enumerate():
        if item.name == "close":
            item.join(5)


@contextmanager
def lingering() -> Iterator[socket.socket]:
    """Make one, to be given away. Whoever waits for it is woken at the end."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        made = socket.create_connection(server.getsockname())
        peer, _unused = server.accept()
    made.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            made.send(b"x" * 65536)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, SECONDS))
    try:
        yield made
    finally:
        peer.close()  # with what it has not read: that is a reset
        made.close()


def give_away(to: socket.socket, data: bytes, one: socket.socket, count: int = 1) -> None:
    """Send a packet with so many descriptors, of which it is the last, and keep none."""
    along = array.array("i", [*[to.fileno()] * (count - 1), one.fileno()])
    to.sendmsg([data], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, along)])
    one.close()


def is_refused(sender: socket.socket) -> bool:
    """Try to give one away; tell whether the kernel refused it."""
    with lingering() as one:
        try:
            give_away(sender, b"x", one)
        except PermissionError:
            return True
    return False
