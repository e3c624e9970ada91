# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The five things that are asked of the kernel about links and addresses, in the namespace of the calling thread.

Nothing is decided here, and nothing more of the protocol is known than these need: a library that knows all of it is
10 MiB in a process that is on every node.
"""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Interface, ip_address
from types import TracebackType
from typing import Self

_MESSAGE = struct.Struct("=IHHII")  # length, type, flags, sequence, port
_LINK = struct.Struct("=BxHiII")  # family, type, index, flags, which of them
_ADDRESS = struct.Struct("=BBBBI")  # family, prefix length, flags, scope, index
_ATTRIBUTE = struct.Struct("=HH")  # length, type
_NEW_LINK, _GET_LINK, _NEW_ADDRESS, _GET_ADDRESS = 16, 18, 20, 22
_ERROR, _DONE = 2, 3
_REQUEST, _ACKNOWLEDGE, _EXCLUSIVE, _CREATE, _DUMP = 0x1, 0x4, 0x200, 0x400, 0x300
_LINK_MAC, _LINK_NAME, _LINK_MTU, _LINK_MASTER, _LINK_INFO, _INFO_KIND = 1, 3, 4, 10, 18, 1
_ADDRESS_REMOTE, _ADDRESS_LOCAL = 1, 2
_UP, _GLOBAL = 0x1, 0
_TYPE_BITS = 0x3FFF
_ANSWER_BYTES = 1 << 16
_SECONDS = 5.0

Answer = tuple[tuple[int, ...], dict[int, bytes]]
"""The fixed part of a message, and its attributes."""


@dataclass(frozen=True, slots=True)
class Link:
    index: int
    mtu: int


class Routes:
    """One conversation with the kernel. OSError, with the kernel's reason, where it refuses."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.settimeout(_SECONDS)
        self._number = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._socket.close()

    def link(self, name: str) -> Link | None:
        """Find a link; None when there is none of this name."""
        try:
            ((head, found),) = self._ask(_GET_LINK, 0, _LINK.pack(0, 0, 0, 0, 0) + _named(name), _LINK)
        except OSError as error:
            if error.errno == errno.ENODEV:
                return None
            raise
        return Link(head[2], int(struct.unpack("=I", found[_LINK_MTU])[0]))

    def add_bridge(self, name: str, mac: str, mtu: int) -> None:
        kind = _attribute(_LINK_INFO, _attribute(_INFO_KIND, b"bridge"))
        wanted = _named(name) + _attribute(_LINK_MAC, bytes.fromhex(mac.replace(":", ""))) + _number(_LINK_MTU, mtu)
        self._ask(_NEW_LINK, _CREATE | _EXCLUSIVE | _ACKNOWLEDGE, _LINK.pack(0, 0, 0, 0, 0) + wanted + kind, _LINK)

    def set_up(self, index: int, *, mtu: int | None = None, master: int | None = None) -> None:
        """Switch a link on, with an MTU and in a bridge if these are given."""
        body = _LINK.pack(0, 0, index, _UP, _UP)
        body += b"" if mtu is None else _number(_LINK_MTU, mtu)
        body += b"" if master is None else _number(_LINK_MASTER, master)
        self._ask(_NEW_LINK, _ACKNOWLEDGE, body, _LINK)

    def add_address(self, index: int, address: IPv4Interface) -> None:
        packed = address.ip.packed
        body = _ADDRESS.pack(socket.AF_INET, address.network.prefixlen, 0, _GLOBAL, index)
        body += _attribute(_ADDRESS_LOCAL, packed) + _attribute(_ADDRESS_REMOTE, packed)
        self._ask(_NEW_ADDRESS, _CREATE | _EXCLUSIVE | _ACKNOWLEDGE, body, _ADDRESS)

    def addresses(self, index: int) -> list[str]:
        """Return a link's addresses of global scope, IPv4 before IPv6."""
        found = [
            (head[0], str(ip_address(attributes[_ADDRESS_REMOTE])))
            for head, attributes in self._ask(_GET_ADDRESS, _DUMP, _ADDRESS.pack(0, 0, 0, 0, 0), _ADDRESS)
            if head[4] == index and head[3] == _GLOBAL
        ]
        return [text for _unused, text in sorted(found, key=lambda one: one[0])]  # AF_INET is 2, AF_INET6 is 10

    def _ask(self, kind: int, flags: int, body: bytes, form: struct.Struct) -> list[Answer]:
        """Send a request and take its answers, to the last one."""
        self._number += 1
        head = _MESSAGE.pack(_MESSAGE.size + len(body), kind, _REQUEST | flags, self._number, 0)
        self._socket.sendto(head + body, (0, 0))
        answers: list[Answer] = []
        while True:
            for found, number, payload in _messages(self._socket.recv(_ANSWER_BYTES)):
                if number != self._number:
                    continue
                if found == _ERROR:
                    code = -int(struct.unpack_from("=i", payload)[0])
                    if code:
                        raise OSError(code, os.strerror(code))
                    return answers
                if found == _DONE:
                    return answers
                answers.append((form.unpack_from(payload), dict(_attributes(payload[form.size :]))))
                if not flags & (_DUMP | _ACKNOWLEDGE):
                    return answers


def _attribute(kind: int, value: bytes) -> bytes:
    length = _ATTRIBUTE.size + len(value)
    return _ATTRIBUTE.pack(length, kind) + value + bytes(-length % 4)


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("=I", value))


def _named(name: str) -> bytes:
    return _attribute(_LINK_NAME, name.encode() + b"\0")


def _messages(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    while len(data) >= _MESSAGE.size:
        length, kind, _flags, number, _port = _MESSAGE.unpack_from(data)
        yield kind, number, data[_MESSAGE.size : length]
        data = data[(length + 3) & ~3 :]


def _attributes(data: bytes) -> Iterator[tuple[int, bytes]]:
    while len(data) >= _ATTRIBUTE.size:
        length, kind = _ATTRIBUTE.unpack_from(data)
        yield kind & _TYPE_BITS, data[_ATTRIBUTE.size : length]
        data = data[(length + 3) & ~3 :]
