# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Launchers that listen in QEMU's place and misbehave: one function for each way, run in a thread."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.controlplane.links.node.lingering import give_away, lingering


class Launcher:
    """A launcher's socket, and what it has accepted."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.over = threading.Event()
        self._listening = self._listen()
        self._opened: list[socket.socket] = []

    def _listen(self, kind: int = socket.SOCK_STREAM, backlog: int = 8) -> socket.socket:
        listening = socket.socket(socket.AF_UNIX, kind)
        listening.bind(self.path)
        if kind != socket.SOCK_DGRAM:
            listening.listen(backlog)
        return listening

    def listen_anew(self, kind: int = socket.SOCK_STREAM, backlog: int = 8) -> None:
        os.unlink(self.path)
        self._listening.close()
        self._listening = self._listen(kind, backlog)

    def accept(self) -> socket.socket:
        """Raises OSError at the end."""
        connection, _unused = self._listening.accept()
        self._opened.append(connection)
        if self.over.is_set():
            raise OSError("it is over")
        return connection

    def dial(self) -> None:
        """Take a place in the queue of our own socket."""
        waiting = socket.socket(socket.AF_UNIX)
        waiting.setblocking(False)
        self._opened.append(waiting)
        waiting.connect(self.path)

    def close(self) -> None:
        self.over.set()
        for opened in self._opened:
            with suppress(OSError):
                opened.shutdown(socket.SHUT_RDWR)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)  # ends an accept

    def forget(self) -> None:
        """Close the descriptors, when the thread has ended."""
        for opened in (*self._opened, self._listening):
            opened.close()


Behaviour = Callable[[Launcher], None]


@contextmanager
def running(behaviour: Behaviour, path: str) -> Iterator[None]:
    """Run a launcher that listens at a path."""

    def act() -> None:
        with suppress(OSError):
            behaviour(launcher)
        launcher.over.wait()

    launcher = Launcher(path)
    thread = threading.Thread(target=act, name="launcher")
    thread.start()
    try:
        yield
    finally:
        launcher.close()
        thread.join()
        launcher.forget()


def floods(launcher: Launcher) -> None:
    while connection := launcher.accept():
        with suppress(OSError):
            while True:
                connection.sendall(b"x" * 65536)


def never_reads(launcher: Launcher) -> None:
    while launcher.accept():
        pass


def never_accepts(_launcher: Launcher) -> None:
    pass


def has_a_full_queue(launcher: Launcher) -> None:
    launcher.listen_anew(backlog=0)
    while True:
        launcher.dial()  # BlockingIOError when it is full


def closes_half(launcher: Launcher) -> None:
    while connection := launcher.accept():
        connection.shutdown(socket.SHUT_WR)


def closes_the_other_half(launcher: Launcher) -> None:
    while connection := launcher.accept():
        connection.shutdown(socket.SHUT_RD)


def is_another_program(launcher: Launcher) -> None:
    while connection := launcher.accept():
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")
        connection.close()


def closes_at_once(launcher: Launcher) -> None:
    while connection := launcher.accept():
        connection.close()


def sends_and_closes(launcher: Launcher) -> None:
    while connection := launcher.accept():
        connection.sendall(b"x" * 100_000)
        connection.close()


def sends_single_bytes(launcher: Launcher) -> None:
    while connection := launcher.accept():
        with suppress(OSError):
            while True:
                connection.sendall(b"x")


def bursts_and_falls_silent(launcher: Launcher) -> None:
    while connection := launcher.accept():
        with suppress(OSError):
            connection.sendall(b"x" * (8 << 20))


def makes_its_socket_anew(launcher: Launcher) -> None:
    while True:
        launcher.accept().sendall(b"x")
        launcher.listen_anew()


def has_a_socket_of_another_type(launcher: Launcher) -> None:
    launcher.listen_anew(socket.SOCK_SEQPACKET)


def has_no_listener(launcher: Launcher) -> None:
    launcher.listen_anew(socket.SOCK_DGRAM)


def sends_descriptors_that_block_their_close(launcher: Launcher) -> None:
    while connection := launcher.accept():
        with lingering() as blocking:
            with suppress(PermissionError):
                give_away(connection, b"x", blocking)
            connection.sendall(b"x")
            launcher.over.wait()


ALL: tuple[Behaviour, ...] = (
    floods,
    never_reads,
    never_accepts,
    has_a_full_queue,
    closes_half,
    closes_the_other_half,
    is_another_program,
    closes_at_once,
    sends_and_closes,
    sends_single_bytes,
    bursts_and_falls_silent,
    makes_its_socket_anew,
    has_a_socket_of_another_type,
    has_no_listener,
    sends_descriptors_that_block_their_close,
)
