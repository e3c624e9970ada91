# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sockets that listen, one per address of a name. Who is accepted on them is listener's."""

from __future__ import annotations

import asyncio
import errno
import socket

BACKLOG = 512
_ABSENT = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)
"""A node without IPv6 still has "every address"."""


async def bind(address: str, port: int) -> list[socket.socket]:
    """Listen on an address, "" for every one of either family. Raises OSError; then nothing is left open."""
    found = await asyncio.get_running_loop().getaddrinfo(
        address or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )
    bound: list[socket.socket] = []
    absent: OSError | None = None
    try:
        for family, _type, _protocol, _name, where in dict.fromkeys(found):
            try:
                bound.append(_listen(family, where))
            except OSError as error:
                if error.errno not in _ABSENT:
                    raise
                absent = error
        if not bound:
            raise absent or OSError(errno.EADDRNOTAVAIL, f"{address} is no address to listen on")
    except OSError:
        for one in bound:
            one.close()
        raise
    return bound


def _listen(family: int, where: tuple[object, ...]) -> socket.socket:
    listening = socket.socket(family, socket.SOCK_STREAM)
    try:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:  # IPv4 has a socket of its own, and its peers one name
            listening.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        listening.bind(where)
        listening.listen(BACKLOG)
    except OSError:
        listening.close()
        raise
    return listening
