# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many sessions of one virt-api and one virt-handler: what they leave, and what memory they take."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing
import os
import signal
import ssl
import threading
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from controlplane.http_server import listener, websocket
from controlplane.links import streams as link
from controlplane.virt_api.streams import handler_streams
from tests.controlplane.virt_api.served import Served
from tests.controlplane.virt_api.streams.raw_client import BINARY, CLOSE, RawClient, frame
from tests.controlplane.virt_api.streams.stage import Streaming
from tests.controlplane.virt_api.subresources.stage import VMI, a_vmi
from tests.controlplane.virt_handler.fakes import until

SESSIONS, AT_ONCE = 200, 10
OPEN, MIB_EACH = 50, 2.0
"""Each session may take so much in virt-api, and as much in virt-handler."""
WAYS = ("a close frame", "a reset", "a killed process", "a guest that ends")


@pytest.fixture
async def stage(stage: Streaming) -> Streaming:
    """With a guest that runs."""
    stage.put_vmi()
    return stage


def remains(stage: Streaming) -> tuple[int, int, int, int, list[str]]:
    """Return what a session could leave: descriptors, sessions, tasks in virt-handler, and threads."""
    gc.collect()
    assert stage.served.server is not None
    return (
        len(os.listdir("/proc/self/fd")),
        stage.served.server.streams.by_machine.used_by("ns/web"),
        len(stage.endpoint._sessions),
        len(asyncio.all_tasks(stage.endpoint._thread._loop)),
        sorted(thread.name for thread in threading.enumerate()),
    )


async def open_and_end(stage: Streaming, way: str) -> None:
    client = await RawClient.connect(stage.served, stage.proxy, "console")
    client.send(frame(BINARY, b"root\n"))
    match way:
        case "a close frame":
            client.send(frame(CLOSE, b"\x03\xe8"))
            await client.frames()
        case "a guest that ends":
            for connection in stage.device.connections:
                connection.close()
            await client.frames()
        case _:
            pass
    client.vanish()


def be_killed(port: int, context_path: str, ready: Connection) -> None:
    """Open sessions in a process of its own, say so, and wait for its end."""

    class There:
        def __init__(self) -> None:
            self.port = port

        def context(self, _pair: object) -> ssl.SSLContext:
            context = ssl.create_default_context(cafile=f"{context_path}/authority.pem")
            context.load_cert_chain(f"{context_path}/client.pem")
            return context

    async def act() -> None:
        there: Served = There()  # type: ignore[assignment]
        clients = [await RawClient.connect(there, None, "console") for _unused in range(AT_ONCE)]  # type: ignore[arg-type]
        ready.send(len(clients))
        await asyncio.Event().wait()

    asyncio.run(act())


async def kill_a_process(stage: Streaming, directory: Path) -> None:
    (directory / "authority.pem").write_bytes(stage.served.serving_authority.certificate)
    (directory / "client.pem").write_bytes(stage.proxy.certificate + stage.proxy.key)
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=be_killed, args=(stage.served.port, str(directory), theirs), daemon=True)
    process.start()
    theirs.close()  # so that recv ends when the process does
    assert await asyncio.to_thread(ours.recv) == AT_ONCE
    assert process.pid is not None
    os.kill(process.pid, signal.SIGKILL)
    await asyncio.to_thread(process.join)
    process.close()
    ours.close()


async def _open_some(stage: Streaming, way: str) -> None:
    await asyncio.gather(*(open_and_end(stage, way) for _unused in range(AT_ONCE)))


@pytest.mark.parametrize("way", WAYS)
async def test_sessions_leave_nothing(
    stage: Streaming, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (websocket, handler_streams):
        monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    if way == "a killed process":
        await kill_a_process(stage, tmp_path)  # the first leaves what multiprocessing keeps
    await _open_some(stage, "a close frame")  # connections to the API server stay open
    await until(lambda: remains(stage)[1:4] == (0, 0, 1), "the end of the first sessions")
    before = remains(stage)
    for _unused in range(SESSIONS // len(WAYS) // AT_ONCE):
        if way == "a killed process":
            await kill_a_process(stage, tmp_path)
        else:
            await _open_some(stage, way)
    await until(lambda: remains(stage) <= before, "the end of all sessions")


def put_machines(stage: Streaming) -> list[str]:
    """Have fifty machines; QEMU's socket is the same one, and takes any number of connections."""
    names = [f"web-{number}" for number in range(OPEN)]
    for name in names:
        vmi = a_vmi(activePods={f"pod-{name}": "node-1"})
        metadata = {"name": name, "namespace": "ns", "uid": f"vmi-{name}"}
        stage.served.api.put(VMI.replace("/web", f"/{name}"), {**vmi, "metadata": metadata})
    return names


def resident_mib() -> float:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


async def test_fifty_sessions_with_full_buffers_need_little_memory(
    stage: Streaming, monkeypatch: pytest.MonkeyPatch
) -> None:
    """virt-api and virt-handler are one process here, with the clients and the guests."""
    monkeypatch.setitem(link.STALL_SECONDS, "serial", 60.0)
    monkeypatch.setattr(listener, "WRITING_SECONDS", 0.5)  # how long TLS waits for a peer that does not read
    for module in (websocket, handler_streams):
        monkeypatch.setattr(module, "CLOSE_SECONDS", 0.1)
    before = resident_mib()
    clients = [await RawClient.connect(stage.served, stage.proxy, "console", name) for name in put_machines(stage)]
    writers = stage.device.connections[:]
    assert len(writers) == OPEN
    for writer in writers:
        while writer.transport.get_write_buffer_size() == 0:  # until no buffer on the way takes more
            writer.write(b"x" * 65536)
            await asyncio.sleep(0.001)
    assert resident_mib() - before < 2 * OPEN * MIB_EACH
    for client in clients:
        client.vanish()
    await until(lambda: remains(stage)[3] == 1, "the end of all sessions")
