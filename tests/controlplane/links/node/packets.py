# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed packets of the node link: every message with every field wrong in many ways.

Also descriptors that can come with a packet: of each kind, none, or several.
"""

from __future__ import annotations

import array
import json
import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import msgspec

Json = dict[str, object]
WRONG: tuple[object, ...] = (
    None,
    True,
    -1,
    0,
    1.5,
    2**53 + 1,
    2**70,
    float("nan"),
    "",
    "..",
    "../../../etc/shadow",
    "/proc/1/root",
    "a\x00b",
    "a\n",
    "\ud800",
    "x" * 2000,
    "x" * 60_000,
    [],
    {},
    [[[[[]]]]] * 500,
    ["x"] * 5000,
    {"cidr": "10.0.2.0/33"},
    {"is_usable": "yes"},
)


def variants(message: msgspec.Struct) -> Iterator[bytes]:
    """Render a message in every malformed way: a field of another type or size, missing, added; the text cut."""
    plain = msgspec.json.encode(message)
    fields: Json = json.loads(plain)
    for name in fields:
        yield rendered({key: value for key, value in fields.items() if key != name})
        yield from (rendered({**fields, name: value}) for value in WRONG)
    yield rendered({**fields, "more": "x" * 1000})
    yield plain.replace(b"{", b'{"id":2,', 1)
    yield from (plain[:length] for length in range(1, len(plain), 7))
    yield plain + plain
    yield plain + b"\x00"
    yield b"[" + plain + b"]"
    yield b"\xef\xbb\xbf" + plain
    yield plain.ljust(65_536)
    yield plain.ljust(70_000)


def rendered(fields: Json) -> bytes:
    return json.dumps(fields).encode()


NONSENSE = (b"\x00", b"\xff" * 100, b"{", b"[" * 60_000, b'{"type":' * 8000, b"null", b"1", b'""', b'{"type":"Reboot"}')

Open = Callable[[], int]


def _pipe_that_nobody_writes() -> int:
    read, write = os.pipe()
    os.close(write)
    return read


def _socket() -> int:
    return socket.socket(socket.AF_UNIX).detach()


def _gone() -> int:
    descriptor, path = tempfile.mkstemp()
    os.unlink(path)
    return descriptor


DESCRIPTORS: dict[str, tuple[Open, ...]] = {
    "none": (),
    "a directory": (lambda: os.open("/", os.O_RDONLY | os.O_DIRECTORY),),
    "a directory that is only named": (lambda: os.open("/", os.O_PATH),),
    "a file that is only named": (lambda: os.open("/etc/passwd", os.O_PATH),),
    "a device": (lambda: os.open("/dev/zero", os.O_RDONLY),),
    "a device to write to": (lambda: os.open("/dev/full", os.O_WRONLY),),
    "a pipe": (_pipe_that_nobody_writes,),
    "a socket that nobody serves": (_socket,),
    "a file of memory": (lambda: os.memfd_create("x"),),
    "a file that is gone": (_gone,),
    "an event": (lambda: os.eventfd(0),),
    "a process": (lambda: os.pidfd_open(os.getpid()),),
    "two": (lambda: os.memfd_create("x"), lambda: os.open("/", os.O_PATH)),
    "many": (lambda: os.open("/", os.O_PATH),) * 253,
}


@contextmanager
def opened(kind: str) -> Iterator[list[int]]:
    """Open the descriptors of a packet. They are closed here: the sender keeps its own copies."""
    descriptors = [open_one() for open_one in DESCRIPTORS[kind]]
    try:
        yield descriptors
    finally:
        for descriptor in descriptors:
            os.close(descriptor)


def send(to: socket.socket, data: bytes, descriptors: list[int]) -> None:
    """Send one packet. Ignore a closed other end and a packet that is too long."""
    attached = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))] if descriptors else []
    with suppress(OSError):
        to.sendmsg([data], attached)


def held_open() -> int:
    return len(os.listdir("/proc/self/fd"))
