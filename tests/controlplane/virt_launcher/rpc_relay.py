# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A relay between a libvirt client and its libvirtd. It recognizes RPC messages and can break the connection at each.

Tests break a migration at a step, not at a time: before a call arrives, or before its reply does.
"""

from __future__ import annotations

import asyncio
import os
import pathlib
import struct
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

REMOTE = 0x20008086
"""libvirt's RPC program for everything except keep-alives."""
STEPS = {302: "begin", 303: "prepare", 305: "perform", 306: "finish", 307: "confirm"}
"""Procedure numbers of the five steps of a client-managed migration."""
_CALL, _REPLY = 0, 1
_HEADER = struct.Struct(">IIIiiIi")
_LONGEST = 32 << 20


@dataclass(frozen=True)
class Message:
    """A libvirt RPC message at the relay."""

    step: str
    is_reply: bool


Rule = Callable[[Message], str]
"""Decides about a message: "" forwards it, "cut" breaks the connection before it, "cut after" after it."""


@dataclass
class Relay:
    """Listens at path and forwards to target."""

    path: pathlib.Path
    target: pathlib.Path
    rule: Rule = lambda message: ""
    also: list[Relay] = field(default_factory=list)
    """Relays that break together with this one: a client that ends closes all its connections."""
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def open(self) -> None:
        self._server = await asyncio.start_unix_server(self._connected, self.path)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
        self.cut()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with suppress(FileNotFoundError):
            os.unlink(self.path)

    def cut(self) -> None:
        """Close all connections, as a broken tunnel does."""
        for writer in tuple(self._writers):
            writer.transport.abort()
        self._writers.clear()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_unix_connection(self.target)
        self._writers |= {writer, back}
        self._tasks |= {
            asyncio.create_task(self._carry(reader, back)),
            asyncio.create_task(self._carry(there, writer)),
        }

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            while True:
                head = await reader.readexactly(_HEADER.size)
                length, program, _version, procedure, kind, _serial, _status = _HEADER.unpack(head)
                assert _HEADER.size <= length <= _LONGEST
                body = await reader.readexactly(length - _HEADER.size)
                action = self._action(program, procedure, kind)
                if action == "cut":
                    break
                writer.write(head + body)
                await writer.drain()
                if action == "cut after":
                    break
            for relay in (self, *self.also):
                relay.cut()
            return
        writer.close()

    def _action(self, program: int, procedure: int, kind: int) -> str:
        step = STEPS.get(procedure, "") if program == REMOTE and kind in (_CALL, _REPLY) else ""
        return self.rule(Message(step, kind == _REPLY)) if step else ""
