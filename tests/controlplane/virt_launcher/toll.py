# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A relay between a client of libvirt and its libvirtd that knows one message from another, and can break at any.

So a migration is broken at a step of it and not at a time: before a call gets there, or before its answer is heard.
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
"""libvirt's program for everything but keep-alives."""
STEPS = {302: "begin", 303: "prepare", 305: "perform", 306: "finish", 307: "confirm"}
"""By the number of the procedure: the five of a migration that a client manages."""
_CALL, _ANSWER = 0, 1
_HEADER = struct.Struct(">IIIiiIi")
_LONGEST = 32 << 20


@dataclass(frozen=True)
class Passing:
    """A message at the relay."""

    step: str
    is_answer: bool


Rule = Callable[[Passing], str]
"""Of a message that is about to pass: "" lets it, "cut" breaks the connection without it, "cut after" with it."""


@dataclass
class Toll:
    """Serves at path what listens at target."""

    path: pathlib.Path
    target: pathlib.Path
    rule: Rule = lambda passing: ""
    also: list[Toll] = field(default_factory=list)
    """Broken as well: both connections of one client end when that one dies."""
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
        """End all connections, as a broken tunnel does."""
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
                verdict = self._judge(program, procedure, kind)
                if verdict == "cut":
                    break
                writer.write(head + body)
                await writer.drain()
                if verdict == "cut after":
                    break
            for item in (self, *self.also):
                item.cut()
            return
        writer.close()

    def _judge(self, program: int, procedure: int, kind: int) -> str:
        step = STEPS.get(procedure, "") if program == REMOTE and kind in (_CALL, _ANSWER) else ""
        return self.rule(Passing(step, kind == _ANSWER)) if step else ""
