# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Connections to ports of guests, with a server in the guest's place."""

from __future__ import annotations

import asyncio
import socket

import pytest

from controlplane.virt_api.streams import guest_ports
from controlplane.virt_api.streams.guest_ports import GONE_SECONDS, open_port


async def test_a_connection_to_a_guest_that_is_gone_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The network of a Pod vanishes without a word; the kernel has to ask."""
    connections: list[socket.socket] = []
    expect_answers = guest_ports.expect_answers

    def noted(connection: socket.socket) -> None:
        expect_answers(connection)
        connections.append(connection)

    monkeypatch.setattr(guest_ports, "expect_answers", noted)
    server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1", 0)
    async with server:
        far = await open_port("127.0.0.1", server.sockets[0].getsockname()[1], "tcp")
        (connection,) = connections
        options = (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT, socket.TCP_USER_TIMEOUT)
        idle, interval, count, unanswered = (connection.getsockopt(socket.IPPROTO_TCP, option) for option in options)
        assert connection.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert idle + interval * count == GONE_SECONDS == unanswered / 1000
        await far.close()
