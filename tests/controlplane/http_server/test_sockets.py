# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Listening on every address of either family, or on none."""

from __future__ import annotations

import errno
import socket

import pytest

from controlplane.http_server import sockets
from controlplane.http_server.sockets import bind

V4, V6 = (socket.AF_INET, ("127.0.0.1", 0)), (socket.AF_INET6, ("::1", 0))


class Node:
    """A node whose families can be listened on, or not, for a reason."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.bound: list[socket.socket] = []
        self.errors: dict[int, int] = {}
        self._listen = sockets._listen
        monkeypatch.setattr(sockets, "_listen", self.listen)

    def listen(self, family: int, _where: tuple[object, ...]) -> socket.socket:
        if family in self.errors:
            raise OSError(self.errors[family], "no")
        self.bound.append(self._listen(socket.AF_INET, ("127.0.0.1", 0)))
        return self.bound[-1]


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> Node:
    return Node(monkeypatch)


@pytest.fixture(autouse=True)
def every_address(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two families, whatever the machine has."""

    async def getaddrinfo(*_unused: object, **__: object) -> list[tuple[object, ...]]:
        return [(family, socket.SOCK_STREAM, 6, "", where) for family, where in (V4, V6)]

    monkeypatch.setattr("asyncio.base_events.BaseEventLoop.getaddrinfo", getaddrinfo)


async def test_a_family_that_the_node_does_not_have_is_done_without(node: Node) -> None:
    node.errors[socket.AF_INET6] = errno.EAFNOSUPPORT
    (only,) = await bind("", 0)
    only.close()


async def test_a_port_that_is_taken_in_one_family_is_taken_and_nothing_is_left_open(node: Node) -> None:
    """Half of the peers would be refused, and nobody would know."""
    node.errors[socket.AF_INET6] = errno.EADDRINUSE
    with pytest.raises(OSError, match="no") as raised:
        await bind("", 0)
    assert raised.value.errno == errno.EADDRINUSE
    assert [one.fileno() for one in node.bound] == [-1]


async def test_a_node_that_has_neither_says_so(node: Node) -> None:
    node.errors = {socket.AF_INET: errno.EADDRNOTAVAIL, socket.AF_INET6: errno.EAFNOSUPPORT}
    with pytest.raises(OSError, match="no"):
        await bind("", 0)
