# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""console: throughput and echo latency of the serial console and of a forwarded port, beside kubectl's own.

A program in the launcher Pod takes the guest's place: it listens at QEMU's serial socket and at a port of the Pod. So
an emulated processor is in no figure but the guest's own, which stands beside them. The peers are `kubectl exec`, with
the same program on its standard streams, and `kubectl port-forward` to the same port. All alternate in one run.
"""

from __future__ import annotations

import asyncio
import ssl
import statistics
import string
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any

import yaml

from tests.bench.console_ends import CHUNK_BYTES, ON_SOCKETS, PORT, Connection, executed, forwarded, stream
from tests.e2e.cluster import Cluster
from tests.e2e.deployed import deployed
from tests.e2e.machines import a_vm, with_grace
from tests.e2e.streams import PATH, client_context
from tests.e2e.streams import stream as open_stream

ROUNDS = 3
BYTES, ECHOES = 32 << 20, 200
THROUGHPUT_AT_LEAST, LATENCY_AT_MOST = 0.8, 1.2
NAME = "console"
PEERS = {"console": "exec", "portforward": "port-forward"}
GUEST_BYTES, GUEST_ECHOES = 100_000, 20

Report = Callable[[dict[str, Any]], None]
Openers = dict[str, Callable[[], AbstractAsyncContextManager[Connection]]]
Figures = dict[tuple[str, str], list[float]]
"""By connection and measure: MB/s down and up, ms of an echo."""


def run(report: Report) -> None:
    """Measure on a lab of its own. Raises AssertionError after the last report when a bar is missed."""
    with deployed("bench-console") as cluster:
        missed = measure(cluster, report)
    if missed:
        raise AssertionError("; ".join(missed))


def measure(cluster: Cluster, report: Report) -> list[str]:
    """Measure on a cluster; return the missed bars."""
    vm = with_grace(a_vm(NAME), 0)
    vm["spec"]["template"]["spec"]["domain"]["devices"]["interfaces"][0]["ports"] = [{"port": 22}]  # others: the Pod's
    cluster.apply(vm)
    cluster.running(NAME)
    for figure in _guest_figures(cluster):
        report(figure)
    pod = cluster.launcher(NAME)["metadata"]["name"]
    with _in_the_guests_place(cluster, pod):
        figures = asyncio.run(_measure(_openers(cluster, pod)))
    return list(_judge(figures, report))


@contextmanager
def _in_the_guests_place(cluster: Cluster, pod: str) -> Iterator[None]:
    command = (*cluster.program, "exec", "-i", pod, "-c", "compute", "--", "python3", "-u", "-c", ON_SOCKETS)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            if process.stdout.readline() != "ready\n":
                raise RuntimeError("no program could take the guest's place")
            yield
        finally:
            process.kill()


def _openers(cluster: Cluster, pod: str) -> Openers:
    config = yaml.safe_load(cluster.kubeconfig.read_text())
    server, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    context: ssl.SSLContext = client_context(server, user)

    def url(what: str) -> str:
        return str(server["server"]) + PATH.format("default", NAME, what)

    return {
        "console": lambda: stream(url("console"), context),
        "exec": lambda: executed(cluster, pod),
        "portforward": lambda: stream(url(f"portforward/{PORT}"), context),
        "port-forward": lambda: forwarded(cluster, pod),
    }


async def _measure(openers: Openers) -> Figures:
    figures: Figures = {}
    for _unused in range(ROUNDS):
        for name, open_connection in openers.items():
            for measured, act in (("down", _send_down), ("up", _send_up), ("echo", _echo)):
                async with open_connection() as connection:
                    figures.setdefault((name, measured), []).append(await act(connection))
    return figures


async def _send_down(connection: Connection) -> float:
    began, left = time.monotonic(), BYTES
    await connection.send(b"s%d\n" % BYTES)
    while left > 0:
        left -= len(await _some(connection))
    return BYTES / (time.monotonic() - began) / 1e6


async def _send_up(connection: Connection) -> float:
    chunk = bytes(CHUNK_BYTES)
    await connection.send(b"t%d\n" % BYTES)
    began = time.monotonic()
    for _unused in range(BYTES // CHUNK_BYTES):
        await connection.send(chunk)
    await _some(connection)
    return BYTES / (time.monotonic() - began) / 1e6


async def _echo(connection: Connection) -> float:
    await connection.send(b"e0\n")
    taken = []
    for _unused in range(ECHOES):
        began = time.monotonic()
        await connection.send(b"k")
        await _some(connection)
        taken.append(time.monotonic() - began)
    return statistics.median(taken) * 1e3


async def _some(connection: Connection) -> bytes:
    if not (data := await connection.receive()):
        raise RuntimeError("the connection ended")
    return data


def _judge(figures: Figures, report: Report) -> Iterator[str]:
    """Report each figure beside its peer's; yield the missed bars."""
    for ours, peers in PEERS.items():
        for measured in ("down", "up", "echo"):
            own, other = (statistics.median(figures[name, measured]) for name in (ours, peers))
            ratio, is_latency = round(own / other, 2), measured == "echo"
            target = LATENCY_AT_MOST if is_latency else THROUGHPUT_AT_LEAST
            figure = {"name": f"{ours}-{measured}", "value": round(own, 2), "unit": "ms" if is_latency else "MB/s"}
            report({**figure, "peer": peers, "peer_value": round(other, 2), "ratio": ratio, "target": target})
            if ratio > target if is_latency else ratio < target:
                yield f"{ours} {measured}: {ratio} of kubectl {peers}, the bar is {target}"


def _guest_figures(cluster: Cluster) -> Iterator[dict[str, Any]]:
    """Measure the emulated guest's own serial port: a logged-in user's echo, and its output."""
    with open_stream(cluster.kubeconfig, NAME, "console") as console:
        for expected, answer in ((b"login:", b"root\n"), (b"Password:", b"virtops\n"), (b"# ", b"")):
            console.expect(expected)
            console.send(answer)
        taken = []
        for letter in string.ascii_lowercase[:GUEST_ECHOES]:
            began = time.monotonic()
            console.send(letter.encode())
            console.expect(letter.encode())
            taken.append(time.monotonic() - began)
        yield {"name": "console-guest-echo", "value": round(statistics.median(taken) * 1e3, 2), "unit": "ms"}
        console.send(b"\x03\n")
        began = time.monotonic()
        console.send(b"head -c %d /dev/zero | tr '\\000' x; echo e''nd\n" % GUEST_BYTES)
        console.expect(b"end")
        rate = GUEST_BYTES / (time.monotonic() - began) / 1e6
        yield {"name": "console-guest-down", "value": round(rate, 3), "unit": "MB/s"}
