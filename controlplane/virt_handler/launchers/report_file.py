# Copyright: (c) 2026, virtops.kubevirt contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read a launcher's report from a descriptor that came from outside. Not what is in it.

What is a regular file by its word may keep who reads it for ever (/proc/kmsg, a network's file), and nothing ends that
but itself. So each is read in a thread of its own, of which there are so many at most, until a deadline.
"""

from __future__ import annotations

import asyncio
import os
import stat
from collections.abc import Callable

from controlplane.api.launch_plan import REPORT_LIMIT_BYTES
from controlplane.domain import layout
from controlplane.links.node.descriptor_closer import DescriptorCloser
from controlplane.process import threads
from controlplane.virt_handler.launchers.ports import NodeError, Refused

AT_ONCE = 16
"""Threads in all. One that does not end keeps its place, so a node gone wrong has no more than these."""
_SECONDS = 10.0


class Reports:
    """Reads reports: those of one node."""

    def __init__(self, read: Callable[[int], bytes] | None = None, seconds: float = _SECONDS) -> None:
        """read: reads a descriptor and closes it, however long that takes. seconds: for each, with its wait."""
        self._read = read_whole if read is None else read
        self._seconds = seconds
        self._places = asyncio.Semaphore(AT_ONCE)
        self._unwanted = DescriptorCloser()

    async def read(self, descriptor: int) -> bytes:
        """Read a report, up to its limit; it is closed, whatever comes. NodeError."""
        try:
            async with asyncio.timeout(self._seconds):
                return await (await self._begin(descriptor))
        except TimeoutError as error:
            raise NodeError(f"{layout.REPORT} was not read within {self._seconds:g} s") from error

    async def _begin(self, descriptor: int) -> asyncio.Future[bytes]:
        outcome: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        def settle(data: bytes | None, error: BaseException | None) -> None:
            self._places.release()
            if outcome.done():
                return  # nobody waits for it any more
            if error is not None:
                outcome.set_exception(error)
            else:
                outcome.set_result(data or b"")

        try:
            await self._places.acquire()
        except BaseException:
            self._unwanted.add(descriptor)
            raise
        try:
            threads.start_thread("report", lambda: self._read(descriptor), settle)
        except RuntimeError as error:
            self._places.release()
            self._unwanted.add(descriptor)
            raise NodeError(f"there is no thread to read {layout.REPORT} in") from error
        return outcome


def read_whole(descriptor: int) -> bytes:
    """Read up to the limit and close. NodeError; Refused when it is no file, or longer.

    A file of Python's own is made of what is known to be one only.
    """
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Refused("virt-node gave something else than a file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            data = file.read(REPORT_LIMIT_BYTES + 1)
    except OSError as error:
        raise NodeError(f"{layout.REPORT} cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)
    if len(data) > REPORT_LIMIT_BYTES:
        raise Refused(f"{layout.REPORT} has more than {REPORT_LIMIT_BYTES} bytes")
    return data
