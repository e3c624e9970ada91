# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A source and a target on this machine, each as it is, with TLS on the loopback between them."""

from __future__ import annotations

import asyncio
import gc
import os
import pathlib
import socket
import ssl
import struct
import threading
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, suppress

import pytest

from controlplane.virt_handler.migration import tunnel_client as passage_module
from controlplane.virt_handler.migration import tunnel_server as entrance_module
from controlplane.virt_handler.migration.byte_copy import TunnelSocket
from controlplane.virt_handler.migration.copy_thread import CopyThread
from controlplane.virt_handler.migration.handshake import MOST, Channel, MigrationIdentity
from controlplane.virt_handler.migration.peer import certificate_host, client_tls_context, server_tls_context
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
    """What comes of words that are said to a channel; b"" where nobody answers."""
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
async def test_what_is_said_in_the_source_gets_to_the_targets_launcher_and_its_answer_back(
    channel: Channel, tmp_path: pathlib.Path
) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        assert await said_back(ends, channel) == b"WORDS"
        assert ends.launcher.dialled == [channel]


async def test_megabytes_are_carried_on_all_channels_at_once(tmp_path: pathlib.Path) -> None:
    data = b"m" * (2 << 20)
    async with an_entrance(tmp_path) as ends, ends.passage():
        found = await asyncio.gather(*(said_back(ends, channel, data) for channel in (*CHANNELS, "disks")))
    assert found == [data.upper()] * 4


async def test_nothing_is_left_of_one(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        await said_back(ends, "memory")  # what Python opens once
    await settled()
    before = open_things()
    again = tmp_path / "again"
    again.mkdir()
    async with an_entrance(again) as ends:
        async with ends.passage():
            held = [await ends.dial(channel) for channel in CHANNELS]
            for _reader, writer in held:
                writer.write(b"words")
            async with asyncio.timeout(SECONDS):
                assert [await reader.readexactly(5) for reader, _writer in held] == [b"WORDS"] * 3
        assert os.listdir(again) == ["launcher.sock"], "libvirt's socket is gone"
        for reader, writer in held:
            assert await reader.read(-1) == b""
            writer.close()
    await settled()
    assert open_things() == before


async def test_an_entrance_that_is_closed_ends_what_came_through_it_and_is_not_there_any_more(
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
async def test_nothing_passes_between_ends_that_do_not_know_each_other(
    shows: str, knows: str, name: str, tmp_path: pathlib.Path
) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage(ends.target(shows=shows, knows=knows, name=name)):
        for channel in CHANNELS:
            assert await said_back(ends, channel) == b""
        assert ends.launcher.dialled == []


@pytest.mark.parametrize(
    "other",
    [
        MigrationIdentity("another", BINDING.source_pod, BINDING.target_pod),
        MigrationIdentity(BINDING.migration, "another", BINDING.target_pod),
        MigrationIdentity(BINDING.migration, BINDING.source_pod, "another"),
    ],
)
async def test_the_right_node_with_another_migration_is_turned_away(
    other: MigrationIdentity, tmp_path: pathlib.Path
) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage(binding=other):
        assert await said_back(ends, "memory") == b""
        assert ends.launcher.dialled == []


async def test_one_that_cannot_be_opened_leaves_nothing(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends:
        await settled()
        before = open_things()
        passage = TunnelClient(BINDING, ends.target(), "/no/such/directory")
        with pytest.raises(FileNotFoundError):
            await passage.open({"memory": listen_at(tmp_path / "memory.sock")})
        assert open_things() == before


async def test_a_source_whose_target_is_not_there_ends_what_dials(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        await ends.entrance.close()
        assert await said_back(ends, "control") == b""


@asynccontextmanager
async def a_mute_target(ends: TunnelSockets) -> AsyncIterator[list[asyncio.StreamWriter]]:
    """In the place of the target something that takes connections and says nothing; these are what it has taken."""
    taken: list[asyncio.StreamWriter] = []

    async def take(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        taken.append(writer)

    server = await asyncio.start_server(take, "127.0.0.1")
    ends.port = server.sockets[0].getsockname()[1]
    try:
        yield taken
    finally:
        server.close()
        for writer in taken:
            writer.transport.abort()


async def test_a_target_that_says_nothing_is_given_up(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage_module, "CONNECT_SECONDS", 0.1)
    async with an_entrance(tmp_path) as ends, a_mute_target(ends), ends.passage():
        assert await said_back(ends, "memory") == b""


async def test_a_launcher_has_its_target_called_so_often_and_no_more(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, a_mute_target(ends) as taken, ends.passage():
        held = [await ends.dial("disks") for _unused in range(MOST["disks"])]
        assert await said_back(ends, "disks") == b""
        assert await said_back(ends, "disks") == b""
        assert len(taken) <= MOST["disks"]
        for _reader, writer in held:
            writer.close()


async def test_a_launcher_that_nobody_listens_in_ends_what_dials(tmp_path: pathlib.Path) -> None:
    launcher = Launcher(tmp_path)
    async with an_entrance(tmp_path, launcher) as ends, ends.passage():
        launcher.path.unlink()
        assert await said_back(ends, "memory") == b""


@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_launcher_has_so_many_connections_and_no_more(channel: Channel, tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends, ends.passage():
        held = [await ends.dial(channel) for _unused in range(MOST[channel])]
        async with asyncio.timeout(SECONDS):
            for reader, writer in held:
                writer.write(b"x")
                assert await reader.readexactly(1) == b"X"
        assert await said_back(ends, channel) == b""
        assert len(ends.launcher.dialled) == MOST[channel]

        held[0][1].close()
        await held[0][1].wait_closed()
        async with asyncio.timeout(SECONDS):
            while await said_back(ends, channel) != b"WORDS":
                pass
        for _reader, writer in held:
            writer.close()


async def test_connections_beyond_what_a_channel_needs_are_turned_away_at_the_target_too(
    tmp_path: pathlib.Path,
) -> None:
    """A captured source counts as it likes."""
    async with an_entrance(tmp_path) as ends, ends.passage():
        reader, writer = await ends.dial("memory")
        writer.write(b"x")
        async with asyncio.timeout(SECONDS):
            assert await reader.readexactly(1) == b"X"
        other = tmp_path / "other"
        other.mkdir()
        second = TunnelSockets(other, ends.launcher, ends.entrance, ends.port)
        async with second.passage():
            assert await said_back(second, "memory") == b""
            assert await said_back(second, "disks") == b"WORDS"
        writer.close()


async def test_who_proves_nothing_is_let_go_in_time(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entrance_module, "PROOF_SECONDS", 0.05)
    async with an_entrance(tmp_path) as ends:
        reader, writer = await asyncio.open_connection("127.0.0.1", ends.port)
        async with asyncio.timeout(SECONDS):
            assert await reader.read(-1) == b""
        writer.close()


async def test_who_is_proven_but_does_not_say_of_what_is_let_go_in_time(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance_module, "PROOF_SECONDS", 0.5)
    async with an_entrance(tmp_path) as ends:
        reader, writer = await call(ends)
        writer.write(b'{"binding"')
        async with asyncio.timeout(SECONDS):
            assert await reader.read(-1) == b""
        writer.close()
        assert ends.launcher.dialled == []


@pytest.mark.parametrize("line", [b"x" * 4096, b"\n", b"GET / HTTP/1.1\r\n\r\n"])
async def test_who_is_proven_and_says_something_else_is_turned_away_at_once(
    line: bytes, tmp_path: pathlib.Path
) -> None:
    async with an_entrance(tmp_path) as ends:
        reader, writer = await call(ends)
        writer.write(line)
        async with asyncio.timeout(SECONDS / 4):
            with suppress(ConnectionResetError):
                assert await reader.read(-1) == b""
        writer.close()
        assert ends.launcher.dialled == []


async def test_what_is_no_tls_is_turned_away(tmp_path: pathlib.Path) -> None:
    async with an_entrance(tmp_path) as ends:
        reader, writer = await asyncio.open_connection("127.0.0.1", ends.port)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n" * 100)
        async with asyncio.timeout(SECONDS):
            with suppress(ConnectionResetError):
                await reader.read(-1)
        writer.close()
        assert ends.launcher.dialled == []


async def test_a_host_that_proves_nothing_gets_few_places_and_the_source_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance_module, "PROOF_SECONDS", SECONDS)
    async with an_entrance(tmp_path) as ends, AsyncExitStack() as stack:
        strangers = []
        for _unused in range(100):
            reader, writer = await asyncio.open_connection("127.0.0.1", ends.port, local_addr=("127.0.0.2", 0))
            stack.callback(writer.close)
            strangers.append(reader)
        async with asyncio.timeout(SECONDS / 2):
            for one in strangers[entrance_module.UNPROVEN :]:
                assert await one.read(-1) == b""
            async with ends.passage():
                assert await said_back(ends, "memory") == b"WORDS"
        assert not any(one.at_eof() for one in strangers[: entrance_module.UNPROVEN])


async def test_the_source_has_room_for_all_that_it_can_have_before_the_first_is_proven(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine with eight disks, on a processor that others want as well."""
    at_once, everybody = 0, asyncio.Event()

    async def prove(end: TunnelSocket) -> None:
        nonlocal at_once
        if isinstance(end._socket, ssl.SSLSocket) and end._socket.server_side:
            at_once += 1
            if at_once == sum(MOST.values()):
                everybody.set()
            await everybody.wait()
        await prove_of(end)

    prove_of = TunnelSocket.prove
    monkeypatch.setattr(TunnelSocket, "prove", prove)
    async with an_entrance(tmp_path) as ends, ends.passage(), asyncio.TaskGroup() as group:
        said = [group.create_task(said_back(ends, channel)) for channel in CHANNELS for _unused in range(MOST[channel])]
    assert {one.result() for one in said} == {b"WORDS"}


async def test_who_is_gone_before_it_is_looked_at_is_nobody(
    tmp_path: pathlib.Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with an_entrance(tmp_path) as ends:
        with socket.socket() as stranger:
            stranger.connect(("127.0.0.1", ends.port))
            stranger.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        async with ends.passage():
            assert await said_back(ends, "memory") == b"WORDS"
    gc.collect()
    assert not [one for one in caplog.records if one.name == "asyncio"]


async def test_who_has_proven_nothing_in_time_has_its_places_again(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entrance_module, "PROOF_SECONDS", 0.3)
    async with an_entrance(tmp_path) as ends:
        for _unused in range(2 * entrance_module.UNPROVEN):
            reader, writer = await asyncio.open_connection("127.0.0.1", ends.port)
            async with asyncio.timeout(SECONDS):
                assert await reader.read(-1) == b""
            writer.close()
        async with ends.passage():
            assert await said_back(ends, "memory") == b"WORDS"


@pytest.mark.parametrize("side", ["source", "target"])
async def test_an_end_that_is_held_up_by_the_other_is_closed_at_once(
    side: str, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As OpenSSL is by messages that carry nothing: within one call, for as long as they come."""
    held = threading.Event()

    def fill(end: TunnelSocket, into: memoryview) -> int:
        if isinstance(end._socket, ssl.SSLSocket) and end._socket.server_side is (side == "target"):
            held.set()
            end._socket.setblocking(True)
            while socket.socket.recv(end._socket, 1 << 16):
                pass
        return fill_of(end, into)

    fill_of = TunnelSocket._fill
    here, there = CopyThread(), CopyThread()
    launcher = Launcher(tmp_path)
    async with AsyncExitStack() as stack:
        await launcher.open(stack)
        entrance = TunnelServer(BINDING, server_tls_context(pair_of(TARGET), pair_of(SOURCE).der), launcher.dial)
        port = await there.run(entrance.open("127.0.0.1"))
        context = client_tls_context(pair_of(SOURCE), pair_of(TARGET).der)
        passage = TunnelClient(BINDING, Target("127.0.0.1", port, context, certificate_host(TARGET)), str(tmp_path))
        path = await here.run(passage.open({}))
        _reader, writer = await asyncio.open_unix_connection(path)
        stack.callback(writer.close)
        monkeypatch.setattr(TunnelSocket, "_fill", fill)
        writer.write(b"words")
        async with asyncio.timeout(SECONDS):
            await asyncio.to_thread(held.wait)
            sides: list[tuple[CopyThread, TunnelClient | TunnelServer]] = [(here, passage), (there, entrance)]
            for lane, one in sides if side == "source" else reversed(sides):
                one.cut()
                await lane.run(one.close())
                lane.end()
        await settled()


async def test_a_launcher_that_takes_nothing_does_not_hold_up_other_channels(tmp_path: pathlib.Path) -> None:
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
    """Reach the entrance as the source does, and say nothing yet."""
    target = ends.target()
    return await asyncio.open_connection(target.host, target.port, ssl=target.context, server_hostname=target.name)


async def settled() -> None:
    """Let callbacks of what was closed run."""
    for _unused in range(5):
        await asyncio.sleep(0)
