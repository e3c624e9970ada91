# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real source and a real target on this machine, with TLS on the loopback between them."""

from __future__ import annotations

import asyncio
import os
import pathlib
import socket
import ssl
import threading
from contextlib import AsyncExitStack, suppress

import pytest

from controlplane.links.handler import server_name
from controlplane.process.loop_thread import LoopThread
from controlplane.virt_handler.migration import tunnel_server as server_module
from controlplane.virt_handler.migration.byte_copy import TunnelSocket
from controlplane.virt_handler.migration.handshake import MOST, Channel
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.migration.tunnel_server import TunnelServer
from tests.controlplane.virt_handler.migration.ends import (
    BINDING,
    OTHER,
    SECONDS,
    SOURCE,
    TARGET,
    Launcher,
    TunnelSockets,
    an_entrance,
    listen_at,
    open_things,
    pair_of,
)

CHANNELS: tuple[Channel, ...] = ("control", "memory", "disks")


async def said_back(ends: TunnelSockets, channel: Channel, text: bytes = b"words") -> bytes:
    """Send text over a channel and return the answer; b"" without one."""
    async with asyncio.timeout(SECONDS):
        reader, writer = await ends.dial(channel)
        try:
            writer.write(text)
            writer.write_eof()
            return await reader.read(-1)
        except OSError:
            return b""
        finally:
            writer.close()


@pytest.mark.parametrize("channel", CHANNELS)
async def test_bytes_reach_the_target_launcher_and_its_answer_returns(channel: Channel, tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        assert await said_back(ends, channel) == b"WORDS"
        assert ends.launcher.dialled == [channel]


async def test_a_tunnel_leaks_nothing(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        await said_back(ends, "memory")  # let Python open what it opens once
    await settled()
    before = open_things()
    again = tmp_path / "again"
    again.mkdir()
    async with an_entrance(again) as ends:
        async with ends.passage():
            streams = [await ends.dial(channel) for channel in CHANNELS]
            for _reader, writer in streams:
                writer.write(b"words")
            async with asyncio.timeout(SECONDS):
                assert [await reader.readexactly(5) for reader, _writer in streams] == [b"WORDS"] * 3
        assert os.listdir(again) == ["launcher.sock"], "libvirt's socket is gone"
        for reader, writer in streams:
            assert await reader.read(-1) == b""
            writer.close()
    await settled()
    assert open_things() == before


async def test_a_closed_server_ends_its_connections_and_stops_listening(
    tmp_path: pathlib.Path,
) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        reader, writer = await ends.dial("memory")
        writer.write(b"words")
        async with asyncio.timeout(SECONDS):
            assert await reader.readexactly(5) == b"WORDS"
            await ends.entrance.close()
            assert await reader.read(-1) == b""
        writer.close()
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", ends.port)


@pytest.mark.parametrize(
    ("shows", "knows", "name"),
    [
        pytest.param(OTHER, TARGET, TARGET, id="a caller with another node's certificate"),
        pytest.param(TARGET, TARGET, TARGET, id="a caller with the target's own"),
        pytest.param(SOURCE, OTHER, TARGET, id="a target with another certificate than its node has announced"),
        pytest.param(SOURCE, TARGET, OTHER, id="a target of another name"),
    ],
)
async def test_peers_with_wrong_certificates_exchange_nothing(
    shows: str, knows: str, name: str, tmp_path: pathlib.Path
) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage(ends.target(shows=shows, knows=knows, name=name)):
        for channel in CHANNELS:
            assert await said_back(ends, channel) == b""
        assert ends.launcher.dialled == []


async def test_a_client_that_cannot_open_leaks_nothing(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends:
        await settled()
        before = open_things()
        client = TunnelClient(BINDING, ends.target(), "/no/such/directory")
        with pytest.raises(FileNotFoundError):
            await client.open({"memory": listen_at(tmp_path / "memory.sock")})
        assert open_things() == before


async def test_an_unreachable_launcher_ends_the_connection(tmp_path: pathlib.Path) -> None:
    launcher = Launcher(tmp_path)
    async with an_entrance(tmp_path, launcher) as ends, ends.passage():
        launcher.path.unlink()
        assert await said_back(ends, "memory") == b""


@pytest.mark.parametrize("channel", CHANNELS)
async def test_connections_per_channel_are_limited(channel: Channel, tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        streams = [await ends.dial(channel) for _unused in range(MOST[channel])]
        async with asyncio.timeout(SECONDS):
            for reader, writer in streams:
                writer.write(b"x")
                assert await reader.readexactly(1) == b"X"
        assert await said_back(ends, channel) == b""
        assert len(ends.launcher.dialled) == MOST[channel]

        streams[0][1].close()
        await streams[0][1].wait_closed()
        async with asyncio.timeout(SECONDS):
            while await said_back(ends, channel) != b"WORDS":
                pass
        for _reader, writer in streams:
            writer.close()


async def test_the_target_limits_connections_per_channel_too(
    tmp_path: pathlib.Path,
) -> None:
    """A hostile source ignores its own limit."""
    async with an_entrance(tmp_path) as ends, ends.passage():
        reader, writer = await ends.dial("memory")
        writer.write(b"x")
        async with asyncio.timeout(SECONDS):
            assert await reader.readexactly(1) == b"X"
        directory = tmp_path / "other"
        directory.mkdir()
        second = TunnelSockets(directory, ends.launcher, ends.entrance, ends.port)
        async with second.passage():
            assert await said_back(second, "memory") == b""
            assert await said_back(second, "disks") == b"WORDS"
        writer.close()


async def test_an_authenticated_peer_without_a_handshake_is_closed_in_time(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "PROOF_SECONDS", 0.5)
    async with an_entrance(tmp_path) as ends:
        reader, writer = await call(ends)
        writer.write(b'{"binding"')
        async with asyncio.timeout(SECONDS):
            assert await reader.read(-1) == b""
        writer.close()
        assert ends.launcher.dialled == []


@pytest.mark.parametrize("line", [b"x" * 4096, b"\n", b"GET / HTTP/1.1\r\n\r\n"])
async def test_an_invalid_handshake_is_rejected_at_once(line: bytes, tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends:
        reader, writer = await call(ends)
        writer.write(line)
        async with asyncio.timeout(SECONDS / 4):
            with suppress(ConnectionResetError):
                assert await reader.read(-1) == b""
        writer.close()
        assert ends.launcher.dialled == []


async def test_an_unauthenticated_host_gets_few_connections_and_the_source_still_connects(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "PROOF_SECONDS", SECONDS)
    async with an_entrance(tmp_path) as ends, AsyncExitStack() as stack:
        strangers = []
        for _unused in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", ends.port, local_addr=("127.0.0.2", 0))
            stack.callback(writer.close)
            strangers.append(reader)
        async with asyncio.timeout(SECONDS / 2):
            for stranger in strangers[server_module.UNAUTHENTICATED :]:
                assert await stranger.read(-1) == b""
            async with ends.passage():
                assert await said_back(ends, "memory") == b"WORDS"
        assert not any(stranger.at_eof() for stranger in strangers[: server_module.UNAUTHENTICATED])


async def test_a_rejected_connection_frees_its_slot(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "UNAUTHENTICATED", 1)
    async with an_entrance(tmp_path) as ends:
        for _unused in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", ends.port)
            writer.write(b"GET / HTTP/1.1\r\n\r\n")
            async with asyncio.timeout(SECONDS):
                with suppress(ConnectionResetError):
                    await reader.read(-1)
            writer.close()
        async with ends.passage():
            assert await said_back(ends, "memory") == b"WORDS"


async def test_all_connections_of_the_source_can_authenticate_at_once(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a guest of eight disks, on a busy processor."""
    at_once, everybody = 0, asyncio.Event()

    async def prove(end: TunnelSocket) -> None:
        nonlocal at_once
        if isinstance(end._socket, ssl.SSLSocket) and end._socket.server_side:
            at_once += 1
            if at_once == sum(MOST.values()):
                everybody.set()
            await everybody.wait()
        await original(end)

    original = TunnelSocket.prove
    monkeypatch.setattr(TunnelSocket, "prove", prove)
    async with an_entrance(tmp_path) as ends, ends.passage(), asyncio.TaskGroup() as group:
        answers = [
            group.create_task(said_back(ends, channel)) for channel in CHANNELS for _unused in range(MOST[channel])
        ]
    assert {answer.result() for answer in answers} == {b"WORDS"}


@pytest.mark.parametrize("side", ["source", "target"])
async def test_an_end_that_its_peer_blocks_closes_at_once(
    side: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """OpenSSL stays in one read call while the peer sends empty records."""
    is_blocked = threading.Event()

    def fill(end: TunnelSocket, into: memoryview) -> int:
        if isinstance(end._socket, ssl.SSLSocket) and end._socket.server_side is (side == "target"):
            is_blocked.set()
            end._socket.setblocking(True)
            while socket.socket.recv(end._socket, 1 << 16):
                pass
        return original(end, into)

    original = TunnelSocket._fill
    here, there = LoopThread("migration"), LoopThread("migration")
    launcher = Launcher(tmp_path)
    async with AsyncExitStack() as stack:
        await launcher.open(stack)
        server = TunnelServer(BINDING, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der), launcher.dial)
        port = await there.run(server.open("127.0.0.1"))
        context = client_tls_context(pair_of(SOURCE), pair_of(TARGET).der)
        client = TunnelClient(BINDING, Target("127.0.0.1", port, context, server_name(TARGET)), str(tmp_path))
        path = await here.run(client.open({}))
        _reader, writer = await asyncio.open_unix_connection(path)
        stack.callback(writer.close)
        monkeypatch.setattr(TunnelSocket, "_fill", fill)
        writer.write(b"words")
        async with asyncio.timeout(SECONDS):
            await asyncio.to_thread(is_blocked.wait)
            sides: list[tuple[LoopThread, TunnelClient | TunnelServer]] = [(here, client), (there, server)]
            for thread, peer in sides if side == "source" else reversed(sides):
                peer.cut()
                await thread.run(peer.close())
                thread.end()
        await settled()


async def test_a_launcher_that_reads_nothing_does_not_block_other_channels(tmp_path: pathlib.Path) -> None:
    is_over = asyncio.Event()

    class Mute(Launcher):
        async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if self.dialled == ["memory"]:
                writer.write((await reader.readexactly(1)).upper())
                await is_over.wait()
                writer.close()
            else:
                await super()._answer(reader, writer)

    async with an_entrance(tmp_path, Mute(tmp_path)) as ends, ends.passage():
        reader, writer = await ends.dial("memory")
        async with asyncio.timeout(SECONDS):
            writer.write(b"x")
            assert await reader.readexactly(1) == b"X"
            writer.write(bytes(32 << 20))
            assert await said_back(ends, "control") == b"WORDS"
        writer.transport.abort()
        is_over.set()
        await settled()


async def call(ends: TunnelSockets) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to the tunnel server as the source does, without a handshake."""
    target = ends.target()
    return await asyncio.open_connection(target.host, target.port, ssl=target.context, server_hostname=target.name)


async def settled() -> None:
    """Run the callbacks of closed connections."""
    for _unused in range(5):
        await asyncio.sleep(0)
