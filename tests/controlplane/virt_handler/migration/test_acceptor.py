# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import asyncio
import errno
import pathlib
import socket

import pytest

from controlplane.virt_handler.migration import acceptor as acceptor_module
from controlplane.virt_handler.migration.acceptor import Acceptor
from tests.controlplane.virt_handler.migration.ends import SECONDS, listen_at, open_things


async def test_a_failing_connection_does_not_end_the_others(tmp_path: pathlib.Path) -> None:
    served = 0

    async def serve(connection: socket.socket) -> None:
        nonlocal served
        served += 1
        raise OSError(errno.EPIPE, "it broke")

    before = open_things()
    acceptor = Acceptor(listen_at(tmp_path / "s"), serve, most=1)
    async with asyncio.timeout(SECONDS):
        for number in range(3):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            assert await reader.read(-1) == b""
            writer.close()
            assert served == number + 1
    await acceptor.close()
    await asyncio.sleep(0)
    assert open_things() == before


async def test_the_total_of_connections_is_limited(tmp_path: pathlib.Path) -> None:
    async def serve(connection: socket.socket) -> None:
        connection.send(b"served")

    acceptor = Acceptor(listen_at(tmp_path / "s"), serve, most=2, in_all=3)
    answers = list[bytes]()
    async with asyncio.timeout(SECONDS):
        for _unused in range(5):
            reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
            answers.append(await reader.read(-1))
            writer.close()
    await acceptor.close()
    assert answers == [b"served"] * 3 + [b""] * 2


async def test_accept_is_retried_without_descriptors(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptor_module, "AGAIN_SECONDS", 0)
    loop = asyncio.get_running_loop()
    accept, failures = loop.sock_accept, [OSError(errno.EMFILE, "too many open files")] * 3

    async def fail_first(listening: socket.socket) -> tuple[socket.socket, object]:
        if failures:
            raise failures.pop()
        return await accept(listening)

    monkeypatch.setattr(loop, "sock_accept", fail_first)
    served = asyncio.Event()

    async def serve(connection: socket.socket) -> None:
        served.set()

    acceptor = Acceptor(listen_at(tmp_path / "s"), serve, most=1)
    _reader, writer = await asyncio.open_unix_connection(tmp_path / "s")
    async with asyncio.timeout(SECONDS):
        await served.wait()
    writer.close()
    await acceptor.close()
    assert not failures
