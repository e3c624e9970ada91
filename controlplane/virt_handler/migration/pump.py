# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytes from one connection to another and back, until both have ended. Bounded: who does not take gets no more."""

from __future__ import annotations

import asyncio
from contextlib import suppress

BUFFER_BYTES = 1 << 20
"""Of each direction of a connection."""


async def pump(
    left: tuple[asyncio.StreamReader, asyncio.StreamWriter], right: tuple[asyncio.StreamReader, asyncio.StreamWriter]
) -> None:
    """Copy both ways until both are done, or one breaks. Nothing is raised for a connection that breaks."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(left[0], right[1]))
            group.create_task(_copy(right[0], left[1]))
    except* (OSError, asyncio.IncompleteReadError):
        pass  # the other direction has nothing to come any more
    finally:
        for _unused, writer in (left, right):
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(BUFFER_BYTES):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        with suppress(OSError):
            writer.write_eof()
    else:  # TLS: its end is the connection's
        writer.close()
