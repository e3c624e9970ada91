# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""mig-parallel: the gain of several connections for a guest's memory (QEMU's multifd).

As mig-stream, with one writing and one reading thread per connection; the two ends of the tunnel copy all of them in
one thread, or each in its own. When the four processes need more CPUs than the machine has, this shows the cost and not
the possible gain. So the source is measured alone too: the peer discards the data without decrypting or copying it, and
a second thread has a free CPU. The time of the busiest thread is reported: it bounds the throughput, however many CPUs
there are.
"""

from __future__ import annotations

import asyncio
import pathlib
import socket
import ssl
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import cycle
from multiprocessing.process import BaseProcess
from multiprocessing.queues import Queue
from typing import Any

from controlplane.links.handler import server_name
from controlplane.process.loop_thread import LoopThread
from controlplane.virt_handler.api_endpoint.serving_certificate import SelfSignedPair
from controlplane.virt_handler.migration import tunnel_client, tunnel_server
from controlplane.virt_handler.migration.byte_copy import TunnelSocket
from controlplane.virt_handler.migration.handshake import MOST, Channel
from controlplane.virt_handler.migration.peer import client_tls_context, server_tls_context
from controlplane.virt_handler.migration.tunnel_client import Target, TunnelClient
from controlplane.virt_handler.migration.tunnel_server import TunnelServer, dial_socket
from tests.bench.tunnel import (
    _LOOK_SECONDS,
    BINDING,
    CHUNK,
    SECONDS,
    SOURCE,
    TARGET,
    Report,
    _begin,
    _context,
    _make_pairs,
    _used,
)
from tests.bench.tunnel import _listen as listen

BYTES = 512 << 20
ROUNDS = 3
CONNECTIONS = (1, 2, 4, 8)


@dataclass(frozen=True, slots=True)
class Way:
    """How memory is sent."""

    connections: int
    has_threads: bool
    """One copying thread per connection."""
    is_half: bool
    """Only the source is measured."""

    @property
    def name(self) -> str:
        threads = "a thread each" if self.has_threads else "one thread"
        return f"{self.connections}, {threads}{', source alone' if self.is_half else ''}"


@dataclass(frozen=True, slots=True)
class Measurement:
    """Measurements of one run."""

    rate: float
    used: float
    """CPU seconds of the measured ends of the tunnel."""
    busiest: float
    """CPU seconds of their busiest thread."""
    waited: float


def run(report: Report) -> None:
    """Report the median of each way, alternating in each round."""
    pairs = asyncio.run(_make_pairs())
    ways = [
        Way(count, has_threads, is_half)
        for is_half in (False, True)
        for count in CONNECTIONS
        for has_threads in ((False, True) if count > 1 else (False,))
    ]
    measured: dict[Way, list[Measurement]] = {way: [] for way in ways}
    for _unused in range(ROUNDS):
        for way in ways:
            measured[way].append(_measure(way, pairs))
    for way, runs in measured.items():
        report(_figure(way, runs, measured[Way(1, has_threads=False, is_half=way.is_half)]))


def _figure(way: Way, runs: list[Measurement], single: list[Measurement]) -> dict[str, Any]:
    def middle(values: Iterator[float]) -> float:
        return sorted(values)[ROUNDS // 2]

    rate = middle(run.rate for run in runs)
    return {
        "name": "mig-parallel",
        "way": way.name,
        "value": round(rate),
        "unit": "MB/s",
        "ratio": round(rate / middle(run.rate for run in single), 2),
        "processor_seconds_per_gb": round(middle(run.used for run in runs) / BYTES * 1e9, 2),
        "busiest_thread_seconds_per_gb": round(middle(run.busiest for run in runs) / BYTES * 1e9, 2),
        "others_wait_ms": round(middle(run.waited for run in runs) * 1e3, 1),
    }


def _measure(way: Way, pairs: dict[str, SelfSignedPair]) -> Measurement:
    """Run the processes of a way once."""
    results: dict[str, Queue[float]] = {name: _context.Queue() for name in ("reader", "target", "source")}
    is_over = _context.Event()
    processes: list[BaseProcess] = []
    with tempfile.TemporaryDirectory() as home:
        try:
            if not way.is_half:
                processes.append(_begin(_read, home, way, results["reader"]))
                results["reader"].get(timeout=SECONDS)
            target_process = _begin(_discard if way.is_half else _target, home, way, pairs, results["target"])
            processes.append(target_process)
            source_process = _begin(
                _source, home, way, pairs, int(results["target"].get(timeout=SECONDS)), results["source"], is_over
            )
            processes.append(source_process)
            results["source"].get(timeout=SECONDS)
            processes.append(_begin(_write, home, way))
            rate = results["target" if way.is_half else "reader"].get(timeout=SECONDS)
            ends = [source_process] if way.is_half else [source_process, target_process]
            used = sum(_used(end.pid) for end in ends)
            busiest = max(_busiest(end.pid) for end in ends)
            is_over.set()
            return Measurement(rate, used, busiest, results["source"].get(timeout=SECONDS))
        finally:
            for process in reversed(processes):
                process.terminate()
                process.join()


def _busiest(pid: int | None) -> float:
    tasks = pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat")
    return max(int(task.read_text().split()[0]) for task in tasks) / 1e9


def _each(way: Way, act: Callable[[], None]) -> None:
    """Run one thread per connection, and wait for all of them."""
    threads = [threading.Thread(target=act, daemon=True) for _unused in range(way.connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def _write(home: str, way: Way) -> None:
    def act() -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(f"{home}/memory.sock")
            chunk = bytes(CHUNK)
            for _unused in range(BYTES // CHUNK // way.connections):
                connection.sendall(chunk)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(1)

    _each(way, act)


def _read(home: str, way: Way, answers: Queue[float]) -> None:
    with listen(f"{home}/launcher.sock") as listening:
        answers.put(0.0)
        _take(listening, way, answers, 0)


def _discard(_home: str, way: Way, pairs: dict[str, SelfSignedPair], answers: Queue[float]) -> None:
    """Be a target that authenticates and then discards the data."""
    context = server_tls_context(pairs[TARGET], pairs[SOURCE].der)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        answers.put(float(listening.getsockname()[1]))
        _take(listening, way, answers, socket.MSG_TRUNC, context)


def _take(
    listening: socket.socket, way: Way, answers: Queue[float], flags: int, context: ssl.SSLContext | None = None
) -> None:
    """Read connections to their ends; report MB/s since the first byte."""
    began: list[float] = []
    counts: list[int] = []

    def act() -> None:
        connection, _unused = listening.accept()
        buffer, count = bytearray(CHUNK), 0
        if context is not None:
            secured = context.wrap_socket(connection, server_side=True)
            while secured.read(1) != b"\n":
                pass
            connection = socket.socket(fileno=secured.detach())
        with connection:
            connection.recv(1, socket.MSG_PEEK)
            began.append(time.monotonic())
            while read := connection.recv_into(buffer, CHUNK, flags):
                count += read
            counts.append(count)

    _each(way, act)
    answers.put(sum(counts) / (time.monotonic() - min(began)) / 1e6)


def _target(home: str, way: Way, pairs: dict[str, SelfSignedPair], answers: Queue[float]) -> None:
    async def dial(_channel: Channel) -> socket.socket:
        return await dial_socket(f"{home}/launcher.sock")

    async def serve() -> None:
        _spread(tunnel_server, way)
        opened = TunnelServer(BINDING, server_tls_context(pairs[TARGET], pairs[SOURCE].der), dial)
        answers.put(float(await LoopThread("migration").run(opened.open("127.0.0.1"))))
        await asyncio.Event().wait()

    asyncio.run(serve())


def _source(
    home: str, way: Way, pairs: dict[str, SelfSignedPair], port: int, answers: Queue[float], is_over: threading.Event
) -> None:
    async def serve() -> None:
        _spread(tunnel_client, way)
        context = client_tls_context(pairs[SOURCE], pairs[TARGET].der)
        opened = TunnelClient(BINDING, Target("127.0.0.1", port, context, server_name(TARGET)), home)
        await LoopThread("migration").run(opened.open({"memory": listen(f"{home}/memory.sock")}))
        answers.put(0.0)
        longest = 0.0
        while not is_over.is_set():
            began = time.monotonic()
            await asyncio.sleep(_LOOK_SECONDS)
            longest = max(longest, time.monotonic() - began - _LOOK_SECONDS)
        answers.put(longest)
        await asyncio.Event().wait()

    asyncio.run(serve())


def _spread(module: Any, way: Way) -> None:
    """Configure this process: number of connections, and of copying threads."""
    MOST["memory"] = max(CONNECTIONS)
    if not way.has_threads:
        return
    threads = cycle([LoopThread("migration") for _unused in range(way.connections)])

    async def again(left: TunnelSocket, right: TunnelSocket) -> None:
        await copy(TunnelSocket(left._socket), TunnelSocket(right._socket))

    async def elsewhere(left: TunnelSocket, right: TunnelSocket) -> None:
        await next(threads).run(again(left, right))

    copy, module.pump = module.pump, elsewhere
