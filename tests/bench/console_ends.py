# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The two ends of the benchmark `console`: a program in the guest's place, and the ways to reach it."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Protocol

import aiohttp

from controlplane.domain import layout
from tests.e2e.cluster import Cluster
from tests.e2e.streams import PROTOCOL

PORT = 9000
CHUNK_BYTES = 32 * 1024

ANSWERING = """
import os, sys


def answer(read, write):
    # "e0": echo all; "s" and a number: send so many bytes; "t" and a number: take so many, then answer "k".
    line = b""
    while not line.endswith(b"\\n"):
        some = read(1)
        if not some:
            return
        line += some
    count = int(line[1:] or b"0")
    if line[:1] == b"s":
        while count > 0:
            write(bytes(min(count, 32768)))
            count -= 32768
    while line[:1] == b"t" and count > 0:
        count -= len(read(65536))
    if line[:1] == b"t":
        write(b"k")
    while some := read(65536):
        write(some)


def write_all(descriptor, data):
    while data:
        data = data[os.write(descriptor, data):]
"""
ON_STANDARD_STREAMS = ANSWERING + "\nanswer(lambda count: os.read(0, count), lambda data: write_all(1, data))\n"
ON_SOCKETS = f"""{ANSWERING}
import socket, threading


def serve(listening):
    while True:
        connection, _ = listening.accept()
        threading.Thread(target=serve_one, args=(connection,), daemon=True).start()


def serve_one(connection):
    with connection:
        try:
            answer(connection.recv, connection.sendall)
        except OSError:
            pass


os.unlink({layout.SERIAL_SOCKET!r})
console = socket.socket(socket.AF_UNIX)
console.bind({layout.SERIAL_SOCKET!r})
console.listen()
threading.Thread(target=serve, args=(console,), daemon=True).start()
port = socket.create_server(("", {PORT}))
threading.Thread(target=serve, args=(port,), daemon=True).start()
print("ready", flush=True)
sys.stdin.read()
"""


class Connection(Protocol):
    """A connection to the program in the guest's place."""

    async def send(self, data: bytes) -> None:
        """Send bytes; wait while the other end does not read."""

    async def receive(self) -> bytes:
        """Return the next bytes; none at the end."""


class Stream:
    """A WebSocket of this control plane."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse) -> None:
        self._websocket = websocket

    async def send(self, data: bytes) -> None:
        await self._websocket.send_bytes(data)

    async def receive(self) -> bytes:
        return await self._websocket.receive_bytes()


class Pipes:
    """A socket, or the standard streams of a program."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def receive(self) -> bytes:
        return await self._reader.read(CHUNK_BYTES)


@asynccontextmanager
async def stream(url: str, context: ssl.SSLContext) -> AsyncIterator[Connection]:
    async with (
        aiohttp.ClientSession() as session,
        session.ws_connect(url, ssl=context, protocols=(PROTOCOL,), max_msg_size=0) as websocket,
    ):
        yield Stream(websocket)


@asynccontextmanager
async def executed(cluster: Cluster, pod: str) -> AsyncIterator[Connection]:
    """Run `kubectl exec`: the program answers on its standard streams."""
    command = (*cluster.program, "exec", "-i", pod, "-c", "compute", "--", "python3", "-u", "-c", ON_STANDARD_STREAMS)
    async with _process(*command) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        yield Pipes(process.stdout, process.stdin)


@asynccontextmanager
async def forwarded(cluster: Cluster, pod: str) -> AsyncIterator[Connection]:
    """Run `kubectl port-forward`, and connect to it."""
    async with _process(*cluster.program, "port-forward", pod, f":{PORT}") as process:
        assert process.stdout is not None
        said = await process.stdout.readline()  # Forwarding from 127.0.0.1:PORT -> 9000
        local = int(said.split(b"->")[0].rpartition(b":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        try:
            yield Pipes(reader, writer)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def _process(*command: str) -> AsyncIterator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=2 * CHUNK_BYTES)
    try:
        yield process
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
