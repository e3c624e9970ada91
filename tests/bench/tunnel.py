# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-stream: the throughput of a guest's memory between two virt-handlers on this machine, beside a bare relay.

No cluster and no guest: one process writes to a socket like the QEMU of the source, another reads like that of the
target. Between them are two more processes, with either the two ends of the tunnel (TLS) or a copying loop each (none).
The delay of the event loop in the source's process is measured too: the work for other machines runs there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import os
import pathlib
import socket
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.queues import Queue
from typing import Any

from controlplane.links.handler import server_name
from controlplane.process.loop_thread import LoopThread
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair, make_self_signed_pair
from controlplane.virt_handler.migration.handshake import Channel, MigrationIdentity
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket

MB_A_SECOND_AT_LEAST = 300.0
BYTES, CHUNK = 2 << 30, 1 << 20
BINDING = MigrationIdentity("migration", "source", "target")
SOURCE, TARGET = "node-a", "node-b"
SECONDS = 120.0
_LOOK_SECONDS = 0.005

Report = Callable[[dict[str, Any]], None]
Figures = dict[str, float]
_context = multiprocessing.get_context("fork")


def run(report: Report) -> None:
    """Report MB/s of both. Raises AssertionError after the last report when the limit is exceeded."""
    pairs = asyncio.run(_make_pairs())
    bare = _measure(_bare_target, _bare_source, pairs)["rate"]
    tunnel = _measure(_tunnel_target, _tunnel_source, pairs)
    report({"name": "mig-stream-bare", "value": round(bare), "unit": "MB/s"})
    report(
        {
            "name": "mig-stream",
            "value": round(tunnel["rate"]),
            "unit": "MB/s",
            "target": MB_A_SECOND_AT_LEAST,
            "ratio": round(tunnel["rate"] / bare, 2),
            "processor_seconds_per_gb": round(tunnel["used"] / BYTES * 1e9, 2),
        }
    )
    report(
        {
            "name": "mig-stream-others-wait",
            "value": round(tunnel["waited"] * 1e3, 1),
            "unit": "ms, the longest that the other event loop waited",
        }
    )
    if tunnel["rate"] < MB_A_SECOND_AT_LEAST:
        raise AssertionError(f"{tunnel['rate']:.0f} MB/s, and {bare:.0f} by a bare relay")


async def _make_pairs() -> dict[str, SelfSignedPair]:
    return {node: await make_self_signed_pair(node, "peer") for node in (SOURCE, TARGET)}


def _measure(
    target: Callable[[str, dict[str, SelfSignedPair], Queue[float]], None],
    source: Callable[[str, dict[str, SelfSignedPair], int, Queue[float]], None],
    pairs: dict[str, SelfSignedPair],
) -> Figures:
    """Run the four processes; return MB/s, the CPU time of the two in the middle, and the longest delay."""
    with tempfile.TemporaryDirectory() as home:
        results: dict[str, Queue[float]] = {name: _context.Queue() for name in ("reader", "target", "source")}
        reader = _begin(_read, home, results["reader"])
        results["reader"].get(timeout=SECONDS)
        target_process = _begin(target, home, pairs, results["target"])
        source_process = _begin(source, home, pairs, int(results["target"].get(timeout=SECONDS)), results["source"])
        results["source"].get(timeout=SECONDS)
        writer = _begin(_write, home)
        try:
            rate = results["reader"].get(timeout=SECONDS)
            used = _used(target_process.pid) + _used(source_process.pid)
            waited = results["source"].get(timeout=SECONDS)
        finally:
            for process in (writer, source_process, target_process, reader):
                process.terminate()
                process.join()
    return {"rate": rate, "used": used, "waited": waited}


def _begin(act: Callable[..., None], *arguments: object) -> multiprocessing.process.BaseProcess:
    process = _context.Process(target=act, args=arguments, daemon=True)
    process.start()
    return process


def _used(pid: int | None) -> float:
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _write(home: str) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(f"{home}/memory.sock")
        chunk = bytes(CHUNK)
        for _unused in range(BYTES // CHUNK):
            connection.sendall(chunk)
        connection.shutdown(socket.SHUT_WR)
        connection.recv(1)


def _read(home: str, answers: Queue[float]) -> None:
    with _listen(f"{home}/launcher.sock") as listening:
        answers.put(0.0)
        connection, _unused = listening.accept()
        connection.recv(1, socket.MSG_PEEK)
        buffer, count = bytearray(CHUNK), 0
        began = time.monotonic()
        while read := connection.recv_into(buffer):
            count += read
        answers.put(count / (time.monotonic() - began) / 1e6)
        connection.close()


def _listen(path: str) -> socket.socket:
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(path)
    listening.listen()
    return listening


def _tunnel_target(home: str, pairs: dict[str, SelfSignedPair], answers: Queue[float]) -> None:
    async def dial(_channel: Channel) -> socket.socket:
        return await dial_socket(f"{home}/launcher.sock")

    async def serve() -> None:
        server = TunnelServer(BINDING, server_tls_context(pairs[TARGET], pairs[SOURCE].der), dial)
        answers.put(float(await LoopThread("migration").run(server.open("127.0.0.1"))))
        await asyncio.Event().wait()

    asyncio.run(serve())


def _tunnel_source(home: str, pairs: dict[str, SelfSignedPair], port: int, answers: Queue[float]) -> None:
    async def serve() -> None:
        context = client_tls_context(pairs[SOURCE], pairs[TARGET].der)
        client = TunnelClient(BINDING, Target("127.0.0.1", port, context, server_name(TARGET)), home)
        await LoopThread("migration").run(client.open({"memory": _listen(f"{home}/memory.sock")}))
        answers.put(0.0)
        answers.put(await _longest_wait(home))
        await asyncio.Event().wait()

    asyncio.run(serve())


async def _longest_wait(home: str) -> float:
    """Measure the delay of this event loop while the first half of the data is sent."""
    longest, until = 0.0, time.monotonic() + BYTES / 2 / (MB_A_SECOND_AT_LEAST * 1e6)
    while (began := time.monotonic()) < until:
        await asyncio.sleep(_LOOK_SECONDS)
        longest = max(longest, time.monotonic() - began - _LOOK_SECONDS)
    return longest


def _bare_target(home: str, _pairs: dict[str, SelfSignedPair], answers: Queue[float]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answers.put(float(listening.getsockname()[1]))
        connection, _unused = listening.accept()
    with connection, socket.socket(socket.AF_UNIX) as launcher:
        launcher.connect(f"{home}/launcher.sock")
        _copy(connection, launcher)


def _bare_source(home: str, _pairs: dict[str, SelfSignedPair], port: int, answers: Queue[float]) -> None:
    with _listen(f"{home}/memory.sock") as listening:
        answers.put(0.0)
        answers.put(0.0)
        connection, _unused = listening.accept()
    with connection, socket.create_connection(("127.0.0.1", port)) as target:
        _copy(connection, target)


def _copy(source: socket.socket, target: socket.socket) -> None:
    buffer = bytearray(CHUNK)
    while count := source.recv_into(buffer):
        target.sendall(memoryview(buffer)[:count])
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
    time.sleep(SECONDS)  # the parent still reads the CPU time
